//! Waiting for events of a master's bus.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

use brine_protocol::event::FrameDecoder;
use brine_protocol::value::to_json;
use serde_json::Value;

use brine_kit::wait::DEADLINE;

type Seen = Arc<(Mutex<Vec<(String, Value)>>, Condvar)>;

/// A subscription. It keeps all events since its start, so that a test can wait for them in any order.
pub struct Events {
    seen: Seen,
}

impl Events {
    /// Subscribes.
    pub fn connect(socket: &Path) -> Self {
        let stream =
            UnixStream::connect(socket).unwrap_or_else(|e| panic!("no event bus at {}: {e}", socket.display()));
        let seen = Arc::new((Mutex::new(Vec::new()), Condvar::new()));
        let shared = Arc::clone(&seen);
        std::thread::spawn(move || read_all(stream, &shared));
        Self { seen }
    }

    /// Waits for an event that `accept` selects, among past and future ones.
    pub fn wait(&self, what: &str, accept: impl Fn(&str, &Value) -> bool) -> Value {
        let end = Instant::now() + DEADLINE;
        let (list, changed) = &*self.seen;
        let mut events = list.lock().expect("no test panics holding it");
        let mut from = 0;
        loop {
            if let Some((_, data)) = events[from..].iter().find(|(tag, data)| accept(tag, data)) {
                return data.clone();
            }
            from = events.len();
            let left = end.saturating_duration_since(Instant::now());
            let tags: Vec<_> = events.iter().map(|(tag, _)| tag.as_str()).collect();
            assert!(!left.is_zero(), "gave up waiting for {what}; events were {tags:?}");
            events = changed.wait_timeout(events, left).expect("no test panics holding it").0;
        }
    }

    /// Waits for an event with this tag.
    pub fn wait_tag(&self, tag: &str) -> Value {
        self.wait(&format!("the event {tag}"), |t, _| t == tag)
    }

    /// Waits for the return of `minion` for `jid`.
    pub fn wait_return(&self, jid: &str, minion: &str) -> Value {
        self.wait_tag(&format!("salt/job/{jid}/ret/{minion}"))
    }

    /// Returns all events so far, with their tags.
    pub fn all(&self) -> Vec<(String, Value)> {
        self.seen.0.lock().expect("no test panics holding it").clone()
    }

    /// Returns the number of events with this tag.
    pub fn count(&self, tag: &str) -> usize {
        self.seen.0.lock().expect("no test panics holding it").iter().filter(|(t, _)| t == tag).count()
    }
}

fn read_all(mut stream: UnixStream, shared: &Seen) {
    let mut decoder = FrameDecoder::default();
    let mut buffer = vec![0; 64 * 1024];
    while let Ok(n @ 1..) = stream.read(&mut buffer) {
        decoder.buffer().extend_from_slice(&buffer[..n]);
        while let Some(event) = decoder.next_event().expect("the master frames its events") {
            let data = to_json(&event.data);
            shared.0.lock().expect("no test panics holding it").push((event.tag, data));
            shared.1.notify_all();
        }
    }
}
