//! Every socket type against libzmq, which every Python Salt uses.
//!
//! `BRINE_PYTHON` names a Python with pyzmq; the default is `python3`.

mod common;

use std::time::Duration;

use brine_zmtp::{
    Endpoint, Heartbeat, PubConfig, Publisher, ReqConfig, Requester, Router, RouterConfig, SubConfig, Subscriber,
};
use bytes::Bytes;
use common::*;

/// A heartbeat that is fast enough for several rounds in a test.
const QUICK: Heartbeat = Heartbeat { interval: Some(Duration::from_millis(50)), timeout: Duration::from_secs(10) };

fn ipc(folder: &tempfile::TempDir) -> Endpoint {
    Endpoint::ipc(folder.path().join("zmtp.ipc"))
}

#[tokio::test]
async fn router_answers_req() {
    if skip_pyzmq() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for endpoint in [any_port(), ipc(&folder)] {
        let router =
            Router::bind(&endpoint, RouterConfig { heartbeat: QUICK, ..RouterConfig::default() }).await.unwrap();
        let program = r"
req = sock(zmq.REQ)
req.connect(endpoint)
for size in (0, 1, 255, 256, 70000, 1000000):
    req.send(b'x' * size)
    assert req.recv() == b'x' * size
say('ok')
";
        let mut python = Python::start(program, &router.endpoint().to_string());
        let echo = echo(router);
        assert_eq!(python.line().await, "ok");
        python.done().await;
        echo.abort();
    }
}

#[tokio::test]
async fn router_takes_peers_with_the_same_identity_and_answers_each() {
    if skip_pyzmq() {
        return;
    }
    let mut router = router(brine_zmtp::SocketLimits::default()).await;
    let program = r"
peers = [sock(zmq.REQ, IDENTITY=b'salt-req/minion/m1/1/1') for _ in range(3)]
for number, peer in enumerate(peers):
    peer.connect(endpoint)
    peer.send(b'%d' % number)
for number, peer in enumerate(peers):
    assert peer.recv() == b'reply %d' % number
say('ok')
";
    let mut python = Python::start(program, &router.endpoint().to_string());
    let mut requests = Vec::new();
    for _ in 0..3 {
        requests.push(request(&mut router).await);
    }
    for incoming in requests.into_iter().rev() {
        let reply = [b"reply ", &incoming.payload[..]].concat();
        incoming.reply.send(reply.into()).await.unwrap();
    }
    assert_eq!(python.line().await, "ok");
    python.done().await;
}

#[tokio::test]
async fn router_answers_dealers_that_pipeline() {
    if skip_pyzmq() {
        return;
    }
    let router = router(brine_zmtp::SocketLimits::default()).await;
    let program = r"
dealer = sock(zmq.DEALER)
dealer.connect(endpoint)
for number in range(200): dealer.send_multipart([b'', b'%d' % number])
got = sorted(int(dealer.recv_multipart()[1]) for _ in range(200))
assert got == list(range(200)), got
say('ok')
";
    let mut python = Python::start(program, &router.endpoint().to_string());
    let echo = echo(router);
    assert_eq!(python.line().await, "ok");
    python.done().await;
    echo.abort();
}

/// libzmq drops a peer that does not answer its PINGs; the monitor reports that.
#[tokio::test]
async fn our_pong_answers_libzmq() {
    if skip_pyzmq() {
        return;
    }
    let router = router(brine_zmtp::SocketLimits::default()).await;
    let publisher = publisher(brine_zmtp::SocketLimits::default()).await;
    let program = r"
from zmq.utils.monitor import recv_monitor_message
beat = dict(HEARTBEAT_IVL=50, HEARTBEAT_TIMEOUT=800, HEARTBEAT_TTL=900)
router, publisher = endpoint.split()
req, sub = sock(zmq.REQ, **beat), sock(zmq.SUB, SUBSCRIBE=b'', **beat)
for s, e in ((req, router), (sub, publisher)):
    monitor = s.get_monitor_socket(zmq.EVENT_DISCONNECTED)
    s.connect(e)
    s.monitored = monitor
say(sub.recv().decode())
assert not req.monitored.poll(1800), recv_monitor_message(req.monitored)
assert not sub.monitored.poll(1), recv_monitor_message(sub.monitored)
req.send(b'still here')
say(req.recv().decode())
";
    let program = program.replace("s.monitored = monitor", "mon[s] = monitor").replace("req.monitored", "mon[req]");
    let program = program.replace("sub.monitored", "mon[sub]").replace("req, sub = sock", "mon = {}\nreq, sub = sock");
    let mut python = Python::start(&program, &format!("{} {}", router.endpoint(), publisher.endpoint()));
    let echo = echo(router);
    within(publisher.wait_for_subscribers(1)).await;
    publisher.send(frames(&["hello"]));
    assert_eq!(python.line().await, "hello");
    assert_eq!(python.line().await, "still here");
    python.done().await;
    echo.abort();
}

