//! `job`: one job with its returns, failures first. Right: as for `jobs`, with the runner `jobs.list_job` for jobs under
//! other names.

use std::collections::HashMap;

use brine_protocol::ids::{Jid, MinionId};
use brine_protocol::msgpack;
use brine_protocol::value::{Value, ValueExt as _, list, map};

use super::jobs::{head, seconds};
use super::page::{self, Page};
use super::started::MaySee;
use super::{Answer, Asked};
use crate::jobs::{JobReturn, Outcome, StoredJob};

/// The runner that shows others' jobs.
const RIGHT: &str = "jobs.list_job";
/// Largest return on a page, and the largest one that is asked for alone, in bytes.
const RETURN_BYTES_MAX: usize = 64 << 10;
const ALONE_BYTES_MAX: usize = 1 << 20;
/// Bound on the bytes of all returns of a page.
const PAGE_BYTES_MAX: usize = 4 << 20;
/// What a minion reports about the use of the sandbox, and what of it is shown.
const USAGE: [&str; 7] = ["wall_us", "cpu_us", "memory_peak", "host_calls", "bytes_in", "bytes_out", "sha256"];
/// Functions of one job whose use is shown.
const FUNCTIONS_MAX: usize = 64;

/// A minion of the job: the order of its state, and its id.
struct Meant {
    rank: u8,
    id: MinionId,
}

const STATES: [&str; 3] = ["failed", "missing", "ok"];

pub(super) async fn answer(asked: Asked) -> Answer {
    let page = Page::new(&asked.args)?;
    let state = asked.args.word("state", &["all", "failed", "missing", "ok"])?;
    let alone = asked.args.text("minion")?.map(str::to_owned);
    let Some(Ok(jid)) = asked.args.text("jid")?.map(Jid::try_from) else { return Ok(Value::Nil) };
    let store = asked.parts.jobs.local();
    let Some(job) = store.job(&jid).await? else { return Ok(Value::Nil) };
    let may_see = MaySee::of(&asked, RIGHT).await;
    if !may_see.job(&job.user, || job.load(), || job.minions.clone()) {
        return Ok(Value::Nil);
    }
    let outcomes = store.outcomes(&jid).await?;
    let mut answer = summary(&job, &outcomes);
    let mut meant = all(&job, &outcomes);
    let wanted = |meant: &Meant| {
        (state == "all" || STATES.get(usize::from(meant.rank)) == Some(&state))
            && alone.as_ref().is_none_or(|id| *id == meant.id.as_str())
    };
    meant.retain(wanted);
    let (meant, next) = page.of(meant, false, |meant| (meant.rank.to_string(), meant.id.to_string()));
    let ids = meant.iter().filter(|meant| meant.rank != 1).map(|meant| meant.id.clone()).collect();
    let returns = store.returns_of(&jid, ids).await?;
    let mut returns: HashMap<MinionId, JobReturn> = returns.into_iter().map(|ret| (ret.minion.clone(), ret)).collect();
    let most = if alone.is_some() { ALONE_BYTES_MAX } else { RETURN_BYTES_MAX };
    let mut room = PAGE_BYTES_MAX;
    let items = meant.iter().map(|meant| item(meant, returns.remove(&meant.id), most, &mut room)).collect();
    let Value::Map(entries) = page::entries(items, next.as_ref()) else { return Ok(answer) };
    for (key, value) in entries {
        answer.insert(key.text().unwrap_or_default(), value);
    }
    Ok(answer)
}

fn summary(job: &StoredJob, outcomes: &[Outcome]) -> Value {
    let target = (job.tgt.as_str(), job.tgt_type.as_str());
    let mut summary = head(Value::from(&job.jid), &job.fun, &job.user, target, job.started_ms, &job.load());
    let came = |id: &MinionId| outcomes.binary_search_by(|outcome| outcome.minion.cmp(id)).is_ok();
    summary.insert("expected", job.minions.len());
    summary.insert("returned", outcomes.len());
    summary.insert("failed", outcomes.iter().filter(|outcome| outcome.failed).count());
    summary.insert("missing", job.minions.iter().filter(|id| !came(id)).count());
    summary.insert("last", outcomes.iter().map(|outcome| outcome.at_ms).max().map_or(Value::Nil, seconds));
    summary
}

/// All minions of a job, in the order of the page. A target by grains may have returns of minions that were not expected.
fn all(job: &StoredJob, outcomes: &[Outcome]) -> Vec<Meant> {
    let came =
        outcomes.iter().map(|outcome| Meant { rank: if outcome.failed { 0 } else { 2 }, id: outcome.minion.clone() });
    let is_missing = |id: &&MinionId| outcomes.binary_search_by(|outcome| outcome.minion.cmp(id)).is_err();
    let missing = job.minions.iter().filter(is_missing).map(|id| Meant { rank: 1, id: id.clone() });
    let mut all: Vec<Meant> = came.chain(missing).collect();
    all.sort_by(|a, b| (a.rank, &a.id).cmp(&(b.rank, &b.id)));
    all
}

fn item(meant: &Meant, ret: Option<JobReturn>, most: usize, room: &mut usize) -> Value {
    let state = STATES.get(usize::from(meant.rank)).copied().unwrap_or_default();
    let mut item = map([("id", Value::from(&meant.id)), ("state", Value::from(state))]);
    let Some(ret) = ret else {
        for key in ["at", "retcode", "return", "bytes"] {
            item.insert(key, Value::Nil);
        }
        item.insert("usage", list::<Value>([]));
        return item;
    };
    let mut load = ret.load();
    let value = load.remove("return").unwrap_or(Value::Nil);
    let bytes = msgpack::encode_disk(&value).len();
    let cut = bytes > most.min(*room);
    if !cut {
        *room -= bytes;
    }
    item.insert("at", seconds(ret.at_ms));
    item.insert("retcode", ret.retcode);
    item.insert("return", if cut { Value::Nil } else { value });
    item.insert("bytes", bytes);
    if cut {
        item.insert("cut", true);
    }
    item.insert("usage", usage(load.get("usage")));
    item
}

/// What the sandbox used, for each function. Minions wrote it: only numbers and a hash are taken.
fn usage(reported: Option<&Value>) -> Value {
    let of = |used: &Value| {
        let entries = USAGE.iter().filter_map(|key| {
            let value = used.get(key)?;
            let is_hash = |text: &str| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
            (value.is_u64() || value.text().is_some_and(is_hash)).then(|| (*key, value.clone()))
        });
        map(entries)
    };
    let each = match reported {
        Some(Value::Array(each)) => each.iter().take(FUNCTIONS_MAX).map(of).collect(),
        Some(one @ Value::Map(_)) => vec![of(one)],
        _ => Vec::new(),
    };
    Value::Array(each)
}
