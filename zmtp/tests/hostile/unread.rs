//! Peers that do not take what is for them.

use std::collections::HashMap;
use std::collections::HashSet;
use std::time::Duration;

use brine_zmtp::{
    Publisher, SocketLimits,
    frame::{Command, Decoded, encode_command},
};
use bytes::Bytes;

use super::still_serves;
use crate::common::*;

#[tokio::test]
async fn a_peer_that_pipelines_waits_for_its_answers() {
    let mut router = router(SocketLimits { max_pipeline: 4, ..SocketLimits::default() }).await;
    let mut peer = Raw::peer(router.endpoint(), "DEALER", 1).await;
    for _ in 0..20 {
        peer.send(b"\x01\0\0\x01x").await;
    }
    let mut taken = Vec::new();
    for _ in 0..4 {
        taken.push(request(&mut router).await);
    }
    assert!(tokio::time::timeout(A_WHILE, router.recv()).await.is_err(), "a fifth came before an answer");
    // Another peer is not delayed.
    still_serves(&mut router).await;
    for _ in 4..20 {
        taken.remove(0).reply.send(Bytes::new()).await.unwrap();
        taken.push(request(&mut router).await);
    }
    // A dropped reply also makes room.
    taken.clear();
    peer.send(b"\x01\0\0\x04last").await;
    assert_eq!(request(&mut router).await.payload, "last");
}

#[tokio::test]
async fn a_peer_that_never_reads_its_replies_is_dropped() {
    let limits = SocketLimits { max_pipeline: 4, write_stall: Duration::from_millis(300), ..SocketLimits::default() };
    let mut router = router(limits).await;
    let mut peer = Raw::peer(router.endpoint(), "DEALER", 1).await;
    for _ in 0..4 {
        peer.send(b"\x01\0\0\x01x").await;
    }
    for _ in 0..4 {
        request(&mut router).await.reply.send(Bytes::from(vec![0; 16 << 20])).await.unwrap();
    }
    until(|| router.stats().connections == 0).await;
    assert_eq!(router.stats().violations, 1);
    still_serves(&mut router).await;
}

#[tokio::test]
async fn replies_that_nobody_reads_hold_back_the_next_requests() {
    const COUNT: usize = 200;
    let mut router = router(SocketLimits { max_pipeline: 4, ..SocketLimits::default() }).await;
    let mut peer = Raw::peer(router.endpoint(), "DEALER", 1).await;
    for _ in 0..COUNT {
        peer.send(b"\x01\0\0\x01x").await;
    }
    let payload = Bytes::from(vec![0; 1 << 20]);
    let mut taken = 0;
    while let Ok(Some(incoming)) = tokio::time::timeout(A_WHILE, router.recv()).await {
        taken += 1;
        incoming.reply.send(payload.clone()).await.unwrap();
    }
    // Enough for the system's buffers and the pipeline.
    assert!(taken < 50, "{taken} of {COUNT} replies wait in memory");
    let serving = echo(router);
    for number in 0..COUNT {
        assert_eq!(peer.message().await[1].len(), if number < taken { 1 << 20 } else { 1 });
    }
    serving.abort();
}

#[tokio::test]
async fn a_flood_of_pings_to_which_nobody_listens_ends() {
    let limits = SocketLimits { write_stall: Duration::from_millis(300), ..SocketLimits::default() };
    let mut router = router(limits).await;
    let mut peer = Raw::peer(router.endpoint(), "REQ", 1).await;
    let pings = encode_command(&Command::Ping { ttl: 0, context: Bytes::from("0123456789abcdef") }).repeat(1000);
    // The PONGs are never read. At some point, nothing more is accepted from this peer, and then it is dropped.
    within(async { while tokio::io::AsyncWriteExt::write_all(&mut peer.stream, &pings).await.is_ok() {} }).await;
    until(|| router.stats().connections == 0).await;
    still_serves(&mut router).await;
}

/// More PINGs in one read than PONGs that may wait.
#[tokio::test]
async fn a_burst_of_pings_is_answered_to_the_last() {
    let router = router(SocketLimits::default()).await;
    let mut peer = Raw::peer(router.endpoint(), "REQ", 1).await;
    let pings: Vec<u8> = (0..1000u32)
        .flat_map(|number| {
            let context = Bytes::copy_from_slice(&number.to_be_bytes());
            encode_command(&Command::Ping { ttl: 0, context })
        })
        .collect();
    peer.send(&pings).await;
    for number in 0..1000u32 {
        let context = Bytes::copy_from_slice(&number.to_be_bytes());
        assert_eq!(peer.next().await, Some(Decoded::Command(Command::Pong { context })));
    }
}

/// A reply that its peer does not accept counts as its request did.
#[tokio::test]
async fn replies_that_nobody_reads_count_as_held() {
    const REPLY: usize = 4 << 20;
    let limits = SocketLimits { max_buffered_unauthenticated: 24 << 20, ..SocketLimits::default() };
    let mut router = router(limits.clone()).await;
    let mut peers = Vec::new();
    for _ in 0..10 {
        let mut peer = Raw::peer(router.endpoint(), "DEALER", 1).await;
        peer.send(b"\x01\0\0\x01x").await;
        let asked = request(&mut router).await;
        peers.push(peer);
        asked.reply.send(Bytes::from(vec![0; REPLY])).await.unwrap();
    }
    until(|| router.stats().connections < 10).await;
    assert!(router.stats().buffered <= limits.max_buffered_unauthenticated);
    // A peer that reads gets all of the reply, and afterwards nothing counts any more.
    for mut peer in peers {
        while peer.next().await.is_some_and(|item| !matches!(item, Decoded::Message(_))) {}
    }
    until(|| router.stats().connections == 0 && router.stats().buffered == 0).await;
    still_serves(&mut router).await;
}

