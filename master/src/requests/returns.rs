//! `_return` (§6.2): stored once for each (jid, minion), then an event; on disk before it is acknowledged.

use std::sync::Arc;

use brine_protocol::ids::{Jid, MinionId};
use brine_protocol::keys::SignAlg;
use brine_protocol::msgpack;
use brine_protocol::request::{Request, verify_load_signature};
use brine_protocol::value::{Value, ValueExt, map};

use super::lanes::Turn;
use super::sent::Standing;
use super::{Fault, failed_states, quota};
use crate::bus::Origin;
use crate::jobs::{Added, Job, NewReturn, ReturnerName};
use crate::keys::MinionKey;
use crate::master::{Master, now_ms};
use crate::quotas::{Kind, Met};
use crate::refusals::Who;

/// Bytes of a function's name that are kept; only a hostile one is longer.
const FUN_MAX: usize = 512;

/// Takes a return of the minion that the channel proved. Every answer but a fault lets the minion forget the return.
pub(super) async fn accept(
    master: &Arc<Master>,
    request: &Request,
    key: &MinionKey,
    bytes: u64,
    turn: &mut Turn,
) -> Result<Value, Fault> {
    let id = &request.id;
    let mut load = request.load.clone();
    if let Err(why) = check_signature(master, request, key) {
        refuse(master, id, &load, why);
        return Ok(Value::Nil);
    }
    load.insert("id", id.as_str());
    // A Brine minion leaves it to its master to write what `--return` asked for; Python's do that themselves and send no such field.
    let returners = load.remove("ret").is_some_and(|ret| ret.truthy());
    if !load.has("return") || !load.has("jid") {
        refuse(master, id, &load, "it has no return or no jid");
        return Ok(Value::Nil);
    }
    let is_of_nobody = load.get_text("jid") == Some("req");
    let (jid, kind) = match load.get_text("jid") {
        Some("req") => {
            let jid = Jid::now();
            load.insert("jid", jid.as_str());
            (jid, Kind::Unasked)
        }
        text => match text.and_then(|text| Jid::try_from(text).ok()) {
            Some(jid) => match master.sent_to.standing(master, &jid, id).await? {
                Standing::Asked => (jid, Kind::Asked),
                Standing::Unasked => (jid, Kind::Unasked),
                Standing::NotMeant => {
                    refuse(master, id, &load, "its job was not sent to this minion");
                    return Ok(Value::Nil);
                }
            },
            // A schedule asks for it: who listens hears of the return, and it is not kept.
            None if text == Some("nocache") => {
                if let Err(met) = quota::admit(master, id, "_return", Kind::Event, (1, bytes), turn).await {
                    return Ok(not_now(met));
                }
                master.bus.fire_from(format!("salt/job/nocache/ret/{id}"), load, Origin::Minion);
                return Ok(Value::Nil);
            }
            None => {
                refuse(master, id, &load, "its jid is not valid");
                return Ok(Value::Nil);
            }
        },
    };
    // A job of nobody's asked for nothing, as far as it is known.
    let returners = returners && !(is_of_nobody && master.opts.job_cache.keep);
    let asked = if returners { asked(master, id, &jid).await? } else { Vec::new() };
    let packed = packed(master, id, &jid, &mut load);
    let job = is_of_nobody.then(|| job_of(&jid, id, &load));
    let size = packed.len() + job.as_ref().map_or(0, |job| job.load.len());
    let admitted = match quota::admit(master, id, "_return", kind, (1, size as u64), turn).await {
        Ok(admitted) => admitted,
        Err(met) => return Ok(not_now(met)),
    };
    let new = NewReturn {
        jid,
        minion: id.clone(),
        fun: fun_text(&load),
        at_ms: now_ms(),
        retcode: worst_retcode(&load),
        success: load.get("success").is_none_or(all_true),
        load: packed,
    };
    let stored = store(master, job, new, &asked, load).await;
    if !matches!(stored, Ok(Some(Added::New))) {
        // There was one already, or it comes again.
        master.quotas.give_back(id, &admitted);
    }
    stored.map(|_| Value::Nil)
}

/// A return as it is stored. One that is too large is not: what stands in its place tells who waits for this job instead of leaving it waiting.
fn packed(master: &Master, id: &MinionId, jid: &Jid, load: &mut Value) -> Vec<u8> {
    let (packed, most) = (msgpack::encode_disk(load), master.opts.max_return_size);
    if packed.len() <= most {
        return packed;
    }
    let len = packed.len();
    let why =
        format!("The return of {len} bytes is larger than the master's max_return_size ({most}) and was not stored");
    refuse(master, id, load, &why);
    load.insert("return", why.as_str());
    load.insert("retcode", 1);
    load.insert("success", false);
    load.insert("out", "nested");
    load.remove("usage");
    let mut packed = msgpack::encode_disk(load);
    if packed.len() > most {
        load.remove("fun_args");
        load.remove("metadata");
        packed = msgpack::encode_disk(load);
    }
    if packed.len() > most {
        // Fields that no minion sends.
        *load = map([
            ("cmd", Value::from("_return")),
            ("id", Value::from(id)),
            ("jid", Value::from(jid)),
            ("fun", Value::from(fun_text(load))),
            ("return", Value::from(why)),
            ("retcode", Value::from(1)),
            ("success", Value::from(false)),
            ("out", Value::from("nested")),
        ]);
        packed = msgpack::encode_disk(load);
    }
    packed
}

