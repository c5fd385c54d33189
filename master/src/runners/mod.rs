//! Runners and the key wheel (§7.3): functions that run in the master, for local callers.

mod jobs;
mod manage;
mod wheel;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use brine_protocol::ids::{Jid, MinionId};
use brine_protocol::value::{Value, ValueExt, map};
use futures_util::FutureExt;

use crate::master::Master;
use crate::requests::check_local_caller;

/// What a runner returns, or the one line that says why not.
pub(crate) type Outcome = Result<Value, String>;

/// Every runner there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Runner {
    JobsLookupJid,
    JobsPrintJob,
    JobsListJobs,
    JobsListJob,
    JobsActive,
    ManageStatus,
    ManageUp,
    ManageDown,
}

const RUNNERS: [(&str, Runner); 8] = [
    ("jobs.active", Runner::JobsActive),
    ("jobs.list_job", Runner::JobsListJob),
    ("jobs.list_jobs", Runner::JobsListJobs),
    ("jobs.lookup_jid", Runner::JobsLookupJid),
    ("jobs.print_job", Runner::JobsPrintJob),
    ("manage.down", Runner::ManageDown),
    ("manage.status", Runner::ManageStatus),
    ("manage.up", Runner::ManageUp),
];

/// Starts a runner and answers at once; the result comes as `salt/run/<jid>/ret`.
pub(crate) fn answer_runner(master: &Arc<Master>, load: &Value) -> Value {
    if let Err(error) = check_local_caller(master, load) {
        return map([("error", error)]);
    }
    let Some(fun) = load.get_text("fun").map(str::to_owned) else {
        return error("SaltInvocationError", "Exception occurred while introspecting runner: no fun was given");
    };
    let jid = Jid::now();
    let tag = format!("salt/run/{jid}");
    let call = Call::from_load(load);
    let mut data = map([
        ("fun", Value::from(format!("runner.{fun}"))),
        ("jid", Value::from(&jid)),
        ("user", Value::from(load.get_text("user").unwrap_or("UNKNOWN"))),
        ("fun_args", Value::Array(call.shown())),
    ]);
    master.bus.settle();
    master.bus.fire(format!("{tag}/new"), data.clone());
    let (running, ret) = (Arc::clone(master), format!("{tag}/ret"));
    tokio::spawn(async move {
        // Whoever waits for the result waits without an end, so there is one whatever happens.
        let work = AssertUnwindSafe(run(&running, &fun, &call)).catch_unwind();
        let outcome = work
            .await
            .unwrap_or_else(|_panic| Err(format!("{fun} failed: this is a bug in salt-master, please report it")));
        data.insert("success", outcome.is_ok());
        data.insert("return", outcome.unwrap_or_else(Value::from));
        running.bus.fire_result(ret, data);
    });
    map([("tag", Value::from(tag)), ("jid", Value::from(&jid))])
}

/// Runs a runner for somebody who was found to be allowed to, with the events of a run; `load` has its `arg`.
pub(crate) async fn run_for(master: &Arc<Master>, fun: &str, load: &Value, user: &str) -> Outcome {
    let jid = Jid::now();
    let call = Call::from_load(load);
    let mut data = map([
        ("fun", Value::from(format!("runner.{fun}"))),
        ("jid", Value::from(&jid)),
        ("user", Value::from(user)),
        ("fun_args", Value::Array(call.shown())),
    ]);
    master.bus.fire(format!("salt/run/{jid}/new"), data.clone());
    let outcome = run(master, fun, &call).await;
    data.insert("success", outcome.is_ok());
    data.insert("return", outcome.clone().unwrap_or_else(Value::from));
    master.bus.fire_result(format!("salt/run/{jid}/ret"), data);
    outcome
}

async fn run(master: &Arc<Master>, fun: &str, call: &Call) -> Outcome {
    let Some((_, runner)) = RUNNERS.iter().find(|(name, _)| *name == fun) else {
        let names: Vec<_> = RUNNERS.iter().map(|(name, _)| *name).collect();
        return Err(format!("'{fun}' is not available. Runners of this master: {}", names.join(", ")));
    };
    match runner {
        Runner::JobsLookupJid => jobs::lookup_jid(master, call).await,
        Runner::JobsPrintJob => jobs::print_job(master, call).await,
        Runner::JobsListJob => jobs::list_job(master, call).await,
        Runner::JobsListJobs => jobs::list_jobs(master, call).await,
        Runner::JobsActive => jobs::active(master).await,
        Runner::ManageStatus => manage::status(master, call).await,
        Runner::ManageUp => Ok(manage::status(master, call).await?.get("up").cloned().unwrap_or(Value::Nil)),
        Runner::ManageDown => Ok(manage::status(master, call).await?.get("down").cloned().unwrap_or(Value::Nil)),
    }
}

