//! The set of executors, by what their processes may reach: the permanent one without direct grants, and those with
//! direct grants, which start with the first job that needs them and end when idle.
//!
//! A process may reach what the functions that run in it were granted, and no more. Modules that ran when an executor
//! died run in wards: separate executors with the same grants, apart from trusted modules.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use brine_sandbox_wire::{DirectGrants, Sha256Hex};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::kernel::directories::Reach;
use crate::kernel::link::Link;
use crate::kernel::name::ModuleName;
use crate::kernel::process::Process;
use crate::kernel::supervisor::{Executor, Lease, NoExecutor, Parts};
use crate::kernel::suspects::{Content, Standing};

/// Processes with direct grants at once: each costs some MB and has walls of its own. A new one takes the place of an
/// idle one.
const MAX_UP: usize = 16;
/// Number of wards, and of their processes at once. Each suspect has its own ward while there are enough.
const WARDS: usize = 4;
/// Wards that convicted modules may occupy: at least one stays for suspects.
const WARDS_OF_CONVICTS: usize = WARDS - 1;
/// Idle time after which a ward's process ends.
const WARD_IDLE: Duration = Duration::from_secs(5);
/// Executors remembered, sleeping ones included, together with their death counts. The owner's configuration can name
/// more.
const MAX_KNOWN: usize = 256;
/// Interval between two attempts to get a place while an idle process gives up its own.
const LOOK: Duration = Duration::from_millis(50);

pub(crate) struct ExecutorSet {
    parts: Parts,
    idle: Duration,
    plain: Arc<Executor>,
    others: Group,
    wards: Group,
    /// For each ward, the modules in it, their number of calls and their standing.
    patients: Mutex<[Ward; WARDS]>,
}

type Ward = HashMap<Content, (usize, Standing)>;

/// Executors that start and end, with a bound on running processes. The key's number is the ward's; 0 outside wards.
struct Group {
    executors: Mutex<HashMap<(usize, Reach), Arc<Executor>>>,
    places: Arc<Semaphore>,
    busy: NoExecutor,
}

/// A call's use of an executor. Keeps the executor up until it is dropped.
pub(crate) struct Stay<'a> {
    _lease: Lease,
    _patient: Option<Patient<'a>>,
}

/// A call that runs in a ward.
struct Patient<'a> {
    set: &'a ExecutorSet,
    ward: usize,
    content: Content,
}

impl Drop for Patient<'_> {
    fn drop(&mut self) {
        let ward = &mut self.set.patients()[self.ward];
        if let Some((calls, _)) = ward.get_mut(&self.content) {
            *calls -= 1;
            if *calls == 0 {
                ward.remove(&self.content);
            }
        }
    }
}

impl ExecutorSet {
    /// Begins with the first process of the executor without direct grants.
    pub(crate) async fn start(parts: Parts, idle: Duration, first: Process) -> Self {
        let plain = Arc::new(Executor::start(parts.clone(), DirectGrants::default(), first).await);
        let others = Group::new(MAX_UP, NoExecutor::Busy(MAX_UP));
        let wards = Group::new(WARDS, NoExecutor::BusyWards(WARDS));
        Self { parts, idle, plain, others, wards, patients: Mutex::default() }
    }

    fn patients(&self) -> MutexGuard<'_, [Ward; WARDS]> {
        self.patients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the executor with these grants for a call of this module, and starts it if necessary. The [`Stay`] keeps
    /// it up.
    pub(crate) async fn up(
        &self,
        direct: &DirectGrants,
        name: &ModuleName,
        sha256: Sha256Hex,
    ) -> Result<(Stay<'_>, Arc<Link>), NoExecutor> {
        let standing = self.parts.suspects.standing(name, sha256)?;
        if standing != Standing::Trusted {
            let content = Content { name: name.clone(), sha256 };
            return Box::pin(self.in_ward(direct, content, standing)).await;
        }
        let executor = match *direct == DirectGrants::default() {
            true => Arc::clone(&self.plain),
            false => self.others.known(0, &Reach::of(direct).await, &self.parts, self.idle)?,
        };
        let lease = executor.lease();
        let link = match executor.link() {
            Some(link) => link,
            None => Box::pin(executor.up(|| self.others.place())).await?,
        };
        Ok((Stay { _lease: lease, _patient: None }, link))
    }

    async fn in_ward(
        &self,
        direct: &DirectGrants,
        content: Content,
        standing: Standing,
    ) -> Result<(Stay<'_>, Arc<Link>), NoExecutor> {
        let patient = self.admit(content, standing)?;
        let executor = self.wards.known(patient.ward, &Reach::of(direct).await, &self.parts, WARD_IDLE)?;
        let lease = executor.lease();
        let link = executor.up(|| self.wards.place()).await?;
        Ok((Stay { _lease: lease, _patient: Some(patient) }, link))
    }

