//! The event bus (§8): events, their framing on local sockets, and clients of the bus.

use std::path::Path;

use bytes::{Buf as _, BytesMut};
use tokio::io::AsyncReadExt as _;

use crate::msgpack::{self, DecodeError, Limits};
use crate::value::{self, Value, ValueExt};

/// An event.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    /// The tag, such as `salt/job/<jid>/ret/<id>`.
    pub tag: String,
    /// The data, a map.
    pub data: Value,
}

/// Why bytes are no event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// The tag is empty, not UTF-8, or does not end.
    #[error("the event has no tag")]
    Tag,
    /// The data is not a map.
    #[error("the event's data is not a map")]
    NotMap,
    /// The bytes do not decode.
    #[error("the event does not decode: {0}")]
    Decode(#[from] DecodeError),
    /// The stream is not made of frames.
    #[error("the stream is not made of event frames: {0}")]
    Frame(&'static str),
    /// A frame is longer than is allowed.
    #[error("an event frame is longer than {0} bytes")]
    TooLong(usize),
}

impl Event {
    /// An event with `_stamp` (UTC, now) added to its data.
    pub fn new(tag: impl Into<String>, mut data: Value) -> Self {
        if !matches!(data, Value::Map(_)) {
            data = value::map([("data", data)]);
        }
        data.insert("_stamp", stamp());
        Self { tag: tag.into(), data }
    }

    /// Encodes the tag, a blank line and the data in the disk flavour.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(256);
        out.extend_from_slice(self.tag.as_bytes());
        out.extend_from_slice(TAG_END);
        msgpack::encode_disk_into(&self.data, &mut out);
        out
    }

    /// Decodes the output of [`Event::encode`].
    ///
    /// # Errors
    /// When there is no tag or the data is not a map.
    pub fn decode(bytes: &[u8]) -> Result<Self, EventError> {
        let end = bytes.windows(TAG_END.len()).position(|w| w == TAG_END).ok_or(EventError::Tag)?;
        let tag = std::str::from_utf8(&bytes[..end]).map_err(|_| EventError::Tag)?;
        if tag.is_empty() {
            return Err(EventError::Tag);
        }
        match msgpack::decode_disk(&bytes[end + TAG_END.len()..], &Limits::EVENT)? {
            data @ Value::Map(_) => Ok(Self { tag: tag.to_owned(), data }),
            _ => Err(EventError::NotMap),
        }
    }
}

/// The separator of an event's tag and its data.
const TAG_END: &[u8] = b"\n\n";

/// The present value of `_stamp`: `2026-11-20T14:05:28.473197+00:00`.
pub fn stamp() -> String {
    jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).strftime("%Y-%m-%dT%H:%M:%S%.6f+00:00").to_string()
}

/// Returns where the encoded event begins in the output of [`frame`] or [`frame_packed`].
pub fn body_start(frame: &[u8]) -> usize {
    let map = if frame.first() == Some(&0x82) { 0 } else { 4 };
    let header = map + FRAME_START.len();
    // The header of bytes: bin 8, bin 16, or bin 32.
    header
        + match frame.get(header) {
            Some(0xc4) => 2,
            Some(0xc5) => 3,
            _ => 5,
        }
}

/// The framing of events on a socket (§0.2, §8.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Framing {
    /// Frames without separators: the pub socket of 3007 and 3008.
    #[default]
    Bare,
    /// A 4-byte length before each frame: every push socket, and the pub socket of 3006.
    Prefixed,
}

/// Frames an event.
pub fn frame(event: &Event, framing: Framing) -> Vec<u8> {
    frame_body(&event.encode(), framing)
}

/// Frames an event whose data is already encoded except its last entry, the stamp.
pub fn frame_packed(event: &Event, packed: &[u8], framing: Framing) -> Vec<u8> {
    let mut body = Vec::with_capacity(event.tag.len() + packed.len() + 64);
    body.extend_from_slice(event.tag.as_bytes());
    body.extend_from_slice(TAG_END);
    let entries = event.data.entries().unwrap_or_default();
    msgpack::encode_disk_last_entry_into(entries, packed, &mut body);
    frame_body(&body, framing)
}

