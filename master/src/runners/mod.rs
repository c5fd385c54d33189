//! Runners and the wheel (§7.3): functions that run in the master, for local callers.
//!
//! - `function.rs`  a function: name, parameters, documentation, what it does
//! - `signature.rs` how the arguments of a call fit
//! - `call.rs`      the arguments as callers send them
//! - `running.rs`   what runs now
//! - `ask.rs`       jobs that runners publish and wait for
//! - one file for each module of functions, `wheel/` for the wheel's

mod ask;
mod cache;
mod call;
mod event;
mod fileserver;
mod function;
mod jobs;
mod manage;
mod network;
mod running;
mod salt;
mod signature;
mod small;
mod survey;
mod wheel;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use brine_protocol::ids::{Jid, MinionId};
use brine_protocol::msgpack;
use brine_protocol::value::{Value, ValueExt, map};
use futures_util::FutureExt;

use crate::access::{Caller, Denied};
use crate::audit::Record;
use crate::jobs::{Job, NewReturn};
use crate::master::{Master, now_ms};
use crate::refusals::Who;
use call::Call;
pub(crate) use function::Outcome;
use function::{Failure, Function, RunJob};
pub(crate) use running::Runs;

/// Every runner there is, by module.
const RUNNERS: &[&[Function]] = &[
    &cache::FUNCTIONS,
    &cache::banks::FUNCTIONS,
    &event::FUNCTIONS,
    &fileserver::FUNCTIONS,
    &jobs::FUNCTIONS,
    &manage::FUNCTIONS,
    &network::FUNCTIONS,
    &salt::FUNCTIONS,
    &small::FUNCTIONS,
    &survey::FUNCTIONS,
];

/// The documentation of the functions whose names begin so; `command` is what they are called with.
fn documentation(functions: &[&[Function]], command: &str, begins: &str) -> Value {
    let mut all: Vec<&Function> = functions.iter().copied().flatten().collect();
    all.sort_by_key(|function| function.name);
    let wanted = all.into_iter().filter(|function| function.name.starts_with(begins));
    map(wanted.map(|function| (function.name, function.documentation(command))))
}

/// The function of this name; or as Salt says that there is none: the documentation of those whose names begin like it, if any do.
fn find(functions: &'static [&'static [Function]], fun: &str) -> Result<&'static Function, Failure> {
    if let Some(function) = functions.iter().copied().flatten().find(|function| function.name == fun) {
        return Ok(function);
    }
    match documentation(functions, "", fun) {
        docs if !fun.is_empty() && docs.truthy() => Err(Failure(docs)),
        _ => {
            let shown = brine_protocol::text::short(fun, 128);
            Err(Failure::from(format!("'{shown}' is not available.")))
        }
    }
}

/// For what a caller asks, if it may.
fn admit(master: &Master, form: &'static str, load: &Value, caller: &Caller) -> Result<(String, Call), Denied> {
    let invalid = || Denied::invocation(format!("no {form} function was named"));
    let fun = load.get_text("fun").ok_or_else(invalid)?.to_owned();
    let call = Call::from_load(load);
    caller.may_call(form, &fun, call.args(), call.kwargs()).inspect_err(|denied| {
        let said = format!("a {form} request for {fun} was refused: {}", denied.message);
        master.refusals.log(Who::User(&caller.name), &said);
        let record = Record::new(form, "refused").by(caller).call(fun.as_str(), &call.shown());
        master.audit.note(record.put("why", denied.message.as_str()));
    })?;
    Ok((fun, call))
}

/// Writes down that a call begins. An error is for the caller: what has to be written down and cannot be is not done.
fn begun(master: &Master, record: &Record) -> Result<(), Value> {
    master.audit.write(record.clone()).map_err(|why| map([("error", Denied::invocation(why.to_owned()).value())]))
}

/// The first event of a run, to which its result is added.
fn announcement(form: &str, fun: &str, job: &RunJob, call: &Call) -> Value {
    map([
        ("fun", Value::from(format!("{form}.{fun}"))),
        ("jid", Value::from(&job.jid)),
        ("user", Value::from(job.user.as_str())),
        ("fun_args", Value::Array(call.shown())),
    ])
}

