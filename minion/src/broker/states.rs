//! `brine:host/states`: runs states, each in an instance of its own, with the grants of the state's module. Their results
//! are kept before the module that runs them sees them.

use std::sync::Arc;
use std::time::Duration;

use brine_protocol::msgpack::{self, Limits};
use brine_protocol::value::{Value, ValueExt, map};
use brine_sandbox::{Caller, Chunk, Function, HostError, HostOp, Sandbox, StateContext, StatesOp, state_function};

use super::{MinionBroker, Perform};
use crate::jobs::module_of;
use crate::modules::Modules;
use crate::states::{self, Clock, Run};

/// Bounds on the arguments of a state, and on a result that is kept.
const DATA: Limits = Limits { max_bytes: 16 << 20, max_depth: 64, max_items: 1 << 20 };

impl Perform<StatesOp> for MinionBroker {
    async fn perform(&self, caller: &Caller, op: StatesOp) -> Result<Value, HostError> {
        let run = self.runs.of(&caller.job.jid);
        let part = || run.part(caller.number()).map_err(HostError::Failed);
        match op {
            StatesOp::Exists { state } => {
                // Where a module is missing, the file server may have it.
                let _ = self.modules.ensure(module_of(&state)).await;
                Ok(Value::from(find(&*self.sandbox()?, &state).is_some()))
            }
            StatesOp::Run(chunk) => {
                let chunk = self.chunk(chunk)?;
                let call = Call { sandbox: self.sandbox()?, modules: Arc::clone(&self.modules), run };
                Ok(call.run(caller, chunk).await)
            }
            StatesOp::Start(chunk) => {
                let chunk = self.chunk(chunk)?;
                let call = Call { sandbox: self.sandbox()?, modules: Arc::clone(&self.modules), run: Arc::clone(&run) };
                let caller = caller.clone();
                let started = part()?.start(run.turns(), async move { call.run(&caller, chunk).await }).await;
                started.map(Value::from).map_err(HostError::Failed)
            }
            StatesOp::Wait { milliseconds } => {
                let ended = part()?.wait(Duration::from_millis(milliseconds)).await;
                Ok(ended.map_or(Value::Nil, |(number, result)| Value::Array(vec![number.into(), result])))
            }
            StatesOp::Call(call) => match brine_sandbox::check(caller, HostOp::Functions(call)) {
                Ok(HostOp::Functions(call)) => self.perform(caller, call).await,
                Ok(_) => Err(HostError::Failed("this is no call".to_owned())),
                Err(refused) => Err(HostError::Failed(refused.to_string())),
            },
            StatesOp::Settings => self.settings().await,
            StatesOp::Ask { function, arguments, test } => self.ask(caller, &function, &arguments, test).await,
            StatesOp::Fire { name, result } => self.teller.state_result(caller, &name, &result).await,
            StatesOp::Recall { name } => {
                let value = self.runs.remembered().recall(&name);
                Ok(value.map_or(Value::Nil, |value| Value::Array(vec![value])))
            }
            StatesOp::Remember { name, value } => {
                let kept = self.runs.remembered().remember(&name, value.as_ref().map(|value| value.as_slice()));
                kept.map(|()| Value::Nil).map_err(|e| HostError::Failed(format!("{name} cannot be kept: {e}")))
            }
            StatesOp::UsePillar { pillar } => {
                part()?.use_pillar(Value::Map(decode(&pillar, "the pillar")?));
                Ok(Value::Nil)
            }
            StatesOp::Keep { tag, result } => {
                let result = decode(&result, "the result")?;
                run.keep(&tag, &Value::Map(result));
                Ok(Value::Nil)
            }
        }
    }
}

impl MinionBroker {
    /// The settings of a run.
    async fn settings(&self) -> Result<Value, HostError> {
        let master = match self.masters.preferred() {
            Ok(channel) => {
                let load = map([("cmd", "_master_opts"), ("id", self.opts.id.as_str())]);
                let told = channel.request(load).await;
                told.map_err(|e| HostError::Failed(format!("the master cannot be asked for its settings: {e}")))?
            }
            Err(_) => Value::Nil,
        };
        let time = Value::from(Clock::start().start_time());
        Ok(map([("minion", self.opts.config.shown_with(&[])), ("master", master), ("time", time)]))
    }

