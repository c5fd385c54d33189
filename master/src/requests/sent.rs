//! Whom a job was sent to, and what with its returns is to be done: a return of somebody else is refused.
//!
//! Minions decide for themselves whether a target by grains, pillar or address means them, so for those the master's list of ids is
//! an expectation and anyone may answer. Of a job that the master does not know (it forgets after `keep_jobs_seconds`, and a
//! schedule makes its own) nobody waits for returns; they are kept, as by Salt.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brine_protocol::ids::{Jid, MinionId};
use brine_protocol::value::map;

use crate::jobs::{Asked, StoreError};
use crate::master::Master;

/// Jobs that are remembered, so that not each of ten thousand returns reads the same ten thousand ids from the store.
const REMEMBERED_MAX: usize = 32;

/// Who may return for a job.
#[derive(Debug, Clone)]
enum Who {
    /// Each minion that found that it was meant.
    Anyone,
    These(Arc<HashSet<MinionId>>),
}

impl Who {
    fn has(&self, id: &MinionId) -> bool {
        match self {
            Self::Anyone => true,
            Self::These(ids) => ids.contains(id),
        }
    }
}

/// A job that was sent.
#[derive(Debug)]
struct Sent {
    jid: Jid,
    who: Who,
    asked: Arc<Asked>,
}

/// The last jobs that there were returns for.
#[derive(Debug, Default)]
pub(crate) struct SentTo {
    last: Mutex<VecDeque<Sent>>,
    /// Held while a job is read, so that those who return for it at one moment wait for one reading.
    reading: tokio::sync::Mutex<()>,
}

impl SentTo {
    /// Whether a return of `id` for `jid` may be one.
    pub(crate) async fn allows(&self, master: &Master, jid: &Jid, id: &MinionId) -> Result<bool, StoreError> {
        if !master.opts.job_cache.keep || self.remembers(jid, id) {
            return Ok(true);
        }
        let _one_at_a_time = self.reading.lock().await;
        if self.remembers(jid, id) {
            return Ok(true);
        }
        // Also for a job that is remembered: a batch of 3008 publishes one jid several times.
        let Some(job) = master.jobs.local().job(jid).await? else { return Ok(true) };
        let asked = Arc::new(master.jobs.asked(&job.load()));
        let by_id = matches!(job.tgt_type.as_str(), "glob" | "pcre" | "list");
        let who = if by_id { Who::These(Arc::new(job.minions.into_iter().collect())) } else { Who::Anyone };
        let allowed = who.has(id);
        let mut last = self.lock();
        last.retain(|known| known.jid != *jid);
        last.push_front(Sent { jid: jid.clone(), who, asked });
        last.truncate(REMEMBERED_MAX);
        Ok(allowed)
    }

    /// The returners that the job was published with. Of a job that the master does not know that is `ext_job_cache`.
    pub(crate) async fn asked(&self, master: &Master, jid: &Jid) -> Result<Arc<Asked>, StoreError> {
        let known = self.lock().iter().find(|known| known.jid == *jid).map(|known| Arc::clone(&known.asked));
        if let Some(asked) = known {
            return Ok(asked);
        }
        let load =
            master.jobs.local().job(jid).await?.map_or_else(|| map([("ret", master.jobs.ret(""))]), |job| job.load());
        Ok(Arc::new(master.jobs.asked(&load)))
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Sent>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remembers(&self, jid: &Jid, id: &MinionId) -> bool {
        self.lock().iter().any(|known| known.jid == *jid && known.who.has(id))
    }
}
