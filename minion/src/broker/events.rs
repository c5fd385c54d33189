//! `brine:host/events`: events on the master's bus, in this minion's name.
//!
//! The tag goes out as the module wrote it and the owner granted it: the policy lets modules have words of their own
//! (`deploy/done`) and what is below `salt/minion/<id>/` and `salt/beacon/<id>/`, never the master's tags or another minion's
//! (CVE-2025-22239), which is also all that Brine's masters take. Sent in the single form, whose data every master puts below
//! `data`, beside the `id` that it proved: a module cannot write another `id`. How far a job is goes the same way, under a tag that is the
//! minion's own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use brine_protocol::ids::EventTag;
use brine_protocol::msgpack;
use brine_protocol::value::{Value, ValueExt, map};
use brine_sandbox::{Caller, EventsOp, HostError};
use tokio::sync::Semaphore;

use super::{MinionBroker, Perform};
use crate::connection::{Channel, ChannelError, Masters};

/// Events and mine data under way at once, of all jobs; each takes one of the channel's connections.
const AT_ONCE: usize = 2;
/// What Salt's bus takes by default (`max_event_size`).
const MAX_DATA: usize = 1 << 20;
const DATA: msgpack::Limits = msgpack::Limits { max_bytes: MAX_DATA, max_depth: 64, max_items: 100_000 };
/// A job may fire so many at once ...
const BURST: f64 = 20.0;
/// ... and then so many a second.
const PER_SECOND: f64 = 5.0;
/// Events of one job that say how far it is; who follows a job reads each.
const MAX_PROGRESS: u32 = 1_000;
/// Jobs whose rate is remembered.
const MAX_JOBS: usize = 4096;

impl Perform<EventsOp> for MinionBroker {
    async fn perform(&self, caller: &Caller, op: EventsOp) -> Result<Value, HostError> {
        self.teller.fire(caller, op).await
    }
}

/// Tells the master what modules say.
pub(super) struct Teller {
    masters: Masters,
    turns: Semaphore,
    events: Mutex<Rates>,
    progress: Mutex<Rates>,
}

impl Teller {
    pub(super) fn new(masters: Masters) -> Self {
        Self { masters, turns: Semaphore::new(AT_ONCE), events: Mutex::default(), progress: Mutex::default() }
    }

    async fn fire(&self, caller: &Caller, op: EventsOp) -> Result<Value, HostError> {
        let EventsOp::Fire { tag, data } = op;
        let tag = EventTag::new(tag).map_err(|e| HostError::Failed(e.to_string()))?;
        let data = decode(&data, &DATA)?;
        if data.entries().is_none() {
            return Err(HostError::Failed("an event's data is a dict".to_owned()));
        }
        fired(tag.as_str(), &self.tell(caller, event(caller, tag.as_str(), data)).await?)
    }

    /// Fires the next of a job's events of progress.
    pub(super) async fn progress(&self, caller: &Caller, data: Value) -> Result<Value, HostError> {
        let channel = self.asker(caller)?;
        let Some(number) = taken(&self.progress, caller).filter(|number| *number < MAX_PROGRESS) else {
            return Err(HostError::Failed(format!(
                "this job says too much of its progress: at most {BURST} times at once, then {PER_SECOND} a second, and \
                 {MAX_PROGRESS} in all"
            )));
        };
        let tag = format!("salt/job/{}/prog/{}/{number}", caller.job.jid, caller.job.minion_id);
        fired(&tag, &self.send(channel, event(caller, &tag, data)).await?)
    }

    /// Sends a load when it is its turn and the job is not too fast.
    pub(super) async fn tell(&self, caller: &Caller, load: Value) -> Result<Value, HostError> {
        let channel = self.asker(caller)?;
        if taken(&self.events, caller).is_none() {
            return Err(HostError::Failed(format!(
                "this job tells the master too much: at most {BURST} events and mine values at once and then {PER_SECOND} a second"
            )));
        }
        self.send(channel, load).await
    }

