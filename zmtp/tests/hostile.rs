//! Peers that violate the protocol: each loses its connection, and no other peer is affected.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod common;

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use brine_zmtp::{
    Heartbeat, PubConfig, Publisher, Router, RouterConfig, SocketLimits,
    frame::{Command, Decoded, encode_command, encode_message},
};
use bytes::Bytes;
use common::*;

/// The end of every test: an honest peer is served.
async fn still_serves(router: &mut Router) {
    let mut honest = Raw::peer(router.endpoint(), "REQ", 1).await;
    honest.send(b"\x01\0\0\x06honest").await;
    let incoming = loop {
        let incoming = request(router).await;
        if incoming.payload == "honest" {
            break incoming;
        }
    };
    incoming.reply.send(Bytes::from("reply")).await.unwrap();
    assert_eq!(honest.message().await, frames(&["", "reply"]));
}

fn long_frame(flags: u8, length: u64) -> Vec<u8> {
    [&[flags | 2][..], &length.to_be_bytes()].concat()
}

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

#[tokio::test]
async fn subscription_floods_are_refused() {
    let limits = SocketLimits { max_subscriptions: 100, max_subscription_len: 64, ..SocketLimits::default() };
    let publisher = publisher(limits).await;
    let mut honest = Raw::peer(publisher.endpoint(), "SUB", 1).await;
    honest.command(Command::Subscribe(Bytes::from(vec![b'h'; 64]))).await;
    for minor in [0, 1] {
        let subscribe = |prefix: &[u8]| match minor {
            0 => encode_message(&[[&[1], prefix].concat().into()]),
            _ => encode_command(&Command::Subscribe(Bytes::copy_from_slice(prefix))),
        };
        // One subscription too many.
        let mut peer = Raw::peer(publisher.endpoint(), "SUB", minor).await;
        for number in 0..100u32 {
            peer.send(&subscribe(&number.to_be_bytes())).await;
        }
        peer.ping().await;
        // A repeated subscription takes no space.
        for _ in 0..1000 {
            peer.send(&subscribe(&[0; 4])).await;
        }
        peer.ping().await;
        peer.send(&subscribe(b"one more")).await;
        peer.closed().await;
        // One byte too long.
        let mut peer = Raw::peer(publisher.endpoint(), "SUB", minor).await;
        peer.send(&subscribe(&[0; 65])).await;
        peer.closed().await;
        // Too many frames for a subscription.
        let mut peer = Raw::peer(publisher.endpoint(), "SUB", minor).await;
        peer.send(&b"\x01\0".repeat(65)).await;
        peer.closed().await;
    }
    until(|| publisher.stats().subscribers == 1).await;
    // Other messages are ignored, and so is the cancellation of an unknown subscription.
    honest.send(b"\0\x01x\0\0\x01\x01\x01\0\x01\x01\0\x02\0x").await;
    honest.command(Command::Cancel(Bytes::from("never"))).await;
    honest.ping().await;
    publisher.send(vec![Bytes::from(vec![b'h'; 65])]);
    assert_eq!(honest.message().await[0].len(), 65);
}

