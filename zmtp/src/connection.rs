//! One peer after the handshake: its messages, the messages for it, and its liveness.
//!
//! A connection is driven by calling [`Connection::next`] in a loop. It reads, writes, answers PINGs and watches the
//! clock, and waits only for readiness and a timer, so its future may be dropped at any await.

use std::{
    collections::VecDeque,
    io,
    pin::Pin,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use bytes::{Buf, Bytes, BytesMut};
use tokio::{
    io::Interest,
    time::{Instant, Sleep, sleep_until},
};
use tracing::{debug, warn};

use crate::{
    Frames, Heartbeat,
    budget::Share,
    frame::{Command, Decoded, Decoder, DecoderLimits, FrameError, encode_command},
    handshake::Established,
    heartbeat::{Due, Liveness},
    stream::Stream,
    throttle::Throttle,
};

/// Bytes of one read. The buffer is freed after decoding, so that an idle peer takes none.
const READ_LEN: usize = 16 << 10;
/// Bytes of one read within a long frame.
const READ_LONG_LEN: usize = 128 << 10;
/// Upper bound on the pieces of one vectored write.
const MAX_SLICES: usize = 64;
/// A message that is too long is skipped, so that its sender can get a reply, up to this length; a longer one ends the
/// connection.
const MAX_SKIPPED: u64 = 1 << 30;
/// Upper bound on PONGs and PINGs that wait for a peer that does not read. Beyond it, nothing is read from the peer.
const MAX_CONTROL: usize = 16;

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Closed {
    #[error("the peer closed the connection")]
    Eof,
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Frame(#[from] FrameError),
    #[error("nothing came from the peer for {0:?}")]
    Silent(Duration),
    #[error("the peer took nothing for {0:?}")]
    Stalled(Duration),
    #[error("the peer takes less than {0} bytes a second of what waits for it")]
    Slow(usize),
    #[error("its message arrives at less than {0} bytes a second")]
    Late(usize),
    #[error("others wanted the memory of its unfinished message, and it had been arriving for the longest time")]
    Displaced,
    #[error("others of its address, or that had no place, came after it, and it had proved nothing")]
    GaveWay,
    #[error("all peers, or all of its address or identity, hold too much together; this one wanted more")]
    Budget,
    #[error("the peer has more than {0} subscriptions")]
    Subscriptions(usize),
    #[error("the peer refused: {0}")]
    Refused(String),
    #[error("{0}")]
    Protocol(&'static str),
}

impl Closed {
    /// Whether the peer violated the protocol or a limit.
    pub(crate) fn is_violation(&self) -> bool {
        !matches!(self, Closed::Eof | Closed::Io(_) | Closed::Refused(_) | Closed::GaveWay | Closed::Displaced)
    }

    /// Logs the end of the connection of the peer with this name. An operator has to see when peers hold too much: honest
    /// ones may be affected too.
    pub(crate) fn log(&self, name: &str, refusals: &Mutex<Throttle>) {
        if matches!(self, Closed::Budget | Closed::Displaced)
            && let Some(more) = refusals.lock().unwrap_or_else(PoisonError::into_inner).pass()
        {
            warn!("{name} was disconnected: {self} (and {more} more)");
        } else {
            debug!("{name} left: {self}");
        }
    }
}

/// What happened on a connection.
#[derive(Debug)]
pub(crate) enum Event {
    Message(Frames),
    Subscribe(Bytes),
    Cancel(Bytes),
    /// A message of this length was too long and has been skipped.
    TooLong {
        length: u64,
        max: usize,
    },
    /// This many more messages, or all commands, have been written.
    Wrote(usize),
}

/// Settings of a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionConfig {
    pub(crate) decoder: DecoderLimits,
    pub(crate) heartbeat: Heartbeat,
    pub(crate) write_stall: Duration,
    pub(crate) min_write_rate: usize,
    pub(crate) read_grace: Duration,
    pub(crate) min_read_rate: usize,
}

#[derive(Debug)]
pub(crate) struct Connection {
    stream: Stream,
    knows_3_1: bool,
    decoder: Decoder,
    decoder_limits: DecoderLimits,
    /// Whether messages that are too long are skipped, and the rest of such a message.
    skips: bool,
    skipping: Option<Skipping>,
    /// Bytes that were read and not yet decoded.
    input: BytesMut,
    /// Encoded messages and commands to be written.
    outgoing: VecDeque<Outgoing>,
    /// Bytes of the first one that are already written.
    written: usize,
    /// Number of commands in `outgoing`.
    control: usize,
    liveness: Liveness,
    write_stall: Duration,
    /// The time since which the peer has accepted no byte.
    stalled: Option<Instant>,
    min_write_rate: usize,
    /// The time since which messages wait for the peer, and their bytes.
    backlog: Option<(Instant, usize)>,
    read_grace: Duration,
    min_read_rate: usize,
    /// The time since which a message has been arriving, not counting the time in which nothing was read.
    arriving: Option<Instant>,
    timer: Pin<Box<Sleep>>,
    /// The time since which `next` was not allowed to read.
    paused: Option<Instant>,
    /// The share that this connection's unfinished and unanswered messages count against.
    share: Option<Share>,
    /// Bytes of messages handed out and not yet released, of replies not yet written, and of other data that the socket
    /// keeps for the peer.
    held: usize,
}

/// A message that is being skipped.
#[derive(Debug, Clone, Copy)]
struct Skipping {
    left: u64,
    length: u64,
    max: usize,
}

#[derive(Debug)]
struct Outgoing {
    bytes: Bytes,
    kind: Kind,
    /// Bytes of the message that count in `held`.
    held: usize,
}

/// What the bytes of an [`Outgoing`] are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A message, or the last part of one.
    Message,
    /// A part of a message, of which more follows.
    Part,
    Command,
}

impl Connection {
    pub(crate) fn new(peer: Established, config: ConnectionConfig) -> Connection {
        let now = Instant::now();
        Connection {
            stream: peer.stream,
            knows_3_1: peer.knows_3_1,
            decoder: Decoder::new(config.decoder),
            decoder_limits: config.decoder,
            skips: false,
            skipping: None,
            input: peer.input,
            outgoing: VecDeque::new(),
            written: 0,
            control: 0,
            liveness: Liveness::new(config.heartbeat, peer.knows_3_1, now),
            write_stall: config.write_stall,
            stalled: None,
            min_write_rate: config.min_write_rate.max(1),
            backlog: None,
            read_grace: config.read_grace,
            min_read_rate: config.min_read_rate.max(1),
            arriving: None,
            timer: Box::pin(sleep_until(now)),
            paused: None,
            share: None,
            held: 0,
        }
    }

    /// Whether the peer knows SUBSCRIBE as a command.
    pub(crate) fn knows_3_1(&self) -> bool {
        self.knows_3_1
    }

    /// Changes the bound on messages, for messages that have not begun.
    pub(crate) fn set_max_message(&mut self, max_message: usize) {
        self.decoder_limits.max_message = max_message;
        self.decoder.set_limits(self.decoder_limits);
    }

    /// From now on, a message that is too long is skipped and reported and does not end the connection.
    pub(crate) fn skip_long_messages(&mut self) {
        self.skips = true;
    }

    /// From now on, the connection's bytes count against `share`. Returns false if the share is exhausted.
    #[must_use]
    pub(crate) fn set_share(&mut self, share: Share) -> bool {
        self.share = Some(share);
        self.cover()
    }

    /// Counts `len` bytes that the socket keeps for this peer.
    pub(crate) fn hold(&mut self, len: usize) -> Result<(), Closed> {
        self.held += len;
        if self.cover() { Ok(()) } else { Err(Closed::Budget) }
    }

    /// Stops counting `len` bytes of a message or of other data.
    pub(crate) fn release(&mut self, len: usize) {
        self.held -= len;
        // Giving back cannot fail.
        let _ = self.cover();
    }

    fn cover(&mut self) -> bool {
        let held = self.held + self.decoder.buffered();
        self.share.as_mut().is_none_or(|share| share.cover(held, self.arriving))
    }

    /// Queues an encoded message that is shared with other connections. The caller bounds their number.
    pub(crate) fn push_message(&mut self, bytes: Bytes) {
        self.push(bytes, Kind::Message, 0);
    }

    /// Queues an encoded message in two parts: one for this peer alone, which counts until it is written, and one that is
    /// shared with other connections. The caller bounds their number.
    pub(crate) fn push_shared(&mut self, own: Bytes, shared: Bytes) -> Result<(), Closed> {
        let len = own.len();
        // Empty bytes are not queued, so they could not end the message.
        let kind = if shared.is_empty() { Kind::Message } else { Kind::Part };
        self.push(own, kind, len);
        self.push(shared, Kind::Message, 0);
        self.hold(len)
    }

    /// Queues an encoded message for this peer alone. It counts until it is written; the caller bounds their number.
    pub(crate) fn push_reply(&mut self, bytes: Bytes) -> Result<(), Closed> {
        let len = bytes.len();
        self.push(bytes, Kind::Message, len);
        self.hold(len)
    }

    fn push(&mut self, bytes: Bytes, kind: Kind, held: usize) {
        if !bytes.is_empty() {
            self.backlog.get_or_insert_with(|| (Instant::now(), 0)).1 += bytes.len();
            self.outgoing.push_back(Outgoing { bytes, kind, held });
        }
    }

    /// Queues a command.
    pub(crate) fn push_command(&mut self, command: &Command) {
        self.push(encode_command(command), Kind::Command, 0);
        self.control += 1;
    }

    /// Whether messages wait to be written.
    pub(crate) fn has_messages(&self) -> bool {
        self.outgoing.len() > self.control
    }

    /// Decides what becomes of the data that the peer has not accepted when the connection is dropped because it `closed`
    /// so. A peer that broke a rule, or does not read, gets none of it.
    pub(crate) fn end(&self, closed: &Closed) {
        if closed.is_violation() || !self.outgoing.is_empty() {
            self.stream.drop_unsent();
        }
    }

    /// Waits for the next event. Without `read`, nothing is read, and the peer's liveness is not checked. Cancel-safe.
    pub(crate) async fn next(&mut self, read: bool) -> Result<Event, Closed> {
        self.pause(!read);
        loop {
            while read && self.has_input() {
                // Each item counts, however small: a read may bring thousands, and nothing else in here may have to wait.
                // The wait comes first, because an event that was decoded would be lost if the future is dropped.
                tokio::task::coop::consume_budget().await;
                if let Some(event) = self.decode()? {
                    return Ok(event);
                }
            }
            let waited = !self.outgoing.is_empty();
            let wrote = self.flush()?;
            if wrote > 0 || (waited && self.outgoing.is_empty()) {
                return Ok(Event::Wrote(wrote));
            }
            // Input is left undecoded when too many PONGs wait. The peer must accept them before more is read from it.
            let read = read && self.input.is_empty();
            let interest = match (read, !self.outgoing.is_empty()) {
                (true, true) => Some(Interest::READABLE | Interest::WRITABLE),
                (true, false) => Some(Interest::READABLE),
                (false, true) => Some(Interest::WRITABLE),
                (false, false) => None,
            };
            let deadline = self.deadline(read);
            // The timer is reset only if it must fire earlier. A deadline that moved back is checked when the timer
            // fires.
            if let Some(deadline) = deadline
                && (self.timer.is_elapsed() || deadline < self.timer.deadline())
            {
                self.timer.as_mut().reset(deadline);
            }
            let (stream, share) = (&self.stream, &self.share);
            let gives_way = async {
                match share {
                    Some(share) => share.gives_way().await,
                    None => std::future::pending().await,
                }
            };
            let ready = async {
                match interest {
                    Some(interest) => stream.ready(interest).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                ready = ready => {
                    if ready?.is_readable() && read {
                        self.fill()?;
                    }
                }
                () = gives_way => return Err(Closed::Displaced),
                () = &mut self.timer, if deadline.is_some() => self.on_timer(read)?,
            }
            // A peer that sends without pause must not delay the others.
            tokio::task::coop::consume_budget().await;
        }
    }

    fn deadline(&self, read: bool) -> Option<Instant> {
        let stall = self.stalled.map(|since| since + self.write_stall);
        let silence = if read { self.liveness.deadline() } else { None };
        stall.into_iter().chain(self.too_slow_at()).chain(self.too_late_at()).chain(silence).min()
    }

    /// The time by which the peer must have accepted everything that waits for it.
    fn too_slow_at(&self) -> Option<Instant> {
        let (since, bytes) = self.backlog?;
        // An f64 is exact up to 53 bits, and fewer bytes wait.
        Some(since + self.write_stall + Duration::from_secs_f64(bytes as f64 / self.min_write_rate as f64))
    }

    /// The time by which the message that is arriving must be complete; none while nothing is read.
    fn too_late_at(&self) -> Option<Instant> {
        let since = self.arriving.filter(|_| self.paused.is_none())?;
        let bytes = match self.skipping {
            Some(Skipping { left, length, .. }) => length.saturating_sub(left) as f64,
            None => self.decoder.buffered() as f64,
        };
        Some(since + self.read_grace + Duration::from_secs_f64(bytes / self.min_read_rate as f64))
    }

    /// Stops or starts the clocks for what comes from the peer.
    fn pause(&mut self, pause: bool) {
        if pause {
            self.paused.get_or_insert_with(Instant::now);
        } else if let Some(paused) = self.paused.take() {
            let now = Instant::now();
            self.liveness.seen(now);
            self.arriving = self.arriving.map(|since| since + (now - paused));
        }
    }

    fn on_timer(&mut self, read: bool) -> Result<(), Closed> {
        let now = Instant::now();
        if self.stalled.is_some_and(|since| now >= since + self.write_stall) {
            return Err(Closed::Stalled(self.write_stall));
        }
        if self.too_slow_at().is_some_and(|at| now >= at) {
            return Err(Closed::Slow(self.min_write_rate));
        }
        if self.too_late_at().is_some_and(|at| now >= at) {
            return Err(Closed::Late(self.min_read_rate));
        }
        if read {
            match self.liveness.due(now) {
                Due::Nothing => {}
                Due::Ping => self.push_command(&Command::Ping { ttl: 0, context: Bytes::new() }),
                Due::Dead(silent) => return Err(Closed::Silent(silent)),
            }
        }
        Ok(())
    }

    /// Reads once. All earlier input must have been decoded.
    fn fill(&mut self) -> Result<(), Closed> {
        let long = self.skipping.is_some() || self.decoder.expects_more_than(READ_LEN);
        let max = if long { READ_LONG_LEN } else { READ_LEN };
        match self.stream.try_read(&mut self.input, max)? {
            Some(0) => Err(Closed::Eof),
            Some(_) => {
                self.liveness.seen(Instant::now());
                Ok(())
            }
            None => {
                // There was no input. An idle peer keeps no buffer.
                self.input = BytesMut::new();
                Ok(())
            }
        }
    }

    /// Whether there is input that may be decoded now.
    fn has_input(&self) -> bool {
        !self.input.is_empty() && self.control < MAX_CONTROL
    }

    /// Decodes the next item of the input, or what there is of it. Answers a PING; returns an event.
    fn decode(&mut self) -> Result<Option<Event>, Closed> {
        let event = match self.skip() {
            Some(too_long) => Some(too_long),
            None => self.decode_item()?,
        };
        self.note_arrival();
        if self.input.is_empty() {
            self.input = BytesMut::new();
        }
        Ok(event)
    }

    fn decode_item(&mut self) -> Result<Option<Event>, Closed> {
        let mut bytes = &self.input[..];
        let item = self.decoder.decode(&mut bytes);
        let used = self.input.len() - bytes.len();
        self.input.advance(used);
        self.note_arrival();
        let item = match item {
            Err(FrameError::MessageTooLong { length, max }) if self.skips && length <= MAX_SKIPPED => {
                let left = self.decoder.step_over().ok_or(FrameError::MessageTooLong { length, max })?;
                self.skipping = Some(Skipping { left, length, max });
                return Ok(None);
            }
            item => item?,
        };
        match item {
            None => {
                if !self.cover() {
                    return Err(Closed::Budget);
                }
            }
            Some(Decoded::Message(frames)) => {
                if self.share.is_some() {
                    self.held += frames.iter().map(Bytes::len).sum::<usize>();
                    if !self.cover() {
                        return Err(Closed::Budget);
                    }
                }
                return Ok(Some(Event::Message(frames)));
            }
            Some(Decoded::Command(command)) => match command {
                Command::Ping { ttl, context } => {
                    self.liveness.peer_ttl(ttl);
                    self.push_command(&Command::Pong { context });
                }
                Command::Subscribe(prefix) => return Ok(Some(Event::Subscribe(prefix))),
                Command::Cancel(prefix) => return Ok(Some(Event::Cancel(prefix))),
                Command::Error(reason) => return Err(Closed::Refused(reason.escape_ascii().to_string())),
                Command::Ready(_) => return Err(Closed::Protocol("the peer sent READY twice")),
                Command::Pong { .. } | Command::Unknown => {}
            },
        }
        Ok(None)
    }

    /// Notes whether a message is arriving. A command between its frames changes nothing.
    fn note_arrival(&mut self) {
        if self.skipping.is_some() || self.decoder.is_unfinished() {
            self.arriving.get_or_insert_with(Instant::now);
        } else {
            self.arriving = None;
        }
    }

    /// Skips the rest of a message that is too long; returns the event at its end.
    fn skip(&mut self) -> Option<Event> {
        let skipping = self.skipping.as_mut()?;
        let past = usize::try_from(skipping.left).unwrap_or(usize::MAX).min(self.input.len());
        skipping.left -= past as u64;
        let Skipping { left, length, max } = *skipping;
        self.input.advance(past);
        if left > 0 {
            return None;
        }
        self.skipping = None;
        Some(Event::TooLong { length, max })
    }

    /// Writes as much as the peer accepts. Returns the number of completed messages.
    fn flush(&mut self) -> Result<usize, Closed> {
        let mut finished = 0;
        while !self.outgoing.is_empty() {
            let mut slices = [io::IoSlice::new(&[]); MAX_SLICES];
            let mut skip = self.written;
            for (slice, out) in slices.iter_mut().zip(&self.outgoing) {
                *slice = io::IoSlice::new(&out.bytes[skip..]);
                skip = 0;
            }
            let count = self.outgoing.len().min(MAX_SLICES);
            let Some(mut wrote) = self.stream.try_write(&slices[..count])? else {
                self.stalled.get_or_insert_with(Instant::now);
                return Ok(finished);
            };
            if self.stalled.take().is_some() {
                // The peer accepts bytes again, so it is alive.
                self.liveness.seen(Instant::now());
            }
            while let Some(first) = self.outgoing.front() {
                let rest = first.bytes.len() - self.written;
                if wrote < rest {
                    self.written += wrote;
                    break;
                }
                wrote -= rest;
                self.written = 0;
                match first.kind {
                    Kind::Message => finished += 1,
                    Kind::Part => {}
                    Kind::Command => self.control -= 1,
                }
                let held = first.held;
                self.outgoing.pop_front();
                if held > 0 {
                    self.release(held);
                }
            }
        }
        self.backlog = None;
        if finished > 0 {
            // Ten thousand idle connections should keep no queues.
            self.outgoing.shrink_to(0);
        }
        Ok(finished)
    }

    /// Writes everything that waits. The caller sets the deadline.
    pub(crate) async fn drain(&mut self) -> Result<(), Closed> {
        while !self.outgoing.is_empty() {
            self.next(false).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::UnixStream,
        time::timeout,
    };

    use super::*;

    const GRACE: Duration = Duration::from_secs(1);

    fn pair(write_stall: Duration) -> (Connection, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let peer = Established { stream: Stream::Unix(ours), knows_3_1: true, input: BytesMut::new() };
        let decoder = DecoderLimits { max_message: 100, max_frames: 1, max_command: 100 };
        let config = ConnectionConfig {
            decoder,
            heartbeat: Heartbeat::OFF,
            write_stall,
            min_write_rate: 1 << 30,
            read_grace: GRACE,
            min_read_rate: 100,
        };
        (Connection::new(peer, config), theirs)
    }

    fn number(number: u32) -> Bytes {
        Bytes::copy_from_slice(&number.to_be_bytes())
    }

    #[tokio::test]
    async fn pongs_that_nobody_takes_are_bounded() {
        let (mut connection, mut theirs) = pair(Duration::from_millis(200));
        let pings = encode_command(&Command::Ping { ttl: 0, context: number(0) }).repeat(100);
        let flood = tokio::spawn(async move { while theirs.write_all(&pings).await.is_ok() {} });
        let closed = loop {
            match connection.next(true).await {
                Ok(_) => assert!(connection.outgoing.len() <= MAX_CONTROL),
                Err(closed) => break closed,
            }
        };
        assert!(matches!(closed, Closed::Stalled(_)), "{closed}");
        assert!(connection.outgoing.len() <= MAX_CONTROL && connection.input.len() <= 2 * READ_LEN);
        flood.abort();
    }

    /// Data that a peer does not accept stays in memory, so accepting a little now and then is not enough.
    #[tokio::test]
    async fn who_takes_a_little_now_and_then_is_dropped() {
        let (mut connection, mut theirs) = pair(Duration::from_secs(2));
        connection.push_message(Bytes::from(vec![0; 100 << 20]));
        let drip = async {
            let mut some = vec![0; 64 << 10];
            while let Ok(1..) = theirs.read(&mut some).await {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let closed = async {
            let closed = loop {
                if let Err(closed) = connection.next(true).await {
                    break closed;
                }
            };
            drop(connection);
            closed
        };
        let (closed, ()) = timeout(Duration::from_secs(30), async { tokio::join!(closed, drip) }).await.unwrap();
        assert!(matches!(closed, Closed::Slow(_)), "{closed}");
    }

    #[tokio::test]
    async fn pings_that_had_to_wait_are_answered_in_order() {
        const COUNT: u32 = 100_000;
        let (mut connection, theirs) = pair(Duration::from_secs(30));
        let serving = tokio::spawn(async move { while connection.next(true).await.is_ok() {} });
        let (mut pongs, mut pings) = theirs.into_split();
        let mut sending = tokio::spawn(async move {
            for context in 0..COUNT {
                let ping = Command::Ping { ttl: 0, context: number(context) };
                pings.write_all(&encode_command(&ping)).await.unwrap();
            }
            pings
        });
        // The connection accepts no further PINGs once the PONGs are not read.
        assert!(timeout(Duration::from_millis(200), &mut sending).await.is_err());
        for context in 0..COUNT {
            let expected = encode_command(&Command::Pong { context: number(context) });
            let mut pong = vec![0; expected.len()];
            timeout(Duration::from_secs(30), pongs.read_exact(&mut pong)).await.unwrap().unwrap();
            assert_eq!(pong, expected);
        }
        serving.abort();
    }

    /// One read brings thousands of empty messages. Whoever runs on the same thread gets its turn between them.
    #[tokio::test]
    async fn many_small_messages_leave_others_their_turn() {
        use std::sync::atomic::{AtomicUsize, Ordering};
        const TURN: usize = 256;
        static TAKEN: AtomicUsize = AtomicUsize::new(0);
        let (mut connection, mut theirs) = pair(Duration::from_secs(30));
        let flood = tokio::spawn(async move { while theirs.write_all(&[0; 64 << 10]).await.is_ok() {} });
        let serving = tokio::spawn(async move {
            while connection.next(true).await.is_ok() {
                TAKEN.fetch_add(1, Ordering::Relaxed);
            }
        });
        let mut before = 0;
        while before < 100_000 {
            tokio::task::yield_now().await;
            let taken = TAKEN.load(Ordering::Relaxed);
            assert!(taken - before <= TURN, "{} in one turn", taken - before);
            before = taken;
        }
        serving.abort();
        flood.abort();
    }

    /// The allowance grows with what has arrived, so that a slow line that works is not cut off.
    #[tokio::test]
    async fn a_message_may_take_as_long_as_its_bytes_allow() {
        const STEP: Duration = Duration::from_millis(150);
        let (mut connection, mut theirs) = pair(Duration::from_secs(30));
        let sending = async {
            theirs.write_all(&[0, 100]).await.unwrap();
            let started = Instant::now();
            for _ in 0..10 {
                theirs.write_all(&[7; 10]).await.unwrap();
                tokio::time::sleep(STEP).await;
            }
            assert!(started.elapsed() > GRACE);
        };
        let (event, ()) = tokio::join!(connection.next(true), sending);
        assert!(matches!(event, Ok(Event::Message(_))));
    }

    #[tokio::test]
    async fn time_in_which_nothing_is_read_does_not_count_for_a_message() {
        let (mut connection, mut theirs) = pair(Duration::from_secs(30));
        theirs.write_all(&[0, 10, 7]).await.unwrap();
        assert!(timeout(GRACE / 3, connection.next(true)).await.is_err());
        assert!(timeout(2 * GRACE, connection.next(false)).await.is_err());
        assert!(timeout(GRACE / 3, connection.next(true)).await.is_err());
        let closed = timeout(Duration::from_secs(30), connection.next(true)).await.unwrap();
        assert!(matches!(closed, Err(Closed::Late(100))), "{closed:?}");
    }
}
