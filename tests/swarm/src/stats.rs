//! The swarm's statistics: counters, durations, the last errors.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Upper bound on the distinct errors kept.
const ERRORS_MAX: usize = 20;
/// Steps for each doubling of a duration: an error of at most 6 %.
const STEPS: u64 = 16;
/// Doublings from 1 µs to 2^40 µs, 12 days.
const OCTAVES: u64 = 40;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// The counters of a swarm.
        #[derive(Debug, Default)]
        pub(crate) struct Stats {
            $(pub(crate) $name: AtomicU64,)*
            pub(crate) auth_time: Times,
            pub(crate) return_time: Times,
            pub(crate) pillar_time: Times,
            errors: Mutex<BTreeMap<String, u64>>,
        }

        /// A snapshot of the counters.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct Counts {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Stats {
            /// Returns a snapshot of the counters.
            pub(crate) fn counts(&self) -> Counts {
                Counts { $($name: self.$name.load(Ordering::Relaxed),)* }
            }
        }

        impl Counts {
            /// Returns names and values, in order.
            pub fn all(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name),)*]
            }
        }
    };
}

counters! {
    /// Minions that have a session now.
    authenticated,
    /// Minions whose subscription is connected now.
    connected,
    /// Requests for authentication sent.
    auth_sent,
    /// Authentications that the master accepted.
    auth_accepted,
    /// Sessions that the master went on with, so that no authentication was necessary.
    resumed,
    /// Authentications whose key waits for an operator.
    auth_pending,
    /// Authentications that the master rejected, or for which it had no room.
    auth_rejected,
    /// Authentications that the master answered with an error, mostly because too many arrive at once.
    auth_refused,
    /// Authentications without a reply in time, or with an invalid reply.
    auth_unanswered,
    /// Subscriptions that connected.
    connects,
    /// Subscriptions that were lost.
    losses,
    /// Publications received, counted for each minion.
    publications,
    /// Publications that could not be opened.
    publications_bad,
    /// Publications for this minion.
    jobs,
    /// Requests sent, without authentications.
    requests_sent,
    /// Requests without a reply in time.
    requests_unanswered,
    /// Returns that the master acknowledged.
    returns_acknowledged,
    /// Pillars received.
    pillars,
    /// Files fetched completely, with the hash that the master announced.
    files_fetched,
    /// Bytes of files fetched.
    file_bytes,
    /// Restarts of minions.
    restarts,
}

impl Stats {
    pub(crate) fn error(&self, text: &str) {
        let mut errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        // Error texts may contain data from a peer, so their number is bounded.
        let text = if errors.contains_key(text) || errors.len() < ERRORS_MAX { text } else { "others" };
        *errors.entry(text.to_owned()).or_default() += 1;
    }

    pub(crate) fn report(&self, minions: usize, elapsed: Duration) -> Report {
        let errors = self.errors.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Report {
            minions,
            elapsed,
            counts: self.counts(),
            auth: self.auth_time.summary(),
            returns: self.return_time.summary(),
            pillar: self.pillar_time.summary(),
            errors,
        }
    }
}

/// Adds one.
pub(crate) fn up(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// A histogram of durations in steps of a sixteenth of an octave.
#[derive(Debug)]
pub(crate) struct Times(Box<[AtomicU64]>);

impl Default for Times {
    fn default() -> Self {
        Self((0..OCTAVES * STEPS).map(|_| AtomicU64::new(0)).collect())
    }
}

/// A summary of durations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Summary {
    /// The number of durations.
    pub count: u64,
    /// The median.
    pub p50: Duration,
    /// The 99th percentile.
    pub p99: Duration,
    /// The longest.
    pub max: Duration,
}

impl Times {
    pub(crate) fn add(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX).max(STEPS);
        let octave = u64::from(micros.ilog2());
        let step = (micros >> (octave - u64::from(STEPS.ilog2()))) - STEPS;
        let index = usize::try_from(octave * STEPS + step).unwrap_or(usize::MAX);
        up(&self.0[index.min(self.0.len() - 1)]);
    }

    /// Clears the histogram.
    pub(crate) fn clear(&self) {
        self.0.iter().for_each(|count| count.store(0, Ordering::Relaxed));
    }

    pub(crate) fn summary(&self) -> Summary {
        let counts: Vec<u64> = self.0.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        let count = counts.iter().sum();
        let at = |rank: u64| {
            let mut seen = 0;
            let index = counts.iter().position(|count| {
                seen += count;
                seen >= rank.max(1)
            });
            index.map_or(Duration::ZERO, |index| upper(u64::try_from(index).unwrap_or(0)))
        };
        Summary { count, p50: at(count.div_ceil(2)), p99: at(count - count / 100), max: at(count) }
    }
}

