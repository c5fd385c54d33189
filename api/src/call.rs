//! Runs the calls of a request, one after the other.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use brine_client::runner::RunnerReturn;
use brine_client::{Job, MinionReturn, News, Published, Step, Waiter};
use brine_protocol::value::{self, Value, ValueExt};

use crate::chunk::Call;
use crate::link::{Caller, Follow, Link, LinkError};
use crate::problem::Problem;

impl From<LinkError> for Problem {
    fn from(error: LinkError) -> Self {
        match error {
            LinkError::Denied => Self::unauthorized(),
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

/// Runs a call. `longest` bounds the wait for a runner.
///
/// # Errors
/// When the master refuses, or its answer does not come.
pub async fn run(link: &dyn Link, caller: &Caller, call: Call, longest: Duration) -> Result<Value, Problem> {
    match call {
        Call::Local { job, wait: true, full_return } => local(link, caller, &job, full_return).await,
        Call::Local { job, wait: false, .. } => match link.publish(caller, &job).await {
            Ok(published) => {
                Ok(value::map([("jid", Value::from(published.jid)), ("minions", value::list(published.minions))]))
            }
            Err(LinkError::NoMatch) => Ok(value::empty_map()),
            Err(error) => Err(error.into()),
        },
        Call::Master { wheel: true, wait, fun, args, kwargs, .. } => {
            let mut reply = link.wheel(caller, &fun, args, kwargs).await?;
            if !wait {
                let jid = reply.traverse("data:jid", ":").cloned().unwrap_or(Value::Nil);
                reply.remove("data");
                reply.insert("jid", jid);
            }
            Ok(reply)
        }
        Call::Master { wheel: false, wait: false, fun, args, kwargs, .. } => {
            let started = link.runner(caller, &fun, args, kwargs).await?;
            Ok(value::map([("tag", started.tag), ("jid", started.jid)]))
        }
        Call::Master { wheel: false, wait: true, fun, args, kwargs, timeout, full_return } => {
            let longest = timeout.map_or(longest, |timeout| timeout.min(longest));
            let result = runner(link, caller, &fun, args, kwargs, full_return);
            tokio::time::timeout(longest, result).await.map_err(|_| LinkError::Late)?
        }
    }
}

async fn runner(
    link: &dyn Link,
    caller: &Caller,
    fun: &str,
    args: Vec<Value>,
    kwargs: Vec<(String, Value)>,
    full_return: bool,
) -> Result<Value, Problem> {
    let mut events = link.follow();
    let started = link.runner(caller, fun, args, kwargs).await?;
    let tag = format!("{}/ret", started.tag);
    events.narrow(tag.clone());
    loop {
        let event = events.next().await.ok_or(LinkError::Late)?;
        if event.tag == tag {
            return Ok(if full_return { event.data.clone() } else { RunnerReturn::from_event(&event.data).ret });
        }
    }
}

async fn local(link: &dyn Link, caller: &Caller, job: &Job, full_return: bool) -> Result<Value, Problem> {
    // Before the publication, so that no return is missed.
    let mut events = link.follow();
    let published = match link.publish(caller, job).await {
        Ok(published) => published,
        Err(LinkError::NoMatch) => return Ok(value::empty_map()),
        Err(error) => return Err(error.into()),
    };
    events.narrow(prefix(&published.jid));
    let returns = collect(link, caller, job, &published, &mut events).await?;
    let mut found: Vec<(String, Value)> = Vec::new();
    for ret in returns {
        let item = if full_return { full(&ret, &published.jid) } else { ret.ret };
        found.push((ret.id, item));
    }
    // Salt's word for a minion that did not return.
    for id in published.minions {
        if !found.iter().any(|(known, _)| *known == id) {
            found.push((id, Value::from(false)));
        }
    }
    Ok(value::map(found))
}

fn prefix(jid: &str) -> String {
    format!("salt/job/{jid}/")
}

fn full(ret: &MinionReturn, jid: &str) -> Value {
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
    published: &Published,
    events: &mut Follow,
) -> Result<Vec<MinionReturn>, Problem> {
    let (timeout, gather) = link.timeouts();
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
                let asked = Job {
                    tgt: value::list(ids),
                    tgt_type: "list".to_owned(),
                    timeout: Some(gather),
                    ..Job::new("", "saltutil.find_job", vec![Value::from(published.jid.as_str())])
                };
                let jid = match link.publish(caller, &asked).await {
                    Ok(asked) => Some(asked.jid),
                    Err(error) => {
                        tracing::warn!("cannot ask the minions whether they run {}: {error}", published.jid);
                        None
                    }
                };
                if let Some(jid) = &jid {
                    events.narrow(prefix(jid));
                }
                waiter.probed(jid.as_deref(), Instant::now());
            }
        }
    }
}
