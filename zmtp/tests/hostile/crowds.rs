//! Many subscriptions, many connections.

use brine_zmtp::{
    Heartbeat, PubConfig, Publisher, SocketLimits,
    frame::{Command, encode_command, encode_message},
};
use bytes::Bytes;

use super::still_serves;
use super::unread::greedy;
use crate::common::*;

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
