//! What happened and was not taken yet.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use brine_protocol::value::{Value, map};
use brine_sandbox::Watch;

use super::bits::IN_Q_OVERFLOW;

/// Upper bound on the events that wait for one beacon.
const MAX_EVENTS: usize = 10_000;
/// Upper bound on the bytes of their names.
const MAX_BYTES: usize = 2 << 20;
/// Events of one look. A look tells 500.
const AT_ONCE: usize = 400;
/// Bytes of the paths of one look. A look tells 512 KiB, in which each path is told twice.
const BYTES_AT_ONCE: usize = 160 << 10;

/// The number of the last event of this process. Numbers never come again, whatever is watched next.
static LAST: AtomicU64 = AtomicU64::new(0);

/// Something that happened to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Happened {
    pub(super) number: u64,
    /// What was asked for. None where events were lost.
    pub(super) watch: Option<Arc<Watch>>,
    /// The watched file or directory.
    pub(super) path: Arc<str>,
    pub(super) name: Option<String>,
    pub(super) mask: u32,
    pub(super) cookie: u32,
}

impl Happened {
    fn watch(&self) -> &str {
        self.watch.as_ref().map_or("", |watch| &watch.path)
    }

    fn bytes(&self) -> usize {
        self.watch().len() + self.path.len() + self.name.as_ref().map_or(0, String::len)
    }

    pub(super) fn value(&self) -> Value {
        map([
            ("number", Value::from(self.number)),
            ("watch", Value::from(self.watch())),
            ("path", Value::from(&*self.path)),
            ("name", self.name.as_deref().map_or(Value::Nil, Value::from)),
            ("mask", Value::from(self.mask)),
            ("cookie", Value::from(self.cookie)),
        ])
    }
}

/// Events in their order.
#[derive(Debug, Default)]
pub(super) struct Queue {
    events: VecDeque<Happened>,
    bytes: usize,
    /// Whether events were lost since the last one.
    loses: bool,
}

impl Queue {
    /// Adds an event. Returns false for the first one that finds no room.
    pub(super) fn push(&mut self, mut event: Happened) -> bool {
        if self.loses {
            return true;
        }
        // Bytes of the names alone: paths are shared.
        let bytes = event.name.as_ref().map_or(0, String::len);
        if self.events.len() >= MAX_EVENTS || self.bytes + bytes > MAX_BYTES {
            self.lose();
            return false;
        }
        event.number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        self.bytes += bytes;
        self.events.push_back(event);
        true
    }

    /// Notes that events were lost here.
    pub(super) fn lose(&mut self) {
        self.loses = self.events.len() >= MAX_EVENTS || self.bytes >= MAX_BYTES / 2;
        if self.events.back().is_some_and(|event| event.mask & IN_Q_OVERFLOW != 0) {
            return;
        }
        let number = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        let path = Arc::from("");
        self.events.push_back(Happened { number, watch: None, path, name: None, mask: IN_Q_OVERFLOW, cookie: 0 });
    }

    /// Forgets the events up to a number, and returns the next ones.
    pub(super) fn take(&mut self, after: u64) -> Vec<Happened> {
        while self.events.front().is_some_and(|event| event.number <= after) {
            self.events.pop_front();
        }
        self.count();
        let mut bytes = 0;
        let next = self.events.iter().take(AT_ONCE).take_while(|event| {
            bytes += event.bytes();
            bytes <= BYTES_AT_ONCE
        });
        next.cloned().collect()
    }

    /// Forgets what happened to a path that is not asked for any more.
    pub(super) fn forget(&mut self, watch: &str) {
        self.events.retain(|event| event.watch.is_none() || event.watch() != watch);
        self.count();
    }

    fn count(&mut self) {
        self.bytes = self.events.iter().filter_map(|event| event.name.as_ref()).map(String::len).sum();
        self.loses &= self.events.len() >= MAX_EVENTS || self.bytes >= MAX_BYTES / 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(path: &str) -> Option<Arc<Watch>> {
        let (path, skip) = (path.to_owned(), Vec::new());
        Some(Arc::new(Watch { path, mask: 2, recurse: false, auto_add: false, skip }))
    }

    fn event(name: &str) -> Happened {
        let name = Some(name.to_owned());
        Happened { number: 0, watch: watch("/d"), path: Arc::from("/d"), name, mask: 2, cookie: 0 }
    }

    #[test]
    fn events_come_again_until_they_are_done_with() {
        let mut queue = Queue::default();
        (0..1000).for_each(|n| assert!(queue.push(event(&n.to_string()))));
        let first = queue.take(0);
        assert_eq!(first.len(), AT_ONCE);
        assert_eq!(queue.take(0), first);
        let next = queue.take(first.last().unwrap().number);
        assert_eq!(next[0].name.as_deref(), Some("400"));
        let long = "x".repeat(255);
        let mut queue = Queue::default();
        (0..1000).for_each(|_| assert!(queue.push(event(&long))));
        let taken = queue.take(0);
        assert!(taken.iter().map(Happened::bytes).sum::<usize>() <= BYTES_AT_ONCE && taken.len() == AT_ONCE);
    }

    #[test]
    fn what_finds_no_room_is_said_once_and_in_its_place() {
        for name in ["n", &"x".repeat(255)] {
            let mut queue = Queue::default();
            let pushed = (0..50_000).filter(|_| !queue.push(event(name))).count();
            assert_eq!(pushed, 1, "said once");
            assert!(queue.events.len() <= MAX_EVENTS + 1 && queue.bytes <= MAX_BYTES);
            let mut all = Vec::new();
            loop {
                let taken = queue.take(all.last().map_or(0, |last: &Happened| last.number));
                match taken.is_empty() {
                    true => break,
                    false => all.extend(taken),
                }
            }
            assert_eq!(all.iter().filter(|event| event.mask == IN_Q_OVERFLOW).count(), 1);
            assert_eq!(all.last().unwrap().mask, IN_Q_OVERFLOW);
            assert!(queue.push(event("again")));
            assert_eq!(queue.take(all.last().unwrap().number).len(), 1);
        }
    }

    #[test]
    fn a_path_is_forgotten_with_its_watch() {
        let mut queue = Queue::default();
        queue.push(event("a"));
        queue.lose();
        queue.push(Happened { watch: watch("/e"), ..event("b") });
        queue.forget("/d");
        let names: Vec<_> = queue.take(0).into_iter().map(|event| event.name).collect();
        assert_eq!(names, [None, Some("b".to_owned())]);
    }
}
