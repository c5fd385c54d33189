//! The jobs that each minion started, whose returns it may read.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

use brine_protocol::ids::{Jid, MinionId};

/// Bound on the jobs of each minion in memory. Minions request returns within seconds, so losing the list at a restart
/// does no harm.
const JOBS_MAX: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Started(Mutex<HashMap<MinionId, VecDeque<Jid>>>);

impl Started {
    pub(super) fn add(&self, id: &MinionId, jid: &Jid) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let jobs = all.entry(id.clone()).or_default();
        if jobs.len() >= JOBS_MAX {
            jobs.pop_front();
        }
        jobs.push_back(jid.clone());
    }

    pub(super) fn has(&self, id: &MinionId, jid: &Jid) -> bool {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(id).is_some_and(|jobs| jobs.contains(jid))
    }

    /// Forgets minions without an accepted key, so that another minion with the same id cannot read their returns.
    pub(super) fn retain(&self, is_accepted: impl Fn(&MinionId) -> bool) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|id, _| is_accepted(id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_minion_has_its_own_and_not_too_many() {
        let (a, b): (MinionId, MinionId) = ("a".parse().unwrap(), "b".parse().unwrap());
        let started = Started::default();
        let jids: Vec<Jid> =
            (0..=JOBS_MAX).map(|n| Jid::try_from(format!("202611201347402{n:05}").as_str()).unwrap()).collect();
        for jid in &jids {
            started.add(&a, jid);
        }
        assert!(!started.has(&a, &jids[0]) && started.has(&a, &jids[1]) && started.has(&a, &jids[JOBS_MAX]));
        assert!(!started.has(&b, &jids[1]));
        started.retain(|id| id.as_str() == "b");
        assert!(!started.has(&a, &jids[1]));
    }
}