/// However many connections an unknown peer has, their subscriptions stay within one budget, subscriptions of ordinary
/// size are not affected, and the budget is free again when the peer has left.
#[tokio::test]
async fn subscriptions_of_all_peers_share_a_budget() {
    const PEERS: usize = 60;
    let limits = SocketLimits { max_subscribed: 64 << 10, ..SocketLimits::default() };
    let publisher = publisher(limits.clone()).await;
    let mut honest = Raw::peer(publisher.endpoint(), "SUB", 1).await;
    for topic in ["0123456789".repeat(4), "9876543210".repeat(4), "broadcast".to_owned()] {
        honest.command(Command::Subscribe(topic.into())).await;
    }
    let mut strangers = Vec::new();
    for minor in [0, 1].repeat(PEERS / 2) {
        let mut peer = Raw::peer(publisher.endpoint(), "SUB", minor).await;
        for number in 0..limits.max_subscriptions {
            let mut topic = vec![7; limits.max_subscription_len - 1];
            topic.push(u8::try_from(number).unwrap());
            let subscribe = match minor {
                0 => encode_message(&[[vec![1], topic].concat().into()]),
                _ => encode_command(&Command::Subscribe(topic.into())),
            };
            // The connection may be closed before everything is sent.
            let _ = tokio::io::AsyncWriteExt::write_all(&mut peer.stream, &subscribe).await;
        }
        strangers.push(peer);
    }
    until(|| publisher.stats().connections < PEERS / 2).await;
    assert!(publisher.stats().subscribed <= limits.max_subscribed);
    assert!(publisher.stats().subscribed > limits.max_subscribed / 2, "{:?}", publisher.stats());
    // A later peer is still served.
    let mut late = Raw::peer(publisher.endpoint(), "SUB", 1).await;
    late.command(Command::Subscribe(Bytes::from("broadcast"))).await;
    late.ping().await;
    honest.ping().await;
    publisher.send(frames(&["broadcast", "x"]));
    for peer in [&mut honest, &mut late] {
        assert_eq!(peer.message().await, frames(&["broadcast", "x"]));
    }
    drop(strangers);
    until(|| publisher.stats().subscribed == 0 && publisher.stats().connections == 2).await;
    // Cancelled subscriptions free their space too.
    let topic = Bytes::from(vec![1; limits.max_subscription_len]);
    for _ in 0..1_000 {
        late.command(Command::Subscribe(topic.clone())).await;
        late.command(Command::Cancel(topic.clone())).await;
    }
    late.ping().await;
    assert_eq!(publisher.stats().subscribed, 0);
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
async fn greedy(publisher: &Publisher) -> (Raw, HashMap<Bytes, Bytes>) {
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

/// The parts of messages that wait for one peer alone are bounded together, and peers with a minion's topics are not
/// affected.
#[tokio::test]
async fn what_waits_for_one_peer_alone_shares_the_budget_for_subscriptions() {
    const PEERS: usize = 40;
    let limits = SocketLimits { max_subscribed: 128 << 10, ..SocketLimits::default() };
    let publisher = publisher(limits.clone()).await;
    let mut strangers = Vec::new();
    for _ in 0..PEERS {
        strangers.push(greedy(&publisher).await);
    }
    let mut minion = Raw::peer(publisher.endpoint(), "SUB", 1).await;
    let heads = strangers[0].1.clone();
    let topic = heads.keys().next().unwrap();
    for topic in [topic.clone(), Bytes::from("broadcast")] {
        minion.command(Command::Subscribe(topic)).await;
    }
    minion.ping().await;
    publisher.send_each(heads.clone(), Bytes::from(vec![7; 1 << 20]));
    until(|| publisher.stats().connections < PEERS).await;
    assert!(publisher.stats().subscribed <= limits.max_subscribed);
    for _ in 0..3 {
        assert_eq!(minion.message().await[0], topic);
        publisher.send_each(heads.clone(), Bytes::from(vec![7; 1 << 20]));
    }
}

#[tokio::test]
async fn connections_over_the_limit_are_closed_at_once() {
    let limits = SocketLimits { max_connections: 3, ..SocketLimits::default() };
    let publisher = Publisher::bind(&any_port(), PubConfig { limits, ..PubConfig::default() }).await.unwrap();
    let mut kept = Vec::new();
    for _ in 0..3 {
        let mut peer = Raw::peer(publisher.endpoint(), "SUB", 1).await;
        peer.send(&encode_command(&Command::Subscribe(Bytes::new()))).await;
        kept.push(peer);
    }
    publisher.wait_for_subscribers(3).await;
    for _ in 0..5 {
        Raw::connect(publisher.endpoint()).await.closed().await;
    }
    assert_eq!((publisher.stats().refused, publisher.stats().accepted), (5, 3));
    kept.pop();
    until(|| publisher.stats().connections == 2).await;
    Raw::peer(publisher.endpoint(), "SUB", 1).await;
}

/// Also where all of them are of this host, which has no limits by address: whoever has something to say gets a place.
#[tokio::test]
async fn connections_that_say_nothing_keep_nobody_out() {
    let mut router = router(SocketLimits { max_connections: 3, ..SocketLimits::default() }).await;
    let mut silent = Vec::new();
    for n in 0..12 {
        silent.push(if n % 2 == 0 {
            Raw::connect(router.endpoint()).await
        } else {
            Raw::peer(router.endpoint(), "REQ", 1).await
        });
        still_serves(&mut router).await;
    }
    assert_eq!(router.stats().refused, 0);
    until(|| router.stats().connections <= 3).await;
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

/// Everything that a peer sends, cut off at every byte.
#[tokio::test]
async fn peers_that_leave_at_any_moment_leave_nothing_behind() {
    let mut router = router(SocketLimits::default()).await;
    let config = PubConfig { heartbeat: Heartbeat::default(), ..PubConfig::default() };
    let publisher = Publisher::bind(&any_port(), config).await.unwrap();
    let ping = encode_command(&Command::Ping { ttl: 0, context: Bytes::from("context") });
    let request = encode_message(&frames(&["", "cut off"]));
    let subscribe = encode_command(&Command::Subscribe(Bytes::from("topic")));
    for (endpoint, said) in [
        (router.endpoint(), [&greeting(1)[..], &ready("REQ"), &ping, &request].concat()),
        (publisher.endpoint(), [&greeting(0)[..], &ready("SUB"), &ping, &subscribe].concat()),
    ] {
        for len in 0..=said.len() {
            let mut peer = Raw::connect(endpoint).await;
            peer.send(&said[..len]).await;
        }
    }
    still_serves(&mut router).await;
    until(|| router.stats().connections == 0 && publisher.stats().connections == 0).await;
    assert_eq!((router.stats().violations, publisher.stats().subscribers), (0, 0));
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
