//! `jobs.*`: what the job store knows.

use std::sync::Arc;

use brine_protocol::ids::{Jid, MinionId};
use brine_protocol::value::{Value, ValueExt, empty_map, map};

use super::{Call, Outcome};
use crate::jobs::{Job, JobFilter};
use crate::master::{Master, now_ms};

/// A job is taken for running while it is younger and somebody has not answered.
const ACTIVE_MS: i64 = 3_600_000;

/// `{id: return}`; of one minion only if `minion` names it, for who wants one large return and not all of them.
pub(super) async fn lookup_jid(master: &Arc<Master>, call: &Call) -> Outcome {
    let jid = call.jid("jobs.lookup_jid")?;
    let only = call.named("minion").and_then(ValueExt::text);
    let mut found = empty_map();
    for ret in master.jobs.returns(&jid).await.map_err(|e| e.to_string())? {
        if only.is_some_and(|id| ret.minion != *id) {
            continue;
        }
        found.insert(ret.minion.as_str(), ret.load().get("return").cloned().unwrap_or(Value::Nil));
    }
    if call.named("missing").is_some_and(ValueExt::truthy)
        && let Some(job) = job(master, &jid).await?
    {
        for id in &job.minions {
            if !found.has(id.as_str()) {
                found.insert(id.as_str(), "Minion did not return");
            }
        }
    }
    Ok(found)
}

/// The job and each minion's return, codes included.
pub(super) async fn list_job(master: &Arc<Master>, call: &Call) -> Outcome {
    show_job(master, &call.jid("jobs.list_job")?).await
}

async fn show_job(master: &Arc<Master>, jid: &Jid) -> Outcome {
    let Some(job) = job(master, jid).await? else {
        return Ok(map([
            ("jid", Value::from(jid)),
            ("Error", Value::from("Cannot contact returner or no job with this jid")),
        ]));
    };
    let mut shown = summary(&job);
    let mut full = map([("jid", Value::from(jid))]);
    for (key, value) in std::mem::replace(&mut shown, Value::Nil).entries().unwrap_or_default() {
        full.insert(key.text().unwrap_or_default(), value.clone());
    }
    full.insert("Minions", Value::Array(job.minions.iter().map(Value::from).collect()));
    let mut results = empty_map();
    for ret in master.jobs.returns(jid).await.map_err(|e| e.to_string())? {
        let load = ret.load();
        let mut result = empty_map();
        for field in ["return", "retcode", "success", "out", "usage"] {
            if let Some(value) = load.get(field) {
                result.insert(field, value.clone());
            }
        }
        results.insert(ret.minion.as_str(), result);
    }
    full.insert("Result", results);
    Ok(full)
}

/// `{jid: {…, Result}}`.
pub(super) async fn print_job(master: &Arc<Master>, call: &Call) -> Outcome {
    let jid = call.jid("jobs.print_job")?;
    Ok(map([(jid.as_str(), show_job(master, &jid).await?)]))
}

/// Whether each minion succeeded, of those that were expected; who has not answered has not.
pub(super) async fn exit_success(master: &Arc<Master>, call: &Call) -> Outcome {
    let jid = call.jid("jobs.exit_success")?;
    let mut found = empty_map();
    for id in job(master, &jid).await?.iter().flat_map(|job| &job.minions) {
        found.insert(id.as_str(), false);
    }
    for ret in master.jobs.returns(&jid).await.map_err(|e| e.to_string())? {
        found.insert(ret.minion.as_str(), ret.success && ret.retcode == 0);
    }
    Ok(found)
}

/// The newest job, of `function` if that is given, as [`print_job`] shows it; false if there is none.
pub(super) async fn last_run(master: &Arc<Master>, call: &Call) -> Outcome {
    let fun = call.named("function").and_then(ValueExt::text).map(str::to_owned);
    let filter = JobFilter { fun, limit: Some(1), ..JobFilter::default() };
    match master.jobs.find(filter).await.map_err(|e| e.to_string())?.first() {
        Some(job) => Ok(map([(job.jid.as_str(), show_job(master, &job.jid).await?)])),
        None => Ok(Value::from(false)),
    }
}

/// Every job that is kept, by jid; `search_function`, `search_minion` and `limit` narrow it.
pub(super) async fn list_jobs(master: &Arc<Master>, call: &Call) -> Outcome {
    let minion = match call.named("search_minion").and_then(ValueExt::text) {
        Some(id) => Some(MinionId::try_from(id).map_err(|e| e.to_string())?),
        None => None,
    };
    let filter = JobFilter {
        minion,
        fun: call.named("search_function").and_then(ValueExt::text).map(str::to_owned),
        limit: call.named("limit").and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok()),
        ..JobFilter::default()
    };
    let mut jobs = master.jobs.find(filter).await.map_err(|e| e.to_string())?;
    jobs.reverse();
    Ok(map(jobs.iter().map(|job| (job.jid.as_str(), summary(job)))))
}

/// Jobs of which not every minion has returned.
pub(super) async fn active(master: &Arc<Master>) -> Outcome {
    let filter = JobFilter { since_ms: Some(now_ms() - ACTIVE_MS), ..JobFilter::default() };
    let mut found = empty_map();
    for job in master.jobs.find(filter).await.map_err(|e| e.to_string())? {
        let returned: Vec<MinionId> =
            master.jobs.returns(&job.jid).await.map_err(|e| e.to_string())?.into_iter().map(|ret| ret.minion).collect();
        let (done, running): (Vec<_>, Vec<_>) = job.minions.iter().partition(|id| returned.contains(id));
        if running.is_empty() {
            continue;
        }
        let ids = |ids: Vec<&MinionId>| Value::Array(ids.into_iter().map(Value::from).collect());
        let mut shown = summary(&job);
        shown.insert("Running", ids(running));
        shown.insert("Returned", ids(done));
        found.insert(job.jid.as_str(), shown);
    }
    Ok(found)
}

async fn job(master: &Arc<Master>, jid: &Jid) -> Result<Option<Job>, String> {
    master.jobs.job(jid).await.map_err(|e| e.to_string())
}

fn summary(job: &Job) -> Value {
    let load = job.load();
    map([
        ("Function", Value::from(job.fun.as_str())),
        ("Arguments", load.get("arg").cloned().unwrap_or(Value::Array(Vec::new()))),
        ("Target", load.get("tgt").cloned().unwrap_or_else(|| Value::from(job.tgt.as_str()))),
        ("Target-type", Value::from(job.tgt_type.as_str())),
        ("User", Value::from(job.user.as_str())),
        ("StartTime", Value::from(job.jid.start_time())),
    ])
}
