//! Sends events from one sender to eight subscribers over the master's two sockets, as fast as all of them receive.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

use brine_kit::wait::wait_for;
use brine_protocol::event::{Event, FrameDecoder, Framing, frame};
use brine_protocol::value::{Value, map};
use brine_tests::salt::Master;

const SUBSCRIBERS: usize = 8;
const TAG: &str = "bench/event";
/// Upper bound on the sender's lead over the slowest subscriber: a bus drops events that are not read.
const AHEAD: usize = 500;
/// Events in one write.
const WRITE: usize = 50;

/// Number of events received by each subscriber, and a notification.
type Counts = Arc<(Mutex<[usize; SUBSCRIBERS]>, Condvar)>;

/// Returns the rate in events per second for this number of events.
#[allow(clippy::cast_precision_loss, reason = "a rate for people")]
pub(crate) fn per_second(master: &Master, events: usize) -> f64 {
    let counts: Counts = Arc::default();
    let ready = Arc::new(AtomicUsize::new(0));
    let readers: Vec<_> = (0..SUBSCRIBERS)
        .map(|at| {
            let stream = UnixStream::connect(master.path("sock/master_event_pub.ipc")).expect("the master's bus");
            let (counts, ready) = (Arc::clone(&counts), Arc::clone(&ready));
            std::thread::spawn(move || read(stream, at, events, &counts, &ready))
        })
        .collect();
    let mut pull = UnixStream::connect(master.path("sock/master_event_pull.ipc")).expect("the master's bus");
    let one = |tag: &str, n: usize| {
        let data = map([("n", Value::from(n)), ("data", Value::from("x".repeat(200)))]);
        frame(&Event::new(tag, data), Framing::Prefixed)
    };
    // A master needs time to notice new connections.
    wait_for("eight subscribers", || {
        pull.write_all(&one("bench/ready", 0)).expect("the master takes events");
        (ready.load(Ordering::Acquire) == SUBSCRIBERS).then_some(())
    });
    let began = Instant::now();
    let (list, changed) = &*counts;
    for from in (0..events).step_by(WRITE) {
        let batch: Vec<u8> = (from..events.min(from + WRITE)).flat_map(|n| one(TAG, n)).collect();
        pull.write_all(&batch).expect("the master takes events");
        let slowest = |counts: &[usize; SUBSCRIBERS]| counts.iter().copied().min().unwrap_or(0);
        let guard = list.lock().expect("no reader panics holding it");
        drop(changed.wait_while(guard, |counts| slowest(counts) + AHEAD < from).expect("no reader panics holding it"));
    }
    for reader in readers {
        reader.join().expect("every subscriber gets every event");
    }
    events as f64 / began.elapsed().as_secs_f64()
}

fn read(mut stream: UnixStream, at: usize, events: usize, counts: &Counts, ready: &AtomicUsize) {
    let mut decoder = FrameDecoder::default();
    let mut buffer = vec![0; 64 * 1024];
    let (mut seen, mut is_ready) = (0, false);
    while seen < events {
        let n = stream.read(&mut buffer).expect("the master's bus");
        assert!(n > 0, "the master closed its bus");
        decoder.buffer().extend_from_slice(&buffer[..n]);
        while let Some(body) = decoder.next_body().expect("the master frames its events") {
            assert!(!body.starts_with(b"brine/events/lost\n"), "events were lost");
            seen += usize::from(body.starts_with(TAG.as_bytes()));
            if !std::mem::replace(&mut is_ready, true) {
                ready.fetch_add(1, Ordering::Release);
            }
        }
        let (list, changed) = &**counts;
        list.lock().expect("nobody panics holding it")[at] = seen;
        changed.notify_one();
    }
}