    /// Chooses a ward for one more call: the one where its module already runs, or the one with the fewest modules.
    /// Convicted modules and suspects never share a ward.
    fn admit(&self, content: Content, standing: Standing) -> Result<Patient<'_>, NoExecutor> {
        let mut wards = self.patients();
        let convicts = |ward: &Ward| ward.values().any(|(_, standing)| *standing == Standing::Convicted);
        let of_convicts = wards.iter().filter(|ward| convicts(ward)).count();
        let may = |ward: &Ward| match standing {
            Standing::Convicted => ward.is_empty() && of_convicts < WARDS_OF_CONVICTS,
            _ => !convicts(ward),
        };
        let known = wards.iter().position(|ward| ward.contains_key(&content));
        let ward = known.or_else(|| {
            let wards = wards.iter().enumerate().filter(|(_, ward)| may(ward));
            wards.min_by_key(|(_, ward)| ward.len()).map(|(number, _)| number)
        });
        let ward = ward.ok_or(NoExecutor::BusyWards(WARDS))?;
        let patient = wards[ward].entry(content.clone()).or_insert((0, standing));
        patient.0 += 1;
        patient.1 = standing;
        Ok(Patient { set: self, ward, content })
    }

    /// Returns the process of the permanent executor, if it runs.
    pub(crate) fn plain(&self) -> Option<Arc<Link>> {
        self.plain.link()
    }

    /// Returns all running processes.
    pub(crate) fn links(&self) -> Vec<Arc<Link>> {
        self.plain.link().into_iter().chain(self.others.links()).chain(self.wards.links()).collect()
    }

    /// Ends all executors for good.
    pub(crate) async fn stop(&self) {
        let mut all = self.others.close();
        all.extend(self.wards.close());
        all.push(Arc::clone(&self.plain));
        futures_util::future::join_all(all.iter().map(|executor| executor.stop())).await;
    }
}

impl Group {
    fn new(max_up: usize, busy: NoExecutor) -> Self {
        Self { executors: Mutex::default(), places: Arc::new(Semaphore::new(max_up)), busy }
    }

    fn executors(&self) -> MutexGuard<'_, HashMap<(usize, Reach), Arc<Executor>>> {
        self.executors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self, number: usize, reach: &Reach, parts: &Parts, idle: Duration) -> Result<Arc<Executor>, NoExecutor> {
        if self.places.is_closed() {
            return Err(NoExecutor::Stopped);
        }
        let key = (number, reach.clone());
        let mut executors = self.executors();
        if let Some(executor) = executors.get(&key) {
            return Ok(Arc::clone(executor));
        }
        if executors.len() >= MAX_KNOWN {
            executors.retain(|_, executor| !executor.is_forgotten());
        }
        if executors.len() >= MAX_KNOWN {
            return Err(self.busy.clone());
        }
        let executor = Arc::new(Executor::asleep(parts.clone(), reach.direct.clone(), idle));
        // The executor of the same grants with older directories: it ends when its calls have ended.
        let is_before = |at: usize, other: &Reach| at == number && other.direct == reach.direct;
        executors.iter().filter(|((at, other), _)| is_before(*at, other)).for_each(|(_, before)| before.doze());
        executors.insert(key, Arc::clone(&executor));
        Ok(executor)
    }

    /// Reserves a place for one more process. The process that has been idle longest gives up its own.
    async fn place(&self) -> Result<OwnedSemaphorePermit, NoExecutor> {
        loop {
            if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
                return Ok(place);
            }
            let idle = self
                .executors()
                .values()
                .filter_map(|it| Some((it.idle_since()?, Arc::clone(it))))
                .min_by_key(|it| it.0);
            let Some((_, idle)) = idle else { return Err(self.busy.clone()) };
            idle.doze();
            // The idle process may be needed again at this moment. The next round then picks another.
            if let Ok(place) = tokio::time::timeout(LOOK, Arc::clone(&self.places).acquire_owned()).await {
                return place.map_err(|_| NoExecutor::Stopped);
            }
        }
    }

    fn links(&self) -> Vec<Arc<Link>> {
        self.executors().values().filter_map(|executor| executor.link()).collect()
    }

    fn close(&self) -> Vec<Arc<Executor>> {
        self.places.close();
        self.executors().drain().map(|(_, executor)| executor).collect()
    }
}
