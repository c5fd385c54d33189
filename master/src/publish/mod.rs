//! `publish` (§7.2): a local caller's job, resolved, stored, published.

mod targets;

pub(crate) use targets::resolve;

use std::sync::Arc;

use brine_protocol::ids::{Jid, MinionId};
use brine_protocol::msgpack;
use brine_protocol::target::{Resolved, TargetError};
use brine_protocol::value::{Value, ValueExt, map};

use crate::access::{Caller, Denied, Extent, functions};
use crate::audit::Record;
use crate::jobs::{Job, StoreError};
use crate::master::{Master, now_ms};
use crate::publisher::Topics;
use crate::refusals::Who;
use crate::requests::{Fault, fun_text, strip_secrets};

/// How long after a job of a Python client the event `publish` comes, which nobody waits for. What is on the bus before 3007's client first
/// looks, a quick return too, it does not see until another event comes (docs/interop.md): this is the one that comes.
const AFTERWARDS: std::time::Duration = std::time::Duration::from_millis(150);

/// What of the caller's `kwargs` goes into the published load (§5.2).
const PASSED_ON: [&str; 9] = [
    "delimiter",
    "ret_config",
    "ret_kwargs",
    "metadata",
    "module_executors",
    "executor_opts",
    "start_event",
    "master_id",
    "id",
];
/// Characters of a target that the job list shows.
const TARGET_TEXT_MAX: usize = 1_024;

/// Answers a `publish` request of whoever is not let in; `load` is what is known of it.
pub(crate) fn refused(master: &Master, load: Value, denied: &Denied) -> Value {
    if denied.told {
        tell(master, load, &denied.message);
    }
    error("AuthenticationError", "Authentication error occurred.")
}

/// Answers a `publish` request of a caller.
pub(crate) async fn answer(master: &Arc<Master>, mut load: Value, caller: Caller) -> Result<Value, Fault> {
    strip_secrets(&mut load);
    let functions = functions(&load).ok_or_else(|| Fault::new("a publish request's fun or arg has a wrong type"))?;
    if master.access.is_blocked(&caller, load.get_text("user"), &functions) {
        let why = format!("publisher_acl_blacklist blocks a job of {}", caller.name);
        return Ok(not_allowed(master, load, &caller, &why));
    }
    load.insert("user", caller.name.as_str());
    match dispatch(master, &load, Asker::Caller(&caller)).await? {
        Dispatched::Job(Published { jid, minions, missing }) => {
            let list = |ids: Vec<Value>| Value::Array(ids);
            let load = map([
                ("jid", Value::from(&jid)),
                ("minions", list(minions.iter().map(Value::from).collect())),
                ("missing", list(missing.into_iter().map(Value::from).collect())),
            ]);
            Ok(map([("enc", Value::from("clear")), ("load", load)]))
        }
        Dispatched::NotAllowed => {
            let why = format!("{} may not run {} on all of the target", caller.name, fun_text(&load));
            Ok(not_allowed(master, load, &caller, &why))
        }
        Dispatched::Nobody(why) => Ok(unresolved(&load, why)),
        Dispatched::NotAudited(why) => Ok(map([("error", format!("The job was not published: {why}"))])),
        Dispatched::BadJid => Ok(map([("error", "Master failed to assign jid")])),
        // Told in full: the caller has proved that it may read the master's own files.
        Dispatched::NotStored(error) => {
            tracing::error!("a job was not published: {error}");
            Ok(map([("error", format!("The job was not published: {error}"))]))
        }
    }
}

/// A job that is on its way.
pub(crate) struct Published {
    pub(crate) jid: Jid,
    pub(crate) minions: Vec<MinionId>,
    missing: Vec<String>,
}

