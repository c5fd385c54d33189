//! The stream of a connection: it ends when its peer stops reading what we send, and it holds the connection's places as
//! long as it is open, for a WebSocket as well, which outlives HTTP.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Sleep;

use crate::places::Place;

/// Time within which a peer takes the next bytes of what we send.
const SEND_TIME: Duration = Duration::from_secs(30);

/// A stream.
pub struct Stream<S> {
    inner: S,
    /// Since when the peer has not taken what we send.
    stalled: Option<Pin<Box<Sleep>>>,
    _places: (OwnedSemaphorePermit, Place),
}

impl<S: fmt::Debug> fmt::Debug for Stream<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl<S> Stream<S> {
    /// Holds these places until it is closed.
    pub const fn new(inner: S, places: (OwnedSemaphorePermit, Place)) -> Self {
        Self { inner, stalled: None, _places: places }
    }

    /// The stream itself.
    pub const fn get_ref(&self) -> &S {
        &self.inner
    }

    /// An attempt to send, with the time that it may wait.
    fn send<T>(&mut self, cx: &mut Context<'_>, attempt: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if attempt.is_ready() {
            self.stalled = None;
            return attempt;
        }
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(SEND_TIME)));
        ready!(stalled.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Stream<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Stream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let attempt = Pin::new(&mut self.inner).poll_write(cx, buf);
        self.send(cx, attempt)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let attempt = Pin::new(&mut self.inner).poll_write_vectored(cx, bufs);
        self.send(cx, attempt)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let attempt = Pin::new(&mut self.inner).poll_flush(cx);
        self.send(cx, attempt)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let attempt = Pin::new(&mut self.inner).poll_shutdown(cx);
        self.send(cx, attempt)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::sync::Semaphore;

    use super::*;
    use crate::places::Places;

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_does_not_read_is_left() {
        let (near, mut far) = tokio::io::duplex(8);
        let free = Arc::new(Semaphore::new(1));
        let places = (Arc::clone(&free).acquire_owned().await.unwrap(), Places::new(1, 1).take(None).unwrap());
        let mut stream = Stream::new(near, places);
        stream.write_all(b"12345678").await.unwrap();
        let began = tokio::time::Instant::now();
        let reading = async {
            tokio::time::sleep(SEND_TIME - Duration::from_secs(1)).await;
            far.read_exact(&mut [0; 8]).await.unwrap();
        };
        let (sent, ()) = tokio::join!(stream.write_all(b"12345678"), reading);
        sent.expect("in time");
        let error = stream.write_all(b"9").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(began.elapsed() >= 2 * SEND_TIME - Duration::from_secs(2));
        assert_eq!(free.available_permits(), 0);
        drop(stream);
        assert_eq!(free.available_permits(), 1);
    }
}
