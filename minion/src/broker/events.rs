//! `brine:host/events`: events on the master's bus, in this minion's own namespace.
//!
//! A module's tag `deploy/done` is `salt/minion/<id>/deploy/done` on the bus: the one place that Brine's masters keep for what a
//! minion says of itself, and where nobody takes it for an event of the master's or of another minion (CVE-2025-22239). Sent
//! in the single form, whose data the master puts below `data`, beside the `id` that it proved.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use brine_protocol::ids::EventTag;
use brine_protocol::msgpack;
use brine_protocol::value::{Value, ValueExt, map};
use brine_sandbox::{Caller, EventsOp, HostError};
use tokio::sync::Semaphore;

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
        let tag = own_tag(&caller.job.minion_id, &tag).map_err(HostError::Failed)?;
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
            return Err(HostError::Failed("there is no master to tell: this runs without one (--local, file_client)".to_owned()));
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

/// The tag on the bus.
fn own_tag(id: &str, tag: &str) -> Result<EventTag, String> {
    let parts: Vec<&str> = tag.split('/').collect();
    if parts.contains(&"") {
        return Err("an event's tag has an empty part".to_owned());
    }
    // What a minion itself says when it starts; reactors that wait for `salt/minion/*/start` match slashes with the star.
    if parts.first() == Some(&"start") || parts.last() == Some(&"start") {
        return Err("an event's tag may neither begin nor end with start: that is the minion's own".to_owned());
    }
    EventTag::join(&["salt/minion", id, tag]).map_err(|e| e.to_string())
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
    fn tags_are_this_minions_own() {
        assert_eq!(own_tag("m1", "deploy/done").unwrap().as_str(), "salt/minion/m1/deploy/done");
        assert_eq!(own_tag("m1", "salt/auth").unwrap().as_str(), "salt/minion/m1/salt/auth");
        for bad in ["", "/x", "x/", "a//b", "start", "a/start", "start/x", "a\nb", "a\n\nb", "a\0", &"x".repeat(4096)] {
            assert!(own_tag("m1", bad).is_err(), "{bad:?}");
        }
    }

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
