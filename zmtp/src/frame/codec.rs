//! Decodes bytes into messages and commands.

use bytes::{Bytes, BytesMut};

use super::{Command, FLAG_COMMAND, FLAG_LONG, FLAG_MORE, FrameError};
use crate::Frames;

/// Limits of a [`Decoder`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecoderLimits {
    /// Bytes of a message, all frames together.
    pub max_message: usize,
    /// Frames of a message. 0 refuses messages, as before READY.
    pub max_frames: usize,
    /// Bytes of a command.
    pub max_command: usize,
}

/// The result of decoding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decoded {
    /// A whole message.
    Message(Frames),
    /// A command. One may come between two frames of a message.
    Command(Command),
}

/// A decoder. It holds at most one header, one unfinished frame and the finished frames of one message.
#[derive(Debug)]
pub struct Decoder {
    limits: DecoderLimits,
    header: Header,
    /// The frame whose header is complete.
    frame: Option<Frame>,
    /// The length of the last frame of a message that was too long, after that error.
    refused: Option<u64>,
    /// The received part of that frame, if it did not arrive whole.
    body: BytesMut,
    /// The finished frames of the message.
    frames: Frames,
    /// Bytes in `frames`.
    frames_len: usize,
}

#[derive(Debug, Clone, Copy)]
struct Frame {
    flags: u8,
    len: usize,
}

/// Flags and length, as far as they have arrived.
#[derive(Debug, Default)]
struct Header {
    bytes: [u8; 9],
    len: usize,
}

impl Header {
    /// Takes the bytes of a header from `input`; returns the flags and the claimed length when the header is complete.
    fn take(&mut self, input: &mut &[u8]) -> Result<Option<(u8, u64)>, FrameError> {
        while let Some((first, rest)) = input.split_first() {
            self.bytes[self.len] = *first;
            self.len += 1;
            *input = rest;
            let flags = self.bytes[0];
            if self.len == 1 {
                let known = flags & !(FLAG_MORE | FLAG_LONG | FLAG_COMMAND) == 0;
                if !known || flags & (FLAG_COMMAND | FLAG_MORE) == (FLAG_COMMAND | FLAG_MORE) {
                    return Err(FrameError::Flags(flags));
                }
            }
            let long = flags & FLAG_LONG != 0;
            if self.len == if long { 9 } else { 2 } {
                self.len = 0;
                let [_, length @ ..] = self.bytes;
                let length = if long { u64::from_be_bytes(length) } else { u64::from(length[0]) };
                return Ok(Some((flags, length)));
            }
        }
        Ok(None)
    }
}

impl Decoder {
    /// A decoder at the start of a frame.
    pub fn new(limits: DecoderLimits) -> Decoder {
        Decoder {
            limits,
            header: Header::default(),
            frame: None,
            refused: None,
            body: BytesMut::new(),
            frames: Vec::new(),
            frames_len: 0,
        }
    }

    /// Changes the limits for the frames whose header has not yet been read.
    pub fn set_limits(&mut self, limits: DecoderLimits) {
        self.limits = limits;
    }

    /// Bytes of unfinished messages.
    pub fn buffered(&self) -> usize {
        self.body.len() + self.frames_len
    }

    /// Whether a message or command has begun and is not complete.
    pub(crate) fn is_unfinished(&self) -> bool {
        self.header.len > 0 || self.frame.is_some() || !self.frames.is_empty()
    }

    /// Whether the current frame lacks more than `len` bytes.
    pub(crate) fn expects_more_than(&self, len: usize) -> bool {
        self.frame.is_some_and(|frame| frame.len - self.body.len() > len)
    }

    /// Takes bytes from the front of `input` up to the end of the next message or command, or all bytes if it is
    /// incomplete. After an error, the decoder must not be used, except as `Decoder::step_over` describes.
    ///
    /// # Errors
    /// When the peer violates the protocol or a limit.
    pub fn decode(&mut self, input: &mut &[u8]) -> Result<Option<Decoded>, FrameError> {
        loop {
            let frame = match self.frame {
                Some(frame) => frame,
                None => {
                    let Some((flags, length)) = self.header.take(input)? else { return Ok(None) };
                    let checked = self.check(flags, length);
                    if let Err(FrameError::MessageTooLong { .. }) = checked {
                        self.refused = (flags & FLAG_MORE == 0).then_some(length);
                    }
                    let frame = Frame { flags, len: checked? };
                    self.frame = Some(frame);
                    frame
                }
            };
            let Some(body) = self.take_body(frame.len, input) else { return Ok(None) };
            self.frame = None;
            if frame.flags & FLAG_COMMAND != 0 {
                return Ok(Some(Decoded::Command(Command::parse(&body)?)));
            }
            self.frames_len += body.len();
            self.frames.push(body);
            if frame.flags & FLAG_MORE == 0 {
                self.frames_len = 0;
                return Ok(Some(Decoded::Message(std::mem::take(&mut self.frames))));
            }
        }
    }

    /// Forgets a message that was refused as too long. Returns the bytes of its last frame that the caller must skip
    /// before using the decoder again; none if more frames of the message follow.
    pub(crate) fn step_over(&mut self) -> Option<u64> {
        let length = self.refused.take()?;
        self.frames = Vec::new();
        self.frames_len = 0;
        Some(length)
    }

