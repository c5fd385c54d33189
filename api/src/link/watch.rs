//! Events for one stream: what the caller may see, from now or after a cursor, each rendered once for all streams.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use brine_protocol::event::Event;
use brine_protocol::nodes::Cursor;
use bytes::Bytes;
use serde_json::json;
use tokio::sync::Notify;

use crate::json;

/// Upper bound on the events that wait for one stream: as many as the master keeps, for a stream that resumes.
const WAITING_MAX: usize = 10_000;
/// Upper bound on the bytes of the events that wait for one stream, beyond the first. Streams share events, so this
/// bounds all of them together in the usual case.
const WAITING_BYTES_MAX: usize = 16 << 20;

/// An event, rendered once for all streams.
#[derive(Debug)]
pub struct Shown {
    /// Its tag.
    pub tag: String,
    /// `{"data": …, "tag": …}`, in one line.
    pub json: String,
    sse: OnceLock<Bytes>,
}

impl Shown {
    /// Renders an event.
    pub fn new(event: &Event) -> Self {
        let json = format!("{{\"data\": {}, \"tag\": {}}}", json::line(&event.data), json!(event.tag));
        Self { tag: event.tag.clone(), json, sse: OnceLock::new() }
    }

    /// The event as server-sent events have it, as `render` makes it at the first call.
    pub fn sse(&self, render: impl FnOnce(&Self) -> String) -> Bytes {
        self.sse.get_or_init(|| render(self).into()).clone()
    }
}

/// The next item of a stream.
#[derive(Debug, Clone)]
pub enum Watched {
    /// An event.
    Event {
        /// Its place.
        cursor: Cursor,
        /// The event.
        event: Arc<Shown>,
    },
    /// Events are missing here.
    Lost {
        /// Where the stream goes on.
        cursor: Cursor,
        /// How many, as far as that is known: of an earlier start of the master it is not.
        count: Option<u64>,
    },
}

#[derive(Debug, Default)]
struct State {
    items: VecDeque<Watched>,
    bytes: usize,
    /// Events left out since the last item, and the place after them.
    lost: Option<(Cursor, Option<u64>)>,
    ended: bool,
}

/// The end of a stream that events are put into.
#[derive(Debug, Clone, Default)]
pub struct Sink(Arc<(Mutex<State>, Notify)>);

/// The events that a caller may see. Dropping it ends it.
#[derive(Debug)]
pub struct Watch {
    sink: Sink,
    _ends: Option<Ends>,
}

/// What is done when a stream is dropped.
struct Ends(Box<dyn Fn() + Send + Sync>);

impl fmt::Debug for Ends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ends")
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        (self.0)();
    }
}

impl Sink {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends an event, or counts it as lost if the reader is too slow.
    pub fn event(&self, cursor: Cursor, event: Arc<Shown>) {
        let mut state = self.lock();
        let size = event.json.len();
        let is_full =
            state.items.len() >= WAITING_MAX || !state.items.is_empty() && state.bytes + size > WAITING_BYTES_MAX;
        // What follows a loss comes after it: the reader first catches up.
        if is_full || state.lost.is_some() && !state.items.is_empty() {
            let lost = state.lost.map_or(Some(0), |(_, lost)| lost);
            state.lost = Some((cursor, lost.map(|lost| lost + 1)));
        } else {
            if let Some((cursor, count)) = state.lost.take() {
                state.items.push_back(Watched::Lost { cursor, count });
            }
            state.bytes += size;
            state.items.push_back(Watched::Event { cursor, event });
        }
        drop(state);
        self.0.1.notify_one();
    }

    /// Says that events are missing.
    pub fn lost(&self, cursor: Cursor, count: Option<u64>) {
        let mut state = self.lock();
        let sum = match (state.lost, count) {
            (None, count) => count,
            (Some((_, before)), count) => before.and_then(|before| Some(before + count?)),
        };
        state.lost = Some((cursor, sum));
        drop(state);
        self.0.1.notify_one();
    }

    /// Ends the stream after what it has.
    pub fn end(&self) {
        self.lock().ended = true;
        self.0.1.notify_one();
    }
}

impl Watch {
    /// A stream of what is put into `sink`, with what is to be done when it is dropped.
    pub fn new(sink: Sink, ends: impl Fn() + Send + Sync + 'static) -> Self {
        Self { sink, _ends: Some(Ends(Box::new(ends))) }
    }

    /// Waits for the next item. None when the caller's token has ended. Cancel-safe.
    pub async fn next(&mut self) -> Option<Watched> {
        loop {
            if let Some(next) = self.ready()? {
                return Some(next);
            }
            self.sink.0.1.notified().await;
        }
    }

    /// Returns the next item, if there is one already; the outer none when the caller's token has ended.
    pub fn ready(&mut self) -> Option<Option<Watched>> {
        let mut state = self.sink.lock();
        if let Some(item) = state.items.pop_front() {
            if let Watched::Event { event, .. } = &item {
                state.bytes -= event.json.len();
            }
            return Some(Some(item));
        }
        if state.ended {
            return None;
        }
        Some(state.lost.take().map(|(cursor, count)| Watched::Lost { cursor, count }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_protocol::value::map;

    fn at(seq: u64) -> Cursor {
        Cursor { epoch: 7, seq }
    }

    #[tokio::test]
    async fn a_slow_reader_learns_what_it_lost() {
        let sink = Sink::default();
        let mut watch = Watch::new(sink.clone(), || ());
        let event = Arc::new(Shown::new(&Event { tag: "a".to_owned(), data: map([("x", 1)]) }));
        let most = WAITING_MAX as u64;
        for seq in 1..=most + 10 {
            sink.event(at(seq), Arc::clone(&event));
        }
        for seq in 1..=most {
            assert!(matches!(watch.next().await, Some(Watched::Event { cursor, .. }) if cursor == at(seq)));
        }
        sink.event(at(most + 11), Arc::clone(&event));
        let Some(Watched::Lost { cursor, count: Some(10) }) = watch.next().await else { panic!("10 are lost") };
        assert_eq!(cursor, at(most + 10));
        assert!(matches!(watch.next().await, Some(Watched::Event { cursor, .. }) if cursor == at(most + 11)));
        sink.lost(at(most + 20), None);
        sink.end();
        assert!(watch.next().await.is_none(), "the end is the end");
    }
}
