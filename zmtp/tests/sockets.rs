//! The sockets against each other: their guarantees to applications.

mod common;

use std::time::Duration;

use brine_zmtp::{
    Backoff, BindError, Endpoint, Gone, Heartbeat, PubConfig, Publisher, ReqConfig, RequestError, Requester, Router,
    RouterConfig, SocketLimits, SubConfig, SubEvent, Subscriber,
    frame::{Command, Decoded},
};
use bytes::Bytes;
use common::*;
use tokio::net::TcpListener;

const QUICK_BACKOFF: Backoff =
    Backoff { initial: Duration::from_millis(10), max: Duration::from_millis(50), randomize: true };

fn requester(endpoint: &Endpoint) -> Requester {
    Requester::new(endpoint.clone(), ReqConfig { backoff: QUICK_BACKOFF, ..ReqConfig::default() })
}

fn subscriber(endpoint: &Endpoint, subscriptions: &[&str]) -> Subscriber {
    let config = SubConfig { subscriptions: frames(subscriptions), backoff: QUICK_BACKOFF, ..SubConfig::default() };
    Subscriber::connect(endpoint.clone(), config)
}

fn short() -> Duration {
    Duration::from_millis(100)
}

#[tokio::test]
async fn requests_of_every_size_over_tcp_and_ipc() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("router.ipc");
    for endpoint in [any_port(), Endpoint::ipc(&path), Endpoint::tcp("localhost", 0)] {
        let router = Router::bind(&endpoint, RouterConfig::default()).await.unwrap();
        let mut requester = requester(router.endpoint());
        let echo = echo(router);
        for size in [0, 1, 255, 256, 65_536, 1 << 20] {
            let payload = Bytes::from(vec![7; size]);
            assert_eq!(requester.request(payload.clone(), DEADLINE).await, Ok(payload));
        }
        echo.abort();
        let _ = echo.await;
    }
    assert!(!path.exists(), "a closed socket removes its file");
}

#[tokio::test]
async fn a_late_reply_is_never_taken_for_the_next() {
    let mut router = router(SocketLimits::default()).await;
    let mut requester = requester(router.endpoint());
    let error = requester.request(Bytes::from("one"), short()).await.unwrap_err();
    assert!(matches!(error, RequestError::Timeout { .. }));
    let text = error.to_string();
    assert!(text.starts_with("no reply from tcp://127.0.0.1:") && text.contains("within 100ms"), "{text}");

    let one = request(&mut router).await;
    let answering = tokio::spawn(async move {
        let two = request(&mut router).await;
        // The late reply is sent first: if any request could take it, this one would.
        let gone = one.reply.send(Bytes::from("late")).await;
        assert_ne!(two.reply.peer().connection, 0);
        two.reply.send(Bytes::from("two")).await.unwrap();
        gone
    });
    assert_eq!(requester.request(Bytes::from("two"), DEADLINE).await, Ok(Bytes::from("two")));
    assert_eq!(answering.await.unwrap(), Err(Gone));
}

#[tokio::test]
async fn a_request_that_was_given_up_is_forgotten() {
    let mut router = router(SocketLimits::default()).await;
    let mut requester = requester(router.endpoint());
    let one = tokio::select! {
        _ = requester.request(Bytes::from("one"), DEADLINE) => panic!("nobody answers"),
        one = request(&mut router) => one,
    };
    let asking = tokio::spawn(async move { requester.request(Bytes::from("two"), DEADLINE).await });
    let two = request(&mut router).await;
    assert_eq!(one.reply.send(Bytes::from("late")).await, Err(Gone));
    assert_eq!(two.payload, "two");
    two.reply.send(Bytes::from("two")).await.unwrap();
    assert_eq!(asking.await.unwrap(), Ok(Bytes::from("two")));
}

