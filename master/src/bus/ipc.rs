//! The two sockets of the bus in `sock_dir` (§1.5, §8.1), in Salt's framing.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener as StdListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use brine_protocol::event::{Event, FrameDecoder, frame};
use brine_protocol::ids::EventTag;
use brine_protocol::value::{Value, map};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};

use super::{Bus, Next, Subscription, lock};
use crate::access::Principal;

/// A subscriber that reads nothing for this long is dropped, as in Salt.
const STALL: Duration = Duration::from_secs(60);
/// Bound on concurrent connections of senders.
const SENDERS_MAX: usize = 256;
/// Bound on the size of a pushed event, as a multiple of `max_event_size`. Larger ones close the connection; smaller
/// ones are trimmed.
const PUSHED_FACTOR: usize = 16;
/// The pause after a failed accept, such as without free descriptors: long enough against a busy loop, short enough for
/// a waiting command.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A socket of the bus that cannot be made.
#[derive(Debug, thiserror::Error)]
#[error("the event bus cannot use {path}: {why}", path = path.display())]
pub struct SocketError {
    path: PathBuf,
    why: io::Error,
}

/// The socket for subscribers.
pub(super) struct PubListener {
    listener: UnixListener,
    /// The same socket, for accepting without the runtime, which notices connections late. Accepting and subscribing
    /// are one step under this lock, so every connection is either waiting or subscribed.
    by_hand: Mutex<StdListener>,
}

impl PubListener {
    pub(super) fn bind(path: &Path) -> Result<Arc<Self>, SocketError> {
        let failed = |why| SocketError { path: path.to_owned(), why };
        let by_hand = bind(path, 0o660)?;
        let listener = by_hand.try_clone().and_then(UnixListener::from_std).map_err(failed)?;
        Ok(Arc::new(Self { listener, by_hand: Mutex::new(by_hand) }))
    }

    /// Subscribes all waiting connections.
    pub(super) fn accept_waiting(&self, bus: &Bus) {
        let by_hand = lock(&self.by_hand);
        loop {
            match by_hand.accept() {
                Ok((stream, _)) => {
                    let stream = stream.set_nonblocking(true).and_then(|()| UnixStream::from_std(stream));
                    admit(bus, stream);
                }
                Err(e) if matches!(e.kind(), io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted) => {}
                // No connection is waiting. The accepting task reports other errors.
                Err(_) => return,
            }
        }
    }

    /// Accepts and subscribes the next connection.
    async fn accept(&self, bus: &Bus) -> io::Result<()> {
        std::future::poll_fn(|context| {
            let _one_step = lock(&self.by_hand);
            self.listener.poll_accept(context).map_ok(|(stream, _)| admit(bus, Ok(stream)))
        })
        .await
    }
}

fn admit(bus: &Bus, stream: io::Result<UnixStream>) {
    match (stream, bus.subscribe()) {
        (Ok(stream), Some(subscription)) => {
            bus.shared.tasks.spawn(serve(stream, subscription));
        }
        (Ok(_), None) => tracing::warn!("the event bus has as many subscribers as it may; one was turned away"),
        (Err(e), _) => tracing::error!("the event bus cannot use a connection: {e}"),
    }
}

pub(super) async fn accept_subscribers(bus: Bus, listener: Arc<PubListener>) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept(&bus) => accepted,
            () = bus.shared.stop.cancelled() => return,
        };
        if let Err(e) = accepted {
            tracing::error!("the event bus cannot accept a subscriber: {e}");
            tokio::time::sleep(ACCEPT_PAUSE).await;
        }
    }
}

/// Writes events to one subscriber until it disconnects or stalls, or the bus closes.
async fn serve(stream: UnixStream, subscription: Subscription) {
    let (mut reader, mut writer) = stream.into_split();
    let mut discard = [0; 64];
    loop {
        let next = tokio::select! {
            next = subscription.next() => next,
            // Subscribers send nothing; reading detects their disconnection.
            read = reader.read(&mut discard) => match read {
                Ok(n) if n > 0 => continue,
                _ => return,
            },
        };
        let written = match next {
            None => return,
            Some(Next::Event(event)) => tokio::time::timeout(STALL, writer.write_all(&event.frame)).await,
            Some(Next::Lost(n)) => {
                tracing::warn!("a subscriber of the event bus was too slow and lost {n} events");
                let note = Event::new("brine/events/lost", map([("lost", Value::from(n))]));
                let bytes = frame(&note, subscription.framing());
                tokio::time::timeout(STALL, writer.write_all(&bytes)).await
            }
        };
        if !matches!(written, Ok(Ok(()))) {
            return;
        }
    }
}

pub(super) async fn accept_senders(bus: Bus, listener: UnixListener) {
    let places = Arc::new(tokio::sync::Semaphore::new(SENDERS_MAX));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = bus.shared.stop.cancelled() => return,
        };
        match accepted {
            Ok((stream, _)) => {
                let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
                let bus = bus.clone();
                bus.shared.tasks.clone().spawn(async move {
                    tokio::select! {
                        () = receive(&bus, stream) => {}
                        () = bus.shared.stop.cancelled() => {}
                    }
                    drop(place);
                });
            }
            Err(e) => {
                tracing::error!("the event bus cannot accept a sender: {e}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Fires the events of one sender. Only the master's own user can open this socket.
async fn receive(bus: &Bus, mut stream: UnixStream) {
    let mut decoder = FrameDecoder::new(bus.shared.max_event_size.saturating_mul(PUSHED_FACTOR));
    loop {
        loop {
            match decoder.next_event() {
                Ok(Some(event)) if EventTag::new(event.tag.as_str()).is_ok() => {
                    bus.fire_by(Principal::local_program(), event.tag, event.data);
                }
                Ok(Some(event)) => tracing::warn!("an event with an unusable tag was pushed: {:?}", event.tag),
                Ok(None) => break,
                Err(error) => {
                    tracing::warn!("an event sender was cut off: {error}");
                    return;
                }
            }
        }
        if !matches!(stream.read_buf(decoder.buffer()).await, Ok(n) if n > 0) {
            return;
        }
    }
}

/// Binds a socket that only the master's own user can open.
pub(crate) fn bind_private(path: &Path) -> Result<UnixListener, SocketError> {
    let listener = bind(path, 0o600)?;
    UnixListener::from_std(listener).map_err(|why| SocketError { path: path.to_owned(), why })
}

/// Binds under a temporary name and renames the socket once its mode is right, so that it is never open to others.
fn bind(path: &Path, mode: u32) -> Result<StdListener, SocketError> {
    let failed = |why| SocketError { path: path.to_owned(), why };
    let new = path.with_extension("new");
    let make = || -> io::Result<StdListener> {
        match std::fs::remove_file(&new) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        let listener = StdListener::bind(&new)?;
        std::fs::set_permissions(&new, std::fs::Permissions::from_mode(mode))?;
        std::fs::rename(&new, path)?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    };
    make().map_err(failed)
}

/// Makes an empty file where older masters have a socket, because Python's LocalClient and netapi check that it exists.
pub(super) fn make_marker(path: &Path) -> Result<(), SocketError> {
    use std::os::unix::fs::FileTypeExt;
    let make = || -> io::Result<()> {
        // A socket of a Python master cannot be opened as a file.
        if std::fs::symlink_metadata(path).is_ok_and(|m| m.file_type().is_socket()) {
            std::fs::remove_file(path)?;
        }
        crate::files::touch_private(path)
    };
    make().map_err(|why| SocketError { path: path.to_owned(), why })
}