/// `{"head": {}, "body": …` in the disk flavour.
const FRAME_START: &[u8] = b"\x82\xa4head\x80\xa4body";

/// Frames an encoded event.
pub fn frame_body(body: &[u8], framing: Framing) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len() + 32);
    if framing == Framing::Prefixed {
        out.extend_from_slice(&[0; 4]);
    }
    let from = out.len();
    // The body is encoded directly after the map's start, so that it is copied only once.
    out.extend_from_slice(FRAME_START);
    msgpack::encode_disk_bytes_into(body, &mut out);
    if framing == Framing::Prefixed {
        let len = u32::try_from(out.len() - from).expect("an event has less than 4 GiB");
        out[..4].copy_from_slice(&len.to_be_bytes());
    }
    out
}

/// Reads frames from a stream. The first byte of each frame shows its framing.
#[derive(Debug)]
pub struct FrameDecoder {
    buffer: BytesMut,
    max_frame: usize,
}

/// Upper bound on the bytes of a frame: Salt's senders stop at 1 MiB (`max_event_size`); settings may raise that.
pub const MAX_FRAME: usize = 64 << 20;

impl Default for FrameDecoder {
    fn default() -> Self {
        Self::new(MAX_FRAME)
    }
}

/// Bytes of one read: enough for most events, and for several small ones.
const READ: usize = 4 << 10;

impl FrameDecoder {
    /// Accepts frames of at most `max_frame` bytes.
    pub fn new(max_frame: usize) -> Self {
        Self { buffer: BytesMut::new(), max_frame }
    }

    /// The buffer for the next bytes of the stream, with free space.
    pub fn buffer(&mut self) -> &mut BytesMut {
        self.buffer.reserve(READ);
        &mut self.buffer
    }

    /// Takes the body (an encoded event) of the next whole frame; none if more bytes are needed.
    ///
    /// # Errors
    /// When the stream is not made of frames; it cannot be read further.
    pub fn next_body(&mut self) -> Result<Option<bytes::Bytes>, EventError> {
        let Some(&first) = self.buffer.first() else { return Ok(None) };
        match first {
            // A map of two entries: a bare frame.
            0x82 => {
                let limits = Limits { max_bytes: self.max_frame, ..FRAME_LIMITS };
                match msgpack::decode_prefix(&self.buffer, &limits) {
                    Ok((frame, len)) if len <= self.max_frame => {
                        self.buffer.advance(len);
                        body_of(frame).map(Some)
                    }
                    Err(DecodeError::Truncated) if self.buffer.len() <= self.max_frame => Ok(None),
                    Ok(_) | Err(DecodeError::Truncated) => Err(EventError::TooLong(self.max_frame)),
                    Err(e) => Err(e.into()),
                }
            }
            // The first byte of a length below 64 MiB.
            0..=3 => {
                let Some(&prefix) = self.buffer.first_chunk::<4>() else { return Ok(None) };
                let len = usize::try_from(u32::from_be_bytes(prefix)).unwrap_or(usize::MAX);
                if len > self.max_frame {
                    return Err(EventError::TooLong(self.max_frame));
                }
                if self.buffer.len() < 4 + len {
                    return Ok(None);
                }
                self.buffer.advance(4);
                let frame = self.buffer.split_to(len);
                body_of(msgpack::decode_disk(&frame, &FRAME_LIMITS)?).map(Some)
            }
            _ => Err(EventError::Frame("neither a length nor a map of two begins it")),
        }
    }

    /// As [`FrameDecoder::next_body`], decoded.
    ///
    /// # Errors
    /// As [`FrameDecoder::next_body`] and [`Event::decode`].
    pub fn next_event(&mut self) -> Result<Option<Event>, EventError> {
        self.next_body()?.map(|body| Event::decode(&body)).transpose()
    }
}

/// Bounds on a frame: a map of two entries with a few headers. Its body is decoded separately.
const FRAME_LIMITS: Limits = Limits { max_bytes: MAX_FRAME, max_depth: 8, max_items: 256 };

fn body_of(mut frame: Value) -> Result<bytes::Bytes, EventError> {
    let body = frame.remove("body").ok_or(EventError::Frame("it has no body"))?;
    crate::envelope::into_bytes(body).map(bytes::Bytes::from).ok_or(EventError::Frame("its body is not bytes"))
}