#[tokio::test]
async fn an_unasked_reply_ends_the_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut requester = requester(&Endpoint::tcp("127.0.0.1", listener.local_addr().unwrap().port()));
    let asking = tokio::spawn(async move {
        let one = requester.request(Bytes::from("one"), DEADLINE).await;
        (one, requester)
    });
    let mut server = Raw::new(within(listener.accept()).await.unwrap().0);
    server.handshake("ROUTER", 1).await;
    assert_eq!(server.message().await, frames(&["", "one"]));
    server.send(b"\x01\0\0\x04good\x01\0\0\x04evil").await;
    let (one, mut requester) = asking.await.unwrap();
    assert_eq!(one, Ok(Bytes::from("good")));
    server.closed().await;
    let asking = tokio::spawn(async move { requester.request(Bytes::from("two"), DEADLINE).await });
    let mut server = Raw::new(within(listener.accept()).await.unwrap().0);
    server.handshake("ROUTER", 1).await;
    assert_eq!(server.message().await, frames(&["", "two"]));
    server.send(b"\x01\0\0\x03two").await;
    assert_eq!(asking.await.unwrap(), Ok(Bytes::from("two")));
}

#[tokio::test]
async fn a_malformed_reply_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut requester = requester(&Endpoint::tcp("127.0.0.1", listener.local_addr().unwrap().port()));
    let asking = tokio::spawn(async move { requester.request(Bytes::from("one"), DEADLINE).await });
    let mut server = Raw::new(within(listener.accept()).await.unwrap().0);
    server.handshake("ROUTER", 1).await;
    server.message().await;
    server.send(b"\0\x03one").await;
    let error = asking.await.unwrap().unwrap_err();
    assert!(matches!(&error, RequestError::Closed { reason, .. } if reason.contains("empty frame")), "{error}");
}

#[tokio::test]
async fn a_server_that_closes_is_an_error_at_once_and_the_next_request_connects_again() {
    let mut first = router(SocketLimits::default()).await;
    let endpoint = first.endpoint().clone();
    let mut requester = requester(&endpoint);
    let asking = tokio::spawn(async move {
        let one = requester.request(Bytes::from("one"), DEADLINE).await;
        (one, requester)
    });
    let one = request(&mut first).await;
    drop(first);
    let (closed, mut requester) = asking.await.unwrap();
    assert!(matches!(closed, Err(RequestError::Closed { .. })), "{closed:?}");
    assert_eq!(one.reply.send(Bytes::new()).await, Err(Gone));

    // The connection is refused for now; the socket tries until the server is back.
    let asking = tokio::spawn(async move { requester.request(Bytes::from("two"), DEADLINE).await });
    let second = Router::bind(&endpoint, RouterConfig::default()).await.unwrap();
    let echo = echo(second);
    assert_eq!(asking.await.unwrap(), Ok(Bytes::from("two")));
    echo.abort();
}

#[tokio::test]
async fn nobody_listens() {
    let endpoint = router(SocketLimits::default()).await.endpoint().clone();
    let error = requester(&endpoint).request(Bytes::new(), short()).await.unwrap_err().to_string();
    assert!(error.contains("cannot connect: Connection refused"), "{error}");
    let endpoint = Endpoint::tcp("no-such-host.invalid", 4506);
    let error = requester(&endpoint).request(Bytes::new(), DEADLINE / 10).await.unwrap_err().to_string();
    assert!(error.contains("cannot resolve no-such-host.invalid"), "{error}");
}

#[tokio::test]
async fn a_server_that_never_shakes_hands_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = Endpoint::tcp("127.0.0.1", listener.local_addr().unwrap().port());
    let limits = SocketLimits { handshake: short(), ..SocketLimits::default() };
    let config = SubConfig { limits, backoff: QUICK_BACKOFF, ..SubConfig::default() };
    let mut subscriber = Subscriber::connect(endpoint, config);
    let SubEvent::Disconnected { reason } = within(subscriber.recv()).await else { panic!() };
    assert_eq!(reason, "no handshake within 100ms");
    // The connection is tried again.
    within(listener.accept()).await.unwrap();
    within(listener.accept()).await.unwrap();
}

