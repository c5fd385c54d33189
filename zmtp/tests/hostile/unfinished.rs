//! Handshakes and messages that never become whole, or are too long.

use std::time::Duration;

use brine_zmtp::{
    Heartbeat, Router, RouterConfig, SocketLimits,
    frame::{Command, encode_command, encode_message},
};
use bytes::Bytes;

use super::{long_frame, still_serves};
use crate::common::*;

#[tokio::test]
async fn one_deadline_holds_for_the_whole_handshake() {
    let mut router = router(SocketLimits { handshake: Duration::from_millis(900), ..SocketLimits::default() }).await;
    let started = std::time::Instant::now();
    // A peer that sends nothing; one that sends only a greeting; one that sends a byte now and then.
    let mut silent = Raw::connect(router.endpoint()).await;
    let mut halfway = Raw::connect(router.endpoint()).await;
    halfway.send(&greeting(1)).await;
    let mut slow = Raw::connect(router.endpoint()).await;
    let slowloris = async {
        for byte in [&greeting(1)[..], &ready("REQ")].concat() {
            tokio::time::sleep(Duration::from_millis(50)).await;
            if tokio::io::AsyncWriteExt::write_all(&mut slow.stream, &[byte]).await.is_err() {
                return;
            }
        }
        panic!("it was let through");
    };
    within(async { tokio::join!(silent.closed(), halfway.closed(), slowloris) }).await;
    assert!(started.elapsed() >= Duration::from_millis(900));
    assert_eq!(router.stats().violations, 3);
    assert_eq!(router.stats().connections, 0);
    still_serves(&mut router).await;
}

#[tokio::test]
async fn the_limit_rises_when_the_peer_is_known() {
    let limits = SocketLimits { max_message_unauthenticated: 1000, max_message: 5000, ..SocketLimits::default() };
    let mut router = router(limits).await;
    let mut known = Raw::peer(router.endpoint(), "REQ", 1).await;
    known.send(&encode_message(&[Bytes::new(), Bytes::from(vec![1; 1000])])).await;
    let incoming = request(&mut router).await;
    incoming.reply.authenticated(1);
    incoming.reply.send(Bytes::new()).await.unwrap();
    known.message().await;
    known.send(&encode_message(&[Bytes::new(), Bytes::from(vec![1; 5000])])).await;
    let incoming = request(&mut router).await;
    assert_eq!(incoming.payload.len(), 5000);
    incoming.reply.send(Bytes::new()).await.unwrap();
    known.message().await;
    known.send(&long_frame(0, 5001)).await;
    known.closed().await;

    // Another connection is still unauthenticated.
    let mut stranger = Raw::peer(router.endpoint(), "REQ", 1).await;
    stranger.send(&long_frame(0, 1001)).await;
    stranger.closed().await;
}

#[tokio::test]
async fn strangers_hold_a_bounded_amount_together() {
    const MESSAGE: u64 = 100 << 10;
    let limits = SocketLimits { max_buffered_unauthenticated: 150 << 10, ..SocketLimits::default() };
    let mut router = router(limits).await;
    let almost = [b"\x01\0", &long_frame(0, MESSAGE)[..], &vec![0; MESSAGE as usize - 1]].concat();
    let mut one = Raw::peer(router.endpoint(), "REQ", 1).await;
    one.send(&almost).await;
    until(|| router.stats().buffered == (100 << 10) - 1 - (16 << 10)).await;
    let mut two = Raw::peer(router.endpoint(), "REQ", 1).await;
    // A request that waits for its reply counts as much as an unfinished one.
    two.send(&encode_message(&[Bytes::new(), Bytes::from(vec![0; 60 << 10])])).await;
    let waiting = request(&mut router).await;
    // When there is no room, the message that has been unfinished for the longest time gives way.
    let mut three = Raw::peer(router.endpoint(), "REQ", 1).await;
    three.send(&almost).await;
    one.closed().await;
    three.send(b"\0").await;
    let large = request(&mut router).await;
    // All that is held has arrived and waits for replies, so that nothing gives way.
    let mut four = Raw::peer(router.endpoint(), "REQ", 1).await;
    // The connection may be closed before everything is sent.
    let _ = tokio::io::AsyncWriteExt::write_all(&mut four.stream, &almost).await;
    four.closed().await;
    assert_eq!(router.stats().violations, 1, "to give way is none");
    // Small requests still pass, and large ones pass again when there is room.
    still_serves(&mut router).await;
    large.reply.send(Bytes::new()).await.unwrap();
    three.message().await;
    waiting.reply.send(Bytes::new()).await.unwrap();
    two.message().await;
    let mut five = Raw::peer(router.endpoint(), "REQ", 1).await;
    five.send(&encode_message(&[Bytes::new(), Bytes::from(vec![0; MESSAGE as usize])])).await;
    request(&mut router).await.reply.send(Bytes::new()).await.unwrap();
}

/// Strangers that never finish their messages, from however many addresses, keep nobody out.
#[tokio::test]
async fn unfinished_messages_of_strangers_keep_nobody_out() {
    const MESSAGE: u64 = 100 << 10;
    let limits = SocketLimits { max_buffered_unauthenticated: 1 << 20, ..SocketLimits::default() };
    let mut router = router(limits.clone()).await;
    let almost = [b"\x01\0", &long_frame(0, MESSAGE)[..], &vec![0; MESSAGE as usize - 1]].concat();
    let mut strangers = Vec::new();
    for _ in 0..30 {
        let mut peer = Raw::peer(router.endpoint(), "REQ", 1).await;
        peer.send(&almost).await;
        strangers.push(peer);
    }
    for _ in 0..30 {
        let mut honest = Raw::peer(router.endpoint(), "REQ", 1).await;
        honest.send(&encode_message(&[Bytes::new(), Bytes::from(vec![0; MESSAGE as usize])])).await;
        request(&mut router).await.reply.send(Bytes::new()).await.unwrap();
        honest.message().await;
        assert!(router.stats().buffered <= limits.max_buffered_unauthenticated);
    }
}

