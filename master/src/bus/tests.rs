use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use brine_protocol::event::{EventPusher, EventSubscriber, Framing};
use brine_protocol::value::{Value, ValueExt, map};
use tokio::time::timeout;

use super::*;

const SOON: Duration = Duration::from_secs(10);

fn bus(dir: &Path, framing: Framing) -> Bus {
    let bus = Bus::new(framing, 1 << 20);
    bus.listen(dir).unwrap();
    bus
}

async fn next(subscriber: &mut EventSubscriber) -> Event {
    timeout(SOON, subscriber.recv()).await.unwrap().unwrap().unwrap()
}

#[tokio::test]
async fn sockets_have_salts_modes_and_pushed_events_come_out_unchanged() {
    for framing in [Framing::Bare, Framing::Prefixed] {
        let dir = tempfile::tempdir().unwrap();
        let _bus = bus(dir.path(), framing);
        let mode = |name: &str| std::fs::metadata(dir.path().join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!(
            (mode("master_event_pub.ipc"), mode("master_event_pull.ipc"), mode("publish_pull.ipc")),
            (0o660, 0o600, 0o600)
        );
        let mut subscriber = EventSubscriber::connect(&dir.path().join("master_event_pub.ipc")).await.unwrap();
        let mut pusher = EventPusher::connect(&dir.path().join("master_event_pull.ipc")).await.unwrap();
        let sent = Event::new("my/tag", map([("bytes", Value::Binary(vec![0xff, 0])), ("n", Value::from(3))]));
        pusher.push(&sent).await.unwrap();
        assert_eq!(next(&mut subscriber).await, sent);
    }
}

/// The stored bytes of a return are reused for its event. Too large events are trimmed all the same.
#[test]
fn what_is_packed_already_is_not_encoded_again() {
    let bus = Bus::new(Framing::Bare, 1_000);
    for (size, trimmed) in [(10, false), (900, false), (5_000, true)] {
        let data = map([("id", "a".to_owned()), ("return", "x".repeat(size))]);
        let packed = brine_protocol::msgpack::encode_disk(&data);
        let event = bus.encode_by(Principal::Master, "t".to_owned(), data, &packed);
        let mut decoder = brine_protocol::event::FrameDecoder::default();
        decoder.buffer().extend_from_slice(&event.frame);
        assert_eq!(decoder.next_event().unwrap().unwrap(), event.event);
        assert_eq!(event.event.data.get_text("return") == Some(TRIMMED), trimmed, "{size}");
        assert!(event.event.data.has("_stamp"));
    }
}

#[tokio::test]
async fn who_connected_before_settling_misses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let bus = bus(dir.path(), Framing::Bare);
    for n in 0..100_u32 {
        // No await between connecting and firing, so the accepting task has not run yet.
        let stream = std::os::unix::net::UnixStream::connect(dir.path().join("master_event_pub.ipc")).unwrap();
        bus.settle();
        bus.fire("first", map([("n", n)]));
        stream.set_read_timeout(Some(SOON)).unwrap();
        let first = tokio::task::spawn_blocking(move || {
            let mut byte = [0; 1];
            std::io::Read::read(&mut &stream, &mut byte).map(|_| byte[0])
        });
        assert_eq!(first.await.unwrap().unwrap(), 0x82, "round {n}");
    }
}

#[tokio::test]
async fn a_slow_subscriber_is_told_what_it_lost_and_holds_up_nobody() {
    let bus = Bus::new(Framing::Bare, 1 << 20);
    let slow = bus.subscribe().unwrap();
    for n in 0..10_005_u32 {
        bus.fire("x", map([("n", n)]));
    }
    let Some(Next::Lost(lost)) = slow.next().await else { panic!("the loss must come first") };
    assert_eq!(lost, 5);
    let Some(Next::Event(event)) = slow.next().await else { panic!() };
    assert_eq!(event.event.data.get_u64("n"), Some(5));
    drop(slow);
    assert_eq!(bus.subscribers(), 0);
}

#[tokio::test]
async fn a_subscriber_that_leaves_is_forgotten() {
    let dir = tempfile::tempdir().unwrap();
    let bus = bus(dir.path(), Framing::Bare);
    let mut subscriber = EventSubscriber::connect(&dir.path().join("master_event_pub.ipc")).await.unwrap();
    bus.settle();
    bus.fire("a", map([("n", 1)]));
    assert_eq!(next(&mut subscriber).await.tag, "a");
    assert_eq!(bus.subscribers(), 1);
    drop(subscriber);
    timeout(SOON, async {
        while bus.subscribers() > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_sender_of_rubbish_is_cut_off_and_others_go_on() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let dir = tempfile::tempdir().unwrap();
    let _bus = bus(dir.path(), Framing::Bare);
    let mut subscriber = EventSubscriber::connect(&dir.path().join("master_event_pub.ipc")).await.unwrap();
    for rubbish in [b"\xff\xff\xff\xff".as_slice(), b"\x00\xff\xff\xff", b"GET / HTTP/1.1\r\n\r\n", &[0xc1; 64]] {
        let mut stream = tokio::net::UnixStream::connect(dir.path().join("master_event_pull.ipc")).await.unwrap();
        stream.write_all(rubbish).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut rest = Vec::new();
        timeout(SOON, stream.read_to_end(&mut rest)).await.unwrap().unwrap();
        assert!(rest.is_empty());
    }
    let event = Event::new("still/here", map([("n", 1)]));
    brine_protocol::event::push(&dir.path().join("master_event_pull.ipc"), &event).await.unwrap();
    assert_eq!(next(&mut subscriber).await.tag, "still/here");
}

/// On the socket a loss is an ordinary event at its place in the order, which Salt's clients can read; no other event
/// is missing.
#[tokio::test(flavor = "multi_thread")]
async fn a_slow_reader_of_the_socket_is_told_by_an_event() {
    const SENT: u64 = 30_000;
    for framing in [Framing::Bare, Framing::Prefixed] {
        let dir = tempfile::tempdir().unwrap();
        let bus = bus(dir.path(), framing);
        let mut slow = EventSubscriber::connect(&dir.path().join("master_event_pub.ipc")).await.unwrap();
        let quick = bus.subscribe().unwrap();
        bus.settle();
        let fill = "x".repeat(500);
        for n in 0..SENT {
            bus.fire("n", map([("n", Value::from(n)), ("fill", fill.as_str().into())]));
            let Some(Next::Event(_)) = quick.next().await else { panic!("who reads loses nothing") };
        }
        let (mut expected, mut lost) = (0, 0);
        while expected < SENT {
            let event = next(&mut slow).await;
            if event.tag == "brine/events/lost" {
                let n = event.data.get_u64("lost").unwrap();
                assert!(n > 0);
                (expected, lost) = (expected + n, lost + n);
            } else {
                assert_eq!(event.data.get_u64("n"), Some(expected), "after {lost} that were lost");
                expected += 1;
            }
        }
        assert!(lost > 0, "it was slow enough");
    }
}
