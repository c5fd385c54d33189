//! Whom a job was sent to: a return of somebody else is refused.
//!
//! Minions decide for themselves whether a target by grains, pillar or address means them, so for those the master's list of ids is
//! an expectation and anyone may answer. Of a job that the master does not know (it forgets after `keep_jobs_seconds`, and a
//! schedule makes its own) nobody waits for returns; they are kept, as by Salt.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use brine_protocol::ids::{Jid, MinionId};

use crate::jobs::StoreError;
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

/// The last jobs that there were returns for.
#[derive(Debug, Default)]
pub(crate) struct SentTo {
    last: Mutex<VecDeque<(Jid, Who)>>,
    /// Held while a job is read, so that those who return for it at one moment wait for one reading.
    reading: tokio::sync::Mutex<()>,
}

impl SentTo {
    /// Whether a return of `id` for `jid` may be one.
    pub(crate) async fn allows(&self, master: &Master, jid: &Jid, id: &MinionId) -> Result<bool, StoreError> {
        if !master.opts.job_cache || self.remembers(jid, id) {
            return Ok(true);
        }
        let _one_at_a_time = self.reading.lock().await;
        if self.remembers(jid, id) {
            return Ok(true);
        }
        // Also for a job that is remembered: a batch of 3008 publishes one jid several times.
        let Some(job) = master.jobs.job(jid).await? else { return Ok(true) };
        let by_id = matches!(job.tgt_type.as_str(), "glob" | "pcre" | "list");
        let who = if by_id { Who::These(Arc::new(job.minions.into_iter().collect())) } else { Who::Anyone };
        let allowed = who.has(id);
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.retain(|(known, _)| known != jid);
        last.push_front((jid.clone(), who));
        last.truncate(REMEMBERED_MAX);
        Ok(allowed)
    }

    fn remembers(&self, jid: &Jid, id: &MinionId) -> bool {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.iter().any(|(known, who)| known == jid && who.has(id))
    }
}