#[tokio::test]
async fn the_source_address_is_used() {
    let mut router = router(SocketLimits::default()).await;
    let port = router.endpoint().port().unwrap();
    let mut requester = requester(&format!("tcp://127.0.0.2:0;127.0.0.1:{port}").parse().unwrap());
    let asking = tokio::spawn(async move { requester.request(Bytes::new(), DEADLINE).await });
    let incoming = request(&mut router).await;
    assert_eq!(incoming.reply.peer().address.unwrap().ip().to_string(), "127.0.0.2");
    incoming.reply.send(Bytes::new()).await.unwrap();
    asking.await.unwrap().unwrap();
}

#[tokio::test]
async fn subscribers_come_back_and_subscribe_again() {
    let first = publisher(SocketLimits::default()).await;
    let endpoint = first.endpoint().clone();
    let mut subscriber = subscriber(&endpoint, &["a", "b"]);
    connected(&mut subscriber).await;
    within(first.wait_for_subscribers(1)).await;
    first.send(frames(&["a1"]));
    assert_eq!(message(&mut subscriber).await, frames(&["a1"]));
    drop(first);
    assert!(matches!(within(subscriber.recv()).await, SubEvent::Disconnected { .. }));

    let second = Publisher::bind(&endpoint, PubConfig::default()).await.unwrap();
    connected(&mut subscriber).await;
    within(second.wait_for_subscribers(1)).await;
    // A later subscription counts once it is read: send until the second one is.
    until(|| {
        second.send(frames(&["b2"]));
        second.stats().delivered > 0
    })
    .await;
    assert_eq!(message(&mut subscriber).await, frames(&["b2"]));
}

#[tokio::test]
async fn publications_over_ipc_reach_who_subscribed() {
    let folder = tempfile::tempdir().unwrap();
    let endpoint = Endpoint::ipc(folder.path().join("pub.ipc"));
    let publisher = Publisher::bind(&endpoint, PubConfig::default()).await.unwrap();
    let mut all = subscriber(&endpoint, &[""]);
    let mut some = subscriber(&endpoint, &["topic"]);
    within(publisher.wait_for_subscribers(2)).await;
    publisher.send(Vec::new());
    publisher.send(frames(&["other"]));
    publisher.clone().send(frames(&["topic", "payload"]));
    assert_eq!(message(&mut all).await, frames(&["other"]));
    assert_eq!(message(&mut all).await, frames(&["topic", "payload"]));
    assert_eq!(message(&mut some).await, frames(&["topic", "payload"]));
    until(|| publisher.stats().delivered == 3).await;
    assert_eq!((publisher.stats().sent, publisher.stats().dropped), (2, 0));
    drop(some);
    until(|| publisher.stats().subscribers == 1).await;
}

#[tokio::test]
async fn a_slow_subscriber_loses_its_oldest_and_nobody_else_does() {
    const COUNT: usize = 2000;
    const HWM: usize = 50;
    let config = PubConfig { hwm: HWM, heartbeat: Heartbeat::OFF, ..PubConfig::default() };
    let publisher = Publisher::bind(&any_port(), config).await.unwrap();
    let mut fast = subscriber(publisher.endpoint(), &[""]);
    let mut slow = Raw::peer(publisher.endpoint(), "SUB", 1).await;
    slow.command(Command::Subscribe(Bytes::new())).await;
    within(publisher.wait_for_subscribers(2)).await;

    // Many times the size of the system's buffers.
    let padding = Bytes::from(vec![0; 64 << 10]);
    for number in 0..COUNT {
        publisher.send(vec![Bytes::from(number.to_string()), padding.clone()]);
        assert_eq!(message(&mut fast).await[0], number.to_string());
    }
    until(|| publisher.stats().delivered >= COUNT as u64).await;

    // Now the peer reads: the messages are in order and end with the newest.
    let mut got = Vec::new();
    while got.last() != Some(&(COUNT - 1)) {
        let number = String::from_utf8(slow.message().await[0].to_vec()).unwrap();
        got.push(number.parse::<usize>().unwrap());
    }
    let dropped = publisher.stats().dropped;
    assert!(got.is_sorted() && got.len() < COUNT);
    assert_eq!(got.len() as u64 + dropped, COUNT as u64, "what it did not get was counted");
    assert!(got[got.len() - HWM..].iter().copied().eq(COUNT - HWM..COUNT), "the newest are all there");
    assert_eq!(got[0], 0);
}

