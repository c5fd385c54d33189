//! A running swarm.

use std::sync::Arc;
use std::time::{Duration, Instant};

use brine_protocol::ids::IdError;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::keys::SwarmKey;
use crate::minion::{LOOK, Minion, Shared};
use crate::plan::Plan;
use crate::publications::Publications;
use crate::stats::{Counts, Report};

/// A running swarm. Dropping it ends all minions at once, as in a power cut.
pub struct Swarm {
    shared: Arc<Shared>,
    storms: watch::Sender<u64>,
    started: Instant,
    _minions: JoinSet<()>,
}

impl Swarm {
    /// Starts one minion for each key. Must be called in a tokio runtime.
    ///
    /// # Errors
    /// The plan's prefix makes no valid ids.
    pub fn start(plan: Plan, keys: &[Arc<SwarmKey>]) -> Result<Self, IdError> {
        let ids = (0..keys.len()).map(|index| plan.id(index)).collect::<Result<Vec<_>, _>>()?;
        let shared = Arc::new(Shared {
            plan: Arc::new(plan),
            stats: Arc::default(),
            publications: Publications::default(),
            master: Arc::default(),
            count: keys.len(),
        });
        let storms = watch::Sender::new(0);
        let mut minions = JoinSet::new();
        for (index, (id, key)) in ids.into_iter().zip(keys).enumerate() {
            let minion = Minion::new(Arc::clone(&shared), index, id, Arc::clone(key));
            minions.spawn(minion.run(storms.subscribe()));
        }
        Ok(Self { shared, storms, started: Instant::now(), _minions: minions })
    }

    /// Returns the number of minions.
    pub fn len(&self) -> usize {
        self.shared.count
    }

    /// Checks whether there are no minions.
    pub fn is_empty(&self) -> bool {
        self.shared.count == 0
    }

    /// Returns a snapshot of the counters.
    pub fn counts(&self) -> Counts {
        self.shared.stats.counts()
    }

    /// Returns the report so far.
    pub fn report(&self) -> Report {
        self.shared.stats.report(self.shared.count, self.started.elapsed())
    }

    /// Clears the measured durations.
    pub fn forget_times(&self) {
        self.shared.stats.auth_time.clear();
        self.shared.stats.return_time.clear();
        self.shared.stats.pillar_time.clear();
    }

    /// Causes a restart storm: every minion drops its state and restarts now.
    pub fn storm(&self) {
        self.storms.send_modify(|storm| *storm += 1);
    }

    /// Waits until the counters satisfy `enough`. Returns how long that took, or None after the deadline.
    pub async fn wait(&self, deadline: Duration, enough: impl Fn(&Counts) -> bool) -> Option<Duration> {
        let started = Instant::now();
        loop {
            if enough(&self.counts()) {
                return Some(started.elapsed());
            }
            if started.elapsed() > deadline {
                return None;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Waits until all minions are authenticated and connected.
    pub async fn wait_ready(&self, deadline: Duration) -> Option<Duration> {
        let all = u64::try_from(self.len()).unwrap_or(u64::MAX);
        self.wait(deadline, |counts| counts.authenticated == all && counts.connected == all).await
    }
}