/// Receives every event of a bus.
#[derive(Debug)]
pub struct EventSubscriber {
    stream: tokio::net::UnixStream,
    decoder: FrameDecoder,
}

impl EventSubscriber {
    /// Connects to a pub socket (`master_event_pub.ipc`). The subscriber misses events that are fired before this
    /// returns.
    ///
    /// # Errors
    /// When no process listens on the socket.
    pub async fn connect(path: &Path) -> std::io::Result<Self> {
        Ok(Self { stream: tokio::net::UnixStream::connect(path).await?, decoder: FrameDecoder::default() })
    }

    /// Waits for the next event; none when the bus closed the connection. Cancel-safe.
    ///
    /// # Errors
    /// When the connection breaks or the stream is not made of frames.
    pub async fn recv(&mut self) -> std::io::Result<Option<Event>> {
        let invalid = |e: EventError| std::io::Error::new(std::io::ErrorKind::InvalidData, e);
        loop {
            while let Some(body) = self.decoder.next_body().map_err(invalid)? {
                match Event::decode(&body) {
                    Ok(event) => return Ok(Some(event)),
                    // One faulty sender must not disconnect the subscribers.
                    Err(e) => tracing::debug!("an event was ignored: {e}"),
                }
            }
            if self.stream.read_buf(self.decoder.buffer()).await? == 0 {
                return match self.decoder.buffer().is_empty() {
                    true => Ok(None),
                    false => Err(std::io::ErrorKind::UnexpectedEof.into()),
                };
            }
        }
    }
}

/// Sends events to a bus over one connection.
#[derive(Debug)]
pub struct EventPusher {
    stream: tokio::net::UnixStream,
}

impl EventPusher {
    /// Connects to a pull socket (`master_event_pull.ipc`).
    ///
    /// # Errors
    /// When no process listens on the socket.
    pub async fn connect(path: &Path) -> std::io::Result<Self> {
        Ok(Self { stream: tokio::net::UnixStream::connect(path).await? })
    }

    /// Sends an event.
    ///
    /// # Errors
    /// When the connection breaks.
    pub async fn push(&mut self, event: &Event) -> std::io::Result<()> {
        use tokio::io::AsyncWriteExt as _;
        self.stream.write_all(&frame(event, Framing::Prefixed)).await?;
        self.stream.flush().await
    }
}

