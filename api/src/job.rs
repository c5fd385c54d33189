//! One job: published, and its returns collected.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use brine_client::{Job, MinionReturn, News, Published, Step, Waiter, no_response};
use brine_protocol::value::{self, Value, ValueExt as _};

use crate::chunk::Returns;
use crate::link::{Caller, Follow, Link, LinkError};
use crate::problem::Problem;

impl From<LinkError> for Problem {
    fn from(error: LinkError) -> Self {
        match error {
            LinkError::Denied(why) => Self::unauthorized_because(why),
            LinkError::TooMany(wait) => Self::too_many(wait),
            LinkError::Refused(why) => Self::bad(why),
            LinkError::NoMatch => Self::bad("No minions matched the target"),
            LinkError::Away => Self::master_away(),
            LinkError::Late => Self::new(StatusCode::GATEWAY_TIMEOUT, "The master's answer did not come in time"),
            LinkError::Reply(why) => {
                tracing::error!("the master's reply makes no sense: {why}");
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, "An unexpected error occurred")
            }
        }
    }
}

/// Runs a job, and returns a map of what each minion returned.
///
/// # Errors
/// When the master refuses, or its answer does not come.
pub async fn local(link: &dyn Link, caller: &Caller, job: &Job, wanted: Returns) -> Result<Value, Problem> {
    // Before the publication, so that no return is missed.
    let mut events = link.follow();
    let published = match link.publish(caller, job).await {
        Ok(published) => published,
        Err(LinkError::NoMatch) => return Ok(value::empty_map()),
        Err(error) => return Err(error.into()),
    };
    events.narrow(&prefix(&published.jid));
    let returns = collect(link, caller, job, (&published, wanted.gather), &mut events).await?;
    let mut missing: HashSet<String> = published.minions.into_iter().chain(published.missing).collect();
    let mut found: Vec<(String, Value)> = Vec::with_capacity(returns.len());
    for ret in returns {
        missing.remove(&ret.id);
        found.push((ret.id.clone(), item(ret, &published.jid, wanted.full)));
    }
    let jid = published.jid.as_str();
    found.extend(missing.into_iter().map(|id| (id, no_return(jid, wanted.full))));
    Ok(value::map(found))
}

/// What is told of a minion that did not return.
fn no_return(jid: &str, full_return: bool) -> Value {
    let text = no_response(jid);
    if full_return {
        value::map([("out", "no_return".into()), ("ret", Value::from(text)), ("retcode", 1.into())])
    } else {
        text.into()
    }
}

/// The beginning of the tags of a job's events.
pub fn prefix(jid: &str) -> String {
    format!("salt/job/{jid}/")
}

/// What is told of a return.
pub fn item(ret: MinionReturn, jid: &str, full_return: bool) -> Value {
    if !full_return {
        return ret.ret;
    }
    let retcode = ret.load.get("retcode").cloned().unwrap_or_else(|| ret.retcode.into());
    let mut full = value::map([("ret", ret.ret.clone())]);
    if let Some(out) = &ret.out {
        full.insert("out", out.as_str());
    }
    full.insert("retcode", retcode);
    full.insert("jid", jid);
    full
}

/// Collects the returns of a job, as long as a minion says that it still runs it.
async fn collect(
    link: &dyn Link,
    caller: &Caller,
    job: &Job,
    (published, gather): (&Published, Option<Duration>),
    events: &mut Follow,
) -> Result<Vec<MinionReturn>, Problem> {
    let (timeout, usual) = link.timeouts();
    let gather = gather.unwrap_or(usual);
    let mut waiter = Waiter::new(published, job.timeout.unwrap_or(timeout), gather, Instant::now());
    let mut returns = Vec::new();
    loop {
        let (until, due) = match waiter.step(Instant::now()) {
            Step::Until(until) => (until, None),
            step => (Instant::now(), Some(step)),
        };
        let event = tokio::select! {
            biased;
            event = events.next() => Some(event),
            () = tokio::time::sleep_until(until.into()) => None,
        };
        if let Some(event) = event {
            let event = event.ok_or(LinkError::Late)?;
            if !waiter.wants(&event.tag) {
                continue;
            }
            match waiter.event(Arc::unwrap_or_clone(event), Instant::now()) {
                Some(News::Return(ret)) => returns.push(ret),
                Some(News::Refused(_)) => return Err(Problem::unauthorized()),
                None => {}
            }
            continue;
        }
        match due {
            None | Some(Step::Until(_)) => {}
            Some(Step::Done) => return Ok(returns),
            Some(Step::Probe(ids)) => {
                let jid = find_job(link, caller, &published.jid, ids, gather, events).await;
                waiter.probed(jid.as_deref(), Instant::now());
            }
        }
    }
}

/// Asks these minions whether they run a job. Returns the jid of the question, whose answers come to `events`.
pub async fn find_job(
    link: &dyn Link,
    caller: &Caller,
    jid: &str,
    ids: Vec<String>,
    gather: Duration,
    events: &mut Follow,
) -> Option<String> {
    let asked = Job {
        tgt: value::list(ids),
        tgt_type: "list".to_owned(),
        timeout: Some(gather),
        ..Job::new("", "saltutil.find_job", vec![Value::from(jid)])
    };
    match link.publish(caller, &asked).await {
        Ok(asked) => {
            events.narrow(&prefix(&asked.jid));
            Some(asked.jid)
        }
        Err(error) => {
            tracing::warn!("cannot ask the minions whether they run {jid}: {error}");
            None
        }
    }
}