    /// Checks the claimed length before any byte of the body is stored.
    fn check(&self, flags: u8, length: u64) -> Result<usize, FrameError> {
        let len = usize::try_from(length).unwrap_or(usize::MAX);
        if flags & FLAG_COMMAND != 0 {
            let max = self.limits.max_command;
            return if len > max { Err(FrameError::CommandTooLong { length, max }) } else { Ok(len) };
        }
        if self.frames.len() >= self.limits.max_frames {
            return Err(FrameError::TooManyFrames { max: self.limits.max_frames });
        }
        let max = self.limits.max_message;
        if self.frames_len.saturating_add(len) > max {
            let length = length.saturating_add(self.frames_len as u64);
            return Err(FrameError::MessageTooLong { length, max });
        }
        Ok(len)
    }

    /// Takes the body once `len` bytes of it have arrived. A body that arrives whole is copied to its exact size, so
    /// that a small message does not keep the read buffer alive; a body that arrives in parts grows with the parts.
    fn take_body(&mut self, len: usize, input: &mut &[u8]) -> Option<Bytes> {
        let missing = len - self.body.len();
        let (part, rest) = input.split_at(missing.min(input.len()));
        *input = rest;
        if part.len() == len {
            return Some(Bytes::copy_from_slice(part));
        }
        self.body.extend_from_slice(part);
        (part.len() == missing).then(|| std::mem::take(&mut self.body).freeze())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::encode_message;

    const LIMITS: DecoderLimits = DecoderLimits { max_message: 1000, max_frames: 4, max_command: 100 };

    /// Decodes `bytes` in steps of `step` bytes.
    fn decode(bytes: &[u8], step: usize) -> Result<Vec<Decoded>, FrameError> {
        let mut decoder = Decoder::new(LIMITS);
        let mut all = Vec::new();
        for mut chunk in bytes.chunks(step) {
            while let Some(item) = decoder.decode(&mut chunk)? {
                all.push(item);
            }
            assert!(chunk.is_empty());
        }
        Ok(all)
    }

    #[test]
    fn reads_messages_and_commands_between_their_frames() {
        let mut bytes = vec![FLAG_MORE, 1, b'a'];
        bytes.extend(b"\x04\x07\x04PING\x00\x00");
        bytes.extend([0, 2, b'b', b'c', FLAG_LONG, 0, 0, 0, 0, 0, 0, 0, 1, b'd']);
        for step in 1..=bytes.len() {
            let items = decode(&bytes, step).unwrap();
            assert_eq!(
                items,
                [
                    Decoded::Command(Command::Ping { ttl: 0, context: Bytes::new() }),
                    Decoded::Message(vec![Bytes::from("a"), Bytes::from("bc")]),
                    Decoded::Message(vec![Bytes::from("d")]),
                ],
                "step {step}"
            );
        }
    }

    #[test]
    fn refuses_by_the_header_alone() {
        let huge = |flags: u8, length: u64| [&[flags][..], &length.to_be_bytes()].concat();
        let max = 1000;
        for (bytes, error) in [
            (vec![0x08], FrameError::Flags(8)),
            (vec![0x80], FrameError::Flags(0x80)),
            (vec![FLAG_COMMAND | FLAG_MORE], FrameError::Flags(5)),
            (huge(FLAG_LONG, u64::MAX), FrameError::MessageTooLong { length: u64::MAX, max }),
            (huge(FLAG_LONG, 1001), FrameError::MessageTooLong { length: 1001, max }),
            (
                [&[FLAG_MORE, 1, 0][..], &huge(FLAG_LONG, u64::MAX)].concat(),
                FrameError::MessageTooLong { length: u64::MAX, max },
            ),
            (
                [&[FLAG_MORE, 1, 0][..], &huge(FLAG_LONG, 1000)].concat(),
                FrameError::MessageTooLong { length: 1001, max },
            ),
            (vec![FLAG_COMMAND, 101], FrameError::CommandTooLong { length: 101, max: 100 }),
            (huge(FLAG_LONG | FLAG_COMMAND, 1 << 40), FrameError::CommandTooLong { length: 1 << 40, max: 100 }),
            ([1, 0].repeat(5), FrameError::TooManyFrames { max: 4 }),
        ] {
            for step in [1, bytes.len()] {
                assert_eq!(decode(&bytes, step), Err(error.clone()), "{bytes:?}");
            }
        }
    }

    #[test]
    fn holds_only_what_has_arrived() {
        let mut decoder = Decoder::new(DecoderLimits { max_message: 1 << 30, ..LIMITS });
        let header = [&[FLAG_LONG][..], &(1u64 << 30).to_be_bytes()].concat();
        assert_eq!(decoder.decode(&mut &header[..]), Ok(None));
        assert_eq!(decoder.decode(&mut &[0; 100][..]), Ok(None));
        assert_eq!(decoder.buffered(), 100);
        assert!(decoder.is_unfinished());
        assert!(decoder.body.capacity() <= 4096, "{} bytes reserved", decoder.body.capacity());
        assert!(decoder.expects_more_than(1 << 20));
    }

    #[test]
    fn reads_what_it_writes() {
        for len in [0, 1, 254, 255, 256, 257, 990] {
            let message = vec![Bytes::new(), Bytes::from(vec![7; len])];
            assert_eq!(decode(&encode_message(&message), 3).unwrap(), [Decoded::Message(message)]);
        }
    }

    #[test]
    fn truncated_input_is_never_complete() {
        let bytes = encode_message(&[Bytes::from("topic"), Bytes::from(vec![1; 300])]);
        for len in 0..bytes.len() {
            assert_eq!(decode(&bytes[..len], 7), Ok(vec![]), "{len}");
        }
    }
}
