//! Jobs for some minions at a time, and for some minions only.

use std::time::Instant;

use brine_client::{BatchOptions, Job, News, Slots, Step, Waiter};
use brine_protocol::ids::Jid;
use brine_protocol::value::{self, Value, ValueExt};
use rand::seq::SliceRandom as _;

use crate::chunk::Returns;
use crate::job::{find_job, item, local, prefix};
use crate::link::{Caller, Link, LinkError};
use crate::problem::Problem;

/// Of a job that is asked before the caller's.
const fn plain(wanted: Returns) -> Returns {
    Returns { full: false, ..wanted }
}

/// Runs a job on the minions that answer, some at a time. Returns a map of one minion for each return, in their order.
///
/// # Errors
/// When the master refuses, or cannot be reached when a minion should begin.
pub async fn batch(
    link: &dyn Link,
    caller: &Caller,
    job: Job,
    options: BatchOptions,
    wanted: Returns,
) -> Result<Vec<Value>, Problem> {
    let ping = Job { fun: "test.ping".into(), arg: Vec::new(), ret: String::new(), ..job.clone() };
    let answered = local(link, caller, &ping, plain(wanted)).await?;
    let there = answered.entries().unwrap_or_default().iter().filter(|(_, ping)| *ping == Value::from(true));
    let minions = there.filter_map(|(id, _)| id.text().map(str::to_owned)).collect();
    // One job for all, as the job store's readers expect.
    let mut job = Job { jid: Jid::now().to_string(), tgt_type: "list".to_owned(), ..job };
    let (timeout, gather) = link.timeouts();
    let gather = wanted.gather.unwrap_or(gather);
    let timeout = job.timeout.unwrap_or(timeout);
    let mut slots = Slots::new(minions, options);
    let mut events = link.follow();
    let mut is_followed = false;
    let (mut waiters, mut returns): (Vec<Waiter>, Vec<Value>) = (Vec::new(), Vec::new());
    let missing = |id: &str| value::map([(id, false)]);
    while !slots.is_done() {
        let ids = slots.begin(Instant::now());
        if !ids.is_empty() {
            job.tgt = value::list(ids.iter().map(String::as_str));
            let mut published = match link.publish(caller, &job).await {
                Ok(published) => published,
                // Their keys were removed after the ping.
                Err(LinkError::NoMatch) => {
                    for id in &ids {
                        slots.ended(id, false, Instant::now());
                        returns.push(missing(id));
                    }
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            if !is_followed {
                events.narrow(&prefix(&job.jid));
                is_followed = true;
            }
            published.missing.clear();
            for id in ids.iter().filter(|id| !published.minions.contains(id)) {
                slots.ended(id, false, Instant::now());
                returns.push(missing(id));
            }
            waiters.push(Waiter::new(&published, timeout, gather, Instant::now()).for_these_only());
            continue;
        }
        let now = Instant::now();
        let steps = waiters.iter_mut().map(|waiter| match waiter.step(now) {
            Step::Until(until) => until,
            Step::Probe(_) | Step::Done => now,
        });
        let until = steps.chain(slots.next_free()).min().unwrap_or(now);
        let event = tokio::select! {
            biased;
            event = events.next() => Some(event.ok_or(LinkError::Late)?),
            () = tokio::time::sleep_until(until.into()) => None,
        };
        if let Some(event) = event {
            let news = waiters.iter_mut().find_map(|waiter| waiter.event((*event).clone(), Instant::now()));
            match news {
                None => {}
                Some(News::Refused(_)) => return Err(Problem::unauthorized()),
                Some(News::Return(ret)) => {
                    slots.ended(&ret.id, ret.retcode > 0, Instant::now());
                    returns.push(value::map([(ret.id.clone(), item(ret, &job.jid, wanted.full))]));
                }
            }
            continue;
        }
        for mut waiter in std::mem::take(&mut waiters) {
            match waiter.step(Instant::now()) {
                Step::Until(_) => waiters.push(waiter),
                Step::Probe(ids) => {
                    let jid = find_job(link, caller, &job.jid, ids, gather, &mut events).await;
                    waiter.probed(jid.as_deref(), Instant::now());
                    waiters.push(waiter);
                }
                Step::Done => {
                    for id in waiter.missing() {
                        slots.ended(&id, false, Instant::now());
                        returns.push(missing(&id));
                    }
                }
            }
        }
    }
    Ok(returns)
}

/// Runs a job on this number of the minions that have its function, chosen at random.
///
/// # Errors
/// When the master refuses, or its answer does not come.
pub async fn subset(
    link: &dyn Link,
    caller: &Caller,
    job: Job,
    count: usize,
    wanted: Returns,
) -> Result<Value, Problem> {
    let ask = Job { fun: "sys.list_functions".into(), arg: Vec::new(), ret: String::new(), ..job.clone() };
    let answered = local(link, caller, &ask, plain(wanted)).await?;
    let has = |functions: &Value| functions.list().is_some_and(|functions| functions.contains(&job.fun));
    let able = answered.entries().unwrap_or_default().iter().filter(|(_, functions)| has(functions));
    let mut able: Vec<String> = able.filter_map(|(id, _)| id.text().map(str::to_owned)).collect();
    able.shuffle(&mut rand::rng());
    able.truncate(count);
    if able.is_empty() {
        return Ok(value::empty_map());
    }
    let job = Job { tgt: value::list(able), tgt_type: "list".to_owned(), ..job };
    local(link, caller, &job, wanted).await
}
