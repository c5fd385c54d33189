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

/// Jobs that are remembered, so that returns need not read them from the store: more than are mostly under way at once.
const REMEMBERED_MAX: usize = 256;
/// Ids of all of them together.
const REMEMBERED_IDS_MAX: usize = 100_000;

/// What a return is to its job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The job was sent to this minion.
    Asked,
    /// The master knows of no such job.
    Unasked,
    /// The job was not sent to this minion.
    NotMeant,
}

/// Who may return for a job.
#[derive(Debug)]
enum Who {
    /// Each minion that found that it was meant.
    Anyone,
    These(HashSet<MinionId>),
}

impl Who {
    fn of(tgt_type: &str, minions: impl Iterator<Item = MinionId>) -> Self {
        let by_id = matches!(tgt_type, "glob" | "pcre" | "list");
        if by_id { Self::These(minions.collect()) } else { Self::Anyone }
    }

    fn has(&self, id: &MinionId) -> bool {
        match self {
            Self::Anyone => true,
            Self::These(ids) => ids.contains(id),
        }
    }

    fn ids(&self) -> usize {
        match self {
            Self::Anyone => 0,
            Self::These(ids) => ids.len(),
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

/// The last jobs that were sent, or that there were returns for.
#[derive(Debug, Default)]
pub(crate) struct SentTo {
    last: Mutex<VecDeque<Sent>>,
    /// Held while a job is read, so that those who return for it at one moment wait for one reading.
    reading: tokio::sync::Mutex<()>,
}

impl SentTo {
    /// What a return of `id` for `jid` is.
    pub(crate) async fn standing(&self, master: &Master, jid: &Jid, id: &MinionId) -> Result<Standing, StoreError> {
        if self.remembers(jid, id) {
            return Ok(Standing::Asked);
        }
        if !master.opts.job_cache.keep {
            return Ok(Standing::Unasked);
        }
        let _one_at_a_time = self.reading.lock().await;
        if self.remembers(jid, id) {
            return Ok(Standing::Asked);
        }
        // Also for a job that is remembered: a batch of 3008 publishes one jid several times.
        let Some(job) = master.jobs.local().job(jid).await? else { return Ok(Standing::Unasked) };
        let asked = master.jobs.asked(&job.load());
        let who = Who::of(&job.tgt_type, job.minions.into_iter());
        let allowed = who.has(id);
        self.keep(Sent { jid: jid.clone(), who, asked: Arc::new(asked) });
        Ok(if allowed { Standing::Asked } else { Standing::NotMeant })
    }

    /// Remembers a job that is in the store.
    pub(crate) fn remember(&self, jid: &Jid, tgt_type: &str, minions: &[MinionId], asked: Asked) {
        let who = Who::of(tgt_type, minions.iter().cloned());
        self.keep(Sent { jid: jid.clone(), who, asked: Arc::new(asked) });
    }

    fn keep(&self, sent: Sent) {
        let mut last = self.lock();
        last.retain(|known| known.jid != sent.jid);
        last.push_front(sent);
        let mut ids = 0;
        let fits = |sent: &&Sent| {
            ids += sent.who.ids();
            ids <= REMEMBERED_IDS_MAX
        };
        // The newest in any case.
        let kept = last.iter().take(REMEMBERED_MAX).take_while(fits).count().max(1);
        last.truncate(kept);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(range: std::ops::Range<u32>) -> Vec<MinionId> {
        range.map(|n| format!("m{n}").parse().unwrap()).collect()
    }

    fn jid(n: u32) -> Jid {
        Jid::try_from(format!("2026112013474{n:07}").as_str()).unwrap()
    }

    #[test]
    fn what_is_remembered_is_bounded_in_jobs_and_in_ids() {
        let sent = SentTo::default();
        let one = ids(0..1);
        for n in 0..1_000 {
            sent.remember(&jid(n), "glob", &one, Asked::default());
        }
        assert_eq!(sent.lock().len(), REMEMBERED_MAX);
        assert!(sent.remembers(&jid(999), &one[0]));
        assert!(!sent.remembers(&jid(999), &ids(1..2)[0]), "it was not sent to that one");
        let many = ids(0..60_000);
        sent.remember(&jid(1_000), "list", &many, Asked::default());
        sent.remember(&jid(1_001), "list", &many, Asked::default());
        assert_eq!(sent.lock().len(), 1);
        sent.remember(&jid(1_002), "grain", &many, Asked::default());
        assert!(sent.remembers(&jid(1_002), &"other".parse().unwrap()), "minions decide");
        assert!(sent.remembers(&jid(1_001), &many[59_999]));
    }
}
