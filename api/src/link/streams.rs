//! The streams of events over a connection. An event comes once, and is rendered once, however many streams it is for.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use brine_protocol::event::Event;
use brine_protocol::nodes::{Cursor, ToMaster};
use brine_protocol::secret::Secret;
use tokio::sync::oneshot;

use super::LinkError;
use super::follow::FollowSink;
use super::watch::{Shown, Sink};
use crate::problem::NO_PERMISSION;

/// Events of which it is remembered how they look, as long as a stream has them, before those that none has are forgotten.
const SHOWN_MAX: usize = 16_384;

/// The streams.
#[derive(Debug, Default)]
pub(super) struct Streams {
    all: HashMap<u64, Stream>,
    /// The streams of each view of the master.
    views: HashMap<u64, Vec<u64>>,
    epoch: u64,
    shown: HashMap<u64, Weak<Shown>>,
}

/// A stream.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) token: Secret<String>,
    /// The place up to which the stream has everything; none for one that begins now.
    pub(super) at: Option<Cursor>,
    pub(super) kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    Watch {
        sink: Sink,
        /// Told when the master has accepted it.
        opened: Option<oneshot::Sender<Result<(), LinkError>>>,
    },
    Follow {
        tag: String,
        sink: FollowSink,
    },
}

impl Stream {
    fn open(&self, id: u64) -> ToMaster {
        let token = self.token.clone();
        match &self.kind {
            Kind::Watch { .. } => ToMaster::Watch { id, token, after: self.at },
            Kind::Follow { tag, .. } => {
                let after = self.at.unwrap_or(Cursor { epoch: 0, seq: 0 });
                ToMaster::Follow { id, token, tag: tag.clone(), after }
            }
        }
    }
}

impl Streams {
    /// Adds a stream. Returns the message that opens it.
    pub(super) fn add(&mut self, id: u64, stream: Stream) -> ToMaster {
        let message = stream.open(id);
        self.all.insert(id, stream);
        message
    }

    /// Forgets a stream. Returns whether it was there.
    pub(super) fn remove(&mut self, id: u64) -> bool {
        for ids in self.views.values_mut() {
            ids.retain(|known| *known != id);
        }
        self.views.retain(|_, ids| !ids.is_empty());
        self.all.remove(&id).is_some()
    }

    /// A master is there: returns the messages that open all streams where they were.
    pub(super) fn reopen(&mut self, at: Cursor) -> Vec<ToMaster> {
        self.views.clear();
        if self.epoch != at.epoch {
            self.epoch = at.epoch;
            self.shown.clear();
        }
        self.all.iter().map(|(id, stream)| stream.open(*id)).collect()
    }

    /// The master is away: streams that it has not accepted yet do not begin.
    pub(super) fn break_off(&mut self) {
        self.views.clear();
        self.all.retain(|_, stream| match &mut stream.kind {
            Kind::Watch { opened, .. } => match opened.take() {
                Some(opened) => {
                    let _ = opened.send(Err(LinkError::Away));
                    false
                }
                None => true,
            },
            Kind::Follow { .. } => true,
        });
    }

    /// The master accepted a stream.
    pub(super) fn accepted(&mut self, id: u64, view: u64, seq: u64) {
        let Some(stream) = self.all.get_mut(&id) else { return };
        stream.at = Some(Cursor { epoch: self.epoch, seq });
        if let Kind::Watch { opened, .. } = &mut stream.kind {
            self.views.entry(view).or_default().push(id);
            if let Some(opened) = opened.take() {
                let _ = opened.send(Ok(()));
            }
        }
    }

    /// The master ended a stream.
    pub(super) fn ended(&mut self, id: u64, refused: bool) {
        let Some(stream) = self.all.remove(&id) else { return };
        self.remove(id);
        match stream.kind {
            Kind::Watch { opened: Some(opened), .. } => {
                let why = if refused { LinkError::Denied(NO_PERMISSION.to_owned()) } else { LinkError::Late };
                let _ = opened.send(Err(why));
            }
            Kind::Watch { sink, opened: None } => sink.end(),
            Kind::Follow { sink, .. } => sink.end(),
        }
    }

    /// Hands an event out.
    pub(super) fn event(&mut self, seq: u64, views: &[u64], single: &[u64], packed: &[u8]) {
        let cursor = Cursor { epoch: self.epoch, seq };
        let in_views = views.iter().filter_map(|view| self.views.get(view)).flatten().copied();
        let ids: Vec<u64> = in_views.chain(single.iter().copied()).filter(|id| self.all.contains_key(id)).collect();
        if ids.is_empty() {
            return;
        }
        let mut shown = self.shown.get(&seq).and_then(Weak::upgrade);
        let mut decoded: Option<Arc<Event>> = None;
        for id in ids {
            let Some(stream) = self.all.get_mut(&id) else { continue };
            let is_follow = matches!(stream.kind, Kind::Follow { .. });
            if decoded.is_none() && (is_follow || shown.is_none()) {
                match Event::decode(packed) {
                    Ok(event) => decoded = Some(Arc::new(event)),
                    Err(error) => return tracing::warn!("left out an event that does not decode: {error}"),
                }
            }
            stream.at = Some(cursor);
            match (&stream.kind, &decoded) {
                (Kind::Follow { sink, .. }, Some(event)) => sink.event(Arc::clone(event)),
                (Kind::Watch { sink, .. }, event) => {
                    if let (None, Some(event)) = (&shown, event) {
                        shown = Some(Arc::new(Shown::new(event)));
                    }
                    if let Some(shown) = &shown {
                        sink.event(cursor, Arc::clone(shown));
                    }
                }
                (Kind::Follow { .. }, None) => {}
            }
        }
        if let Some(shown) = shown {
            if self.shown.len() >= SHOWN_MAX {
                self.shown.retain(|_, shown| shown.strong_count() > 0);
            }
            self.shown.insert(seq, Arc::downgrade(&shown));
        }
    }

    /// Says that events are missing: for one stream, or for all.
    pub(super) fn lost(&mut self, seq: u64, single: Option<u64>, count: Option<u64>) {
        let cursor = Cursor { epoch: self.epoch, seq };
        let ids = match single {
            Some(id) => vec![id],
            None => self.views.values().flatten().copied().collect(),
        };
        for id in ids {
            if let Some(Stream { at, kind: Kind::Watch { sink, .. }, .. }) = self.all.get_mut(&id) {
                *at = Some(cursor);
                sink.lost(cursor, count);
            }
        }
    }
}