    fn asker(&self, caller: &Caller) -> Result<&Arc<Channel>, HostError> {
        self.masters.asker(caller.job.master.as_deref()).map_err(|e| match e {
            ChannelError::NoMaster => {
                HostError::Failed("there is no master to tell: this runs without one (--local, file_client)".to_owned())
            }
            e => untold(&e),
        })
    }

    async fn send(&self, channel: &Arc<Channel>, load: Value) -> Result<Value, HostError> {
        let _turn = self.turns.acquire().await.map_err(|_| HostError::Failed("the minion is ending".to_owned()))?;
        channel.request(load).await.map_err(|e| untold(&e))
    }
}

fn untold(error: &ChannelError) -> HostError {
    HostError::Failed(format!("the master was not told: {error}"))
}

fn event(caller: &Caller, tag: &str, data: Value) -> Value {
    map([
        ("cmd", Value::from("_minion_event")),
        ("id", Value::from(caller.job.minion_id.as_str())),
        ("tag", Value::from(tag)),
        ("data", data),
        ("pretag", Value::Nil),
    ])
}

/// Salt's masters answer nil whatever became of an event; Brine's say when they did not take it.
fn fired(tag: &str, answer: &Value) -> Result<Value, HostError> {
    match answer {
        Value::Boolean(false) => Err(HostError::Failed(format!("the master refused the event {tag}"))),
        _ => Ok(Value::from(true)),
    }
}

fn taken(rates: &Mutex<Rates>, caller: &Caller) -> Option<u32> {
    rates.lock().unwrap_or_else(PoisonError::into_inner).take(&caller.job.jid, Instant::now())
}

pub(super) fn decode(data: &[u8], limits: &msgpack::Limits) -> Result<Value, HostError> {
    msgpack::decode_disk(data, limits).map_err(|e| HostError::Failed(format!("the data cannot be sent: {e}")))
}

/// How much each job has told.
#[derive(Default)]
struct Rates(HashMap<String, Rate>);

/// What one job may tell at once, as of when, and how often it has told.
#[derive(Clone, Copy)]
struct Rate {
    left: f64,
    at: Instant,
    told: u32,
}

impl Rate {
    fn left(&self, now: Instant) -> f64 {
        let since = now.saturating_duration_since(self.at).min(Duration::from_secs(3600));
        (self.left + since.as_secs_f64() * PER_SECOND).min(BURST)
    }
}

impl Rates {
    /// Counts one more of a job; says how many there were before. None where it is too fast, and then it does not count.
    fn take(&mut self, jid: &str, now: Instant) -> Option<u32> {
        if self.0.len() >= MAX_JOBS {
            self.0.retain(|_, rate| rate.left(now) < BURST);
        }
        let (left, told) = match self.0.get(jid) {
            Some(rate) => (rate.left(now), rate.told),
            None if self.0.len() >= MAX_JOBS => return None,
            None => (BURST, 0),
        };
        let may = left >= 1.0;
        let rate = Rate { left: if may { left - 1.0 } else { left }, at: now, told: told.saturating_add(may.into()) };
        self.0.insert(jid.to_owned(), rate);
        may.then_some(told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_tells_too_much_is_slowed_and_others_are_not() {
        let mut rates = Rates::default();
        let start = Instant::now();
        let taken: Vec<u32> = (0..100).filter_map(|_| rates.take("1", start)).collect();
        assert_eq!(taken, (0..20).collect::<Vec<_>>());
        assert_eq!(rates.take("2", start), Some(0));
        let later = start + Duration::from_secs(1);
        assert_eq!((0..100).filter_map(|_| rates.take("1", later)).collect::<Vec<_>>(), [20, 21, 22, 23, 24]);
        // Those that have long been quiet make room.
        for n in 0..MAX_JOBS * 2 {
            rates.take(&format!("j{n}"), later);
        }
        assert!(rates.0.len() <= MAX_JOBS);
        assert_eq!(rates.take("another", later), None);
        assert_eq!(rates.take("another", later + Duration::from_secs(10)), Some(0));
    }
}
