//! Runners and the key wheel (§7.3): functions that run in the master, for local callers.

mod cache;
mod call;
mod connected;
mod event;
mod fileserver;
mod jobs;
mod manage;
mod wheel;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use brine_protocol::ids::{Jid, MinionId};
use brine_protocol::value::{Value, ValueExt, map};
use futures_util::FutureExt;

use crate::access::{self, Caller, Denied, From};
use crate::audit::Record;
use crate::fileserver::FileRequest;
use crate::master::Master;
use call::Call;

/// What a runner returns, or the one line that says why not.
pub(crate) type Outcome = Result<Value, String>;

/// Every runner there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Runner {
    /// `cache.*`, by the folder below `cachedir`.
    Cache(&'static str),
    /// `doc.runner`: what this table says.
    Doc,
    EventSend,
    Files(FileRequest),
    JobsActive,
    JobsExitSuccess,
    JobsLastRun,
    JobsListJob,
    JobsListJobs,
    JobsLookupJid,
    JobsPrintJob,
    ManageAlived(bool),
    ManageDown,
    ManageStatus,
    ManageUp,
}

/// By name, each with what it does.
const RUNNERS: [(&str, Runner, &str); 23] = [
    ("cache.grains", Runner::Cache("grains"), "Returns the cached grains of the minions of a target (tgt, tgt_type)."),
    ("cache.mine", Runner::Cache("mine"), "Returns the cached mine data of the minions of a target (tgt, tgt_type)."),
    ("cache.pillar", Runner::Cache("pillar"), "Returns the cached pillar of the minions of a target (tgt, tgt_type)."),
    ("doc.runner", Runner::Doc, "Returns the documentation of the runners."),
    ("event.send", Runner::EventSend, "Fires an event on the master's bus: a tag, and data as a dict."),
    (
        "fileserver.dir_list",
        Runner::Files(FileRequest::DirList),
        "Lists the folders of the file server (saltenv=base).",
    ),
    (
        "fileserver.empty_dir_list",
        Runner::Files(FileRequest::EmptyDirs),
        "Lists the empty folders of the file server (saltenv=base).",
    ),
    ("fileserver.envs", Runner::Files(FileRequest::Envs), "Lists the environments of the file server."),
    ("fileserver.file_list", Runner::Files(FileRequest::List), "Lists the files of the file server (saltenv=base)."),
    (
        "fileserver.symlink_list",
        Runner::Files(FileRequest::Symlinks),
        "Lists the symbolic links of the file server and where they lead (saltenv=base).",
    ),
    ("jobs.active", Runner::JobsActive, "Returns the jobs that minions still run."),
    ("jobs.exit_success", Runner::JobsExitSuccess, "Returns for each minion whether a job ended well there (jid)."),
    ("jobs.last_run", Runner::JobsLastRun, "Returns the last job, or the last one of a function or target."),
    ("jobs.list_job", Runner::JobsListJob, "Returns all about one job (jid)."),
    ("jobs.list_jobs", Runner::JobsListJobs, "Lists the jobs that are kept."),
    ("jobs.lookup_jid", Runner::JobsLookupJid, "Returns what the minions returned to a job (jid)."),
    ("jobs.print_job", Runner::JobsPrintJob, "Prints one job with its returns (jid)."),
    ("manage.alived", Runner::ManageAlived(true), "Lists the minions that are connected."),
    ("manage.down", Runner::ManageDown, "Lists the minions that do not answer."),
    ("manage.not_alived", Runner::ManageAlived(false), "Lists the minions that are not connected."),
    ("manage.present", Runner::ManageAlived(true), "Lists the minions that are connected."),
    ("manage.status", Runner::ManageStatus, "Asks all minions and lists who answers (up) and who does not (down)."),
    ("manage.up", Runner::ManageUp, "Lists the minions that answer."),
];

/// Who asks, and for what, if it may.
async fn admit(
    master: &Master,
    form: &'static str,
    load: &Value,
    from: From,
) -> Result<(Caller, String, Call), Denied> {
    let caller = access::admit(master, load, from, form).await?;
    let invalid = || Denied::invocation(format!("no {form} function was named"));
    let fun = load.get_text("fun").ok_or_else(invalid)?.to_owned();
    let call = Call::from_load(load);
    caller.may_call(form, &fun, call.args(), call.kwargs()).inspect_err(|denied| {
        master.refusals.log(&format!("a {form} request for {fun} was refused: {}", denied.message));
        let record = Record::new(form, "refused").by(&caller).call(fun.as_str(), &call.shown());
        master.audit.note(record.put("why", denied.message.as_str()));
    })?;
    Ok((caller, fun, call))
}

