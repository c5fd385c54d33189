//! The connection to the master: requests with their replies, and streams of events. It is made again whenever it ends. What
//! was asked on one that ended is never asked again, because it may have been done.
//!
//! A master that hangs keeps its sockets open. So each side says all the time that it is there, and the master says how far it has read:
//! what it has not read in time is given up, and says itself until when it counts, so that the master does not do it later.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use brine_protocol::nodes::{self, ALIVE_EVERY, Cursor, IN_FLIGHT_MAX, ToMaster, ToNode};
use brine_protocol::secret::Secret;
use bytes::Bytes;
use tokio::io::{AsyncWriteExt as _, BufWriter};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::follow::{Follow, FollowSink};
use super::route::{Opened, Reader, Route, RouteError, Writer, next};
use super::streams::{Kind, Stream, Streams};
use super::watch::{Sink, Watch};
use super::{Caller, LinkError};

/// What the master has not read after this time is given up: callers learn within a second that it is away.
const UNREAD: Duration = Duration::from_millis(900);
/// The master does not do what it reads later than this: its word that it has read something needs time to come here.
const COUNTS: Duration = Duration::from_millis(800);
/// A master that has said nothing for this long is not asked at all.
const QUIET: Duration = Duration::from_secs(2);
/// Jobs and runs of which it is remembered who started them and when, for those who wait for the result.
const STARTED_MAX: usize = 4_096;

/// The connection.
#[derive(Debug)]
pub(super) struct Connection {
    shared: Arc<Shared>,
    task: AbortHandle,
}

/// What the connection's task and its users share.
#[derive(Debug)]
pub(super) struct Shared {
    is_up: AtomicBool,
    in_flight: Semaphore,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Messages to be written; none while the master is away. The places of requests bound it.
    out: Option<mpsc::UnboundedSender<Bytes>>,
    waiting: HashMap<u64, oneshot::Sender<(u64, Vec<u8>)>>,
    /// When the master was last heard.
    heard: Option<Instant>,
    /// The master's clock, and when it was so.
    clock: Option<(u64, Instant)>,
    /// The largest number of a message that the master has read.
    seen: u64,
    /// The next number of a message: in the order in which they are sent.
    next: u64,
    epoch: u64,
    streams: Streams,
    started: VecDeque<Started>,
}

/// A job or run that was started over this connection.
#[derive(Debug)]
struct Started {
    jid: String,
    token: Secret<String>,
    before: Cursor,
}

impl State {
    fn send(&self, message: ToMaster) -> bool {
        self.out.as_ref().is_some_and(|out| out.send(nodes::frame(&message.encode())).is_ok())
    }

    const fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// The time by the master's clock that is `later` from now, or a little before.
    fn until(&self, later: Duration) -> u64 {
        let Some((clock, at)) = self.clock else { return 0 };
        clock.saturating_add(u64::try_from((at.elapsed() + later).as_millis()).unwrap_or(u64::MAX))
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns when it is clear that the master does not read: what was sent at `since` with the number `id`, or anything.
    async fn unread(&self, since: Instant, id: Option<u64>) {
        tokio::time::sleep_until(since + UNREAD).await;
        let is_alive = {
            let state = self.state();
            match id {
                Some(id) => state.seen >= id,
                None => state.heard.is_some_and(|heard| heard > since),
            }
        };
        if is_alive {
            // Other bounds hold from now on.
            std::future::pending::<()>().await;
        }
    }

    /// Follows the job or run of these tags. Returns the stream's number.
    pub(super) fn follow(&self, prefix: &str, sink: FollowSink) -> Option<u64> {
        let mut parts = prefix.splitn(4, '/');
        let (kind, jid) = (parts.nth(1)?, parts.next()?);
        let mut state = self.state();
        let Some(started) = state.started.iter().rev().find(|started| started.jid == jid) else {
            tracing::warn!("nobody started {jid} here");
            return None;
        };
        let (token, at) = (started.token.clone(), Some(started.before));
        let id = state.number();
        let tag = format!("salt/{kind}/{jid}");
        let message = state.streams.add(id, Stream { token, at, kind: Kind::Follow { tag, sink } });
        // While the master is away, the stream waits for it.
        state.send(message);
        Some(id)
    }

    /// Ends a stream.
    pub(super) fn close(&self, id: u64) {
        let mut state = self.state();
        if state.streams.remove(id) {
            state.send(ToMaster::Close { id });
        }
    }
}

/// A request whose reply somebody waits for.
struct Asked<'a> {
    shared: &'a Shared,
    id: u64,
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        if state.waiting.remove(&self.id).is_some() {
            state.send(ToMaster::Forget { id: self.id });
        }
    }
}