/// The answer to whoever is not served.
pub(crate) fn refused(denied: &Denied) -> Value {
    map([("error", denied.value())])
}

/// Starts a runner and answers at once; the result comes as `salt/run/<jid>/ret`.
pub(crate) async fn answer_runner(master: &Arc<Master>, load: &Value, caller: Caller) -> Value {
    let (fun, call) = match admit(master, "runner", load, &caller) {
        Ok(admitted) => admitted,
        Err(denied) => return refused(&denied),
    };
    let jid = Jid::now();
    let job = Arc::new(RunJob { tag: format!("salt/run/{jid}"), jid, user: caller.name.clone() });
    let record =
        |outcome| Record::new("runner", outcome).by(&caller).call(&fun, &call.shown()).put("jid", job.jid.as_str());
    if let Err(refused) = begun(master, &record("allowed")) {
        return refused;
    }
    let (succeeded, failed) = (record("succeeded"), record("failed"));
    let started = map([("tag", Value::from(job.tag.as_str())), ("jid", Value::from(&job.jid))]);
    master.bus.settle();
    let master = Arc::clone(master);
    tokio::spawn(async move {
        let outcome = run(&master, &fun, &call, &job).await;
        master.audit.note(if outcome.is_ok() { succeeded } else { failed });
    });
    started
}

/// Runs a runner for somebody who was found to be allowed to, with the events of a run; `load` has its `arg`.
pub(crate) async fn run_for(master: &Arc<Master>, fun: &str, load: &Value, user: &str) -> Outcome {
    let jid = Jid::now();
    let job = Arc::new(RunJob { tag: format!("salt/run/{jid}"), jid, user: user.to_owned() });
    run(master, fun, &Call::from_load(load), &job).await
}

/// Runs a runner, with its events; what it returned is kept with the jobs.
async fn run(master: &Arc<Master>, fun: &str, call: &Call, job: &Arc<RunJob>) -> Outcome {
    let mut data = announcement("runner", fun, job, call);
    master.bus.fire(format!("{}/new", job.tag), data.clone());
    let work = async {
        let _running = master.runs.begin(&job.jid, &data).ok_or("too many runners are running: try again later")?;
        find(RUNNERS, fun)?.call(master, job, call).await
    };
    // Whoever waits for the result waits without an end, so there is one whatever happens.
    let outcome = AssertUnwindSafe(work)
        .catch_unwind()
        .await
        .unwrap_or_else(|_panic| Err(format!("{fun} failed: this is a bug in salt-master, please report it").into()));
    conclude(&mut data, &outcome);
    keep(master, job, &data).await;
    master.bus.fire_result(format!("{}/ret", job.tag), data);
    outcome
}

fn conclude(data: &mut Value, outcome: &Outcome) {
    data.insert(
        "return",
        match outcome {
            Ok(value) | Err(Failure(value)) => value.clone(),
        },
    );
    data.insert("success", outcome.is_ok());
    if outcome.is_err() {
        data.insert("retcode", 1);
    }
}

