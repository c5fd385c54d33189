//! A connected byte stream, TCP or Unix, used by readiness, so that a silent peer takes no buffer.

use std::{
    io,
    net::SocketAddr,
    task::{Context, Poll, Waker},
    time::Duration,
};

use bytes::{BufMut, BytesMut};
use tokio::{
    io::{AsyncReadExt, Interest, Ready},
    net::{TcpStream, UnixStream},
};

use crate::{Keepalive, limits::MAX_UNSENT};

#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    /// Wraps a TCP stream, with its options set.
    pub(crate) fn tcp(stream: TcpStream, keepalive: &Keepalive) -> io::Result<Stream> {
        // Messages are written whole, so waiting to fill a segment would only delay them.
        stream.set_nodelay(true)?;
        socket2::SockRef::from(&stream).set_tcp_notsent_lowat(MAX_UNSENT)?;
        if keepalive.enabled {
            let mut settings = socket2::TcpKeepalive::new();
            if let Some(idle) = keepalive.idle {
                settings = settings.with_time(idle);
            }
            if let Some(interval) = keepalive.interval {
                settings = settings.with_interval(interval);
            }
            if let Some(count) = keepalive.count {
                settings = settings.with_retries(count);
            }
            socket2::SockRef::from(&stream).set_tcp_keepalive(&settings)?;
        }
        Ok(Stream::Tcp(stream))
    }

    /// From now on, closing drops what the peer has not accepted, which the system would keep until the peer takes it.
    pub(crate) fn drop_unsent(&self) {
        if let Stream::Tcp(stream) = self {
            // If it fails, the connection has ended already.
            let _ = socket2::SockRef::from(stream).set_linger(Some(Duration::ZERO));
        }
    }

    /// The peer's address; `None` for a Unix socket.
    pub(crate) fn peer_addr(&self) -> Option<SocketAddr> {
        match self {
            Stream::Tcp(stream) => stream.peer_addr().ok(),
            Stream::Unix(_) => None,
        }
    }

    /// Waits until the stream is ready. Cancel-safe.
    pub(crate) async fn ready(&self, interest: Interest) -> io::Result<Ready> {
        match self {
            Stream::Tcp(stream) => stream.ready(interest).await,
            Stream::Unix(stream) => stream.ready(interest).await,
        }
    }

    /// Reads at most `max` bytes; `None` if there are none. After fewer bytes than that, [`Stream::ready`] waits for more to arrive, so
    /// that no read is made only to find nothing.
    pub(crate) fn try_read(&mut self, buffer: &mut BytesMut, max: usize) -> io::Result<Option<usize>> {
        buffer.reserve(max);
        // Unlike `try_read_buf`, this takes a short read for the last one of now.
        let read = match self {
            Stream::Tcp(stream) => now(stream.read_buf(&mut buffer.limit(max))),
            Stream::Unix(stream) => now(stream.read_buf(&mut buffer.limit(max))),
        };
        would_block(read.unwrap_or_else(|| Err(io::ErrorKind::WouldBlock.into())))
    }

    /// Writes as many bytes as fit; `None` if none do.
    pub(crate) fn try_write(&self, slices: &[io::IoSlice<'_>]) -> io::Result<Option<usize>> {
        would_block(match self {
            Stream::Tcp(stream) => stream.try_write_vectored(slices),
            Stream::Unix(stream) => stream.try_write_vectored(slices),
        })
    }
}

/// The result of a future that is ready. [`Stream::ready`] waits for the others.
fn now<T>(future: impl Future<Output = T>) -> Option<T> {
    match std::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => Some(result),
        Poll::Pending => None,
    }
}

fn would_block(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Ok(count) => Ok(Some(count)),
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(None),
        Err(error) => Err(error),
    }
}
