//! All of them.

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

/// A running swarm. Dropping it ends all minions at once, as a power cut does.
pub struct Swarm {
    shared: Arc<Shared>,
    storms: watch::Sender<u64>,
    started: Instant,
    _minions: JoinSet<()>,
}

impl Swarm {
    /// Starts a minion a key. Must be called in a tokio runtime.
    ///
    /// # Errors
    /// When the plan's prefix makes no ids.
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

    /// How many minions there are.
    pub fn len(&self) -> usize {
        self.shared.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.shared.count == 0
    }

    /// The counters now.
    pub fn counts(&self) -> Counts {
        self.shared.stats.counts()
    }

    /// What it saw so far.
    pub fn report(&self) -> Report {
        self.shared.stats.report(self.shared.count, self.started.elapsed())
    }

    /// Starts to measure durations anew.
    pub fn forget_times(&self) {
        self.shared.stats.auth_time.clear();
        self.shared.stats.return_time.clear();
    }

    /// A restart storm: every minion drops what it has and starts anew, now.
    pub fn storm(&self) {
        self.storms.send_modify(|storm| *storm += 1);
    }

    /// Waits until `enough` of the counters; how long that took, or nothing when `deadline` has passed first.
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

    /// Waits until all are authenticated and connected.
    pub async fn wait_ready(&self, deadline: Duration) -> Option<Duration> {
        let all = u64::try_from(self.len()).unwrap_or(u64::MAX);
        self.wait(deadline, |counts| counts.authenticated == all && counts.connected == all).await
    }
}
