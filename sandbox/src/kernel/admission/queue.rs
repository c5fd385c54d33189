//! The order of waiting calls: requesters take turns, and so do the modules of each. Within a module the order is first
//! come, first served.

use std::collections::VecDeque;
use std::sync::Arc;

use brine_sandbox_wire::JobContext;

use crate::kernel::name::ModuleName;

/// Waiting calls by requester and module. Admission bounds its length.
#[derive(Default)]
pub(super) struct Queue {
    askers: VecDeque<Asker>,
    len: usize,
}

struct Asker {
    /// One of the requester's jobs, which identifies it.
    job: Arc<JobContext>,
    modules: VecDeque<Line>,
}

struct Line {
    module: ModuleName,
    calls: VecDeque<u64>,
}

/// The result of examining a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// The call leaves the queue, and its requester goes to the end.
    Starts,
    /// This call may not start; the next one may.
    NotThis,
    /// Neither may the requester's other calls of this module.
    NotTheseOnes,
    /// Nor any other call.
    None,
}

/// Checks whether both jobs have the same requester: the same user of the same master or of this host.
pub(super) fn same_asker(one: &JobContext, other: &JobContext) -> bool {
    one.user == other.user && one.master == other.master
}

impl Queue {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn push(&mut self, job: &Arc<JobContext>, module: &ModuleName, call: u64) {
        self.len += 1;
        let known = self.askers.iter().position(|asker| same_asker(&asker.job, job));
        let at = known.unwrap_or_else(|| {
            self.askers.push_back(Asker { job: Arc::clone(job), modules: VecDeque::new() });
            self.askers.len() - 1
        });
        let modules = &mut self.askers[at].modules;
        match modules.iter_mut().find(|line| line.module == *module) {
            Some(line) => line.calls.push_back(call),
            None => modules.push_back(Line { module: module.clone(), calls: VecDeque::from([call]) }),
        }
    }

    /// Returns how many calls of this module wait for the same requester.
    pub(super) fn of(&self, job: &JobContext, module: &ModuleName) -> usize {
        let asker = self.askers.iter().find(|asker| same_asker(&asker.job, job));
        let line = asker.and_then(|asker| asker.modules.iter().find(|line| line.module == *module));
        line.map_or(0, |line| line.calls.len())
    }

    pub(super) fn remove(&mut self, job: &JobContext, module: &ModuleName, call: u64) {
        let Some(a) = self.askers.iter().position(|asker| same_asker(&asker.job, job)) else { return };
        let Some(m) = self.askers[a].modules.iter().position(|line| line.module == *module) else { return };
        let calls = &mut self.askers[a].modules[m].calls;
        let before = calls.len();
        calls.retain(|known| *known != call);
        self.len -= before - calls.len();
        self.tidy(a, m, false);
    }

    /// Examines calls in their order until one starts; returns its number.
    pub(super) fn look(&mut self, mut look: impl FnMut(u64) -> Look) -> Option<u64> {
        for a in 0..self.askers.len() {
            for m in 0..self.askers[a].modules.len() {
                let calls = &mut self.askers[a].modules[m].calls;
                for c in 0..calls.len() {
                    match look(calls[c]) {
                        Look::Starts => {
                            let call = calls.remove(c);
                            self.len -= 1;
                            self.tidy(a, m, true);
                            return call;
                        }
                        Look::NotThis => {}
                        Look::NotTheseOnes => break,
                        Look::None => return None,
                    }
                }
            }
        }
        None
    }

    /// Removes empty lines and requesters; moves the served one to the end.
    fn tidy(&mut self, a: usize, m: usize, served: bool) {
        let modules = &mut self.askers[a].modules;
        if modules[m].calls.is_empty() {
            modules.remove(m);
        } else if served && let Some(line) = modules.remove(m) {
            modules.push_back(line);
        }
        if modules.is_empty() {
            self.askers.remove(a);
        } else if served && let Some(asker) = self.askers.remove(a) {
            self.askers.push_back(asker);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(queue: &mut Queue) -> Vec<u64> {
        std::iter::from_fn(|| queue.look(|_| Look::Starts)).collect()
    }

    #[test]
    fn who_asked_takes_turns_and_so_do_modules() {
        let by = |user: &str| Arc::new(JobContext { user: user.into(), ..JobContext::default() });
        let (ann, bob) = (by("ann"), by("bob"));
        let name = |name: &str| name.parse::<ModuleName>().unwrap();
        let mut queue = Queue::default();
        (0..3).for_each(|n| queue.push(&ann, &name("a"), n));
        queue.push(&ann, &name("b"), 3);
        queue.push(&bob, &name("a"), 4);
        queue.push(&by("bob"), &name("a"), 5);
        assert_eq!((queue.len(), queue.of(&ann, &name("a")), queue.of(&bob, &name("b"))), (6, 3, 0));
        queue.remove(&ann, &name("a"), 1);
        queue.remove(&bob, &name("a"), 1);
        assert_eq!(order(&mut queue), [0, 4, 3, 5, 2]);
        assert_eq!((queue.len(), queue.askers.len()), (0, 0));
    }

    #[test]
    fn who_cannot_start_is_gone_by() {
        let job = Arc::new(JobContext::default());
        let mut queue = Queue::default();
        let modules = ["a", "b"].map(|name| name.parse::<ModuleName>().unwrap());
        for (module, calls) in modules.iter().zip([0..3, 3..5]) {
            calls.for_each(|call| queue.push(&job, module, call));
        }
        assert_eq!(queue.look(|call| if call == 2 { Look::Starts } else { Look::NotThis }), Some(2));
        assert_eq!(queue.look(|_| Look::None), None);
        let mut seen = Vec::new();
        let started = queue.look(|call| {
            seen.push(call);
            Look::NotTheseOnes
        });
        // The served requester is last in line.
        assert_eq!((started, seen), (None, vec![3, 0]));
        assert_eq!(order(&mut queue), [3, 0, 4, 1]);
    }
}