enum Dispatched {
    Job(Published),
    NotAllowed,
    /// The target means no minion; and why, where it is no target at all.
    Nobody(Option<TargetError>),
    BadJid,
    NotAudited(&'static str),
    NotStored(StoreError),
}

/// Who wants a job.
#[derive(Clone, Copy)]
enum Asker<'a> {
    /// The master itself, for a runner that was allowed and written down.
    Master,
    Caller(&'a Caller),
    /// A minion whom `peer` permits it.
    Minion(&'a MinionId),
}

/// A job of the master's own, for a runner that was allowed and written down; none if it is for nobody.
pub(crate) async fn own_job(master: &Arc<Master>, load: &Value) -> Result<Option<Published>, Fault> {
    own(dispatch(master, load, Asker::Master).await?)
}

/// A job that minion `id` may have published, as `peer` judged it; none if it is for nobody.
pub(crate) async fn peer_job(master: &Arc<Master>, id: &MinionId, load: &Value) -> Result<Option<Published>, Fault> {
    own(dispatch(master, load, Asker::Minion(id)).await?)
}

fn own(dispatched: Dispatched) -> Result<Option<Published>, Fault> {
    match dispatched {
        Dispatched::Job(published) => Ok(Some(published)),
        Dispatched::Nobody(_) | Dispatched::BadJid | Dispatched::NotAllowed | Dispatched::NotAudited(_) => Ok(None),
        Dispatched::NotStored(error) => Err(error.into()),
    }
}

/// Publishes a job, as far as a caller may.
async fn dispatch(master: &Arc<Master>, load: &Value, asker: Asker<'_>) -> Result<Dispatched, Fault> {
    let missing_field = ["tgt", "fun", "arg"].into_iter().find(|field| !load.has(field));
    if let Some(field) = missing_field {
        return Err(Fault::new(format!("a publish request has no {field}")));
    }
    let functions = functions(load).ok_or_else(|| Fault::new("a publish request's fun or arg has a wrong type"))?;
    // Salt's clients send an empty one; a batch of 3008 publishes the same one again.
    let jid = match load.get("jid").filter(|jid| jid.truthy()) {
        None => Jid::now(),
        Some(given) => match Jid::try_from(given) {
            Ok(jid) => jid,
            Err(_) => return Ok(Dispatched::BadJid),
        },
    };
    let tgt_type = load.get_text("tgt_type").unwrap_or("glob").to_owned();
    let delimiter = load.get("kwargs").and_then(|k| k.get_text("delimiter")).unwrap_or(":").to_owned();
    let (Resolved { matched, missing }, why) = match targets::parse(master, &tgt_type, load, &delimiter) {
        Ok(target) => (targets::resolve_parsed(master, target).await?, None),
        Err(error) => {
            tracing::warn!("a target was not resolved: {error}");
            (Resolved::default(), Some(error))
        }
    };
    let extent = match asker {
        Asker::Master | Asker::Minion(_) => Extent::Target,
        Asker::Caller(caller) => {
            let resolve = |target| async move { permitted_minions(master, target).await };
            match caller.may_publish(&functions, &matched, resolve).await {
                Some(extent) => extent,
                None => return Ok(Dispatched::NotAllowed),
            }
        }
    };
    // Before anything is done, so that nothing is done that is not written down.
    let outcome = if matched.is_empty() { "nobody" } else { "allowed" };
    if let Some(record) = record_of(outcome, load, asker)
        && let Err(why) = master.audit.write(record.put("jid", jid.as_str()).put("minions", matched.len()))
    {
        return Ok(Dispatched::NotAudited(why));
    }
    if matched.is_empty() {
        return Ok(Dispatched::Nobody(why));
    }

    let mut published = published(load, &jid, &tgt_type);
    let ret = master.jobs.ret(load.get_text("ret").unwrap_or_default());
    published.insert("ret", ret.as_str());
    if extent == Extent::Found {
        published.insert("tgt", Value::Array(matched.iter().map(Value::from).collect()));
        published.insert("tgt_type", "list");
    }
    let topics = match published.get_text("tgt_type").unwrap_or_default() {
        _ if !master.opts.zmq_filtering => Topics::Everyone,
        "glob" | "pcre" | "list" => Topics::Minions(matched.clone()),
        _ => Topics::Broadcast,
    };
    let mut stored = load.clone();
    stored.insert("jid", jid.as_str());
    stored.insert("ret", ret);
    let reads_files = stored.remove("python_job_files") != Some(Value::Boolean(false));
    // Signed while the disk takes the job.
    let sealing = master.publisher.seal(published.clone(), topics).await?;
    let python_files = if reads_files { python_files(master, &jid, &stored, &matched) } else { None };
    if let Err(error) = record(master, &jid, load, &stored, &tgt_type, &matched).await {
        if let Some(record) = record_of("failed", load, asker) {
            master.audit.note(record.put("jid", jid.as_str()).put("why", error.to_string()));
        }
        return Ok(Dispatched::NotStored(error));
    }

    // Who connected to the bus before asking gets every event of the job.
    master.bus.settle();
    let minions = Value::Array(matched.iter().map(Value::from).collect());
    let field = |name: &str| load.get(name).cloned().unwrap_or(Value::Nil);
    let new = map([
        ("jid", Value::from(&jid)),
        ("tgt_type", Value::from(tgt_type.as_str())),
        ("tgt", field("tgt")),
        ("user", field("user")),
        ("fun", field("fun")),
        ("arg", field("arg")),
        ("minions", minions),
        ("missing", Value::Array(missing.iter().map(|id| Value::from(id.as_str())).collect())),
    ]);
    master.bus.fire(format!("salt/job/{jid}/new"), new);
    let publish = format!("salt/job/{jid}/publish");
    if reads_files {
        let bus = master.bus.clone();
        tokio::spawn(async move {
            tokio::time::sleep(AFTERWARDS).await;
            bus.fire(publish, published);
        });
    } else {
        master.bus.fire(publish, published);
    }
    sealing.send().await?;
    tracing::info!("published {} as {jid}", fun_text(load));
    // Python's client looks for them when it has the answer.
    if let Some(Ok(Err(error))) = futures_util::future::OptionFuture::from(python_files).await {
        tracing::warn!("the job cache for Python's clients cannot be written: {error}");
    }
    Ok(Dispatched::Job(Published { jid, minions: matched, missing }))
}

/// The minions that a permission is for. Where the master does not keep what it would have to know, nobody.
pub(crate) async fn permitted_minions(master: &Arc<Master>, target: String) -> Vec<MinionId> {
    if !master.opts.minion_data_cache && target.contains('@') {
        tracing::warn!("a permission for {target:?} allows nothing: minion_data_cache is off");
        return Vec::new();
    }
    match targets::resolve(master, "compound", &map([("tgt", target.as_str())]), ":").await {
        Ok(resolved) => resolved.matched,
        Err(fault) => {
            tracing::error!("a permission for {target:?} allows nothing: {fault}");
            Vec::new()
        }
    }
}

fn published(load: &Value, jid: &Jid, tgt_type: &str) -> Value {
    let field = |name: &str| load.get(name).cloned().unwrap_or(Value::Nil);
    let mut published = map([
        ("fun", field("fun")),
        ("arg", field("arg")),
        ("tgt", field("tgt")),
        ("jid", Value::from(jid)),
        ("ret", load.get("ret").cloned().unwrap_or(Value::from(""))),
        ("tgt_type", Value::from(tgt_type)),
        ("user", load.get("user").cloned().unwrap_or(Value::from("root"))),
    ]);
    if let Some(kwargs) = load.get("kwargs") {
        for name in PASSED_ON {
            match kwargs.get(name) {
                Some(Value::Nil) | None => {}
                Some(delimiter) if name == "delimiter" && delimiter.text() == Some(":") => {}
                Some(value) => published.insert(name, value.clone()),
            }
        }
    }
    published
}

/// On disk before anyone hears of it: a return can then never come for a job that a crash made the master forget.
async fn record(
    master: &Arc<Master>,
    jid: &Jid,
    load: &Value,
    stored: &Value,
    tgt_type: &str,
    minions: &[MinionId],
) -> Result<(), StoreError> {
    let job = Job {
        jid: jid.clone(),
        fun: fun_text(load),
        user: load.get_text("user").unwrap_or("root").chars().take(64).collect(),
        tgt: load.get("tgt").map(ValueExt::python_str).unwrap_or_default().chars().take(TARGET_TEXT_MAX).collect(),
        tgt_type: tgt_type.to_owned(),
        started_ms: now_ms(),
        minions: minions.to_vec(),
        load: msgpack::encode_disk(stored),
    };
    master.jobs.add_job(job).await?;
    master.sent_to.remember(jid, tgt_type, minions, master.jobs.asked(stored));
    Ok(())
}

/// Writes what Python's clients read of a job, if they are to find it.
fn python_files(
    master: &Master,
    jid: &Jid,
    stored: &Value,
    minions: &[MinionId],
) -> Option<tokio::task::JoinHandle<std::io::Result<()>>> {
    if !master.opts.job_cache.keep || !master.python_jobs.on() {
        return None;
    }
    let files = master.python_jobs.clone();
    let (jid, stored, ids) = (jid.clone(), stored.clone(), minions.to_vec());
    Some(tokio::task::spawn_blocking(move || files.write(&jid, &stored, &ids)))
}

fn unresolved(load: &Value, why: Option<TargetError>) -> Value {
    let tgt = load.get("tgt").map(ValueExt::python_str).unwrap_or_default();
    let mut load = map([
        ("jid", Value::Nil),
        ("minions", Value::Array(Vec::new())),
        ("error", Value::from(format!("Master could not resolve minions for target {tgt}"))),
    ]);
    // Not a field of Salt's; its clients look at neither.
    if let Some(why) = why {
        load.insert("why", why.to_string());
    }
    map([("enc", Value::from("clear")), ("load", load)])
}

/// The line of the audit log about a job; none about the master's own.
fn record_of(outcome: &'static str, load: &Value, asker: Asker<'_>) -> Option<Record> {
    let record = Record::new("publish", outcome);
    let record = match asker {
        Asker::Master => return None,
        Asker::Caller(caller) => record.by(caller),
        Asker::Minion(id) => record.whose(id.as_str(), "minion", ""),
    };
    let tgt = load.get("tgt").map(ValueExt::python_str).unwrap_or_default();
    let tgt_type = load.get_text("tgt_type").unwrap_or("glob");
    let record = record.put("tgt", tgt).put("tgt_type", tgt_type);
    Some(record.call(fun_text(load), load.get_list("arg").unwrap_or_default()))
}

/// The caller learns that it may not, the bus and the audit log learn who tried what, and none of them learns a secret.
fn not_allowed(master: &Master, load: Value, caller: &Caller, why: &str) -> Value {
    if let Some(record) = record_of("refused", &load, Asker::Caller(caller)) {
        master.audit.note(record.put("why", why));
    }
    let who = Who::User(&caller.name);
    if master.refusals.log(who, &format!("a publish request was refused: {why}")) {
        tell(master, load, why);
    }
    error("AuthorizationError", "Authorization error occurred.")
}

/// Salt's event of a job that was refused, if the request had a `jid` (§8.2).
fn tell(master: &Master, mut load: Value, why: &str) {
    if load.has("jid") {
        strip_secrets(&mut load);
        load.insert("error", why);
        // Salt puts the jid into the tag, and a client that waits for that job takes it for the end of it. Who was refused could be
        // anyone on the network, naming somebody else's job.
        master.bus.fire("salt/job/error", load);
    }
}

fn error(name: &'static str, message: &'static str) -> Value {
    map([("error", map([("name", name), ("message", message)]))])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_load_has_what_minions_expect_and_no_more() {
        let kwargs = map([
            ("delimiter", Value::from(":")),
            ("show_timeout", Value::from(true)),
            ("metadata", map([("a", 1)])),
            ("id", Value::Nil),
        ]);
        let load = map([
            ("cmd", Value::from("publish")),
            ("tgt", Value::from("*")),
            ("fun", Value::from("test.ping")),
            ("arg", Value::Array(Vec::new())),
            ("user", Value::from("root")),
            ("ret", Value::from("")),
            ("kwargs", kwargs),
        ]);
        let jid = Jid::try_from("20261120134740245008").unwrap();
        let published = published(&load, &jid, "glob");
        let keys: Vec<_> = published.entries().unwrap().iter().filter_map(|(k, _)| k.text()).collect();
        assert_eq!(keys, ["fun", "arg", "tgt", "jid", "ret", "tgt_type", "user", "metadata"]);
    }
}