/// `runner_returns`: a run is a job of the master's own, to be looked up by its jid as any other.
async fn keep(master: &Arc<Master>, job: &RunJob, data: &Value) {
    if !(master.opts.runner_returns && master.opts.job_cache.keep) {
        return;
    }
    let Ok(id) = MinionId::try_from(master.opts.id.as_str()) else { return };
    let fun = data.get_text("fun").unwrap_or_default().to_owned();
    let success = data.get_bool("success").unwrap_or(false);
    let load = map([
        ("id", Value::from(&id)),
        ("tgt", Value::from(&id)),
        ("jid", Value::from(&job.jid)),
        ("fun", Value::from(fun.as_str())),
        ("user", Value::from(job.user.as_str())),
    ]);
    let mut returned = load.clone();
    returned.insert("return", data.clone());
    let mut packed = msgpack::encode_disk(&returned);
    if packed.len() > master.opts.max_return_size {
        let mut short = data.clone();
        short.insert("return", crate::bus::TRIMMED);
        returned.insert("return", short);
        packed = msgpack::encode_disk(&returned);
    }
    let now = now_ms();
    let of_run = Job {
        jid: job.jid.clone(),
        fun: fun.clone(),
        user: job.user.chars().take(64).collect(),
        tgt: id.to_string(),
        tgt_type: "list".to_owned(),
        started_ms: now,
        minions: Vec::new(),
        load: msgpack::encode_disk(&load),
    };
    let new = NewReturn {
        jid: job.jid.clone(),
        minion: id,
        fun,
        at_ms: now,
        retcode: i64::from(!success),
        success,
        load: packed,
    };
    let kept = match master.jobs.add_job(of_run).await {
        Ok(()) => match master.jobs.add_return(new, &[]).await {
            Ok(adding) => adding.synced().await.map(drop),
            Err(error) => Err(error),
        },
        Err(error) => Err(error),
    };
    if let Err(error) = kept {
        tracing::warn!("what {} returned is not kept: {error}", job.tag);
    }
}

/// Runs a wheel function and answers with its result.
pub(crate) async fn answer_wheel(master: &Arc<Master>, load: &Value, caller: Caller) -> Value {
    let (fun, call) = match admit(master, "wheel", load, &caller) {
        Ok(admitted) => admitted,
        Err(denied) => return refused(&denied),
    };
    let jid = Jid::now();
    let job = Arc::new(RunJob { tag: format!("salt/wheel/{jid}"), jid, user: caller.name.clone() });
    let record =
        |outcome| Record::new("wheel", outcome).by(&caller).call(&fun, &call.shown()).put("jid", job.jid.as_str());
    if let Err(refused) = begun(master, &record("allowed")) {
        return refused;
    }
    let mut data = announcement("wheel", &fun, &job, &call);
    if wheel::hides_arguments(&fun) {
        data.insert("fun_args", crate::bus::TRIMMED);
    }
    data.insert("tag", job.tag.as_str());
    master.bus.settle();
    master.bus.fire(format!("{}/new", job.tag), data.clone());
    let outcome = match find(wheel::FUNCTIONS, &fun) {
        Ok(function) => function.call(master, &job, &call).await,
        Err(unknown) => Err(unknown),
    };
    master.audit.note(record(if outcome.is_ok() { "succeeded" } else { "failed" }));
    conclude(&mut data, &outcome);
    let mut told = data.clone();
    told.insert("return", wheel::told(&fun, data.get("return").unwrap_or(&Value::Nil)));
    master.bus.fire_result(format!("{}/ret", job.tag), told);
    map([("tag", Value::from(job.tag.as_str())), ("data", data)])
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_has_one_name_and_a_sentence() {
        for functions in [RUNNERS, wheel::FUNCTIONS] {
            let mut names: Vec<&str> = functions.iter().copied().flatten().map(|function| function.name).collect();
            let all = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), all);
            for function in functions.iter().copied().flatten() {
                assert!(function.doc.ends_with('.') && function.doc.is_ascii(), "{}", function.name);
            }
        }
    }

    #[test]
    fn what_is_not_there_is_said_as_salt_says_it() {
        let said = |fun: &str| find(RUNNERS, fun).map(|function| function.name).unwrap_err().0;
        assert_eq!(said("nobody.knows"), Value::from("'nobody.knows' is not available."));
        assert_eq!(said(""), Value::from("'' is not available."));
        assert_eq!(said("a\n\u{1b}[0m"), Value::from("'a\\n\\x1b[0m' is not available."));
        let docs = said("jobs.list");
        let names: Vec<_> = docs.entries().unwrap().iter().filter_map(|(name, _)| name.text()).collect();
        assert_eq!(names, ["jobs.list_job", "jobs.list_jobs", "jobs.list_jobs_filter"]);
        assert_eq!(find(RUNNERS, "jobs.list_job").unwrap().name, "jobs.list_job");
    }
}
