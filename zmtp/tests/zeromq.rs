//! Every socket type against the `zeromq` crate, a second independent implementation. It speaks ZMTP 3.0: subscriptions
//! are messages, and it has no PING.
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod common;

use brine_zmtp::{ReqConfig, Requester, SubConfig, Subscriber};
use bytes::Bytes;
use common::*;
use zeromq::{Socket, SocketRecv, SocketSend, ZmqMessage};

fn zmq_message(frames: &[&str]) -> ZmqMessage {
    let frames: Vec<Bytes> = common::frames(frames);
    ZmqMessage::try_from(frames).unwrap()
}

#[tokio::test]
async fn router_answers_req() {
    let router = router(brine_zmtp::SocketLimits::default()).await;
    let mut req = zeromq::ReqSocket::new();
    within(req.connect(&router.endpoint().to_string())).await.unwrap();
    let echo = echo(router);
    for size in [0, 1, 255, 256, 100_000] {
        let payload = "x".repeat(size);
        within(req.send(ZmqMessage::from(payload.clone()))).await.unwrap();
        assert_eq!(within(req.recv()).await.unwrap().into_vec(), [payload]);
    }
    echo.abort();
}

#[tokio::test]
async fn publisher_sends_sub_what_it_subscribed_to() {
    let publisher = publisher(brine_zmtp::SocketLimits::default()).await;
    let mut sub = zeromq::SubSocket::new();
    within(sub.connect(&publisher.endpoint().to_string())).await.unwrap();
    within(sub.subscribe("a")).await.unwrap();
    within(publisher.wait_for_subscribers(1)).await;
    publisher.send(frames(&["b", "no"]));
    publisher.send(frames(&["abc", "yes"]));
    assert_eq!(within(sub.recv()).await.unwrap().into_vec(), frames(&["abc", "yes"]));
    within(sub.unsubscribe("a")).await.unwrap();
    until(|| publisher.stats().subscribers == 0).await;
}

#[tokio::test]
async fn subscriber_gets_what_pub_sends() {
    let mut publisher = zeromq::PubSocket::new();
    let endpoint = within(publisher.bind("tcp://127.0.0.1:0")).await.unwrap().to_string();
    let config = SubConfig { subscriptions: vec![Bytes::from("a")], ..SubConfig::default() };
    let mut subscriber = Subscriber::connect(endpoint.parse().unwrap(), config);
    connected(&mut subscriber).await;
    // This PUB does not report that it has read a subscription: send until a message arrives.
    let mut number = 0;
    let first = within(async {
        loop {
            number += 1;
            publisher.send(zmq_message(&["abc", &number.to_string()])).await.unwrap();
            publisher.send(zmq_message(&["b"])).await.unwrap();
            if let Ok(frames) = tokio::time::timeout(A_WHILE, message(&mut subscriber)).await {
                return frames;
            }
        }
    })
    .await;
    assert_eq!(first, frames(&["abc", &number.to_string()]));
    publisher.send(zmq_message(&["a"])).await.unwrap();
    assert_eq!(message(&mut subscriber).await, frames(&["a"]));
}

#[tokio::test]
async fn requester_asks_rep() {
    let mut rep = zeromq::RepSocket::new();
    let endpoint = within(rep.bind("tcp://127.0.0.1:0")).await.unwrap().to_string();
    let answering = tokio::spawn(async move {
        while let Ok(message) = rep.recv().await {
            rep.send(message).await.unwrap();
        }
    });
    let mut requester = Requester::new(endpoint.parse().unwrap(), ReqConfig::default());
    for payload in ["one", "", "three"] {
        assert_eq!(requester.request(Bytes::from(payload), DEADLINE).await.unwrap(), payload);
    }
    answering.abort();
}