impl Connection {
    /// Connects by this way, and again whenever the connection ends.
    pub(super) fn keep(route: Route) -> Self {
        let shared = Arc::new(Shared {
            is_up: AtomicBool::new(false),
            in_flight: Semaphore::new(IN_FLIGHT_MAX),
            state: Mutex::default(),
        });
        let task = tokio::spawn(keep(route, Arc::clone(&shared))).abort_handle();
        Self { shared, task }
    }

    /// Whether the master is there.
    pub(super) fn is_up(&self) -> bool {
        self.shared.is_up.load(Ordering::Acquire)
            && self.shared.state().heard.is_some_and(|heard| heard.elapsed() < QUIET)
    }

    /// Sends a request, once. Returns the reply, and a place before the events of what was asked.
    pub(super) async fn request(
        &self,
        payload: Vec<u8>,
        from: IpAddr,
        timeout: Duration,
    ) -> Result<(Vec<u8>, Cursor), LinkError> {
        if !self.is_up() {
            return Err(LinkError::Away);
        }
        tokio::time::timeout(timeout, self.ask(payload, from)).await.unwrap_or(Err(LinkError::Late))
    }

    async fn ask(&self, payload: Vec<u8>, from: IpAddr) -> Result<(Vec<u8>, Cursor), LinkError> {
        let shared = &*self.shared;
        let _place = tokio::select! {
            biased;
            place = shared.in_flight.acquire() => place.map_err(|_| LinkError::Away)?,
            () = shared.unread(Instant::now(), None) => return Err(LinkError::Away),
        };
        let (send, reply) = oneshot::channel();
        let (id, epoch) = {
            let mut state = shared.state();
            let (id, until) = (state.number(), state.until(COUNTS));
            if !state.send(ToMaster::Request { id, address: from, until, payload }) {
                return Err(LinkError::Away);
            }
            state.waiting.insert(id, send);
            (id, state.epoch)
        };
        let _asked = Asked { shared, id };
        let (seq, payload) = tokio::select! {
            biased;
            reply = reply => reply.map_err(|_| LinkError::Away)?,
            () = shared.unread(Instant::now(), Some(id)) => return Err(LinkError::Away),
        };
        Ok((payload, Cursor { epoch, seq }))
    }

    /// Remembers who started a job or run, and a place before its events.
    pub(super) fn started(&self, jid: &str, caller: &Caller, before: Cursor) {
        let token = caller.token.secret().clone();
        let mut state = self.shared.state();
        if state.started.len() >= STARTED_MAX {
            state.started.pop_front();
        }
        state.started.push_back(Started { jid: jid.to_owned(), token, before });
    }

    /// Watches the events that a caller may see.
    pub(super) async fn watch(
        &self,
        caller: &Caller,
        after: Option<Cursor>,
        timeout: Duration,
    ) -> Result<Watch, LinkError> {
        if !self.is_up() {
            return Err(LinkError::Away);
        }
        let sink = Sink::default();
        let (send, opened) = oneshot::channel();
        let kind = Kind::Watch { sink: sink.clone(), opened: Some(send) };
        let id = {
            let mut state = self.shared.state();
            if state.out.is_none() {
                return Err(LinkError::Away);
            }
            let id = state.number();
            let message = state.streams.add(id, Stream { token: caller.token.secret().clone(), at: after, kind });
            state.send(message);
            id
        };
        let shared = Arc::clone(&self.shared);
        // Ended as well if the caller leaves before the master's answer.
        let watch = Watch::new(sink, move || shared.close(id));
        tokio::select! {
            biased;
            opened = tokio::time::timeout(timeout, opened) => match opened {
                Ok(Ok(accepted)) => accepted.map(|()| watch),
                Ok(Err(_)) => Err(LinkError::Away),
                Err(_) => Err(LinkError::Late),
            },
            () = self.shared.unread(Instant::now(), Some(id)) => Err(LinkError::Away),
        }
    }

