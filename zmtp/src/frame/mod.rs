//! The codec of ZMTP 3.1 traffic (RFC 37): frames, messages and commands, without sockets and without a clock.
//!
//! [`Decoder`] accepts bytes in pieces of any size and returns whole messages and commands. It checks every length
//! against its [`DecoderLimits`] before it stores a byte, and stores only bytes that have arrived.

mod codec;
mod command;
mod encode;

pub use codec::{Decoded, Decoder, DecoderLimits};
pub use command::{Command, MAX_PING_CONTEXT_LEN, ReadyProperties};
pub(crate) use encode::encode_before;
pub use encode::{encode_command, encode_message};

/// The next frame follows in the same message.
pub(crate) const FLAG_MORE: u8 = 0x01;
/// The length has eight bytes instead of one.
pub(crate) const FLAG_LONG: u8 = 0x02;
/// A command, not part of a message.
pub(crate) const FLAG_COMMAND: u8 = 0x04;

/// Bytes that are not ZMTP or exceed the limits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// Bits that the protocol reserves, or a command that claims to be continued.
    #[error("a frame has the flags {0:#04x}, which ZMTP does not know")]
    Flags(u8),
    /// A message has more frames than allowed.
    #[error("a message has more than {max} frames")]
    TooManyFrames {
        /// The limit.
        max: usize,
    },
    /// A message is, or claims to be, longer than allowed.
    #[error("a message of at least {length} bytes is over the limit of {max}")]
    MessageTooLong {
        /// The length claimed by its headers so far.
        length: u64,
        /// The limit.
        max: usize,
    },
    /// A command is, or claims to be, longer than allowed.
    #[error("a command of {length} bytes is over the limit of {max}")]
    CommandTooLong {
        /// The length claimed by its header.
        length: u64,
        /// The limit.
        max: usize,
    },
    /// The body of a command is malformed.
    #[error("a malformed command: {0}")]
    Command(&'static str),
}
