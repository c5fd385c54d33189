//! What peers say that is no ZMTP, or not in its place.

use std::time::Duration;

use brine_zmtp::{
    Heartbeat, Router, RouterConfig, SocketLimits,
    frame::{Command, Decoded, encode_message},
};
use bytes::Bytes;

use super::{long_frame, still_serves};
use crate::common::*;

#[tokio::test]
async fn who_does_not_speak_zmtp_is_closed_at_once() {
    // The connection is not closed by the deadline, which is later than the test's.
    let mut router = router(SocketLimits { handshake: 2 * DEADLINE, ..SocketLimits::default() }).await;
    let mut curve = greeting(1);
    curve[12..17].copy_from_slice(b"CURVE");
    let openings = [
        b"GET / HTTP/1.1\r\nHost: salt\r\n\r\n".to_vec(),
        vec![0; 64],
        // ZMTP 2.
        b"\xff\0\0\0\0\0\0\0\x01\x7f\x01".to_vec(),
        curve.to_vec(),
        vec![0xff; 100_000],
    ];
    let count = openings.len() as u64;
    for opening in openings {
        let mut peer = Raw::connect(router.endpoint()).await;
        // The connection may be closed before everything is sent.
        let _ = tokio::io::AsyncWriteExt::write_all(&mut peer.stream, &opening).await;
        peer.closed().await;
    }
    until(|| router.stats().violations == count).await;
    still_serves(&mut router).await;
}

#[tokio::test]
async fn a_handshake_that_is_not_ready_is_closed_at_once() {
    // The connection is not closed by the deadline, which is later than the test's.
    let mut router = router(SocketLimits { handshake: 2 * DEADLINE, ..SocketLimits::default() }).await;
    let endless = [b"\x04\xff\x05READY".to_vec(), b"\x01a\0\0\0\0".repeat(41), vec![0; 3]].concat();
    for second in [
        // Another command than READY.
        b"\x04\x07\x04PING\0\0".to_vec(),
        b"\x01\0\0\x01x".to_vec(),
        b"\x04\x04\x03BAD".to_vec(),
        // READY with the wrong socket type.
        ready("PUB").to_vec(),
        ready("").to_vec(),
        ready("REQ\0").to_vec(),
        endless,
        b"\x04\x0a\x05READY\xff\xff\xff\xff".to_vec(),
        b"\x04\x0f\x05READY\x04aaaa\xff\xff\xff\xff".to_vec(),
        // A command that claims to be READY and is too long.
        long_frame(4, 4097),
        long_frame(4, u64::MAX),
    ] {
        let mut peer = Raw::connect(router.endpoint()).await;
        peer.send(&greeting(1)).await;
        peer.send(&second).await;
        peer.closed().await;
    }
    still_serves(&mut router).await;
}

#[tokio::test]
async fn the_wrong_kind_of_socket_is_told() {
    let publisher = publisher(SocketLimits::default()).await;
    let mut peer = Raw::connect(publisher.endpoint()).await;
    peer.send(&greeting(1)).await;
    peer.send(&ready("REQ")).await;
    let mut theirs = [0; 64];
    within(tokio::io::AsyncReadExt::read_exact(&mut peer.stream, &mut theirs)).await.unwrap();
    assert!(matches!(peer.next().await, Some(Decoded::Command(Command::Ready(_)))));
    assert_eq!(peer.next().await, Some(Decoded::Command(Command::Error(Bytes::from("Invalid socket type")))));
    peer.closed().await;
}

#[tokio::test]
async fn frames_over_the_limits_are_refused_by_their_header() {
    let limits = SocketLimits { max_message_unauthenticated: 1000, max_frames: 4, ..SocketLimits::default() };
    let mut router = router(limits).await;
    for bytes in [
        long_frame(0, u64::MAX),
        long_frame(0, i64::MAX as u64),
        long_frame(0, 1001),
        // Each frame is small enough, but the message is not.
        [b"\x01\x01x".to_vec(), long_frame(0, 1000)].concat(),
        b"\x01\0".repeat(5),
        long_frame(4, 4097),
        long_frame(4, u64::MAX),
        vec![0x08],
        vec![0x05],
        vec![0xff; 9],
    ] {
        let mut peer = Raw::peer(router.endpoint(), "REQ", 1).await;
        peer.send(&bytes).await;
        peer.closed().await;
    }
    until(|| router.stats().violations == 10).await;
    still_serves(&mut router).await;
}

