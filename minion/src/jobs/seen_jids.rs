//! The jids that this minion has seen, so that a job that arrives twice runs once.

use std::collections::{HashSet, VecDeque};

use brine_protocol::ids::Jid;

/// The last jids; `minion_jid_queue_hwm` bounds their number.
#[derive(Debug)]
pub(crate) struct SeenJids {
    order: VecDeque<Jid>,
    known: HashSet<Jid>,
    most: usize,
}

impl SeenJids {
    pub(crate) fn new(most: usize) -> Self {
        Self { order: VecDeque::new(), known: HashSet::new(), most: most.max(1) }
    }

    /// True the first time a jid comes.
    pub(crate) fn is_new(&mut self, jid: &Jid) -> bool {
        if !self.known.insert(jid.clone()) {
            return false;
        }
        self.order.push_back(jid.clone());
        if self.order.len() > self.most
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jid_is_new_once_and_the_memory_is_bounded() {
        let mut seen = SeenJids::new(2);
        let jids: Vec<Jid> = (0..3).map(|_| Jid::now()).collect();
        assert!(seen.is_new(&jids[0]));
        assert!(!seen.is_new(&jids[0]));
        assert!(seen.is_new(&jids[1]) && seen.is_new(&jids[2]));
        assert_eq!(seen.known.len(), 2);
        assert!(!seen.is_new(&jids[2]) && !seen.is_new(&jids[1]));
        assert!(seen.is_new(&jids[0])); // forgotten
    }
}
