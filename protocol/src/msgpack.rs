//! MessagePack in Salt's two flavours (§2).
//!
//! Network flavour: ZMQ payloads and Crypticle plaintext; text and bytes share the old raw codes, so a reader turns every
//! byte string that is UTF-8 into text. Disk flavour: events, job cache, signatures; text and bytes are apart. Readers take
//! both. Decoding is bounded in bytes, depth and items, and allocates only for bytes that have arrived: 16 MB of nils would
//! otherwise become 640 MB of values.

use crate::value::Value;

/// What a decoder may build. A value of ours is 40 bytes and a smallest item is one byte on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the whole message.
    pub max_bytes: usize,
    /// Nested lists and maps.
    pub max_depth: usize,
    /// Values in the whole message, keys included.
    pub max_items: usize,
}

impl Limits {
    /// What a peer may send before it has proved who it is: an `_auth` request is some 1.3 KB, autosign grains on top.
    pub const UNAUTHENTICATED: Self = Self { max_bytes: 64 << 10, max_depth: 16, max_items: 4 << 10 };
    /// A request of an accepted minion, or a reply to it: job returns and file chunks. Salt's own ceiling is 100 MB.
    pub const REQUEST: Self = Self { max_bytes: 128 << 20, max_depth: 256, max_items: 2 << 20 };
    /// A publication: a load with a long target list.
    pub const PUBLICATION: Self = Self { max_bytes: 32 << 20, max_depth: 256, max_items: 1 << 20 };
    /// An event on the local bus (its sender caps it with `max_event_size`).
    pub const EVENT: Self = Self { max_bytes: 128 << 20, max_depth: 256, max_items: 2 << 20 };
    /// A file that this program wrote itself.
    pub const DISK: Self = Self::EVENT;
}

/// Why bytes are not a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The message ended within a value.
    #[error("the message ends within a value")]
    Truncated,
    /// Bytes are left over behind the value.
    #[error("{0} bytes follow the value")]
    Trailing(usize),
    /// The byte 0xc1, which MessagePack does not use.
    #[error("0xc1 is not a MessagePack code")]
    Reserved,
    /// More than the limits allow.
    #[error("the message has more than {limit} {what}")]
    TooMuch {
        /// Bytes, levels or items.
        what: &'static str,
        /// How many are allowed.
        limit: usize,
    },
}

/// Decodes one value; byte strings that are UTF-8 become text, whatever they were sent as.
///
/// # Errors
/// When it is not exactly one value within the limits.
pub fn decode(bytes: &[u8], limits: &Limits) -> Result<Value, DecodeError> {
    let _ = (bytes, limits);
    todo!()
}

/// Decodes one value; every byte string, keys too, becomes [`Value::Binary`] (as Salt does for `_serve_file`).
///
/// # Errors
/// As [`decode`].
pub fn decode_raw(bytes: &[u8], limits: &Limits) -> Result<Value, DecodeError> {
    let _ = (bytes, limits);
    todo!()
}

/// Decodes one disk-flavour value: text stays text (invalid UTF-8 becomes bytes) and bytes stay bytes.
///
/// # Errors
/// As [`decode`].
pub fn decode_disk(bytes: &[u8], limits: &Limits) -> Result<Value, DecodeError> {
    let _ = (bytes, limits);
    todo!()
}

/// Decodes the first value and says how many bytes it took; for streams of values.
///
/// # Errors
/// As [`decode`], but bytes may follow; [`DecodeError::Truncated`] means that more are needed.
pub fn decode_prefix(bytes: &[u8], limits: &Limits) -> Result<(Value, usize), DecodeError> {
    let _ = (bytes, limits);
    todo!()
}

/// Encodes in the network flavour: text and bytes alike as raw, never str8 or bin.
pub fn encode_network(value: &Value) -> Vec<u8> {
    let _ = value;
    todo!()
}

/// Encodes in the disk flavour.
pub fn encode_disk(value: &Value) -> Vec<u8> {
    let _ = value;
    todo!()
}