#[tokio::test]
async fn malformed_commands_are_refused_and_unknown_ones_ignored() {
    let mut router = router(SocketLimits::default()).await;
    for body in [
        &b""[..],
        b"\0",
        b"\x05PING",
        b"\xffPING",
        b"\x04PI\0G\0\0",
        b"\x04\xff\xff\xff\xff\0\0",
        b"\x04PING",
        b"\x04PING\0\x000123456789abcdefg",
        b"\x04PONG0123456789abcdefg",
        b"\x05ERROR\xffno",
        b"\x05READY",
    ] {
        let mut peer = Raw::peer(router.endpoint(), "REQ", 1).await;
        peer.send(&[4, u8::try_from(body.len()).unwrap()]).await;
        peer.send(body).await;
        peer.closed().await;
    }
    let mut peer = Raw::peer(router.endpoint(), "REQ", 1).await;
    for command in
        [&b"\x04\x06\x05LEAVE"[..], b"\x04\x0a\x04JOINgroup", b"\x04\x0b\x09SUBSCRIBEx", b"\x04\x07\x06CANCEL"]
    {
        peer.send(command).await;
    }
    peer.command(Command::Ping { ttl: 0, context: Bytes::from("0123456789abcdef") }).await;
    let pong = Command::Pong { context: Bytes::from("0123456789abcdef") };
    assert_eq!(peer.next().await, Some(Decoded::Command(pong)));
    still_serves(&mut router).await;
}

#[tokio::test]
async fn messages_of_other_shapes_are_dropped_and_counted() {
    let mut router = router(SocketLimits::default()).await;
    let mut peer = Raw::peer(router.endpoint(), "DEALER", 1).await;
    for message in
        [&["payload"][..], &[""], &["x", "payload"], &["", "payload", ""], &["", "", "payload"], &["", "", ""]]
    {
        peer.send(&encode_message(&frames(message))).await;
    }
    peer.send(&encode_message(&frames(&["", "good"]))).await;
    assert_eq!(request(&mut router).await.payload, "good");
    assert_eq!((router.stats().malformed, router.stats().violations), (6, 0));
    peer.ping().await;
}

#[tokio::test]
async fn a_thousand_peers_that_say_anything() {
    let mut router = router(SocketLimits::default()).await;
    for seed in 0..1000u64 {
        let mut peer = Raw::connect(router.endpoint()).await;
        // A xorshift generator with a fixed sequence.
        let mut state = seed * 2_654_435_761 + 1;
        let noise: Vec<u8> = (0..200)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state.to_le_bytes()[0] & if seed % 2 == 0 { 0x07 } else { 0xff }
            })
            .collect();
        if seed % 4 > 0 {
            let _ = tokio::io::AsyncWriteExt::write_all(&mut peer.stream, &greeting(1)).await;
            let _ = tokio::io::AsyncWriteExt::write_all(&mut peer.stream, &ready("REQ")).await;
        }
        let _ = tokio::io::AsyncWriteExt::write_all(&mut peer.stream, &noise).await;
    }
    still_serves(&mut router).await;
    until(|| router.stats().connections == 0).await;
}

#[tokio::test]
async fn a_peer_with_zmtp_3_0_is_never_asked() {
    let heartbeat = Heartbeat { interval: Some(Duration::from_millis(10)), timeout: Duration::from_millis(10) };
    let router = Router::bind(&any_port(), RouterConfig { heartbeat, ..RouterConfig::default() }).await.unwrap();
    let mut old = Raw::peer(router.endpoint(), "REQ", 0).await;
    let mut new = Raw::peer(router.endpoint(), "REQ", 1).await;
    // The new connection is tried and dropped within the time in which the old one receives nothing.
    assert!(matches!(new.next().await, Some(Decoded::Command(Command::Ping { .. }))));
    new.closed().await;
    old.ping().await;
}
