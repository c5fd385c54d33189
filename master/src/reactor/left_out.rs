//! Counts what the reactor left out, and tells it once a second: a line in the log, and the event `brine/reactor/left_out`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use brine_protocol::value::{Value, map};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::bus::Bus;

/// Time between two lines.
const EVERY: Duration = Duration::from_secs(1);

/// Why something was left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// The bus had no more place for events of the reactor, so it never looked at them.
    Bus,
    /// As many events wait as `reactor_worker_hwm` allows.
    Queue,
    /// As many runners and wheel functions wait as `reactor_worker_hwm` allows.
    Runners,
    /// A minion fires more than the reactor takes of one minion.
    Minion,
}

/// Each with its name in the event, and what it is in the log.
const ALL: [(Why, &str, &str); 4] = [
    (Why::Bus, "bus", "events that came faster than they were read"),
    (Why::Queue, "queue", "events beyond reactor_worker_hwm"),
    (Why::Runners, "runners", "runners and wheel functions beyond reactor_worker_hwm"),
    (Why::Minion, "minion", "events beyond what one minion may cause"),
];

/// What was left out and not told yet.
#[derive(Default)]
pub(super) struct LeftOut {
    counts: [AtomicU64; ALL.len()],
    news: Notify,
}

impl LeftOut {
    pub(super) fn add(&self, why: Why, count: u64) {
        if count > 0 {
            self.counts[why as usize].fetch_add(count, Ordering::Relaxed);
            self.news.notify_one();
        }
    }

    /// Tells until `stop`.
    pub(super) async fn tell(&self, bus: &Bus, stop: &CancellationToken) {
        loop {
            tokio::select! {
                () = self.news.notified() => {}
                () = stop.cancelled() => return,
            }
            tokio::select! {
                () = tokio::time::sleep(EVERY) => {}
                () = stop.cancelled() => {}
            }
            self.tell_now(bus);
        }
    }

    fn tell_now(&self, bus: &Bus) {
        let (mut data, mut said) = (Vec::new(), Vec::new());
        for ((_, name, words), count) in ALL.iter().zip(&self.counts) {
            let count = count.swap(0, Ordering::Relaxed);
            if count > 0 {
                data.push((*name, Value::from(count)));
                said.push(format!("{count} {words}"));
            }
        }
        if !data.is_empty() {
            tracing::warn!("the reactor left out: {}", said.join(", "));
            bus.fire("brine/reactor/left_out", map(data));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_its_own_place() {
        assert!(ALL.iter().enumerate().all(|(at, (why, ..))| *why as usize == at));
    }
}
