//! One connection of a node: requests and their replies, and the stream of events.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use brine_protocol::nodes::{self, ALIVE_EVERY, FrameReader, IN_FLIGHT_MAX, STREAMS_MAX, ToMaster, ToNode};
use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, BufWriter};
use tokio::sync::{Semaphore, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Nodes;
use super::streams::{Command, Streams};
use crate::access::Address;
use crate::requests::{NodeReply, node};

/// Upper bound on the messages that wait to be written, of replies and of events each.
const WAITING_MAX: usize = 64;
/// Upper bound on the KiB of a connection's requests that wait for their replies. With what is made of them they take four times
/// as much memory. A caller's body has 1 MiB at most.
const KIB_MAX: u32 = 64 << 10;
/// A node that reads nothing for this long is cut off.
const STALL: Duration = Duration::from_secs(60);
/// A node on another host that says nothing for this long has gone, or its network has. (One on this host ends its socket.)
const SILENCE: Duration = Duration::from_secs(10);

/// Requests under way, by number.
type UnderWay = Arc<Mutex<HashMap<u64, CancellationToken>>>;

/// Who has connected.
#[derive(Debug)]
pub(super) struct Guest {
    /// What the log calls it.
    pub(super) name: String,
    /// Its address, if it is on another host.
    pub(super) address: Option<IpAddr>,
}

/// Serves a connection until it ends or the master stops.
pub(super) async fn serve(
    nodes: Arc<Nodes>,
    reader: FrameReader<impl AsyncRead + Unpin>,
    writer: impl AsyncWrite + Unpin,
    guest: Guest,
) {
    let Guest { name, address } = &guest;
    match address {
        Some(address) => tracing::info!("{name} has connected from {address}"),
        None => tracing::info!("{name} has connected"),
    }
    let (replies, of_requests) = mpsc::channel(WAITING_MAX);
    let (events, of_streams) = mpsc::channel(WAITING_MAX);
    // As many as there may be streams: while many are opened anew, requests are read all the same.
    let (commands, asked) = mpsc::channel(STREAMS_MAX);
    let hello = ToNode::Hello { version: nodes::VERSION, at: nodes.ring.head(), now: nodes.clock() };
    // The largest number that has been read.
    let seen = AtomicU64::new(0);
    let alive = || ToNode::Alive { now: nodes.clock(), seen: seen.load(Ordering::Acquire) };
    let streams = Streams::new(Arc::clone(&nodes), events).run(asked);
    let requests = TaskTracker::new();
    let gone = CancellationToken::new();
    // Also if this future is dropped, because the node's key has gone.
    let _left = gone.clone().drop_guard();
    let reading = read(&nodes, reader, *address, (replies, commands), (&requests, &gone, &seen));
    let ended = tokio::select! {
        ended = reading => ended,
        ended = write(writer, hello, alive, of_requests, of_streams) => ended,
        () = streams => Ok(()),
        () = nodes.stop.cancelled() => Ok(()),
    };
    requests.close();
    match ended {
        Ok(()) => tracing::info!("{name} has left"),
        Err(error) => tracing::warn!("the connection of {name} has ended: {error}"),
    }
}

async fn read(
    nodes: &Arc<Nodes>,
    mut reader: FrameReader<impl AsyncRead + Unpin>,
    from: Option<IpAddr>,
    (replies, commands): (mpsc::Sender<ToNode>, mpsc::Sender<Command>),
    (requests, gone, seen): (&TaskTracker, &CancellationToken, &AtomicU64),
) -> io::Result<()> {
    let places = Arc::new(Semaphore::new(IN_FLIGHT_MAX));
    let kib = Arc::new(Semaphore::new(KIB_MAX as usize));
    let under_way = UnderWay::default();
    let silence = if from.is_some() { SILENCE } else { Duration::MAX };
    loop {
        let silent = || io::Error::new(io::ErrorKind::TimedOut, "it says nothing");
        let next = tokio::time::timeout(silence, reader.next()).await.map_err(|_| silent())??;
        let Some(message) = next else { return Ok(()) };
        let message = ToMaster::decode(&message).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        let command = match message {
            ToMaster::Request { id, address, until, payload } => {
                // With all places taken, further requests wait in the socket.
                let size = u32::try_from(payload.len() >> 10).unwrap_or(KIB_MAX).min(KIB_MAX - 1) + 1;
                let (Ok(place), Ok(bytes)) =
                    (Arc::clone(&places).acquire_owned().await, Arc::clone(&kib).acquire_many_owned(size).await)
                else {
                    return Ok(());
                };
                if nodes.clock() > until {
                    // Its caller has been told that the master is away, and may have asked again.
                    if replies.send(ToNode::Late { id }).await.is_err() {
                        return Ok(());
                    }
                    continue;
                }
                seen.fetch_max(id, Ordering::AcqRel);
                let gone = gone.child_token();
                lock(&under_way).insert(id, gone.clone());
                let (before, address) = (nodes.ring.head().seq, Address::behind_node(from, address));
                let reply = NodeReply { id, before, address, replies: replies.clone(), gone, place: [place, bytes] };
                let (nodes, under_way, tasks) = (Arc::clone(nodes), Arc::clone(&under_way), requests.clone());
                requests.spawn(async move {
                    node::take(Arc::clone(&nodes.handlers), tasks, Bytes::from(payload), reply).await;
                    lock(&under_way).remove(&id);
                });
                continue;
            }
            ToMaster::Forget { id } => {
                if let Some(gone) = lock(&under_way).remove(&id) {
                    gone.cancel();
                }
                continue;
            }
            ToMaster::Watch { id, token, after } => {
                seen.fetch_max(id, Ordering::AcqRel);
                Command::Watch { id, token, after }
            }
            ToMaster::Follow { id, token, tag, after } => Command::Follow { id, token, tag, after },
            ToMaster::Close { id } => Command::Close { id },
            ToMaster::Alive => continue,
            ToMaster::Join { .. } => return Err(io::Error::new(io::ErrorKind::InvalidData, "it joins twice")),
        };
        if commands.send(command).await.is_err() {
            return Ok(());
        }
    }
}

async fn write(
    writer: impl AsyncWrite + Unpin,
    hello: ToNode,
    alive: impl Fn() -> ToNode,
    mut replies: mpsc::Receiver<ToNode>,
    mut events: mpsc::Receiver<ToNode>,
) -> io::Result<()> {
    let mut writer = BufWriter::with_capacity(64 << 10, writer);
    let mut next = hello;
    let mut tell = Instant::now() + ALIVE_EVERY;
    loop {
        let framed = nodes::frame(&next.encode());
        stalls(writer.write_all(&framed)).await?;
        let is_due = Instant::now() >= tell;
        let ready = if is_due { None } else { replies.try_recv().or_else(|_| events.try_recv()).ok() };
        next = match ready {
            Some(ready) => ready,
            None if is_due => {
                tell = Instant::now() + ALIVE_EVERY;
                alive()
            }
            None => {
                stalls(writer.flush()).await?;
                let waited = tokio::select! {
                    biased;
                    reply = replies.recv() => reply,
                    event = events.recv() => event,
                    () = tokio::time::sleep_until(tell) => {
                        tell = Instant::now() + ALIVE_EVERY;
                        Some(alive())
                    }
                };
                let Some(waited) = waited else { return Ok(()) };
                waited
            }
        };
    }
}

async fn stalls(written: impl Future<Output = io::Result<()>>) -> io::Result<()> {
    tokio::time::timeout(STALL, written).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

fn lock(under_way: &UnderWay) -> std::sync::MutexGuard<'_, HashMap<u64, CancellationToken>> {
    under_way.lock().unwrap_or_else(PoisonError::into_inner)
}
