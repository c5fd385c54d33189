//! The bytes of one frame: a length and a MessagePack value.

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::error::WireError;
use crate::messages::{MAX_FRAME, Message};

/// The length before the body.
pub const HEADER: usize = 4;

/// Appends a message to `buffer` as a frame.
///
/// # Errors
///
/// The message is too large or cannot be encoded. The buffer is then unchanged.
pub fn encode<M: Message>(message: &M, buffer: &mut Vec<u8>) -> Result<(), WireError> {
    let start = buffer.len();
    buffer.extend_from_slice(&[0; HEADER]);
    let written = message.serialize(&mut rmp_serde::Serializer::new(&mut *buffer).with_struct_map());
    let length = buffer.len() - start - HEADER;
    let result = match (written, u32::try_from(length)) {
        (Err(error), _) => Err(WireError::Encode(error.to_string())),
        (Ok(()), Ok(header)) if length <= MAX_FRAME => {
            buffer[start..start + HEADER].copy_from_slice(&header.to_be_bytes());
            return Ok(());
        }
        (Ok(()), _) => Err(WireError::TooLarge { size: length, limit: MAX_FRAME }),
    };
    buffer.truncate(start);
    result
}

/// Returns the length of the body that follows the header.
///
/// # Errors
///
/// The length is over the limit.
pub fn body_length(header: [u8; HEADER]) -> Result<usize, WireError> {
    let size = usize::try_from(u32::from_be_bytes(header)).unwrap_or(usize::MAX);
    if size > MAX_FRAME { Err(WireError::TooLarge { size, limit: MAX_FRAME }) } else { Ok(size) }
}

/// Decodes a frame's body, which must be exactly one message.
///
/// # Errors
///
/// The body is not one message.
pub fn decode<M: Message>(body: &[u8]) -> Result<M, WireError> {
    let mut reader = rmp_serde::Deserializer::from_read_ref(body);
    reader.set_max_depth(MAX_DEPTH);
    let message = M::deserialize(&mut reader).map_err(|error| WireError::Malformed(error.to_string()))?;
    match IgnoredAny::deserialize(&mut reader) {
        Err(rmp_serde::decode::Error::InvalidMarkerRead(error))
            if error.kind() == std::io::ErrorKind::UnexpectedEof =>
        {
            Ok(message)
        }
        _ => Err(WireError::Malformed("bytes behind the message".into())),
    }
}

/// Upper bound on a message's nesting. The deepest message has seven levels; values inside are opaque bytes.
const MAX_DEPTH: usize = 32;
