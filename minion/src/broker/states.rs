//! `brine:host/states`: runs states, each in an instance of its own, with the grants of the state's module. Their results
//! are kept before the module that runs them sees them.

use std::sync::Arc;
use std::time::Duration;

use brine_protocol::msgpack::{self, Limits};
use brine_protocol::value::{Value, ValueExt, map};
use brine_sandbox::{Caller, Chunk, Function, HostError, HostOp, Sandbox, StateContext, StatesOp, state_function};

use super::{MinionBroker, Perform};
use crate::connection::{ChannelError, Masters};
use crate::jobs::module_of;
use crate::modules::Modules;
use crate::states::{self, Clock, Run};

/// Bounds on a result that is kept, and on the pillar of a run.
const DATA: Limits = Limits { max_bytes: 16 << 20, max_depth: 64, max_items: 1 << 20 };
/// Bounds on the arguments of a state. Ten states of a job have theirs decoded at once, which takes up to forty bytes for
/// each item.
const ARGUMENTS: Limits = Limits { max_items: 1 << 18, ..DATA };

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
                let call = Call { sandbox: self.sandbox()?, modules: Arc::clone(&self.modules), run };
                Ok(call.run(caller, chunk).await)
            }
            StatesOp::Start(chunk) => {
                let call = Call { sandbox: self.sandbox()?, modules: Arc::clone(&self.modules), run: Arc::clone(&run) };
                let (caller, bytes) = (caller.clone(), chunk.bytes());
                let started = part()?.start(&run, bytes, async move { call.run(&caller, chunk).await }).await;
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
            StatesOp::Settings => self.settings(caller).await,
            StatesOp::Ask { function, arguments, test } => self.ask(caller, &function, &arguments, test).await,
            StatesOp::Fire { name, result } => self.teller.state_result(caller, &name, &result).await,
            StatesOp::Recall { name } => {
                let runs = Arc::clone(&self.runs);
                let value = on_disk(move || runs.remembered().recall(&name)).await?;
                Ok(value.map_or(Value::Nil, |value| Value::Array(vec![value])))
            }
            StatesOp::Remember { name, value } => {
                let (runs, procs) = (Arc::clone(&self.runs), Arc::clone(&self.procs));
                on_disk(move || {
                    let value = value.as_ref().map(|value| value.as_slice());
                    let kept = runs.remembered().remember(&name, value, |jid| procs.runs(jid));
                    kept.map(|()| Value::Nil).map_err(|e| HostError::Failed(format!("{name} cannot be kept: {e}")))
                })
                .await?
            }
            StatesOp::UsePillar { pillar } => {
                part()?.use_pillar(Value::Map(decode(&pillar, &DATA, "the pillar")?));
                Ok(Value::Nil)
            }
            StatesOp::Keep { tag, result } => {
                let result = decode(&result, &DATA, "the result")?;
                run.keep(caller, &tag, &Value::Map(result));
                Ok(Value::Nil)
            }
        }
    }
}

impl MinionBroker {
    /// The settings of a run.
    async fn settings(&self, caller: &Caller) -> Result<Value, HostError> {
        let master = master_opts(&self.masters, caller).await;
        let master =
            master.map_err(|e| HostError::Failed(format!("the master cannot be asked for its settings: {e}")))?;
        // A host without a master is its own: its configuration has what a master would say.
        let master = match master {
            Value::Nil => {
                self.opts.config.as_masters().told_to_minions().map_err(|e| HostError::Failed(e.to_string()))?
            }
            told => told,
        };
        let time = Value::from(Clock::start().start_time());
        Ok(map([("minion", self.opts.config.shown_with(&[])), ("master", master), ("time", time)]))
    }

    /// Calls a function of a state module that is no state.
    async fn ask(&self, caller: &Caller, function: &str, arguments: &[u8], test: bool) -> Result<Value, HostError> {
        let entries = decode(arguments, &ARGUMENTS, "the arguments")?;
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
}

/// What the master of a job says of states; nil without a master.
async fn master_opts(masters: &Masters, caller: &Caller) -> Result<Value, ChannelError> {
    match masters.asker(caller.job.master.as_deref()) {
        Err(ChannelError::NoMaster) => Ok(Value::Nil),
        asker => asker?.request(map([("cmd", "_master_opts"), ("id", &*caller.job.minion_id)])).await,
    }
}

/// Does what takes as long as the disk.
async fn on_disk<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, HostError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| HostError::Failed("the minion failed".to_owned()))
}

fn decode(bytes: &[u8], limits: &Limits, what: &str) -> Result<Vec<(Value, Value)>, HostError> {
    match msgpack::decode(bytes, limits) {
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
    /// Runs a state and keeps its result. Every failure is a result. Only now are the arguments decoded, which take many times
    /// their bytes: a state may have waited for its turn.
    async fn run(&self, caller: &Caller, mut chunk: Chunk) -> Value {
        let clock = Clock::start();
        let encoded = std::mem::take(&mut chunk.arguments);
        let result = match decode(&encoded, &ARGUMENTS, "the arguments") {
            Ok(arguments) => {
                drop(encoded);
                self.result(caller, &chunk, arguments).await
            }
            Err(why) => states::failed(&Value::Nil, &why.to_string()),
        };
        let result = states::with_facts(result, &chunk, &clock);
        self.run.keep(caller, &chunk.tag, &result);
        result
    }

    async fn result(&self, caller: &Caller, chunk: &Chunk, arguments: Vec<(Value, Value)>) -> Value {
        let name = arguments.iter().find(|(key, _)| key.text() == Some("name")).map_or(Value::Nil, |(_, v)| v.clone());
        match self.arguments(chunk, arguments).await {
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
        }
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

#[cfg(test)]
mod tests {
    use brine_kit_peer::key;
    use brine_protocol::config::{Config, Role};
    use brine_sandbox::Grants;

    use super::*;
    use crate::config::MinionOpts;
    use crate::connection::Channel;

    fn caller(master: Option<&str>) -> Caller {
        let mut job = brine_kit_sandbox::job("20260102030405678901", "state.apply");
        job.master = master.map(str::to_owned);
        brine_kit_sandbox::caller(job, "state", Grants::default())
    }

    /// A job of one master is told nothing of another's settings.
    #[tokio::test]
    async fn settings_are_of_the_jobs_own_master() {
        let folder = tempfile::tempdir().unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        std::fs::create_dir(folder.path().join("pki")).unwrap();
        key(0).write_private(&folder.path().join("pki/minion.pem")).unwrap();
        let yaml = format!("id: m1\nmaster: 127.0.0.1\nmaster_port: {port}\npki_dir: {}/pki", folder.path().display());
        let config = Config::from_yaml(&yaml, &folder.path().join("minion"), Role::Minion).unwrap();
        let opts = MinionOpts::from_config(config, None).unwrap();
        let masters = Masters::new(Some(Channel::signed_in_at(opts, &key(1))));
        let other = caller(Some(&key(2).public().fingerprint()));
        tokio::select! {
            _ = listener.accept() => panic!("the job's master is another"),
            told = master_opts(&masters, &other) => {
                assert!(matches!(told, Err(ChannelError::NotSignedIn)), "{told:?}");
            }
        }
        let own = key(1).public().fingerprint();
        for own in [caller(None), caller(Some(&own))] {
            tokio::select! {
                asked = listener.accept() => drop(asked.unwrap()),
                told = master_opts(&masters, &own) => panic!("it was not asked: {told:?}"),
            }
        }
        let none = master_opts(&Masters::new(None), &caller(None)).await;
        assert_eq!(none.unwrap(), Value::Nil);
    }
}
