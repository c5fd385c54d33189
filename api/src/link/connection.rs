//! The connection to the master: requests with their replies, and streams of events. It is made again whenever it ends. What
//! was asked on one that ended is never asked again, because it may have been done.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use brine_protocol::nodes::{self, Cursor, FrameReader, IN_FLIGHT_MAX, TO_NODE_MAX, ToMaster, ToNode};
use brine_protocol::secret::Secret;
use bytes::Bytes;
use tokio::io::{AsyncWrite, AsyncWriteExt as _, BufWriter};
use tokio::net::UnixStream;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::AbortHandle;

use super::follow::{Follow, FollowSink};
use super::streams::{Kind, Stream, Streams};
use super::watch::{Sink, Watch};
use super::{Caller, LinkError};

/// The pause between attempts to reach the master.
const RECONNECT: Duration = Duration::from_millis(200);
/// A master says this often that it is there, or more often; then the connection is given up.
const SILENCE: Duration = Duration::from_secs(5);
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
    next: AtomicU64,
    in_flight: Semaphore,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Messages to be written; none while the master is away. The places of requests bound it.
    out: Option<mpsc::UnboundedSender<Bytes>>,
    waiting: HashMap<u64, oneshot::Sender<(u64, Vec<u8>)>>,
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
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
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
        let id = self.number();
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
    /// Connects to this socket, and again whenever the connection ends.
    pub(super) fn keep(socket: PathBuf) -> Self {
        let shared = Arc::new(Shared {
            is_up: AtomicBool::new(false),
            next: AtomicU64::new(1),
            in_flight: Semaphore::new(IN_FLIGHT_MAX),
            state: Mutex::default(),
        });
        let task = tokio::spawn(keep(socket, Arc::clone(&shared))).abort_handle();
        Self { shared, task }
    }

    /// Whether the master is there.
    pub(super) fn is_up(&self) -> bool {
        self.shared.is_up.load(Ordering::Acquire)
    }

    /// Sends a request, once. Returns the reply, and a place before the events of what was asked.
    pub(super) async fn request(
        &self,
        payload: Vec<u8>,
        from: IpAddr,
        timeout: Duration,
    ) -> Result<(Vec<u8>, Cursor), LinkError> {
        let shared = &*self.shared;
        let asking = async {
            let _place = shared.in_flight.acquire().await.map_err(|_| LinkError::Away)?;
            let id = shared.number();
            let (send, reply) = oneshot::channel();
            let epoch = {
                let mut state = shared.state();
                if !state.send(ToMaster::Request { id, address: from, payload }) {
                    return Err(LinkError::Away);
                }
                state.waiting.insert(id, send);
                state.epoch
            };
            let _asked = Asked { shared, id };
            let (seq, payload) = reply.await.map_err(|_| LinkError::Away)?;
            Ok((payload, Cursor { epoch, seq }))
        };
        if !self.is_up() {
            return Err(LinkError::Away);
        }
        tokio::time::timeout(timeout, asking).await.unwrap_or(Err(LinkError::Late))
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
        let (sink, id) = (Sink::default(), self.shared.number());
        let (send, opened) = oneshot::channel();
        let kind = Kind::Watch { sink: sink.clone(), opened: Some(send) };
        {
            let mut state = self.shared.state();
            if state.out.is_none() {
                return Err(LinkError::Away);
            }
            let message = state.streams.add(id, Stream { token: caller.token.secret().clone(), at: after, kind });
            state.send(message);
        }
        let shared = Arc::clone(&self.shared);
        // Ended as well if the caller leaves before the master's answer.
        let watch = Watch::new(sink, move || shared.close(id));
        match tokio::time::timeout(timeout, opened).await {
            Ok(Ok(accepted)) => accepted.map(|()| watch),
            Ok(Err(_)) => Err(LinkError::Away),
            Err(_) => Err(LinkError::Late),
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

async fn keep(socket: PathBuf, shared: Arc<Shared>) {
    let mut said = false;
    loop {
        let ended = match UnixStream::connect(&socket).await {
            Ok(stream) => serve(stream, &shared, &mut said).await,
            Err(error) => Err(error),
        };
        let was_up = shared.is_up.swap(false, Ordering::AcqRel);
        {
            let mut state = shared.state();
            state.out = None;
            // Their callers learn that the master is away.
            state.waiting.clear();
            state.streams.break_off();
        }
        let why = ended.err().map_or_else(|| "it has closed the connection".to_owned(), |error| error.to_string());
        if was_up {
            tracing::warn!("the master is away: {why}");
        } else if !said {
            said = true;
            tracing::warn!("the master's socket {} cannot be used: {why}", socket.display());
        }
        tokio::time::sleep(RECONNECT).await;
    }
}

/// Serves one connection until it ends.
async fn serve(stream: UnixStream, shared: &Shared, said: &mut bool) -> io::Result<()> {
    let (reader, writer) = stream.into_split();
    let mut reader = FrameReader::new(reader, TO_NODE_MAX);
    let first = next(&mut reader).await?;
    let Some(ToNode::Hello { version: nodes::VERSION, at }) = first else {
        return Err(io::Error::other("the master speaks another version"));
    };
    let (out, messages) = mpsc::unbounded_channel();
    {
        let mut state = shared.state();
        state.epoch = at.epoch;
        state.out = Some(out);
        for message in state.streams.reopen(at) {
            state.send(message);
        }
    }
    *said = false;
    shared.is_up.store(true, Ordering::Release);
    tracing::info!("the master's event bus is there");
    tokio::select! {
        ended = read(&mut reader, shared) => ended,
        ended = write(writer, messages) => ended,
    }
}

async fn next(reader: &mut FrameReader<impl tokio::io::AsyncRead + Unpin>) -> io::Result<Option<ToNode>> {
    let silent = || io::Error::new(io::ErrorKind::TimedOut, "it says nothing");
    let Some(message) = tokio::time::timeout(SILENCE, reader.next()).await.map_err(|_| silent())?? else {
        return Ok(None);
    };
    ToNode::decode(&message).map(Some).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

async fn read(reader: &mut FrameReader<impl tokio::io::AsyncRead + Unpin>, shared: &Shared) -> io::Result<()> {
    while let Some(message) = next(reader).await? {
        let mut state = shared.state();
        match message {
            ToNode::Hello { .. } | ToNode::Alive => {}
            ToNode::Reply { id, before, payload } => {
                if let Some(waiting) = state.waiting.remove(&id) {
                    let _ = waiting.send((before, payload));
                }
            }
            ToNode::Watching { id, view, seq } => state.streams.accepted(id, view, seq),
            ToNode::Event { seq, views, streams, event } => state.streams.event(seq, &views, &streams, &event),
            ToNode::Lost { seq, stream, count } => state.streams.lost(seq, stream, count),
            ToNode::Ended { id, refused } => state.streams.ended(id, refused),
        }
    }
    Ok(())
}

async fn write(writer: impl AsyncWrite + Unpin, mut messages: mpsc::UnboundedReceiver<Bytes>) -> io::Result<()> {
    let mut writer = BufWriter::with_capacity(64 << 10, writer);
    while let Some(message) = messages.recv().await {
        writer.write_all(&message).await?;
        while let Ok(message) = messages.try_recv() {
            writer.write_all(&message).await?;
        }
        writer.flush().await?;
    }
    Ok(())
}
