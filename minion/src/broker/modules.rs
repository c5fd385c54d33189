//! `brine:host/modules`: lists, describes and refreshes modules; refreshes grains and pillar.

use std::sync::Arc;
use std::time::Duration;

use brine_protocol::ids::Saltenv;
use brine_protocol::value::{Value, list, map};
use brine_sandbox::{Caller, Function, HostError, Module, ModulesOp, Param, Rest};

use super::{MinionBroker, Perform};

/// Upper bound on the environments of one request.
const MAX_ENVIRONMENTS: usize = 64;

impl Perform<ModulesOp> for MinionBroker {
    async fn perform(&self, _: &Caller, op: ModulesOp) -> Result<Value, HostError> {
        let sandbox = self.sandbox()?;
        match op {
            ModulesOp::Names => {
                sandbox.settle_all().await.map_err(HostError::Failed)?;
                Ok(list(sandbox.names()))
            }
            ModulesOp::Describe { name } => {
                sandbox.settle(&name).await;
                Ok(sandbox.describe(&name).map_or(Value::Nil, |module| describe(&module)))
            }
            ModulesOp::States { name } => {
                sandbox.settle(&name).await;
                let module = sandbox.describe(&name);
                let states = module.iter().flat_map(|module| &module.info.states);
                Ok(list(states.filter_map(|f| Some(function(f.state()?, f)))))
            }
            ModulesOp::Sync { saltenv } => {
                let asked = saltenv.unwrap_or_default();
                if asked.len() > MAX_ENVIRONMENTS {
                    return Err(HostError::Denied(format!("at most {MAX_ENVIRONMENTS} environments at once")));
                }
                let envs: Result<Vec<Saltenv>, _> = asked.iter().map(|env| env.parse()).collect();
                let envs = envs.map_err(|e| HostError::Failed(e.to_string()))?;
                let changed = self.modules.sync(envs).await.map_err(HostError::Failed)?;
                if !changed.is_empty() {
                    // Modules may bring grains.
                    self.refresh.modules_changed().await;
                }
                Ok(list(changed))
            }
            ModulesOp::RefreshPillar { clean_cache, timeout_ms } => {
                let refresh = Arc::clone(&self.refresh);
                // It goes on when the job no longer waits.
                let task = tokio::spawn(async move { refresh.pillar_for_jobs(clean_cache).await });
                let done = match timeout_ms {
                    None => task.await,
                    Some(ms) => match tokio::time::timeout(Duration::from_millis(ms), task).await {
                        Ok(done) => done,
                        Err(_) => return Ok(Value::from(false)),
                    },
                };
                let done = done.map_err(|_| HostError::Failed("the minion failed".to_owned()))?;
                done.map(|()| Value::from(true)).map_err(|e| HostError::Failed(e.to_string()))
            }
            ModulesOp::RefreshFacts { grains, pillar } => {
                let done = self.refresh.for_job(grains, pillar).await;
                done.map(|()| Value::from(true)).map_err(|e| HostError::Failed(e.to_string()))
            }
        }
    }
}

fn text(text: &Option<String>) -> Value {
    text.as_deref().map_or(Value::Nil, Value::from)
}

/// Describes a function as `wit/modules.wit` defines it.
fn function(name: &str, f: &Function) -> Value {
    let parameter = |p: &Param| {
        map([
            ("name", Value::from(&*p.name)),
            ("type", Value::from(&*p.ty)),
            ("optional", Value::from(p.optional)),
            ("rest", Value::from(!matches!(p.rest, Rest::No))),
        ])
    };
    map([
        ("name", Value::from(name)),
        ("parameters", list(f.params.iter().map(parameter))),
        ("result", f.result.as_deref().map_or(Value::Nil, Value::from)),
        ("doc", text(&f.doc)),
    ])
}

/// Describes a module as `wit/modules.wit` defines it.
fn describe(module: &Module) -> Value {
    let functions = module.info.functions.iter().map(|f| function(&f.name, f));
    map([
        ("name", Value::from(module.name.as_str())),
        ("doc", text(&module.info.doc)),
        ("sha256", Value::from(module.sha256.to_string())),
        ("origin", Value::from(module.origin.as_str())),
        ("functions", list(functions)),
        ("imports", list(module.info.imports.iter().map(String::as_str))),
    ])
}
