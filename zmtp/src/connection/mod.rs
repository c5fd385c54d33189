//! One peer after the handshake: its messages, the messages for it, and its liveness.
//!
//! A connection is driven by calling [`Connection::next`] in a loop. It reads, writes, answers PINGs and watches the
//! clock, and waits only for readiness and a timer, so its future may be dropped at any await.

mod closed;
mod outgoing;

use std::{pin::Pin, time::Duration};

use bytes::{Buf, Bytes, BytesMut};
use tokio::{
    io::Interest,
    time::{Instant, Sleep, sleep_until},
};

pub(crate) use self::closed::Closed;
use self::outgoing::{Kind, Outgoing};
use crate::{
    Frames, Heartbeat,
    budget::Share,
    frame::{Command, Decoded, Decoder, DecoderLimits, FrameError, encode_command},
    handshake::Established,
    heartbeat::{Due, Liveness},
    stream::Stream,
};

/// Bytes of one read. The buffer is freed after decoding, so that an idle peer takes none.
const READ_LEN: usize = 16 << 10;
/// Bytes of one read within a long frame.
const READ_LONG_LEN: usize = 128 << 10;
/// A message that is too long is skipped, so that its sender can get a reply, up to this length; a longer one ends the
/// connection.
const MAX_SKIPPED: u64 = 1 << 30;
/// Upper bound on PONGs and PINGs that wait for a peer that does not read. Beyond it, nothing is read from the peer.
const MAX_CONTROL: usize = 16;

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
    outgoing: Outgoing,
    liveness: Liveness,
    write_stall: Duration,
    /// The time since which the peer has accepted no byte.
    stalled: Option<Instant>,
    min_write_rate: usize,
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
            outgoing: Outgoing::default(),
            liveness: Liveness::new(config.heartbeat, peer.knows_3_1, now),
            write_stall: config.write_stall,
            stalled: None,
            min_write_rate: config.min_write_rate.max(1),
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
        self.outgoing.push(bytes, Kind::Message, 0);
    }

    /// Queues an encoded message in two parts: one for this peer alone, which counts until it is written, and one that is
    /// shared with other connections. The caller bounds their number.
    pub(crate) fn push_shared(&mut self, own: Bytes, shared: Bytes) -> Result<(), Closed> {
        let len = own.len();
        // Empty bytes are not queued, so they could not end the message.
        let kind = if shared.is_empty() { Kind::Message } else { Kind::Part };
        self.outgoing.push(own, kind, len);
        self.outgoing.push(shared, Kind::Message, 0);
        self.hold(len)
    }

    /// Queues an encoded message for this peer alone. It counts until it is written; the caller bounds their number.
    pub(crate) fn push_reply(&mut self, bytes: Bytes) -> Result<(), Closed> {
        let len = bytes.len();
        self.outgoing.push(bytes, Kind::Message, len);
        self.hold(len)
    }

    /// Queues a command.
    pub(crate) fn push_command(&mut self, command: &Command) {
        self.outgoing.push(encode_command(command), Kind::Command, 0);
    }

    /// Whether messages wait to be written.
    pub(crate) fn has_messages(&self) -> bool {
        self.outgoing.has_messages()
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
        let (since, bytes) = self.outgoing.backlog()?;
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
        !self.input.is_empty() && self.outgoing.commands() < MAX_CONTROL
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
            let wrote = self.outgoing.with_slices(|slices| self.stream.try_write(slices))?;
            let Some(wrote) = wrote else {
                self.stalled.get_or_insert_with(Instant::now);
                return Ok(finished);
            };
            if self.stalled.take().is_some() {
                // The peer accepts bytes again, so it is alive.
                self.liveness.seen(Instant::now());
            }
            let (messages, held) = self.outgoing.advance(wrote);
            finished += messages;
            if held > 0 {
                self.release(held);
            }
        }
        if finished > 0 {
            self.outgoing.shrink();
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
mod tests;