#[tokio::test]
async fn pings_are_answered_while_nobody_receives() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = Endpoint::tcp("127.0.0.1", listener.local_addr().unwrap().port());

    let _subscriber = subscriber(&endpoint, &["a", ""]);
    let mut server = Raw::new(within(listener.accept()).await.unwrap().0);
    server.handshake("PUB", 1).await;
    assert_eq!(server.next().await, Some(Decoded::Command(Command::Subscribe(Bytes::from("a")))));
    assert_eq!(server.next().await, Some(Decoded::Command(Command::Subscribe(Bytes::new()))));
    server.ping().await;

    let mut requester = requester(&endpoint);
    let asking = tokio::spawn(async move { (requester.request(Bytes::new(), DEADLINE).await, requester) });
    let mut server = Raw::new(within(listener.accept()).await.unwrap().0);
    server.handshake("ROUTER", 1).await;
    server.message().await;
    server.ping().await;
    server.send(b"\x01\0\0\0").await;
    let (reply, _requester) = asking.await.unwrap();
    assert_eq!(reply, Ok(Bytes::new()));
    server.ping().await;

    // A server for requests that its application does not receive or answer.
    let mut router = router(SocketLimits { max_queued: 1, ..SocketLimits::default() }).await;
    let mut peers = Vec::new();
    for _ in 0..3 {
        let mut peer = Raw::peer(router.endpoint(), "REQ", 1).await;
        peer.send(b"\x01\0\0\0").await;
        peer.ping().await;
        peers.push(peer);
    }
    request(&mut router).await.reply.send(Bytes::new()).await.unwrap();
}

#[tokio::test]
async fn peers_of_zmtp_3_0_get_subscriptions_as_messages() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let _subscriber = subscriber(&Endpoint::tcp("127.0.0.1", listener.local_addr().unwrap().port()), &["a"]);
    let mut server = Raw::new(within(listener.accept()).await.unwrap().0);
    server.handshake("PUB", 0).await;
    assert_eq!(server.message().await, frames(&["\x01a"]));

    let publisher = publisher(SocketLimits::default()).await;
    let mut peer = Raw::peer(publisher.endpoint(), "SUB", 0).await;
    peer.send(b"\0\x02\x01a").await;
    within(publisher.wait_for_subscribers(1)).await;
    publisher.send(frames(&["ab"]));
    assert_eq!(peer.message().await, frames(&["ab"]));
    peer.send(b"\0\x02\0a").await;
    until(|| publisher.stats().subscribers == 0).await;
}

#[tokio::test]
async fn who_does_not_answer_pings_is_dropped_and_who_does_stays() {
    let heartbeat = Heartbeat { interval: Some(Duration::from_millis(20)), timeout: Duration::from_secs(1) };
    let router = Router::bind(&any_port(), RouterConfig { heartbeat, ..RouterConfig::default() }).await.unwrap();
    let publisher = Publisher::bind(&any_port(), PubConfig { heartbeat, ..PubConfig::default() }).await.unwrap();
    for (endpoint, socket_type) in [(router.endpoint(), "REQ"), (publisher.endpoint(), "SUB")] {
        let mut good = Raw::peer(endpoint, socket_type, 1).await;
        let mut silent = Raw::peer(endpoint, socket_type, 1).await;
        let answering = tokio::spawn(async move {
            let mut answered = 0;
            while let Some(item) = good.next().await {
                assert_eq!(item, Decoded::Command(Command::Ping { ttl: 0, context: Bytes::new() }));
                good.command(Command::Pong { context: Bytes::new() }).await;
                answered += 1;
                if answered == 15 {
                    return good;
                }
            }
            panic!("dropped after {answered} answers");
        });
        silent.closed().await;
        answering.await.unwrap();
    }
    until(|| router.stats().violations == 1 && publisher.stats().violations == 1).await;
}

