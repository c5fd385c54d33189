//! The plan of a swarm.

use std::time::Duration;

use brine_protocol::ids::{IdError, MinionId};
use brine_protocol::value::{Value, map};

/// The number of minions, their master and their behaviour.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The master's host name or address.
    pub master: String,
    /// Its request port. The master tells its publish port.
    pub port: u16,
    /// Prefix of the ids. A dash and five digits follow, from 00001.
    pub prefix: String,
    /// The fraction of minions, 0 to 1, that never return. These have the highest numbers.
    pub silent: f64,
    /// The fraction of minions that return late. These have the numbers below.
    pub slow: f64,
    /// The delay of late returns.
    pub slow_for: Duration,
    /// Time over which the minions start one after the other. Zero: all at once.
    pub start_over: Duration,
    /// Time over which minions request a changed publish key, as Brine's minions do.
    pub reauth_over: Duration,
    /// Time that a minion waits for a reply. After that the request counts as dropped.
    pub timeout: Duration,
    /// Time that a refused minion waits before its next attempt, ± 25 % (`acceptance_wait_time`).
    pub refused_wait: Duration,
    /// Bounds of the random wait before a reconnect (`recon_default`, `recon_max`).
    pub reconnect: (Duration, Duration),
    /// Interval at which every minion restarts, each at a time of its own.
    pub restart_every: Option<Duration>,
    /// Whether a minion requests its pillar after signing in, from which the master learns the grains, and fires the
    /// start event.
    pub pillar: bool,
    /// Whether a minion subscribes only to its own topics (`zmq_filtering`).
    pub filtering: bool,
    /// Whether a minion opens publications for it alone, and goes on with its session, as Brine's minions do.
    pub seals: bool,
}

impl Default for Plan {
    /// Returns a plan of well-behaved minions with a master on this host.
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
            seals: true,
        }
    }
}

/// How a minion handles jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Temper {
    Prompt,
    Slow,
    Silent,
}

impl Plan {
    /// Returns the id of a minion, counted from 0.
    ///
    /// # Errors
    /// The prefix makes no valid id.
    pub fn id(&self, index: usize) -> Result<MinionId, IdError> {
        MinionId::new(format!("{}-{:05}", self.prefix, index + 1))
    }

    /// Returns a minion's grains: `id`, `os: Swarm`, and `swarm_group`, 0 to 9, for targets that match a tenth of the
    /// minions.
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

    /// Returns how many of `count` are silent, and how many slow.
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
