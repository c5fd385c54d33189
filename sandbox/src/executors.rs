//! The executors there are, by what their processes may reach: the one that may reach nothing, which is always there, and
//! those of direct grants, which come with the first job that needs them and go when none does.
//!
//! What one process may reach is what the functions that run in it were granted, and no more.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use brine_sandbox_wire::DirectGrants;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::directories::Reach;
use crate::link::Link;
use crate::supervisor::{Executor, Lease, NoExecutor, Parts};

/// Processes with direct grants at once: each costs some MB and is a wall of its own. An idle one makes room.
const MAX_UP: usize = 16;
/// Those remembered, asleep ones too, for how often they died; the owner's configuration has as many as it has grants.
const MAX_KNOWN: usize = 256;
/// While all places are taken and one is being given up: between two looks.
const LOOK: Duration = Duration::from_millis(50);

pub(crate) struct ExecutorSet {
    parts: Parts,
    idle: Duration,
    plain: Arc<Executor>,
    others: Mutex<HashMap<Reach, Arc<Executor>>>,
    places: Arc<Semaphore>,
}

impl ExecutorSet {
    /// Starts the executor that may reach nothing.
    pub(crate) async fn start(parts: Parts, idle: Duration) -> Result<Self, String> {
        let plain = Arc::new(Executor::start(parts.clone(), DirectGrants::default()).await?);
        Ok(Self { parts, idle, plain, others: Mutex::default(), places: Arc::new(Semaphore::new(MAX_UP)) })
    }

    fn others(&self) -> MutexGuard<'_, HashMap<Reach, Arc<Executor>>> {
        self.others.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The executor with these grants, started if it is not there. It stays for as long as the lease is held.
    pub(crate) async fn up(&self, direct: &DirectGrants) -> Result<(Lease, Arc<Link>), NoExecutor> {
        let executor = match *direct == DirectGrants::default() {
            true => Arc::clone(&self.plain),
            false => self.known(&Reach::of(direct).await)?,
        };
        let lease = executor.lease();
        let link = match executor.link() {
            Some(link) => link,
            None => executor.up(|| self.place()).await?,
        };
        Ok((lease, link))
    }

    fn known(&self, reach: &Reach) -> Result<Arc<Executor>, NoExecutor> {
        if self.places.is_closed() {
            return Err(NoExecutor::Stopped);
        }
        let mut others = self.others();
        if let Some(executor) = others.get(reach) {
            return Ok(Arc::clone(executor));
        }
        if others.len() >= MAX_KNOWN {
            others.retain(|_, executor| !executor.is_forgotten());
        }
        if others.len() >= MAX_KNOWN {
            return Err(NoExecutor::Busy(MAX_UP));
        }
        let executor = Arc::new(Executor::asleep(self.parts.clone(), reach.direct.clone(), self.idle));
        // Its directories were others; who still runs there ends there.
        others.iter().filter(|(other, _)| other.direct == reach.direct).for_each(|(_, before)| before.doze());
        others.insert(reach.clone(), Arc::clone(&executor));
        Ok(executor)
    }

    /// A place for one more process; the one that has been idle for longest gives up its own.
    async fn place(&self) -> Result<OwnedSemaphorePermit, NoExecutor> {
        loop {
            if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
                return Ok(place);
            }
            let idle =
                self.others().values().filter_map(|it| Some((it.idle_since()?, Arc::clone(it)))).min_by_key(|it| it.0);
            let Some((_, idle)) = idle else { return Err(NoExecutor::Busy(MAX_UP)) };
            idle.doze();
            // It may be needed again at this moment, and then another has to go.
            if let Ok(place) = tokio::time::timeout(LOOK, Arc::clone(&self.places).acquire_owned()).await {
                return place.map_err(|_| NoExecutor::Stopped);
            }
        }
    }

    /// The process that is always there, while it is.
    pub(crate) fn plain(&self) -> Option<Arc<Link>> {
        self.plain.link()
    }

    /// The processes there are now.
    pub(crate) fn links(&self) -> Vec<Arc<Link>> {
        let others: Vec<_> = self.others().values().filter_map(|executor| executor.link()).collect();
        self.plain.link().into_iter().chain(others).collect()
    }

    /// Ends all of them, for good.
    pub(crate) async fn stop(&self) {
        self.places.close();
        let mut all: Vec<Arc<Executor>> = self.others().drain().map(|(_, executor)| executor).collect();
        all.push(Arc::clone(&self.plain));
        futures_util::future::join_all(all.iter().map(|executor| executor.stop())).await;
    }
}
