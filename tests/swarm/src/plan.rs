//! What a swarm is to be.

use std::time::Duration;

use brine_protocol::ids::{IdError, MinionId};
use brine_protocol::value::{Value, map};

/// How many minions, whom they work with, how they behave.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The master's host name or address.
    pub master: String,
    /// Its port of requests; where it publishes it says itself.
    pub port: u16,
    /// What ids begin with; a dash and five digits follow, from 00001.
    pub prefix: String,
    /// The fraction of minions, 0 to 1, that never answer a job. The last ones by number.
    pub silent: f64,
    /// The fraction that answers a job late. Those before the silent ones.
    pub slow: f64,
    /// How late.
    pub slow_for: Duration,
    /// Minions start one after the other over so long; zero: all at once.
    pub start_over: Duration,
    /// After a change of the publish key minions ask for the new one over so long, as Brine's minions do.
    pub reauth_over: Duration,
    /// How long a minion waits for an answer; a request that has none by then counts as dropped.
    pub timeout: Duration,
    /// How long a minion that was turned away waits before it asks again, ± 25 % (`acceptance_wait_time`).
    pub refused_wait: Duration,
    /// The wait before connecting again, drawn between the two (`recon_default`, `recon_max`).
    pub reconnect: (Duration, Duration),
    /// Every minion starts anew after so long, at a time of its own.
    pub restart_every: Option<Duration>,
    /// Asks for the pillar after signing in, by which the master learns the grains, and fires the start event.
    pub pillar: bool,
    /// Subscribes to its own topics only (`zmq_filtering`), not to everything.
    pub filtering: bool,
}

impl Default for Plan {
    /// Minions that behave, of a master on this host.
    fn default() -> Self {
        Self {
            master: "127.0.0.1".to_owned(),
            port: 4506,
            prefix: "swarm".to_owned(),
            silent: 0.0,
            slow: 0.0,
            slow_for: Duration::from_secs(10),
            start_over: Duration::ZERO,
            reauth_over: Duration::from_secs(1),
            timeout: Duration::from_secs(60),
            refused_wait: Duration::from_secs(10),
            reconnect: (Duration::from_secs(1), Duration::from_secs(10)),
            restart_every: None,
            pillar: false,
            filtering: false,
        }
    }
}

/// How a minion takes a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Temper {
    Prompt,
    Slow,
    Silent,
}

impl Plan {
    /// The id of a minion, counted from 0.
    ///
    /// # Errors
    /// When the prefix makes no id.
    pub fn id(&self, index: usize) -> Result<MinionId, IdError> {
        MinionId::new(format!("{}-{:05}", self.prefix, index + 1))
    }

    /// The grains of a minion: `id`, `os: Swarm`, and `swarm_group`, 0 to 9, for targets that mean a tenth of them.
    pub fn grains(id: &MinionId, index: usize) -> Value {
        let group = u64::try_from(index % 10).unwrap_or(0);
        map([
            ("id", Value::from(id)),
            ("os", Value::from("Swarm")),
            ("os_family", Value::from("Swarm")),
            ("kernel", Value::from("Linux")),
            ("swarm_group", Value::from(group)),
        ])
    }

    /// How many of `count` are silent, and how many slow.
    pub fn misbehaving(&self, count: usize) -> (usize, usize) {
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a fraction of a count"
        )]
        let of = |fraction: f64| (count as f64 * fraction.clamp(0.0, 1.0)).round() as usize;
        let silent = of(self.silent);
        (silent, of(self.slow).min(count - silent))
    }

    pub(crate) fn temper(&self, index: usize, count: usize) -> Temper {
        let (silent, slow) = self.misbehaving(count);
        match count - index {
            from_end if from_end <= silent => Temper::Silent,
            from_end if from_end <= silent + slow => Temper::Slow,
            _ => Temper::Prompt,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_are_silent_and_those_before_them_slow() {
        let plan = Plan { silent: 0.2, slow: 0.1, ..Plan::default() };
        let tempers: Vec<_> = (0..10).map(|index| plan.temper(index, 10)).collect();
        assert_eq!(tempers[..7], [Temper::Prompt; 7]);
        assert_eq!(tempers[7..], [Temper::Slow, Temper::Silent, Temper::Silent]);
        assert_eq!(Plan { silent: 1.0, slow: 1.0, ..Plan::default() }.misbehaving(3), (3, 0));
        assert_eq!(plan.id(41).unwrap().as_str(), "swarm-00042");
        assert!(Plan { prefix: "a/b".to_owned(), ..plan }.id(0).is_err());
    }
}