/// Writes down that a call begins. An error is for the caller: what has to be written down and cannot be is not done.
fn begun(master: &Master, record: &Record) -> Result<(), Value> {
    master.audit.write(record.clone()).map_err(|why| map([("error", Denied::invocation(why.to_owned()).value())]))
}

/// Starts a runner and answers at once; the result comes as `salt/run/<jid>/ret`.
pub(crate) async fn answer_runner(master: &Arc<Master>, load: &Value, from: From) -> Value {
    let (caller, fun, call) = match admit(master, "runner", load, from).await {
        Ok(admitted) => admitted,
        Err(denied) => return map([("error", denied.value())]),
    };
    let jid = Jid::now();
    let tag = format!("salt/run/{jid}");
    let mut data = map([
        ("fun", Value::from(format!("runner.{fun}"))),
        ("jid", Value::from(&jid)),
        ("user", Value::from(caller.name.as_str())),
        ("fun_args", Value::Array(call.shown())),
    ]);
    let record =
        |outcome| Record::new("runner", outcome).by(&caller).call(&fun, &call.shown()).put("jid", jid.as_str());
    if let Err(refused) = begun(master, &record("allowed")) {
        return refused;
    }
    let (succeeded, failed) = (record("succeeded"), record("failed"));
    master.bus.settle();
    master.bus.fire(format!("{tag}/new"), data.clone());
    let (running, ret) = (Arc::clone(master), format!("{tag}/ret"));
    tokio::spawn(async move {
        // Whoever waits for the result waits without an end, so there is one whatever happens.
        let work = AssertUnwindSafe(run(&running, &fun, &call)).catch_unwind();
        let outcome = work
            .await
            .unwrap_or_else(|_panic| Err(format!("{fun} failed: this is a bug in salt-master, please report it")));
        running.audit.note(if outcome.is_ok() { succeeded } else { failed });
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
    let Some((_, runner, _)) = RUNNERS.iter().find(|(name, ..)| *name == fun) else {
        let names: Vec<_> = RUNNERS.iter().map(|(name, ..)| *name).collect();
        return Err(format!("'{fun}' is not available. Runners of this master: {}", names.join(", ")));
    };
    match *runner {
        Runner::Cache(bank) => cache::of_minions(master, bank, call).await,
        Runner::Doc => Ok(map(RUNNERS.iter().map(|(name, _, doc)| (*name, Value::from(*doc))))),
        Runner::EventSend => event::send(master, call),
        Runner::Files(what) => fileserver::ask(master, what, call).await,
        Runner::JobsActive => jobs::active(master).await,
        Runner::JobsExitSuccess => jobs::exit_success(master, call).await,
        Runner::JobsLastRun => jobs::last_run(master, call).await,
        Runner::JobsListJob => jobs::list_job(master, call).await,
        Runner::JobsListJobs => jobs::list_jobs(master, call).await,
        Runner::JobsLookupJid => jobs::lookup_jid(master, call).await,
        Runner::JobsPrintJob => jobs::print_job(master, call).await,
        Runner::ManageAlived(yes) => connected::alived(master, yes).await,
        Runner::ManageDown => Ok(manage::status(master, call).await?.get("down").cloned().unwrap_or(Value::Nil)),
        Runner::ManageStatus => manage::status(master, call).await,
        Runner::ManageUp => Ok(manage::status(master, call).await?.get("up").cloned().unwrap_or(Value::Nil)),
    }
}

/// Runs a wheel function and answers with its result.
pub(crate) async fn answer_wheel(master: &Arc<Master>, load: &Value, from: From) -> Value {
    let (caller, fun, call) = match admit(master, "wheel", load, from).await {
        Ok(admitted) => admitted,
        Err(denied) => return map([("error", denied.value())]),
    };
    let jid = Jid::now();
    let tag = format!("salt/wheel/{jid}");
    let mut data = map([
        ("fun", Value::from(format!("wheel.{fun}"))),
        ("jid", Value::from(&jid)),
        ("tag", Value::from(tag.as_str())),
        ("user", Value::from(caller.name.as_str())),
        ("fun_args", Value::Array(call.shown())),
    ]);
    let record = |outcome| Record::new("wheel", outcome).by(&caller).call(&fun, &call.shown()).put("jid", jid.as_str());
    if let Err(refused) = begun(master, &record("allowed")) {
        return refused;
    }
    master.bus.settle();
    master.bus.fire(format!("{tag}/new"), data.clone());
    let outcome = wheel::run(master, &fun, &call).await;
    master.audit.note(record(if outcome.is_ok() { "succeeded" } else { "failed" }));
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
