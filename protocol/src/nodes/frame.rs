//! Messages on a stream of bytes: a length of four bytes before each.

use std::io;

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Bytes of one read.
const READ: usize = 64 << 10;

/// Frames a message.
///
/// # Panics
/// When it has 4 GiB.
pub fn frame(message: &[u8]) -> Bytes {
    let length = u32::try_from(message.len()).expect("a message has less than 4 GiB");
    let mut framed = BytesMut::with_capacity(4 + message.len());
    framed.extend_from_slice(&length.to_be_bytes());
    framed.extend_from_slice(message);
    framed.freeze()
}

/// Reads framed messages.
#[derive(Debug)]
pub struct FrameReader<R> {
    reader: R,
    buffer: BytesMut,
    bytes_max: usize,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    /// Accepts messages of at most this length.
    pub fn new(reader: R, bytes_max: usize) -> Self {
        Self { reader, buffer: BytesMut::new(), bytes_max }
    }

    /// Accepts messages of at most this length from now on.
    pub const fn accept(&mut self, bytes_max: usize) {
        self.bytes_max = bytes_max;
    }

    /// Waits for the next message; none at the end of the stream. Memory grows with what arrives, not with the length that
    /// is claimed. Cancel-safe.
    ///
    /// # Errors
    /// When the stream breaks, or a message is too long.
    pub async fn next(&mut self) -> io::Result<Option<Bytes>> {
        loop {
            if let Some(&length) = self.buffer.first_chunk::<4>() {
                let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
                if length > self.bytes_max {
                    return Err(io::Error::new(io::ErrorKind::InvalidData, "a message is too long"));
                }
                if self.buffer.len() - 4 >= length {
                    self.buffer.advance(4);
                    return Ok(Some(self.buffer.split_to(length).freeze()));
                }
            }
            self.buffer.reserve(READ);
            if self.reader.read_buf(&mut self.buffer).await? == 0 {
                return if self.buffer.is_empty() { Ok(None) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn messages_are_taken_apart_and_bounded() {
        let stream = [frame(b"one"), frame(b""), frame(b"three")].concat();
        let mut reader = FrameReader::new(&stream[..], 5);
        for expected in [&b"one"[..], b"", b"three"] {
            assert_eq!(reader.next().await.unwrap().unwrap(), expected);
        }
        assert_eq!(reader.next().await.unwrap(), None);
        assert!(FrameReader::new(&stream[..], 2).next().await.is_err(), "too long");
        assert!(FrameReader::new(&stream[..5], 5).next().await.is_err(), "cut off");
        assert!(FrameReader::new(&[0xff; 8][..], 5).next().await.is_err(), "a claimed length");
    }
}