#[tokio::test]
async fn a_subscriber_that_takes_nothing_is_dropped_in_the_end() {
    let limits = SocketLimits { write_stall: Duration::from_millis(300), ..SocketLimits::default() };
    let publisher = publisher(limits).await;
    let mut stuck = Raw::peer(publisher.endpoint(), "SUB", 1).await;
    stuck.command(Command::Subscribe(Bytes::new())).await;
    within(publisher.wait_for_subscribers(1)).await;
    let payload = Bytes::from(vec![0; 1 << 20]);
    until(|| {
        publisher.send(vec![payload.clone()]);
        publisher.stats().connections == 0
    })
    .await;
    assert_eq!(publisher.stats().violations, 1);
}

/// A peer that has subscribed to 16 topics, which anybody can, and the heads of a message for each.
pub(super) async fn greedy(publisher: &Publisher) -> (Raw, HashMap<Bytes, Bytes>) {
    let heads: HashMap<Bytes, Bytes> =
        (0..16).map(|topic| (Bytes::from(format!("{topic:040}")), Bytes::from(vec![1; 137]))).collect();
    let mut peer = Raw::peer(publisher.endpoint(), "SUB", 1).await;
    for topic in heads.keys() {
        peer.command(Command::Subscribe(topic.clone())).await;
    }
    peer.ping().await;
    (peer, heads)
}

/// What waits for peers is the sender's own body, once for all of them and for all of their topics.
#[tokio::test]
async fn a_body_for_many_topics_is_not_copied_for_peers_that_do_not_read() {
    const PEERS: usize = 4;
    let publisher = publisher(SocketLimits::default()).await;
    let mut peers = Vec::new();
    for _ in 0..PEERS {
        peers.push(greedy(&publisher).await);
    }
    let subscribed = publisher.stats().subscribed;
    let heads = peers[0].1.clone();
    let body = Bytes::from(vec![7; 2 << 20]);
    publisher.send_each(heads.clone(), body.clone());
    // Their own parts of the messages count; the ring has given the publication to all of them then.
    until(|| publisher.stats().subscribed > subscribed + PEERS * 137).await;
    tokio::time::sleep(A_WHILE).await;
    assert!(!body.is_unique(), "copies of the body wait");
    for (peer, _) in &mut peers {
        let mut seen = HashSet::new();
        for _ in 0..heads.len() {
            let message = peer.message().await;
            assert_eq!((&heads[&message[0]], &body), (&message[1], &message[2]));
            seen.insert(message[0].clone());
        }
        assert_eq!(seen.len(), heads.len());
    }
    until(|| body.is_unique() && publisher.stats().subscribed == subscribed).await;
    assert_eq!(publisher.stats().delivered, (PEERS * heads.len()) as u64);
    // A body without bytes ends its message too.
    publisher.send_each(heads.clone(), Bytes::new());
    for _ in 0..heads.len() {
        assert_eq!(peers[0].0.message().await[2], "");
    }
}

/// A slow peer keeps only what was queued for it alive after the ring has dropped it: one batch, counted with each of
/// its topics.
#[tokio::test]
async fn a_peer_that_does_not_read_keeps_no_more_than_one_batch_alive() {
    let publisher = publisher(SocketLimits::default()).await;
    let (_peer, heads) = greedy(&publisher).await;
    let bodies: Vec<Bytes> = (0..60).map(|_| Bytes::from(vec![7; 100 << 10])).collect();
    for body in &bodies {
        publisher.send_each(heads.clone(), body.clone());
    }
    let mut delivered = u64::MAX;
    while delivered != publisher.stats().delivered {
        delivered = publisher.stats().delivered;
        tokio::time::sleep(A_WHILE).await;
    }
    // One that fills the ring alone: the others leave it.
    publisher.send(vec![Bytes::from(vec![0; 64 << 20])]);
    let alive = bodies.iter().filter(|body| !body.is_unique()).count();
    assert_eq!(alive, 1, "{:?}", publisher.stats());
}

/// The system's own buffers are in no bound of a socket and may outlive the connection.
#[tokio::test]
async fn the_system_keeps_little_for_a_peer_that_reads_nothing() {
    const LEN: usize = 16 << 10;
    const SENT: u64 = 200;
    let limits = SocketLimits { write_stall: Duration::from_secs(1), ..SocketLimits::default() };
    let publisher = publisher(limits).await;
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let port = publisher.endpoint().port().unwrap();
    let mut peer = Raw::new(within(socket.connect(([127, 0, 0, 1], port).into())).await.unwrap());
    peer.handshake("SUB", 1).await;
    peer.send(&encode_command(&Command::Subscribe(Bytes::new()))).await;
    publisher.wait_for_subscribers(1).await;
    for _ in 0..SENT {
        publisher.send(vec![Bytes::from(vec![0; LEN])]);
    }
    until(|| publisher.stats().connections == 0).await;
    let delivered = publisher.stats().delivered;
    assert!(delivered < SENT / 8, "{delivered}");
    // What was not accepted is gone with the connection.
    let mut rest = Vec::new();
    let ended = within(tokio::io::AsyncReadExt::read_to_end(&mut peer.stream, &mut rest)).await.unwrap_err();
    assert_eq!(ended.kind(), std::io::ErrorKind::ConnectionReset);
}
