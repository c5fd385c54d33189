//! `brine:host/events`: events on the master's bus, in this minion's name.
//!
//! The tag goes out as the module wrote it and the owner granted it: the policy lets modules have words of their own
//! (`deploy/done`) and what is below `salt/minion/<id>/` and `salt/beacon/<id>/`, never the master's tags or another minion's
//! (CVE-2025-22239), which is also all that Brine's masters take. Sent in the single form, whose data every master puts below
//! `data`, beside the `id` that it proved: a module cannot write another `id`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use brine_protocol::ids::EventTag;
use brine_protocol::msgpack;
use brine_protocol::value::{Value, ValueExt, map};
use brine_sandbox::{Caller, EventsOp, HostError};
use tokio::sync::Semaphore;

use super::{MinionBroker, Perform};
use crate::connection::Channel;

/// Events and mine data under way at once, of all jobs; each takes one of the channel's connections.
const AT_ONCE: usize = 2;
/// What Salt's bus takes by default (`max_event_size`).
const MAX_DATA: usize = 1 << 20;
const DATA: msgpack::Limits = msgpack::Limits { max_bytes: MAX_DATA, max_depth: 64, max_items: 100_000 };
/// A job may fire so many at once ...
const BURST: f64 = 20.0;
/// ... and then so many a second.
const PER_SECOND: f64 = 5.0;
/// Jobs whose rate is remembered.
const MAX_JOBS: usize = 4096;

impl Perform<EventsOp> for MinionBroker {
    async fn perform(&self, caller: &Caller, op: EventsOp) -> Result<Value, HostError> {
        self.teller.fire(caller, op).await
    }
}

/// Tells the master what modules say.
pub(super) struct Teller {
    channel: Option<Arc<Channel>>,
    turns: Semaphore,
    rates: Mutex<Rates>,
}

impl Teller {
    pub(super) fn new(channel: Option<Arc<Channel>>) -> Self {
        Self { channel, turns: Semaphore::new(AT_ONCE), rates: Mutex::default() }
    }

    pub(super) async fn fire(&self, caller: &Caller, op: EventsOp) -> Result<Value, HostError> {
        let EventsOp::Fire { tag, data } = op;
        let tag = EventTag::new(tag).map_err(|e| HostError::Failed(e.to_string()))?;
        let data = decode(&data, &DATA)?;
        if data.entries().is_none() {
            return Err(HostError::Failed("an event's data is a dict".to_owned()));
        }
        let load = map([
            ("cmd", Value::from("_minion_event")),
            ("id", Value::from(caller.job.minion_id.as_str())),
            ("tag", Value::from(tag.as_str())),
            ("data", data),
            ("pretag", Value::Nil),
        ]);
        // Salt's masters answer nil whatever became of it; Brine's say when they did not take it.
        match self.tell(caller, load).await? {
            Value::Boolean(false) => Err(HostError::Failed(format!("the master refused the event {tag}"))),
            _ => Ok(Value::from(true)),
        }
    }

    /// Sends a load when it is its turn and the job is not too fast.
    pub(super) async fn tell(&self, caller: &Caller, load: Value) -> Result<Value, HostError> {
        let Some(channel) = &self.channel else {
            return Err(HostError::Failed(
                "there is no master to tell: this runs without one (--local, file_client)".to_owned(),
            ));
        };
        if !self.rates.lock().unwrap_or_else(PoisonError::into_inner).take(&caller.job.jid, Instant::now()) {
            return Err(HostError::Failed(format!(
                "this job tells the master too much: at most {BURST} events and mine values at once and then {PER_SECOND} a second"
            )));
        }
        let _turn = self.turns.acquire().await.map_err(|_| HostError::Failed("the minion is ending".to_owned()))?;
        channel.request(load).await.map_err(|e| HostError::Failed(format!("the master was not told: {e}")))
    }
}

pub(super) fn decode(data: &[u8], limits: &msgpack::Limits) -> Result<Value, HostError> {
    msgpack::decode_disk(data, limits).map_err(|e| HostError::Failed(format!("the data cannot be sent: {e}")))
}

/// How much each job has told.
#[derive(Default)]
struct Rates(HashMap<String, (f64, Instant)>);

impl Rates {
    fn take(&mut self, jid: &str, now: Instant) -> bool {
        let left = |(left, at): (f64, Instant)| {
            let since = now.saturating_duration_since(at).min(Duration::from_secs(3600));
            (left + since.as_secs_f64() * PER_SECOND).min(BURST)
        };
        if self.0.len() >= MAX_JOBS {
            self.0.retain(|_, entry| left(*entry) < BURST);
        }
        let have = match self.0.get(jid) {
            Some(entry) => left(*entry),
            None if self.0.len() >= MAX_JOBS => return false,
            None => BURST,
        };
        let may = have >= 1.0;
        self.0.insert(jid.to_owned(), (if may { have - 1.0 } else { have }, now));
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_tells_too_much_is_slowed_and_others_are_not() {
        let mut rates = Rates::default();
        let start = Instant::now();
        let taken = (0..100).filter(|_| rates.take("1", start)).count();
        assert_eq!(taken, 20);
        assert!(rates.take("2", start));
        let later = start + Duration::from_secs(1);
        assert_eq!((0..100).filter(|_| rates.take("1", later)).count(), 5);
        // Those that have long been quiet make room.
        for n in 0..MAX_JOBS * 2 {
            rates.take(&format!("j{n}"), later);
        }
        assert!(rates.0.len() <= MAX_JOBS);
        assert!(!rates.take("another", later));
        assert!(rates.take("another", later + Duration::from_secs(10)));
    }
}