#[tokio::test]
async fn clients_drop_a_silent_server() {
    let heartbeat = Heartbeat { interval: Some(Duration::from_millis(20)), timeout: Duration::from_millis(50) };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = Endpoint::tcp("127.0.0.1", listener.local_addr().unwrap().port());
    let mut subscriber = Subscriber::connect(endpoint, SubConfig { heartbeat, ..SubConfig::default() });
    let mut server = Raw::new(within(listener.accept()).await.unwrap().0);
    server.handshake("PUB", 1).await;
    connected(&mut subscriber).await;
    let SubEvent::Disconnected { reason } = within(subscriber.recv()).await else { panic!() };
    assert!(reason.starts_with("nothing came from the peer for "), "{reason}");
}

#[tokio::test]
async fn a_subscriber_that_does_not_receive_holds_a_bounded_number() {
    let publisher = publisher(SocketLimits::default()).await;
    let limits = SocketLimits { max_queued: 4, ..SocketLimits::default() };
    let config = SubConfig { subscriptions: frames(&[""]), limits, ..SubConfig::default() };
    let mut subscriber = Subscriber::connect(publisher.endpoint().clone(), config);
    connected(&mut subscriber).await;
    within(publisher.wait_for_subscribers(1)).await;
    let padding = Bytes::from(vec![0; 256 << 10]);
    until(|| {
        publisher.send(vec![padding.clone()]);
        publisher.stats().dropped > 0
    })
    .await;
    // The socket still works, and receives what is sent now.
    assert_eq!(message(&mut subscriber).await, [padding]);
}

#[tokio::test]
async fn closing_a_router_lets_replies_out_and_nothing_in() {
    let mut router = router(SocketLimits::default()).await;
    let endpoint = router.endpoint().clone();
    let mut one = Raw::peer(&endpoint, "REQ", 1).await;
    let mut two = Raw::peer(&endpoint, "REQ", 1).await;
    one.send(b"\x01\0\0\x03one").await;
    let incoming = request(&mut router).await;
    two.send(b"\x01\0\0\x03two").await;
    two.ping().await;
    let closing = tokio::spawn(router.close(DEADLINE));
    two.closed().await;
    assert!(tokio::net::TcpStream::connect(("127.0.0.1", endpoint.port().unwrap())).await.is_err());
    // Larger than the system's buffers, so the sender has to wait.
    incoming.reply.send(Bytes::from(vec![1; 20 << 20])).await.unwrap();
    assert_eq!(one.message().await[1].len(), 20 << 20);
    one.closed().await;
    within(closing).await.unwrap();
}

#[tokio::test]
async fn closing_ends_after_its_grace() {
    let mut router = router(SocketLimits::default()).await;
    let mut peer = Raw::peer(router.endpoint(), "REQ", 1).await;
    peer.send(b"\x01\0\0\0").await;
    let incoming = request(&mut router).await;
    within(router.close(short())).await;
    peer.closed().await;
    assert_eq!(incoming.reply.send(Bytes::new()).await, Err(Gone));
}

#[tokio::test]
async fn closing_a_publisher_lets_publications_out() {
    let publisher = publisher(SocketLimits::default()).await;
    let mut peer = Raw::peer(publisher.endpoint(), "SUB", 1).await;
    peer.command(Command::Subscribe(Bytes::new())).await;
    within(publisher.wait_for_subscribers(1)).await;
    let clone = publisher.clone();
    for _ in 0..50 {
        publisher.send(vec![Bytes::from(vec![0; 256 << 10])]);
    }
    let closing = tokio::spawn(publisher.close(DEADLINE));
    for _ in 0..50 {
        peer.message().await;
    }
    peer.closed().await;
    within(closing).await.unwrap();
    clone.send(frames(&["nobody hears"]));
    assert_eq!(clone.stats().connections, 0);
}

#[tokio::test]
async fn an_address_in_use_says_so() {
    let router = router(SocketLimits::default()).await;
    let error = Router::bind(router.endpoint(), RouterConfig::default()).await.unwrap_err();
    assert_eq!(error.to_string(), format!("cannot bind {}: Address already in use (os error 98)", router.endpoint()));
    let endpoint = Endpoint::tcp("no-such-host.invalid", 0);
    let error = Publisher::bind(&endpoint, PubConfig::default()).await.unwrap_err();
    assert!(matches!(error, BindError::Resolve { .. }), "{error}");
}