/// Stores a return, tells of it, and waits for the disk.
async fn store(
    master: &Master,
    job: Option<Job>,
    new: NewReturn,
    asked: &[ReturnerName],
    load: Value,
) -> Result<Option<Added>, Fault> {
    let (id, jid) = (new.minion.clone(), new.jid.clone());
    if let Some(job) = job {
        master.jobs.add_job(job).await?;
    }
    let mut adding = master.jobs.add_return(new, asked).await?;
    let added = adding.stored().await;
    match added {
        Some(Added::New) => {
            let failed = failed_states::events(&id, &jid, &load);
            master.bus.fire_from(format!("salt/job/{jid}/ret/{id}"), load, Origin::Minion);
            failed_states::fire(master, &id, failed);
        }
        Some(Added::Duplicate) => tracing::debug!("{id} returned for {jid} again"),
        None => {}
    }
    // The minion keeps it until then.
    adding.synced().await?;
    Ok(added)
}

/// The answer to a return that is not taken: no acknowledgement. A minion that keeps its returns shows the text and sends it again later; one that
/// does not can read it, and so does not authenticate anew.
fn not_now(met: Met) -> Value {
    Value::from(format!("the return was not taken: {met}"))
}

/// The returners that this job was published with, of which a minion may not name others.
async fn asked(master: &Master, id: &MinionId, jid: &Jid) -> Result<Vec<ReturnerName>, Fault> {
    let asked = master.sent_to.asked(master, jid).await?;
    for why in &asked.refused {
        let said = format!("a return of {id} for {jid} is not written to the returner {why}");
        master.refusals.log(Who::Minion(id), &said);
    }
    Ok(asked.returners.clone())
}

/// A return that carries a signature must carry its own minion's (§6.3), and one without may be refused.
fn check_signature(master: &Master, request: &Request, key: &MinionKey) -> Result<(), &'static str> {
    let (opts, id) = (&master.opts, &request.id);
    if !request.load.has("sig") {
        return if opts.require_signed_returns {
            Err("it is not signed (require_minion_sign_messages)")
        } else {
            Ok(())
        };
    }
    let alg = match request.sig_algo.as_deref().map(str::parse::<SignAlg>) {
        None => SignAlg::default(),
        Some(Ok(alg)) => alg,
        Some(Err(_)) => return Err("it is signed by an unknown algorithm"),
    };
    match key.public.as_ref().and_then(|key| verify_load_signature(&request.load, key, alg)) {
        Some(true) => Ok(()),
        // Its sender is proved by the channel all the same.
        _ if !opts.refuse_badly_signed_returns => {
            let said = format!("the signature of a return of {id} is not the minion's, and it is taken");
            master.refusals.log(Who::Minion(id), &said);
            Ok(())
        }
        _ => Err("its signature is not the minion's"),
    }
}

/// What `salt-call` ran was published by nobody: it becomes a job of its own.
fn job_of(jid: &Jid, id: &MinionId, load: &Value) -> Job {
    let published = map([
        ("jid", Value::from(jid.as_str())),
        ("fun", load.get("fun").cloned().unwrap_or(Value::Nil)),
        ("arg", load.get("fun_args").cloned().unwrap_or(Value::Nil)),
        ("tgt", Value::from(id.as_str())),
        ("tgt_type", Value::from("glob")),
        ("id", Value::from(id.as_str())),
        ("user", load.get("user").cloned().unwrap_or(Value::from("root"))),
    ]);
    Job {
        jid: jid.clone(),
        fun: fun_text(load),
        user: load.get_text("user").unwrap_or("root").chars().take(64).collect(),
        tgt: id.as_str().to_owned(),
        tgt_type: "glob".to_owned(),
        started_ms: now_ms(),
        minions: vec![id.clone()],
        load: msgpack::encode_disk(&published),
    }
}

/// No refusal without a trace: the operator sees it in the log and on the bus.
fn refuse(master: &Master, id: &MinionId, load: &Value, why: &str) {
    let short = |key: &str| {
        Value::from(load.get(key).map(ValueExt::python_str).unwrap_or_default().chars().take(128).collect::<String>())
    };
    let data = map([
        ("id", Value::from(id.as_str())),
        ("jid", short("jid")),
        ("fun", short("fun")),
        ("error", Value::from(why)),
    ]);
    let said = format!("a return of {id} was refused: {why}");
    master.refusals.tell(&master.bus, Who::Minion(id), &said, format!("brine/refused/return/{id}"), data);
}

pub(crate) fn fun_text(load: &Value) -> String {
    let text = match load.get("fun") {
        Some(Value::Array(funs)) => funs.iter().map(ValueExt::python_str).collect::<Vec<_>>().join(","),
        Some(fun) => fun.python_str(),
        None => String::new(),
    };
    if text.len() > FUN_MAX { text.chars().take(FUN_MAX / 4).collect() } else { text }
}

/// The number that stands for a job of several functions.
pub(crate) fn worst_retcode(load: &Value) -> i64 {
    let number = |value: &Value| value.as_i64().unwrap_or_else(|| i64::from(value.truthy()));
    match load.get("retcode") {
        Some(Value::Map(entries)) => entries.iter().map(|(_, v)| number(v)).max().unwrap_or(0),
        Some(Value::Array(items)) => items.iter().map(number).max().unwrap_or(0),
        Some(value) => number(value),
        None => 0,
    }
}

pub(crate) fn all_true(value: &Value) -> bool {
    match value {
        Value::Map(entries) => entries.iter().all(|(_, v)| v.truthy()),
        Value::Array(items) => items.iter().all(ValueExt::truthy),
        value => value.truthy(),
    }
}