#[tokio::test]
async fn publisher_sends_sub_what_it_subscribed_to() {
    if skip_pyzmq() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for endpoint in [any_port(), ipc(&folder)] {
        let publisher =
            Publisher::bind(&endpoint, PubConfig { heartbeat: QUICK, ..PubConfig::default() }).await.unwrap();
        let program = r"
sub = sock(zmq.SUB, SUBSCRIBE=b'a', IDENTITY=b'm1')
sub.setsockopt(zmq.SUBSCRIBE, b'bc')
sub.connect(endpoint)
for _ in range(3): say(sub.recv_multipart())
sub.setsockopt(zmq.UNSUBSCRIBE, b'a')
sub.setsockopt(zmq.UNSUBSCRIBE, b'bc')
hear()
";
        let mut python = Python::start(program, &publisher.endpoint().to_string());
        // Both subscriptions arrive in one write or in two: poll until the second one is there.
        within(publisher.wait_for_subscribers(1)).await;
        publisher.send(frames(&["abc", "one"]));
        assert_eq!(python.line().await, "[b'abc', b'one']");
        publisher.send(frames(&["b", "not for it"]));
        publisher.send(frames(&["bcd"]));
        assert_eq!(python.line().await, "[b'bcd']");
        publisher.send(frames(&["a", "", "three"]));
        assert_eq!(python.line().await, "[b'a', b'', b'three']");
        until(|| publisher.stats().subscribers == 0).await;
        assert_eq!(publisher.stats().connections, 1);
        python.say("end").await;
        python.done().await;
        until(|| publisher.stats().connections == 0).await;
    }
}

#[tokio::test]
async fn subscriber_gets_what_pub_sends() {
    if skip_pyzmq() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for endpoint in ["tcp://127.0.0.1:*".to_owned(), ipc(&folder).to_string()] {
        // Salt 3008's heartbeats, faster.
        let program = r"
pub = sock(zmq.XPUB, HEARTBEAT_IVL=50, HEARTBEAT_TIMEOUT=800)
pub.bind(endpoint)
say(pub.getsockopt_string(zmq.LAST_ENDPOINT))
say(pub.recv(), pub.recv())
pub.send_multipart([b'topic', b'payload'])
pub.send(b'topic only')
pub.send(b'other')
assert not pub.poll(1800), pub.recv()
pub.send(b'x' * 300000 + b'end')
hear()
";
        let mut python = Python::start(program, &endpoint);
        let endpoint = python.line().await.parse().unwrap();
        let subscriptions = vec![Bytes::from("topic"), Bytes::from("x")];
        let config =
            SubConfig { subscriptions, identity: Some(Bytes::from("m1")), heartbeat: QUICK, ..SubConfig::default() };
        let mut subscriber = Subscriber::connect(endpoint, config);
        connected(&mut subscriber).await;
        assert_eq!(python.line().await, r"b'\x01topic' b'\x01x'");
        assert_eq!(message(&mut subscriber).await, frames(&["topic", "payload"]));
        assert_eq!(message(&mut subscriber).await, frames(&["topic only"]));
        // XPUB would have reported a lost subscription: PING and PONG kept the connection open.
        assert_eq!(message(&mut subscriber).await[0].len(), 300_003);
        python.say("end").await;
        python.done().await;
    }
}

#[tokio::test]
async fn requester_asks_rep_and_router() {
    if skip_pyzmq() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for endpoint in ["tcp://127.0.0.1:*".to_owned(), ipc(&folder).to_string()] {
        for program in [
            r"
rep = sock(zmq.REP, HEARTBEAT_IVL=50, HEARTBEAT_TIMEOUT=800)
rep.bind(endpoint)
say(rep.getsockopt_string(zmq.LAST_ENDPOINT))
for _ in range(3): rep.send(b're: ' + rep.recv())
hear()
",
            r"
router = sock(zmq.ROUTER, HEARTBEAT_IVL=50, HEARTBEAT_TIMEOUT=800, ROUTER_HANDOVER=1)
router.bind(endpoint)
say(router.getsockopt_string(zmq.LAST_ENDPOINT))
for _ in range(3):
    peer, empty, payload = router.recv_multipart()
    assert peer == b'm1' and empty == b'', (peer, empty)
    router.send_multipart([peer, b'', b're: ' + payload])
hear()
",
        ] {
            let mut python = Python::start(program, &endpoint);
            let endpoint = python.line().await.parse().unwrap();
            let config = ReqConfig { heartbeat: QUICK, identity: Some(Bytes::from("m1")), ..ReqConfig::default() };
            let mut requester = Requester::new(endpoint, config);
            for payload in ["one", "", "three"] {
                let reply = requester.request(Bytes::from(payload), DEADLINE).await.unwrap();
                assert_eq!(reply, format!("re: {payload}"));
            }
            python.say("end").await;
            python.done().await;
        }
    }
}