/// A message has to arrive in time, in one frame or several, whether it is kept or skipped, and whatever comes between
/// its frames.
#[tokio::test]
async fn a_message_that_never_ends_is_ended() {
    const GRACE: Duration = Duration::from_millis(500);
    let limits = SocketLimits { read_grace: GRACE, max_message_unauthenticated: 1 << 20, ..SocketLimits::default() };
    let config = RouterConfig {
        limits,
        heartbeat: Heartbeat::OFF,
        too_long: Some(|_, _| Bytes::new()),
        ..RouterConfig::default()
    };
    let mut router = Router::bind(&any_port(), config).await.unwrap();
    let ping = encode_command(&Command::Ping { ttl: 0, context: Bytes::new() });
    for (begin, drip) in [
        (vec![1], &b""[..]),
        ([b"\x01\0", &long_frame(0, 1 << 20)[..], &[0; 100]].concat(), b"\0"),
        ([b"\x01\0", &long_frame(0, 2 << 20)[..], &[0; 100]].concat(), b"\0"),
        (b"\x01\0\x01\x01x".to_vec(), &ping),
    ] {
        let mut peer = Raw::peer(router.endpoint(), "REQ", 1).await;
        let started = std::time::Instant::now();
        peer.send(&begin).await;
        within(async {
            while tokio::io::AsyncWriteExt::write_all(&mut peer.stream, drip).await.is_ok()
                && router.stats().connections > 0
            {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        })
        .await;
        assert!(started.elapsed() >= GRACE);
    }
    assert_eq!((router.stats().violations, router.stats().buffered), (4, 0));
    still_serves(&mut router).await;
}

/// However many connections one identity has, it does not take what others need.
#[tokio::test]
async fn one_identity_holds_a_bounded_amount() {
    const MESSAGE: u64 = 100 << 10;
    let limits = SocketLimits {
        max_message: MESSAGE as usize,
        max_buffered: 500 << 10,
        max_message_unauthenticated: 10,
        ..SocketLimits::default()
    };
    let mut router = router(limits).await;
    let almost = [b"\x01\0", &long_frame(0, MESSAGE)[..], &vec![0; MESSAGE as usize - 1]].concat();
    let mut hostile = Vec::new();
    for _ in 0..5 {
        let mut peer = known(&mut router, 1).await;
        // The connection may be closed before everything is sent.
        let _ = tokio::io::AsyncWriteExt::write_all(&mut peer.stream, &almost).await;
        hostile.push(peer);
    }
    // Twice the longest message; without that bound, all five would hold theirs.
    until(|| router.stats().connections == 2).await;
    assert!(router.stats().buffered <= 2 * MESSAGE as usize);
    let mut other = known(&mut router, 2).await;
    other.send(&encode_message(&[Bytes::new(), Bytes::from(vec![2; MESSAGE as usize])])).await;
    let incoming = request(&mut router).await;
    assert_eq!(incoming.payload[0], 2);
    incoming.reply.send(Bytes::new()).await.unwrap();
    other.message().await;
}

/// A peer that has proved an identity.
async fn known(router: &mut Router, key: u64) -> Raw {
    let mut peer = Raw::peer(router.endpoint(), "REQ", 1).await;
    peer.send(b"\x01\0\0\x05proof").await;
    let incoming = request(router).await;
    incoming.reply.authenticated(key);
    incoming.reply.send(Bytes::new()).await.unwrap();
    peer.message().await;
    peer
}

/// The sender of a message that is too long gets a reply on the same connection, which stays open.
#[tokio::test]
async fn a_request_that_is_too_long_is_answered_where_the_router_has_an_answer() {
    let limits = SocketLimits { max_message_unauthenticated: 1000, ..SocketLimits::default() };
    let too_long = |length: u64, max: usize| Bytes::from(format!("{length} of {max}"));
    let config =
        RouterConfig { limits, heartbeat: Heartbeat::OFF, too_long: Some(too_long), ..RouterConfig::default() };
    let mut router = Router::bind(&any_port(), config).await.unwrap();
    let mut peer = Raw::peer(router.endpoint(), "REQ", 1).await;
    for len in [1001, 100_000, 3 << 20] {
        peer.send(&encode_message(&[Bytes::new(), Bytes::from(vec![7; len])])).await;
        assert_eq!(peer.message().await, frames(&["", &format!("{len} of 1000")]));
        peer.send(b"\x01\0\0\x02ok").await;
        let asked = request(&mut router).await;
        assert_eq!(asked.payload, "ok");
        asked.reply.send(Bytes::from("reply")).await.unwrap();
        assert_eq!(peer.message().await, frames(&["", "reply"]));
    }
    assert_eq!((router.stats().requests, router.stats().buffered), (3, 0));
    // An incomplete message, or one that is too long to skip, ends its connection.
    for bytes in [long_frame(1, 5000), long_frame(0, u64::MAX)] {
        let mut peer = Raw::peer(router.endpoint(), "REQ", 1).await;
        peer.send(&bytes).await;
        peer.closed().await;
    }
    still_serves(&mut router).await;
}
