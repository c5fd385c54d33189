//! The event bus (§8): events, their framing on the local sockets, and clients of a bus.

use std::path::Path;

use bytes::BytesMut;

use crate::msgpack::DecodeError;
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

    /// Tag, blank line and disk-flavour data.
    pub fn encode(&self) -> Vec<u8> {
        todo!()
    }

    /// Reads what [`Event::encode`] makes.
    ///
    /// # Errors
    /// When it has no tag or its data is no map.
    pub fn decode(bytes: &[u8]) -> Result<Self, EventError> {
        let _ = bytes;
        todo!()
    }
}

/// The text of `_stamp` now: `2026-11-20T14:05:28.473197+00:00`.
pub fn stamp() -> String {
    jiff::Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).strftime("%Y-%m-%dT%H:%M:%S%.6f+00:00").to_string()
}

/// How frames stand on a socket (§0.2, §8.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Framing {
    /// One after the other: the pub socket of 3007 and 3008.
    #[default]
    Bare,
    /// With a 4-byte length before each: every push socket, the pub socket of 3006.
    Prefixed,
}

/// One frame of an event.
pub fn frame(event: &Event, framing: Framing) -> Vec<u8> {
    frame_body(&event.encode(), framing)
}

/// One frame of an event that is encoded already.
pub fn frame_body(body: &[u8], framing: Framing) -> Vec<u8> {
    let _ = (body, framing);
    todo!()
}

/// Takes frames from a stream; which framing it is shows the first byte of each.
#[derive(Debug)]
pub struct FrameDecoder {
    buffer: BytesMut,
    max_frame: usize,
}

/// The longest frame a bus takes: Salt's own senders stop at 1 MiB (`max_event_size`), settings raise that.
pub const MAX_FRAME: usize = 64 << 20;

impl Default for FrameDecoder {
    fn default() -> Self {
        Self::new(MAX_FRAME)
    }
}

impl FrameDecoder {
    /// With this longest frame.
    pub fn new(max_frame: usize) -> Self {
        Self { buffer: BytesMut::new(), max_frame }
    }

    /// Where the next bytes of the stream go.
    pub const fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// The body (an encoded event) of the next whole frame, or none if more bytes are needed.
    ///
    /// # Errors
    /// When the stream is not made of frames; it cannot be read on then.
    pub fn next_body(&mut self) -> Result<Option<bytes::Bytes>, EventError> {
        let _ = self.max_frame;
        todo!()
    }

    /// As [`FrameDecoder::next_body`], decoded.
    ///
    /// # Errors
    /// As [`FrameDecoder::next_body`] and [`Event::decode`].
    pub fn next_event(&mut self) -> Result<Option<Event>, EventError> {
        self.next_body()?.map(|body| Event::decode(&body)).transpose()
    }
}

/// Receives every event of a bus.
#[derive(Debug)]
pub struct EventSubscriber {
    stream: tokio::net::UnixStream,
    decoder: FrameDecoder,
}

impl EventSubscriber {
    /// Connects to a pub socket (`master_event_pub.ipc`). Events fired before it returns are missed.
    ///
    /// # Errors
    /// When nobody listens there.
    pub async fn connect(path: &Path) -> std::io::Result<Self> {
        Ok(Self { stream: tokio::net::UnixStream::connect(path).await?, decoder: FrameDecoder::default() })
    }

    /// The next event; none when the bus closed the connection. Cancel-safe.
    ///
    /// # Errors
    /// When the connection breaks or is not made of events.
    pub async fn recv(&mut self) -> std::io::Result<Option<Event>> {
        let _ = (&self.stream, &self.decoder);
        todo!()
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
    /// When nobody listens there.
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

/// Sends one event to the pull socket at the path.
///
/// # Errors
/// When nobody listens there or the connection breaks.
pub async fn push(path: &Path, event: &Event) -> std::io::Result<()> {
    EventPusher::connect(path).await?.push(event).await
}
