//! Whom a job was sent to: a return of somebody else is refused.
//!
//! Minions decide for themselves whether a target by grains, pillar or address means them, so for those the master's list of ids is
//! an expectation and anyone may answer. Of a job that the master does not know (it forgets after `keep_jobs_seconds`, and a
//! schedule makes its own) nobody waits for returns; they are kept, as by Salt.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use brine_protocol::ids::{Jid, MinionId};

use crate::jobs::{Job, StoreError};
use crate::master::Master;

/// Jobs whose ids are remembered, so that not each of a thousand returns reads them from the store.
const REMEMBERED_MAX: usize = 128;

/// The last jobs that there were returns for.
#[derive(Debug, Default)]
pub(crate) struct SentTo(Mutex<Vec<(Jid, Arc<HashSet<MinionId>>)>>);

impl SentTo {
    /// Whether a return of `id` for `jid` may be one.
    pub(crate) async fn allows(&self, master: &Master, jid: &Jid, id: &MinionId) -> Result<bool, StoreError> {
        if !master.opts.job_cache || self.remembers(jid, id) {
            return Ok(true);
        }
        // Also for a job that is remembered: a batch of 3008 publishes one jid several times.
        let Some(job) = master.jobs.job(jid).await? else { return Ok(true) };
        if !is_by_id(&job) {
            return Ok(true);
        }
        let ids: HashSet<MinionId> = job.minions.into_iter().collect();
        let allowed = ids.contains(id);
        if allowed {
            let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            last.retain(|(known, _)| known != jid);
            if last.len() >= REMEMBERED_MAX {
                last.remove(0);
            }
            last.push((jid.clone(), Arc::new(ids)));
        }
        Ok(allowed)
    }

    fn remembers(&self, jid: &Jid, id: &MinionId) -> bool {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.iter().rev().any(|(known, ids)| known == jid && ids.contains(id))
    }
}

/// Whether ids alone decided who gets the job.
fn is_by_id(job: &Job) -> bool {
    matches!(job.tgt_type.as_str(), "glob" | "pcre" | "list")
}
