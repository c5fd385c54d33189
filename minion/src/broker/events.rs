//! `brine:host/events`: events on the master's bus, sent by this minion for its modules.
//!
//! The tag is sent as the module wrote it. The policy allows tags of the module's own (`deploy/done`) and tags below
//! `salt/minion/<id>/` and `salt/beacon/<id>/`, but no tags of the master or of another minion (CVE-2025-22239).
//! Brine's masters accept no other tags either. An event is sent in the single form: every master puts its data below
//! `data`, beside the `id` that the channel proved, so that a module cannot forge the `id`. Progress of a job is sent
//! the same way, under a tag of the minion itself.

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

/// Upper bound on events and mine data under way at once, for all jobs. Each takes one of the channel's connections.
const AT_ONCE: usize = 2;
/// The same for runners, whose answers may take as long as a runner runs. Events do not wait for them.
const RUNNERS_AT_ONCE: usize = 2;
/// Upper bound on the bytes of an event: Salt's default for its bus (`max_event_size`).
const MAX_DATA: usize = 1 << 20;
const DATA: msgpack::Limits = msgpack::Limits { max_bytes: MAX_DATA, max_depth: 64, max_items: 100_000 };
/// Events that a job may fire in one burst.
const BURST: f64 = 20.0;
/// Events that a job may fire in each second after the burst.
const PER_SECOND: f64 = 5.0;
/// Upper bound on the progress events of one job. A user who follows the job reads all of them.
const MAX_PROGRESS: u32 = 1_000;
/// Upper bound on the jobs whose rate is remembered.
const MAX_JOBS: usize = 4096;

impl Perform<EventsOp> for MinionBroker {
    async fn perform(&self, caller: &Caller, op: EventsOp) -> Result<Value, HostError> {
        self.teller.fire(caller, op).await
    }
}

/// Sends the events, progress and mine data of modules to the master.
pub(super) struct Teller {
    masters: Masters,
    turns: Semaphore,
    runners: Semaphore,
    events: Mutex<Rates>,
    progress: Mutex<Rates>,
}

impl Teller {
    pub(super) fn new(masters: Masters) -> Self {
        Self {
            masters,
            turns: Semaphore::new(AT_ONCE),
            runners: Semaphore::new(RUNNERS_AT_ONCE),
            events: Mutex::default(),
            progress: Mutex::default(),
        }
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

    /// Fires the event of a state's result (`fire_event`).
    pub(super) async fn state_result(&self, caller: &Caller, name: &str, result: &[u8]) -> Result<Value, HostError> {
        let (jid, id) = (&caller.job.jid, &caller.job.minion_id);
        let tag = EventTag::new(format!("salt/state_result/{jid}/{id}/{name}"));
        let tag = tag.map_err(|e| HostError::Failed(e.to_string()))?;
        let data = map([("ret", decode(result, &DATA)?)]);
        fired(tag.as_str(), &self.tell(caller, event(caller, tag.as_str(), data)).await?)
    }

    /// Fires the next progress event of a job.
    pub(super) async fn progress(&self, caller: &Caller, data: Value) -> Result<Value, HostError> {
        let channel = self.asker(caller)?;
        let Some(number) = taken(&self.progress, caller).filter(|number| *number < MAX_PROGRESS) else {
            return Err(HostError::Failed(format!(
                "this job says too much of its progress: at most {BURST} times at once, then {PER_SECOND} a second, and \
                 {MAX_PROGRESS} in all"
            )));
        };
        let tag = format!("salt/job/{}/prog/{}/{number}", caller.job.jid, caller.job.minion_id);
        fired(&tag, &send(&self.turns, channel, event(caller, &tag, data)).await?)
    }

    /// Sends a load after waiting for a free connection. Fails if the job exceeds its rate.
    pub(super) async fn tell(&self, caller: &Caller, load: Value) -> Result<Value, HostError> {
        self.tell_in_turn(&self.turns, caller, load).await
    }

    /// Starts a runner and waits for its answer. Fails if the job exceeds its rate.
    pub(super) async fn start_runner(&self, caller: &Caller, load: Value) -> Result<Value, HostError> {
        self.tell_in_turn(&self.runners, caller, load).await
    }

    async fn tell_in_turn(&self, turns: &Semaphore, caller: &Caller, load: Value) -> Result<Value, HostError> {
        let channel = self.asker(caller)?;
        if taken(&self.events, caller).is_none() {
            return Err(HostError::Failed(format!(
                "this job tells the master too much: at most {BURST} events and mine values at once and then {PER_SECOND} a second"
            )));
        }
        send(turns, channel, load).await
    }

    /// Sends a question after waiting for a free connection. Questions have no rate: the calls of a job are bounded.
    pub(super) async fn ask(&self, caller: &Caller, load: Value) -> Result<Value, HostError> {
        send(&self.turns, self.asker(caller)?, load).await
    }

    /// Whether there is no master at all: `--local`, or `file_client: local`.
    pub(super) fn is_alone(&self, caller: &Caller) -> bool {
        matches!(self.masters.asker(caller.job.master.as_deref()), Err(ChannelError::NoMaster))
    }

    fn asker(&self, caller: &Caller) -> Result<&Arc<Channel>, HostError> {
        self.masters.asker(caller.job.master.as_deref()).map_err(|e| match e {
            ChannelError::NoMaster => {
                HostError::Failed("there is no master to tell: this runs without one (--local, file_client)".to_owned())
            }
            e => untold(&e),
        })
    }
}

async fn send(turns: &Semaphore, channel: &Arc<Channel>, load: Value) -> Result<Value, HostError> {
    let _turn = turns.acquire().await.map_err(|_| HostError::Failed("the minion is ending".to_owned()))?;
    channel.request(load).await.map_err(|e| untold(&e))
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

/// Checks the master's answer. Salt's masters always answer nil; Brine's masters say if they rejected the event.
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

/// The rate of each job.
#[derive(Default)]
struct Rates(HashMap<String, Rate>);

/// The events that a job may still fire at the time `at`, and the number that it has fired.
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
    /// Counts one event of a job and returns the number of earlier ones. Returns none, and counts nothing, if the job
    /// exceeds its rate.
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
        // Jobs that have fired nothing for long are forgotten, which frees their places.
        for n in 0..MAX_JOBS * 2 {
            rates.take(&format!("j{n}"), later);
        }
        assert!(rates.0.len() <= MAX_JOBS);
        assert_eq!(rates.take("another", later), None);
        assert_eq!(rates.take("another", later + Duration::from_secs(10)), Some(0));
    }
}
