//! One connection of a node: requests and their replies, and the stream of events.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use brine_protocol::nodes::{self, FrameReader, IN_FLIGHT_MAX, TO_MASTER_MAX, ToMaster, ToNode};
use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, BufWriter};
use tokio::net::UnixStream;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Nodes;
use super::streams::{Command, Streams};
use crate::access::Address;
use crate::requests::{NodeReply, node};

/// Upper bound on the messages that wait to be written, of replies and of events each.
const WAITING_MAX: usize = 64;
/// A node that reads nothing for this long is cut off.
const STALL: Duration = Duration::from_secs(60);

/// Requests under way, by number.
type UnderWay = Arc<Mutex<HashMap<u64, CancellationToken>>>;

/// Serves a connection until it ends or the master stops.
pub(super) async fn serve(nodes: Arc<Nodes>, stream: UnixStream) {
    tracing::info!("salt-api has connected");
    let (reader, writer) = stream.into_split();
    let (replies, of_requests) = mpsc::channel(WAITING_MAX);
    let (events, of_streams) = mpsc::channel(WAITING_MAX);
    let (commands, asked) = mpsc::channel(WAITING_MAX);
    let hello = ToNode::Hello { version: nodes::VERSION, at: nodes.ring.head() };
    let streams = Streams::new(Arc::clone(&nodes), events).run(asked);
    let requests = TaskTracker::new();
    let gone = CancellationToken::new();
    let reading = read(&nodes, reader, replies, commands, &requests, &gone);
    let ended = tokio::select! {
        ended = reading => ended,
        ended = write(writer, hello, of_requests, of_streams) => ended,
        () = streams => Ok(()),
        () = nodes.stop.cancelled() => Ok(()),
    };
    gone.cancel();
    requests.close();
    match ended {
        Ok(()) => tracing::info!("salt-api has left"),
        Err(error) => tracing::warn!("the connection of salt-api has ended: {error}"),
    }
}

async fn read(
    nodes: &Arc<Nodes>,
    reader: impl AsyncRead + Unpin,
    replies: mpsc::Sender<ToNode>,
    commands: mpsc::Sender<Command>,
    requests: &TaskTracker,
    gone: &CancellationToken,
) -> io::Result<()> {
    let mut reader = FrameReader::new(reader, TO_MASTER_MAX);
    let places = Arc::new(Semaphore::new(IN_FLIGHT_MAX));
    let under_way = UnderWay::default();
    while let Some(message) = reader.next().await? {
        let message = ToMaster::decode(&message).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        let command = match message {
            ToMaster::Request { id, address, payload } => {
                // With all places taken, further requests wait in the socket.
                let Ok(place) = Arc::clone(&places).acquire_owned().await else { return Ok(()) };
                let gone = gone.child_token();
                lock(&under_way).insert(id, gone.clone());
                let (before, address) = (nodes.ring.head().seq, Address::behind_node(address));
                let reply = NodeReply { id, before, address, replies: replies.clone(), gone, place };
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
            ToMaster::Watch { id, token, after } => Command::Watch { id, token, after },
            ToMaster::Follow { id, token, tag, after } => Command::Follow { id, token, tag, after },
            ToMaster::Close { id } => Command::Close { id },
        };
        if commands.send(command).await.is_err() {
            return Ok(());
        }
    }
    Ok(())
}

async fn write(
    writer: impl AsyncWrite + Unpin,
    hello: ToNode,
    mut replies: mpsc::Receiver<ToNode>,
    mut events: mpsc::Receiver<ToNode>,
) -> io::Result<()> {
    let mut writer = BufWriter::with_capacity(64 << 10, writer);
    let mut next = hello;
    loop {
        let framed = nodes::frame(&next.encode());
        stalls(writer.write_all(&framed)).await?;
        let ready = replies.try_recv().or_else(|_| events.try_recv()).ok();
        next = match ready {
            Some(ready) => ready,
            None => {
                stalls(writer.flush()).await?;
                let waited = tokio::select! {
                    biased;
                    reply = replies.recv() => reply,
                    event = events.recv() => event,
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
