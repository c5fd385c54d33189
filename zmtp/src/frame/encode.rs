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

/// Encodes a message up to the bytes of its last frame, which has `last` bytes and follows as it is: a large frame that many
/// messages share is not copied into each.
pub(crate) fn encode_before(frames: &[&Bytes], last: usize) -> Bytes {
    let len = frames.iter().map(|frame| frame.len() + MAX_HEADER_LEN).sum::<usize>();
    let mut bytes = BytesMut::with_capacity(len + MAX_HEADER_LEN);
    for frame in frames {
        put_frame(&mut bytes, FLAG_MORE, frame);
    }
    put_header(&mut bytes, 0, last);
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
    put_header(bytes, flags, body.len());
    bytes.put_slice(body);
}

fn put_header(bytes: &mut BytesMut, flags: u8, len: usize) {
    match u8::try_from(len) {
        Ok(len) => bytes.put_slice(&[flags, len]),
        Err(_) => {
            bytes.put_u8(flags | FLAG_LONG);
            bytes.put_u64(len as u64);
        }
    }
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
        for len in [0, 1, 255, 256] {
            let (topic, last) = (Bytes::from("topic"), Bytes::from(vec![7; len]));
            let whole = encode_message(&[topic.clone(), last.clone()]);
            assert_eq!([encode_before(&[&topic], len), last].concat(), whole);
        }
        assert!(encode_message(&[]).is_empty() && encode_command(&Command::Unknown).is_empty());
    }
}
