//! A process without a free descriptor: accepting pauses instead of retrying in a loop, and continues when there are
//! descriptors again.
//!
//! The test has a binary of its own, because the limit applies to the process.

mod common;

use std::{
    fs::File,
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use brine_zmtp::SocketLimits;
use common::*;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::net::TcpSocket;
use tracing::{Event, Metadata, Subscriber, span};

/// The number of pauses.
static PAUSES: AtomicUsize = AtomicUsize::new(0);

/// Counts warnings, each of which is a pause here.
struct CountWarnings;

impl Subscriber for CountWarnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == tracing::Level::WARN && metadata.target() == "brine_zmtp::listener"
    }
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, _: &Event<'_>) {
        PAUSES.fetch_add(1, Ordering::Relaxed);
    }
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

#[tokio::test]
async fn accepting_pauses_when_there_are_no_files() {
    tracing::subscriber::set_global_default(CountWarnings).unwrap();
    let mut router = router(SocketLimits::default()).await;
    let address = ([127, 0, 0, 1], router.endpoint().port().unwrap()).into();
    let socket = TcpSocket::new_v4().unwrap();

    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(64), maximum: limit.maximum }).unwrap();
    let mut files = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        files.push(file);
    }
    // The system accepts the connection, but the listener does not.
    let stream = within(socket.connect(address)).await.unwrap();
    let started = Instant::now();
    until(|| PAUSES.load(Ordering::Relaxed) >= 4).await;
    assert!(started.elapsed() >= Duration::from_millis(600), "four attempts in {:?}", started.elapsed());

    drop(files);
    let mut peer = Raw::new(stream);
    peer.handshake("REQ", 1).await;
    peer.send(b"\x01\0\0\0").await;
    request(&mut router).await.reply.send("back".into()).await.unwrap();
    assert_eq!(peer.message().await, frames(&["", "back"]));
}