    /// Follows nothing yet.
    pub(super) fn follow(&self) -> Follow {
        Follow::new(Arc::clone(&self.shared))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn keep(route: Route, shared: Arc<Shared>) {
    let (mut failed, mut said) = (0, String::new());
    loop {
        let ended = match route.open().await {
            Ok(opened) => {
                (failed, said) = (0, String::new());
                serve(opened, &shared).await.map_err(RouteError::from)
            }
            Err(error) => Err(error),
        };
        let was_up = shared.is_up.swap(false, Ordering::AcqRel);
        {
            let mut state = shared.state();
            (state.out, state.heard, state.clock) = (None, None, None);
            // Their callers learn that the master is away.
            state.waiting.clear();
            state.streams.break_off();
        }
        let is_refused = matches!(ended, Err(RouteError::Refused(_)));
        let why = ended.err().map_or_else(|| "it has closed the connection".to_owned(), |error| error.to_string());
        if was_up {
            tracing::warn!("the master is away: {why}");
        } else if said != why {
            tracing::warn!("{} cannot be used: {why}", route.name());
            said = why;
        }
        tokio::time::sleep(route.pause(failed, is_refused)).await;
        failed += 1;
    }
}

/// Serves one connection until it ends.
async fn serve(Opened { mut reader, writer, at, now }: Opened, shared: &Shared) -> io::Result<()> {
    let (out, messages) = mpsc::unbounded_channel();
    {
        let mut state = shared.state();
        let heard = Instant::now();
        (state.heard, state.clock, state.seen) = (Some(heard), Some((now, heard)), 0);
        state.epoch = at.epoch;
        state.out = Some(out);
        for message in state.streams.reopen(at) {
            state.send(message);
        }
    }
    shared.is_up.store(true, Ordering::Release);
    tracing::info!("the master's event bus is there");
    tokio::select! {
        ended = read(&mut reader, shared) => ended,
        ended = write(writer, messages) => ended,
    }
}

async fn read(reader: &mut Reader, shared: &Shared) -> io::Result<()> {
    while let Some(message) = next(reader).await? {
        let mut state = shared.state();
        let heard = Instant::now();
        state.heard = Some(heard);
        match message {
            ToNode::Hello { .. } => {}
            ToNode::Alive { now, seen } => {
                state.clock = Some((now, heard));
                state.seen = seen;
            }
            ToNode::Reply { id, before, payload } => {
                if let Some(waiting) = state.waiting.remove(&id) {
                    let _ = waiting.send((before, payload));
                }
            }
            // Its caller learns that the master is away.
            ToNode::Late { id } => drop(state.waiting.remove(&id)),
            ToNode::Watching { id, view, seq } => state.streams.accepted(id, view, seq),
            ToNode::Event { seq, views, streams, event } => state.streams.event(seq, &views, &streams, &event),
            ToNode::Lost { seq, stream, count } => state.streams.lost(seq, stream, count),
            ToNode::Ended { id, refused } => state.streams.ended(id, refused),
            ToNode::Refused(why) => return Err(io::Error::other(why.to_string())),
        }
    }
    Ok(())
}

async fn write(writer: Writer, mut messages: mpsc::UnboundedReceiver<Bytes>) -> io::Result<()> {
    let mut writer = BufWriter::with_capacity(64 << 10, writer);
    let alive = nodes::frame(&ToMaster::Alive.encode());
    loop {
        match tokio::time::timeout(ALIVE_EVERY, messages.recv()).await {
            Ok(Some(message)) => writer.write_all(&message).await?,
            Ok(None) => return Ok(()),
            Err(_) => writer.write_all(&alive).await?,
        }
        while let Ok(message) = messages.try_recv() {
            writer.write_all(&message).await?;
        }
        writer.flush().await?;
    }
}
