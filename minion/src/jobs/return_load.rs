//! The loads of `_return` requests (PROTOCOL §6.2).

use brine_protocol::ids::MinionId;
use brine_protocol::job::JobLoad;
use brine_protocol::value::{Value, ValueExt, map};

use super::outcomes::{Called, Outcomes};
use super::source::{AsJid, OWN_ARGS};
use crate::returns::AS_JID;
use crate::weight::weight;

/// A refusal repeats the job's arguments only while it has at most this many bytes.
const MAX_REFUSAL_BYTES: usize = 4 * 1024;

/// The return of a published job.
pub(super) fn for_publication(id: &MinionId, job: &JobLoad, outcomes: Outcomes) -> Value {
    let mut load = map([
        ("cmd", Value::from("_return")),
        ("id", Value::from(id)),
        ("jid", Value::from(&job.jid)),
        ("fun", job.raw.get("fun").cloned().unwrap_or(Value::Nil)),
        ("fun_args", job.raw.get("arg").cloned().unwrap_or(Value::Nil)),
    ]);
    for (key, value) in outcomes.fields() {
        load.insert(key, value);
    }
    for key in ["user", "master_id", "ret_config", "ret_kwargs"] {
        if let Some(value) = job.raw.get(key) {
            load.insert(key, value.clone());
        }
    }
    // The master writes to the returners that are not this host's.
    if let Some(ret) = job.raw.get("ret").filter(|ret| ret.truthy()) {
        load.insert("ret", ret.clone());
    }
    if let Some(metadata) = job.metadata.as_ref().filter(|m| m.entries().is_some()) {
        load.insert("metadata", metadata.clone());
    }
    load
}

/// The return of a job that was refused, and its size.
pub(super) fn for_refusal(id: &MinionId, job: &JobLoad, outcomes: Outcomes) -> (Value, usize) {
    let mut load = for_publication(id, job, outcomes);
    let mut bytes = weight(&load);
    if bytes > MAX_REFUSAL_BYTES {
        // The master knows the large arguments that it sent.
        load.insert("fun_args", Value::Array(Vec::new()));
        for key in ["metadata", "ret_config", "ret_kwargs"] {
            let _ = load.remove(key);
        }
        bytes = weight(&load);
    }
    (load, bytes)
}

/// The return of a job that the minion started by itself, as Salt's of a scheduled job. `as_jid` is the jid that the master sees, if it is
/// another than the job's own.
pub(super) fn for_own(id: &MinionId, job: &JobLoad, outcomes: Outcomes, as_jid: Option<AsJid>) -> Value {
    let mut load = for_publication(id, job, outcomes);
    load.insert("fun_args", job.raw.get(OWN_ARGS).cloned().unwrap_or(Value::Nil));
    load.insert("pid", std::process::id());
    for key in ["user", "ret"] {
        let _ = load.remove(key);
    }
    if let Some(name) = job.raw.get("schedule") {
        load.insert("schedule", name.clone());
    }
    if let Some(as_jid) = as_jid {
        load.insert(AS_JID, as_jid.name());
    }
    load
}

/// The return of a call on this host; the master gives the job its jid. `typed` are the arguments as typed, which Salt sends too.
pub(super) fn for_call(id: &MinionId, job: &JobLoad, typed: Value, called: &Called) -> Value {
    let mut load = map([
        ("cmd", Value::from("_return")),
        ("id", Value::from(id)),
        ("jid", Value::from("req")),
        ("fun", Value::from(called.fun.as_str())),
        ("fun_args", typed),
        ("return", called.outcome.value.clone()),
        ("retcode", Value::from(called.outcome.retcode)),
        ("usage", called.usage()),
    ]);
    // So that jobs.lookup_jid shows a run of states as one.
    if let Some(out) = called.own_outputter() {
        load.insert("out", out);
    }
    if let Some(plan) = called.plan() {
        load.insert("plan", plan);
    }
    if let Some(metadata) = &job.metadata {
        load.insert("metadata", metadata.clone());
    }
    load
}
