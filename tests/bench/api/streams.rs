//! Event streams: every event to every stream, with the time from the master's bus to the reader.

use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use brine_protocol::event::{Event, Framing, frame};
use brine_protocol::value::{Value, map};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::{Method, StatusCode};
use tokio::sync::mpsc;

use super::http::Caller;
use super::server::Server;

const TAG: &str = "bench/stream";
/// The pause between two events: 100 a second.
const EVERY: Duration = Duration::from_millis(10);
/// After this time a stream that was refused is asked for again.
const AGAIN: Duration = Duration::from_millis(200);
/// How long a stream waits for its last events.
const LAST: Duration = Duration::from_secs(20);
/// The field with the time of sending, microseconds since 1970.
const SENT: &str = "\"sent\": ";

/// What all streams have received.
pub(super) struct Received {
    /// The times of all events, each from its sending to its arrival.
    pub(super) times: Vec<Duration>,
    /// How many events did not arrive.
    pub(super) lost: usize,
}

/// Opens this number of streams, fires events for so long and waits until all streams have them.
pub(super) async fn measure(server: &Server, token: &str, streams: usize, each: Duration) -> Received {
    let events = usize::try_from(each.as_millis() / EVERY.as_millis()).expect("a small number");
    let (open, mut opened) = mpsc::channel(streams);
    let readers: Vec<_> = (0..streams)
        .map(|_| {
            let (mut caller, open) = (Caller::new(&server.address, token), open.clone());
            tokio::spawn(async move {
                let mut body = subscribe(&mut caller).await;
                let _ = open.send(()).await;
                let mut reader = Reader::default();
                let reading = async {
                    while reader.times.len() < events {
                        let Some(Ok(part)) = body.frame().await else { return };
                        reader.take(part.data_ref().map_or(&[], |data| data));
                    }
                };
                let _ = tokio::time::timeout(each + LAST, reading).await;
                reader.times
            })
        })
        .collect();
    drop(open);
    for _ in 0..streams {
        opened.recv().await.expect("each stream is opened");
    }
    let bus = server.bus();
    let firing = std::thread::spawn(move || fire(&bus, events));
    let mut received = Received { times: Vec::with_capacity(events * streams), lost: 0 };
    for reader in readers {
        let times = reader.await.expect("a reader ends by itself");
        received.lost += events.saturating_sub(times.len());
        received.times.extend(times);
    }
    firing.join().expect("the master takes events");
    received
}

/// Opens a stream. So many at once are more than salt-api has under way: some come again, as it tells them.
async fn subscribe(caller: &mut Caller) -> Incoming {
    loop {
        let response = caller.send(Method::GET, "/events", &serde_json::Value::Null).await;
        match response.status() {
            StatusCode::SERVICE_UNAVAILABLE => tokio::time::sleep(AGAIN).await,
            status => {
                assert_eq!(status, StatusCode::OK);
                return response.into_body();
            }
        }
    }
}

fn fire(bus: &std::path::Path, events: usize) {
    let mut pull = UnixStream::connect(bus).expect("the master's bus");
    let began = Instant::now();
    for n in 0..events {
        let due = EVERY * u32::try_from(n).expect("a small number");
        std::thread::sleep(due.saturating_sub(began.elapsed()));
        let data = map([("n", Value::from(n)), ("sent", Value::from(now())), ("data", Value::from("x".repeat(200)))]);
        pull.write_all(&frame(&Event::new(TAG, data), Framing::Prefixed)).expect("the master takes events");
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or_default()
}

/// Reads one stream.
#[derive(Default)]
struct Reader {
    times: Vec<Duration>,
    /// The beginning of an event whose end has not arrived.
    rest: Vec<u8>,
}

impl Reader {
    fn take(&mut self, part: &[u8]) {
        self.rest.extend_from_slice(part);
        let now = now();
        let text = String::from_utf8_lossy(&self.rest);
        let whole = text.rfind("\n\n").map_or(0, |at| at + 2);
        for event in text[..whole].split("\n\n").filter(|event| event.contains(TAG)) {
            let sent = event.split_once(SENT).map_or("", |(_, rest)| rest);
            let end = sent.find(|c: char| !c.is_ascii_digit()).unwrap_or(sent.len());
            if let Ok(sent) = sent[..end].parse::<u64>() {
                self.times.push(Duration::from_micros(now.saturating_sub(sent)));
            }
        }
        let whole = text[..whole].len();
        drop(text);
        self.rest.drain(..whole);
    }
}