    /// Calls a function of a state module that is no state.
    async fn ask(&self, caller: &Caller, function: &str, arguments: &[u8], test: bool) -> Result<Value, HostError> {
        let entries = decode(arguments, "the arguments")?;
        let sandbox = self.sandbox()?;
        let Some(found) = find(&sandbox, function) else {
            return Err(HostError::Failed(format!("'{function}' is not available.")));
        };
        let kwargs = states::arguments(function, &found, entries).map_err(HostError::Failed)?;
        let outcome = sandbox.state(caller, function, StateContext::default(), test, kwargs).await;
        match outcome.success {
            true => Ok(outcome.value),
            false => {
                Err(HostError::Failed(outcome.value.text().map_or_else(|| outcome.value.python_str(), str::to_owned)))
            }
        }
    }

    fn chunk(&self, chunk: Chunk) -> Result<(Chunk, Vec<(Value, Value)>), HostError> {
        let arguments = decode(&chunk.arguments, "the arguments")?;
        Ok((chunk, arguments))
    }
}

fn decode(bytes: &[u8], what: &str) -> Result<Vec<(Value, Value)>, HostError> {
    match msgpack::decode(bytes, &DATA) {
        Ok(Value::Map(entries)) => Ok(entries),
        Ok(_) => Err(HostError::Failed(format!("{what} of a state are not a dict"))),
        Err(e) => Err(HostError::Failed(format!("{what} of a state cannot be read: {e}"))),
    }
}

/// Where a state runs and is kept.
struct Call {
    sandbox: Arc<Sandbox>,
    modules: Arc<Modules>,
    run: Arc<Run>,
}

impl Call {
    /// Runs a state and keeps its result. Every failure is a result.
    async fn run(&self, caller: &Caller, (chunk, arguments): (Chunk, Vec<(Value, Value)>)) -> Value {
        let clock = Clock::start();
        let name = arguments.iter().find(|(key, _)| key.text() == Some("name")).map_or(Value::Nil, |(_, v)| v.clone());
        let result = match self.arguments(&chunk, arguments).await {
            Ok(kwargs) => {
                let context = StateContext {
                    id: chunk.id.clone(),
                    sls: chunk.sls.clone(),
                    saltenv: chunk.saltenv.clone(),
                    run_number: chunk.run_number,
                    changed: chunk.changed.clone(),
                };
                let outcome = self.sandbox.state(caller, &chunk.state, context, chunk.test, kwargs).await;
                states::result(&name, outcome)
            }
            Err(why) => states::failed(&name, &why),
        };
        let result = states::with_facts(result, &chunk, &clock);
        self.run.keep(&chunk.tag, &result);
        result
    }

    /// The arguments of a state's function, or Salt's line about what is wrong with them.
    async fn arguments(&self, chunk: &Chunk, arguments: Vec<(Value, Value)>) -> Result<states::Arguments, String> {
        let state = &*chunk.state;
        let trouble = self.modules.ensure(module_of(state)).await.err();
        let Some(function) = find(&self.sandbox, state) else {
            let why = trouble.unwrap_or_else(|| format!("'{state}' is not available."));
            return Err(format!("State '{state}' was not found in SLS '{}'\nReason: {why}\n", chunk.sls));
        };
        if let Some(lines) = states::missing(state, &function, &arguments) {
            return Err(lines);
        }
        states::arguments(state, &function, arguments)
    }
}

/// The function of a state, if there is one.
fn find(sandbox: &Sandbox, state: &str) -> Option<Function> {
    let (module, name) = state.split_once('.')?;
    let described = sandbox.describe(module)?;
    let name = state_function(name);
    described.info.states.iter().find(|function| function.name == name).cloned()
}