/// Sends one event to the pull socket at `path`.
///
/// # Errors
/// When no process listens on the socket or the connection breaks.
pub async fn push(path: &Path, event: &Event) -> std::io::Result<()> {
    EventPusher::connect(path).await?.push(event).await
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::value::{bytes, list, map, text};

    fn event() -> Event {
        Event { tag: "salt/job/1/ret/m".to_owned(), data: map([("b", bytes([0xff])), ("t", text("x"))]) }
    }

    #[test]
    fn data_that_is_encoded_already_makes_the_same_frame() {
        for size in [0, 1, 14, 15, 16, 0xffff, 0x1_0000] {
            let data = map((0..size).map(|n| (n.to_string(), n)));
            let packed = msgpack::encode_disk(&data);
            let event = Event::new("a/b", data);
            for framing in [Framing::Bare, Framing::Prefixed] {
                assert!(frame_packed(&event, &packed, framing) == frame(&event, framing), "{size}");
            }
        }
    }

    #[test]
    fn the_event_in_a_frame_is_found() {
        for size in [0, 1, 100, 300, 70_000] {
            let event = Event { tag: "a/b".to_owned(), data: map([("x", "x".repeat(size))]) };
            for framing in [Framing::Bare, Framing::Prefixed] {
                let frame = frame(&event, framing);
                assert_eq!(frame[body_start(&frame)..], event.encode(), "{size}");
            }
        }
    }

    #[test]
    fn frames_of_both_kinds_come_out_of_any_cuts() {
        let events: Vec<Event> = (0..5).map(|n| Event { tag: format!("t/{n}"), data: map([("n", n)]) }).collect();
        let mut stream = Vec::new();
        for (i, e) in events.iter().enumerate() {
            stream.extend(frame(e, if i % 2 == 0 { Framing::Bare } else { Framing::Prefixed }));
        }
        for cut in [1, 2, 3, 7, stream.len()] {
            let mut decoder = FrameDecoder::default();
            let mut seen = Vec::new();
            for part in stream.chunks(cut) {
                decoder.buffer().extend_from_slice(part);
                while let Some(e) = decoder.next_event().unwrap() {
                    seen.push(e);
                }
            }
            assert_eq!(seen, events, "cut {cut}");
        }
    }

    #[test]
    fn frames_are_bounded() {
        let mut decoder = FrameDecoder::new(64);
        decoder.buffer().extend_from_slice(&[0, 0, 1, 0]);
        assert_eq!(decoder.next_body(), Err(EventError::TooLong(64)));
        let mut decoder = FrameDecoder::new(64);
        decoder.buffer().extend_from_slice(&frame_body(&[1; 100], Framing::Bare));
        assert_eq!(decoder.next_body(), Err(EventError::TooLong(64)));
        let mut decoder = FrameDecoder::new(64);
        decoder.buffer().extend_from_slice(&frame_body(&[1; 1000], Framing::Bare)[..100]);
        assert_eq!(decoder.next_body(), Err(EventError::TooLong(64)), "before the whole has arrived");
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        for bad in
            [&b"GET / HTTP/1.1"[..], &[0x82, 0xc1, 0, 0, 0, 0], &[0, 0, 0, 1, 0xc0], &[0x82, 0x01, 0x01, 0x02, 0x02]]
        {
            let mut decoder = FrameDecoder::default();
            decoder.buffer().extend_from_slice(bad);
            assert!(decoder.next_body().is_err(), "{bad:x?}");
        }
    }

    #[test]
    fn an_event_has_a_tag_and_a_map() {
        assert_eq!(Event::decode(&event().encode()).unwrap(), event());
        assert_eq!(Event::decode(b"no end"), Err(EventError::Tag));
        assert_eq!(Event::decode(b"\n\n\x80"), Err(EventError::Tag));
        assert_eq!(Event::decode(b"\xff\n\n\x80"), Err(EventError::Tag));
        assert_eq!(Event::decode(b"t\n\n\xc0"), Err(EventError::NotMap));
        let stamped = Event::new("t", list([1]));
        assert_eq!(stamped.data.get("data"), Some(&list([1])));
        assert_eq!(stamped.data.get_text("_stamp").unwrap().len(), "2026-11-20T14:05:28.473197+00:00".len());
    }

    #[tokio::test]
    async fn a_subscriber_gets_what_a_pusher_sends_and_survives_one_bad_event() {
        use tokio::io::AsyncWriteExt as _;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("bus.ipc");
        let listener = tokio::net::UnixListener::bind(&path).unwrap();
        let pushed = event();
        let push = tokio::spawn({
            let (path, pushed) = (path.clone(), pushed.clone());
            async move { push(&path, &pushed).await }
        });
        let (mut incoming, _) = listener.accept().await.unwrap();
        let mut received = Vec::new();
        incoming.read_to_end(&mut received).await.unwrap();
        push.await.unwrap().unwrap();

        let (subscriber, accepted) = tokio::join!(EventSubscriber::connect(&path), listener.accept());
        let (mut subscriber, (mut bus, _)) = (subscriber.unwrap(), accepted.unwrap());
        bus.write_all(&frame_body(b"bad", Framing::Bare)).await.unwrap();
        bus.write_all(&received).await.unwrap();
        drop(bus);
        assert_eq!(subscriber.recv().await.unwrap(), Some(pushed));
        assert_eq!(subscriber.recv().await.unwrap(), None);
    }

    proptest! {
        #[test]
        fn hostile_streams_do_not_panic(b in proptest::collection::vec(any::<u8>(), 0..200), first in 0_u8..=0x83) {
            let mut decoder = FrameDecoder::new(128);
            decoder.buffer().extend_from_slice(&[first]);
            decoder.buffer().extend_from_slice(&b);
            for _ in 0..300 {
                match decoder.next_event() {
                    Ok(Some(_)) => {}
                    Ok(None) | Err(EventError::Frame(_) | EventError::TooLong(_)) => break,
                    Err(_) => {}
                }
            }
            let _ = Event::decode(&b);
        }
    }
}
