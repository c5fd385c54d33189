//! Encodes messages and commands.

use bytes::{BufMut, Bytes, BytesMut};

use super::{Command, FLAG_COMMAND, FLAG_LONG, FLAG_MORE};

/// Upper bound on the bytes of a header: flags and eight bytes of length.
const MAX_HEADER_LEN: usize = 9;

/// Encodes one message with all its frames. The result is empty if there are no frames.
pub fn encode_message(frames: &[Bytes]) -> Bytes {
    let mut bytes = BytesMut::with_capacity(frames.iter().map(|frame| frame.len() + MAX_HEADER_LEN).sum());
    for (index, frame) in frames.iter().enumerate() {
        let more = if index + 1 < frames.len() { FLAG_MORE } else { 0 };
        put_frame(&mut bytes, more, frame);
    }
    bytes.freeze()
}

/// Encodes one command; the result is empty for [`Command::Unknown`].
pub fn encode_command(command: &Command) -> Bytes {
    let mut bytes = BytesMut::new();
    if let Some(body) = command.encode_body() {
        put_frame(&mut bytes, FLAG_COMMAND, &body);
    }
    bytes.freeze()
}

fn put_frame(bytes: &mut BytesMut, flags: u8, body: &[u8]) {
    match u8::try_from(body.len()) {
        Ok(len) => bytes.put_slice(&[flags, len]),
        Err(_) => {
            bytes.put_u8(flags | FLAG_LONG);
            bytes.put_u64(body.len() as u64);
        }
    }
    bytes.put_slice(body);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_what_libzmq_writes() {
        let ping = Command::Ping { ttl: 0, context: Bytes::new() };
        assert_eq!(&encode_command(&ping)[..], b"\x04\x07\x04PING\0\0");
        assert_eq!(&encode_command(&Command::Pong { context: Bytes::new() })[..], b"\x04\x05\x04PONG");
        assert_eq!(&encode_message(&[Bytes::new(), Bytes::from("x")])[..], b"\x01\0\0\x01x");
        let long = encode_message(&[Bytes::from(vec![0; 256])]);
        assert_eq!(&long[..9], b"\x02\0\0\0\0\0\0\x01\0");
        assert!(encode_message(&[]).is_empty() && encode_command(&Command::Unknown).is_empty());
    }
}