/// Returns the longest duration of a step.
fn upper(index: u64) -> Duration {
    let (octave, step) = (index / STEPS, index % STEPS);
    Duration::from_micros(((STEPS + step + 1) << octave) / STEPS)
}

/// The swarm's results, for people (`Display`) and for programs ([`Report::json`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The number of minions.
    pub minions: usize,
    /// Time since the start of the swarm.
    pub elapsed: Duration,
    /// The counters.
    pub counts: Counts,
    /// Durations from an authentication request to its reply.
    pub auth: Summary,
    /// Durations from sending a return to its acknowledgement.
    pub returns: Summary,
    /// Durations from a request for the pillar to the pillar.
    pub pillar: Summary,
    /// Errors and their numbers.
    pub errors: BTreeMap<String, u64>,
}

impl Report {
    /// Returns the report as JSON, with durations in milliseconds.
    pub fn json(&self) -> serde_json::Value {
        let ms = |time: Duration| time.as_secs_f64() * 1000.0;
        let times = |times: &Summary| serde_json::json!({"count": times.count, "p50_ms": ms(times.p50), "p99_ms": ms(times.p99), "max_ms": ms(times.max)});
        let counts: serde_json::Map<_, _> =
            self.counts.all().into_iter().map(|(name, count)| (name.to_owned(), count.into())).collect();
        serde_json::json!({
            "minions": self.minions, "elapsed_ms": ms(self.elapsed), "counts": counts,
            "auth": times(&self.auth), "returns": times(&self.returns), "pillar": times(&self.pillar), "errors": self.errors,
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let c = &self.counts;
        let times = |t: &Summary| format!("p50 {:.1?}, p99 {:.1?}, longest {:.1?}", t.p50, t.p99, t.max);
        writeln!(
            f,
            "after {:.1?}: {} of {} authenticated, {} connected",
            self.elapsed, c.authenticated, self.minions, c.connected
        )?;
        writeln!(
            f,
            "  authentication  {} went on with their session; {} sent: {} accepted, {} pending, {} rejected, {} told to come again, {} without an answer; {}",
            c.resumed,
            c.auth_sent,
            c.auth_accepted,
            c.auth_pending,
            c.auth_rejected,
            c.auth_refused,
            c.auth_unanswered,
            times(&self.auth)
        )?;
        writeln!(
            f,
            "  publications    {} received, {} of them jobs for who got them, {} unusable; {} connections made, {} lost",
            c.publications, c.jobs, c.publications_bad, c.connects, c.losses
        )?;
        write!(
            f,
            "  returns         {} acknowledged; {} requests sent, {} without an answer; {}",
            c.returns_acknowledged,
            c.requests_sent,
            c.requests_unanswered,
            times(&self.returns)
        )?;
        if c.pillars > 0 {
            write!(f, "\n  pillars         {} received; {}", c.pillars, times(&self.pillar))?;
        }
        if c.files_fetched > 0 {
            write!(f, "\n  files           {} fetched, {} MiB", c.files_fetched, c.file_bytes >> 20)?;
        }
        if c.restarts > 0 {
            write!(f, "\n  restarts        {}", c.restarts)?;
        }
        for (error, count) in &self.errors {
            write!(f, "\n  error           {count} × {error}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_kept_within_a_sixteenth() {
        let times = Times::default();
        for ms in 1..=100 {
            times.add(Duration::from_millis(ms));
        }
        let summary = times.summary();
        assert_eq!(summary.count, 100);
        for (got, expected) in [(summary.p50, 50.0), (summary.p99, 99.0), (summary.max, 100.0)] {
            let ratio = got.as_secs_f64() * 1000.0 / expected;
            assert!((0.99..1.08).contains(&ratio), "{got:?} for {expected} ms");
        }
        times.add(Duration::ZERO);
        times.add(Duration::MAX);
        times.clear();
        assert_eq!(times.summary(), Summary::default());
    }

    #[test]
    fn errors_are_bounded_and_reported() {
        let stats = Stats::default();
        for number in 0..100 {
            stats.error(&format!("error {number}"));
        }
        up(&stats.connected);
        let report = stats.report(3, Duration::from_secs(1));
        assert_eq!(report.errors.len(), ERRORS_MAX + 1);
        assert_eq!(report.errors["others"], 80);
        assert_eq!(report.json()["counts"]["connected"], 1);
        assert!(report.to_string().contains("0 of 3 authenticated, 1 connected"));
    }
}