/// Runs a wheel function and answers with its result.
pub(crate) async fn answer_wheel(master: &Arc<Master>, load: &Value) -> Value {
    if let Err(error) = check_local_caller(master, load) {
        return map([("error", error)]);
    }
    let Some(fun) = load.get_text("fun").map(str::to_owned) else {
        return error("SaltInvocationError", "no wheel function was given");
    };
    let jid = Jid::now();
    let tag = format!("salt/wheel/{jid}");
    let mut data = map([
        ("fun", Value::from(format!("wheel.{fun}"))),
        ("jid", Value::from(&jid)),
        ("tag", Value::from(tag.as_str())),
        ("user", Value::from(load.get_text("user").unwrap_or("UNKNOWN"))),
    ]);
    master.bus.settle();
    master.bus.fire(format!("{tag}/new"), data.clone());
    let outcome = wheel::run(master, &fun, &Call::from_load(load));
    data.insert("success", outcome.is_ok());
    data.insert("return", outcome.unwrap_or_else(Value::from));
    master.bus.fire_result(format!("{tag}/ret"), data.clone());
    map([("tag", Value::from(tag)), ("data", data)])
}

/// What follows from a key's removal: its session ends, and the publish key that its minion knows is replaced.
pub(crate) fn key_deleted(master: &Master, id: &MinionId) {
    master.sessions.forget(id);
    let data = map([("result", Value::from(true)), ("act", Value::from("delete")), ("id", Value::from(id))]);
    master.bus.fire("salt/key", data);
    if master.opts.rotate_aes_key {
        master.rotate.notify_one();
    }
}

fn error(name: &str, message: &str) -> Value {
    map([("error", map([("name", name), ("message", message)]))])
}

/// The arguments of a call, by position or by name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Call {
    args: Vec<Value>,
    kwargs: Vec<(String, Value)>,
}

impl Call {
    fn from_load(load: &Value) -> Self {
        // `arg` and `kwarg` of the load; Python's RunnerClient packs both once more into `kwarg`
        let packed = load.get("kwarg").filter(|kwarg| {
            kwarg.entries().is_some_and(|entries| entries.len() == 2)
                && kwarg.get_list("arg").is_some()
                && kwarg.get("kwarg").is_some_and(|inner| inner.entries().is_some())
        });
        let load = packed.unwrap_or(load);
        let args = load.get_list("arg").unwrap_or_default();
        let (args, mut kwargs) = brine_protocol::job::split_kwargs(args);
        for (name, value) in load.get("kwarg").and_then(ValueExt::entries).unwrap_or_default() {
            if let Some(name) = name.text().filter(|name| !name.starts_with("__")) {
                kwargs.push((name.to_owned(), value.clone()));
            }
        }
        Self { args, kwargs }
    }

    /// The argument with this name, or at this place.
    fn get(&self, place: usize, name: &str) -> Option<&Value> {
        self.named(name).or_else(|| self.args.get(place)).filter(|value| !value.is_nil())
    }

    fn named(&self, name: &str) -> Option<&Value> {
        self.kwargs.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    fn jid(&self, runner: &str) -> Result<Jid, String> {
        let given = self
            .get(0, "jid")
            .ok_or_else(|| format!("Passed invalid arguments to {runner}: no jid. Usage: {runner} JID"))?;
        // A jid has only digits; a command line may have made a number of them.
        let text = given.python_str();
        Jid::try_from(text.as_str()).map_err(|e| format!("Passed invalid arguments to {runner}: {e}"))
    }

    fn shown(&self) -> Vec<Value> {
        let mut shown = self.args.clone();
        if !self.kwargs.is_empty() {
            shown.push(map(self.kwargs.iter().map(|(name, value)| (name.as_str(), value.clone()))));
        }
        shown
    }
}
