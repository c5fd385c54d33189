//! `_return` (§6.2): stored once for each (jid, minion), then an event; on disk before it is acknowledged.

use std::sync::Arc;

use brine_protocol::ids::{Jid, MinionId};
use brine_protocol::keys::SignAlg;
use brine_protocol::msgpack;
use brine_protocol::request::{Request, verify_load_signature};
use brine_protocol::value::{Value, ValueExt, map};

use super::{Fault, failed_states};
use crate::bus::Origin;
use crate::config::MasterOpts;
use crate::jobs::{Added, Job, NewReturn, ReturnerName};
use crate::keys::MinionKey;
use crate::master::{Master, now_ms};

/// Bytes of a function's name that are kept; only a hostile one is longer.
const FUN_MAX: usize = 512;

/// Takes a return of the minion that the channel proved. Every answer but a fault lets the minion forget the return.
pub(super) async fn accept(master: &Arc<Master>, request: &Request, key: &MinionKey) -> Result<Value, Fault> {
    let id = &request.id;
    let mut load = request.load.clone();
    if let Err(why) = check_signature(&master.opts, request, key) {
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
    let jid = match load.get_text("jid") {
        Some("req") => {
            let jid = Jid::now();
            load.insert("jid", jid.as_str());
            record_job(master, &jid, id, &load).await?;
            jid
        }
        text => match text.and_then(|text| Jid::try_from(text).ok()) {
            Some(jid) if master.sent_to.allows(master, &jid, id).await? => jid,
            Some(_) => {
                refuse(master, id, &load, "its job was not sent to this minion");
                return Ok(Value::Nil);
            }
            // A schedule asks for it: who listens hears of the return, and it is not kept.
            None if text == Some("nocache") => {
                master.bus.fire_from(format!("salt/job/nocache/ret/{id}"), load, Origin::Minion);
                return Ok(Value::Nil);
            }
            None => {
                refuse(master, id, &load, "its jid is not valid");
                return Ok(Value::Nil);
            }
        },
    };
    let asked = if returners { asked(master, id, &jid).await? } else { Vec::new() };
    let mut packed = msgpack::encode_disk(&load);
    if packed.len() > master.opts.max_return_size {
        let why = format!(
            "The return of {} bytes is larger than the master's max_return_size ({}) and was not stored",
            packed.len(),
            master.opts.max_return_size
        );
        refuse(master, id, &load, &why);
        // In its place, so that who waits for this job learns of it instead of waiting.
        load.insert("return", why);
        load.insert("retcode", 1);
        load.insert("success", false);
        load.insert("out", "nested");
        load.remove("usage");
        packed = msgpack::encode_disk(&load);
        if packed.len() > master.opts.max_return_size {
            load.remove("fun_args");
            load.remove("metadata");
            packed = msgpack::encode_disk(&load);
        }
    }
    let new = NewReturn {
        jid: jid.clone(),
        minion: id.clone(),
        fun: fun_text(&load),
        at_ms: now_ms(),
        retcode: worst_retcode(&load),
        success: load.get("success").is_none_or(all_true),
        load: packed,
    };
    let mut adding = master.jobs.add_return(new, &asked).await?;
    match adding.stored().await {
        Some(Added::New) => {
            let failed = failed_states::events(id, &jid, &load);
            master.bus.fire_from(format!("salt/job/{jid}/ret/{id}"), load, Origin::Minion);
            failed_states::fire(master, id, failed);
        }
        Some(Added::Duplicate) => tracing::debug!("{id} returned for {jid} again"),
        None => {}
    }
    // The minion keeps it until then.
    adding.synced().await?;
    Ok(Value::Nil)
}

/// The returners that this job was published with, of which a minion may not name others.
async fn asked(master: &Master, id: &MinionId, jid: &Jid) -> Result<Vec<ReturnerName>, Fault> {
    let asked = master.sent_to.asked(master, jid).await?;
    for why in &asked.refused {
        master.refusals.log(&format!("a return of {id} for {jid} is not written to the returner {why}"));
    }
    Ok(asked.returners.clone())
}

/// A return that carries a signature must carry its own minion's (§6.3), and one without may be refused.
fn check_signature(opts: &MasterOpts, request: &Request, key: &MinionKey) -> Result<(), &'static str> {
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
            tracing::warn!("the signature of a return of {} is not the minion's, and it is taken", request.id);
            Ok(())
        }
        _ => Err("its signature is not the minion's"),
    }
}

/// What `salt-call` ran was published by nobody: it becomes a job of its own.
async fn record_job(master: &Master, jid: &Jid, id: &MinionId, load: &Value) -> Result<(), Fault> {
    let published = map([
        ("jid", Value::from(jid.as_str())),
        ("fun", load.get("fun").cloned().unwrap_or(Value::Nil)),
        ("arg", load.get("fun_args").cloned().unwrap_or(Value::Nil)),
        ("tgt", Value::from(id.as_str())),
        ("tgt_type", Value::from("glob")),
        ("id", Value::from(id.as_str())),
        ("user", load.get("user").cloned().unwrap_or(Value::from("root"))),
    ]);
    let job = Job {
        jid: jid.clone(),
        fun: fun_text(load),
        user: load.get_text("user").unwrap_or("root").chars().take(64).collect(),
        tgt: id.as_str().to_owned(),
        tgt_type: "glob".to_owned(),
        started_ms: now_ms(),
        minions: vec![id.clone()],
        load: msgpack::encode_disk(&published),
    };
    Ok(master.jobs.add_job(job).await?)
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
    master.refusals.tell(&master.bus, &said, format!("brine/refused/return/{id}"), data);
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
