//! The latest jobs, with their recipients and returners. A return of a minion that is no recipient is refused.
//!
//! Minions decide for themselves whether they match a target by grains, pillar or address. For such a target the
//! master's list of ids is an expectation, and any minion may return. No client waits for returns of a job that the
//! master does not know (it deletes jobs after `keep_jobs_seconds`, and a schedule makes its own); such returns are
//! kept, as in Salt.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brine_protocol::ids::{Jid, MinionId};

use super::returner::ReturnerName;

/// Bound on the jobs in memory, so that returns need no lookup in the store. Usually fewer jobs run at once.
const REMEMBERED_MAX: usize = 256;
/// Bound on the ids of all these jobs together.
const REMEMBERED_IDS_MAX: usize = 100_000;

/// The returners that a job was published with (`--return`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct JobReturners {
    /// The returners that this master has.
    pub(crate) known: Vec<ReturnerName>,
    /// The other names, each with the reason why it is refused.
    pub(crate) refused: Vec<String>,
}

/// A return's relation to its job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The job was sent to this minion.
    Asked,
    /// The master does not know the job.
    Unasked,
    /// The job was not sent to this minion.
    NotMeant,
}

/// The minions that may return for a job.
#[derive(Debug)]
pub(super) enum Recipients {
    /// The minions whose own matcher accepts the target.
    Anyone,
    These(HashSet<MinionId>),
}

impl Recipients {
    pub(super) fn new(tgt_type: &str, minions: impl Iterator<Item = MinionId>) -> Self {
        let by_id = matches!(tgt_type, "glob" | "pcre" | "list");
        if by_id { Self::These(minions.collect()) } else { Self::Anyone }
    }

    pub(super) fn has(&self, id: &MinionId) -> bool {
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

/// A published job.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) jid: Jid,
    pub(super) recipients: Recipients,
    pub(super) returners: Arc<JobReturners>,
}

/// The jobs that were published or had returns lately.
#[derive(Debug, Default)]
pub(super) struct RecentJobs {
    last: Mutex<VecDeque<Sent>>,
    /// Held while a job is read, so that concurrent returns for one job need one lookup.
    pub(super) reading: tokio::sync::Mutex<()>,
}

impl RecentJobs {
    pub(super) fn remember(&self, mut sent: Sent) {
        let mut last = self.lock();
        if let Some(at) = last.iter().position(|known| known.jid == sent.jid)
            && let Some(known) = last.remove(at)
        {
            // Whoever gives his job the jid of another's does not decide where the returns of that one go.
            sent.returners = known.returners;
        }
        last.push_front(sent);
        let mut ids = 0;
        let fits = |sent: &&Sent| {
            ids += sent.recipients.ids();
            ids <= REMEMBERED_IDS_MAX
        };
        // The newest job is always kept.
        let kept = last.iter().take(REMEMBERED_MAX).take_while(fits).count().max(1);
        last.truncate(kept);
    }

    pub(super) fn returners(&self, jid: &Jid) -> Option<Arc<JobReturners>> {
        self.lock().iter().find(|known| known.jid == *jid).map(|known| Arc::clone(&known.returners))
    }

    pub(super) fn is_sent_to(&self, jid: &Jid, id: &MinionId) -> bool {
        self.lock().iter().any(|known| known.jid == *jid && known.recipients.has(id))
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Sent>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
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
    fn the_first_job_of_a_jid_says_the_returners() {
        let recent = RecentJobs::default();
        let named = |name: &str| Arc::new(JobReturners { known: Vec::new(), refused: vec![name.to_owned()] });
        for name in ["first", "second"] {
            let recipients = Recipients::new("glob", ids(0..1).into_iter());
            recent.remember(Sent { jid: jid(1), recipients, returners: named(name) });
        }
        assert_eq!(recent.returners(&jid(1)), Some(named("first")));
    }

    #[test]
    fn what_is_remembered_is_bounded_in_jobs_and_in_ids() {
        let recent = RecentJobs::default();
        let remember = |n: u32, tgt_type: &str, minions: &[MinionId]| {
            let recipients = Recipients::new(tgt_type, minions.iter().cloned());
            recent.remember(Sent { jid: jid(n), recipients, returners: Arc::default() });
        };
        let one = ids(0..1);
        for n in 0..1_000 {
            remember(n, "glob", &one);
        }
        assert_eq!(recent.lock().len(), REMEMBERED_MAX);
        assert!(recent.is_sent_to(&jid(999), &one[0]));
        assert!(!recent.is_sent_to(&jid(999), &ids(1..2)[0]), "it was not sent to that one");
        let many = ids(0..60_000);
        remember(1_000, "list", &many);
        remember(1_001, "list", &many);
        assert_eq!(recent.lock().len(), 1);
        remember(1_002, "grain", &many);
        assert!(recent.is_sent_to(&jid(1_002), &"other".parse().unwrap()), "minions decide");
        assert!(recent.is_sent_to(&jid(1_001), &many[59_999]));
    }
}
