//! The socket between minion and executor: one write for each frame, one read for all frames that have arrived.

use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream as StdStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketType,
};
use tokio::io::Interest;
use tokio::net::UnixStream;

use crate::error::WireError;
use crate::frame::{self, HEADER};
use crate::messages::{FromExecutor, Message, ToExecutor};

/// Upper bound on open files that wait for their message. The minion sends one with each `Load`, and a burst of loads
/// may be in transit. The bound stops a peer that sends files without messages.
const MAX_WAITING_FILES: usize = 64;

/// Upper bound on the open files in one `recvmsg`. The sender attaches one to a message, and the kernel never joins the
/// files of two writes.
const FILES_PER_READ: usize = 4;

/// Bytes requested in one read. Most frames are far smaller, so one read returns a whole frame.
const READ_CHUNK: usize = 64 << 10;

/// Buffers that grew beyond this size for a large frame are freed.
const KEEP_BUFFER: usize = 1 << 20;

/// A connected stream socket, registered with the tokio runtime in which it was made.
#[derive(Debug)]
pub struct Connection {
    stream: UnixStream,
}

impl Connection {
    /// Makes a connection from one end of a socket pair.
    ///
    /// # Errors
    ///
    /// The descriptor is not a connected unix stream socket.
    pub fn from_fd(fd: OwnedFd) -> io::Result<Self> {
        let not = |what: &str| io::Error::new(io::ErrorKind::InvalidInput, format!("not a unix stream socket: {what}"));
        if rustix::net::sockopt::socket_domain(&fd)? != rustix::net::AddressFamily::UNIX {
            return Err(not("another address family"));
        }
        if rustix::net::sockopt::socket_type(&fd)? != SocketType::STREAM {
            return Err(not("another socket type"));
        }
        rustix::net::getpeername(&fd)?;
        let stream = StdStream::from(fd);
        stream.set_nonblocking(true)?;
        Ok(Self { stream: UnixStream::from_std(stream)? })
    }

    /// Returns the number of bytes sent to `end` and not read there yet.
    ///
    /// # Errors
    ///
    /// The system call failed.
    pub fn unread(end: &OwnedFd) -> io::Result<u64> {
        Ok(rustix::io::ioctl_fionread(end)?)
    }

    /// Shuts down both directions at this end: the other end reads the remaining bytes and can write no more. For an
    /// end whose process has ended and that is kept for [`Connection::unread`].
    pub fn hang_up(end: &OwnedFd) {
        // Without a connection there is nothing to shut down.
        let _ = rustix::net::shutdown(end, rustix::net::Shutdown::Both);
    }

    /// Makes a connection and its other end, which becomes fd 0 of an executor. Both are close-on-exec.
    ///
    /// # Errors
    ///
    /// The socket pair cannot be made.
    pub fn pair() -> io::Result<(Self, OwnedFd)> {
        let (here, there) = StdStream::pair()?;
        Ok((Self::from_fd(here.into())?, there.into()))
    }

    /// Returns the minion's side.
    #[must_use]
    pub fn minion(self) -> (Sender<ToExecutor>, Receiver<FromExecutor>) {
        self.split()
    }

    /// Returns the executor's side.
    #[must_use]
    pub fn executor(self) -> (Sender<FromExecutor>, Receiver<ToExecutor>) {
        self.split()
    }

    fn split<Out: Message, In: Message>(self) -> (Sender<Out>, Receiver<In>) {
        let stream = Arc::new(self.stream);
        let sender = Sender {
            stream: Arc::clone(&stream),
            buffer: Vec::new(),
            sent: 0,
            written: Arc::default(),
            file: None,
            direction: PhantomData,
        };
        let receiver =
            Receiver { stream, buffer: Vec::new(), start: 0, end: 0, files: VecDeque::new(), direction: PhantomData };
        (sender, receiver)
    }
}

/// The sending half.
#[derive(Debug)]
pub struct Sender<M> {
    stream: Arc<UnixStream>,
    /// One frame. It is empty except while a send waits or after a send was cancelled.
    buffer: Vec<u8>,
    sent: usize,
    /// Number of bytes of all frames that the socket has accepted, and during a write, of those that it may accept.
    written: Arc<AtomicU64>,
    /// Sent with the first byte of the frame.
    file: Option<OwnedFd>,
    direction: PhantomData<fn(M)>,
}

impl<M: Message> Sender<M> {
    /// Returns a handle that shows whether received bytes are unread here.
    #[must_use]
    pub fn inbox(&self) -> Inbox {
        Inbox(Arc::clone(&self.stream))
    }

    /// Returns the number of bytes that the socket has accepted so far; never less than the other end has read.
    #[must_use]
    pub fn written(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.written)
    }

    /// Sends a message. Waits while the socket is full. Cancel-safe for the connection: the next send or
    /// [`Sender::flush`] finishes a started frame.
    ///
    /// # Errors
    ///
    /// The message is too large or carries a file, or the connection has ended.
    pub async fn send(&mut self, message: &M) -> Result<(), WireError> {
        self.send_noting(message, |_| {}).await
    }

    /// Like [`Sender::send`]. Calls `note`, before the first byte is sent, with the position of the message's last byte
    /// in the stream of all sent bytes. From then on the frame will be sent completely, even if this future is
    /// cancelled.
    ///
    /// # Errors
    ///
    /// As for [`Sender::send`].
    pub async fn send_noting(&mut self, message: &M, note: impl FnOnce(u64)) -> Result<(), WireError> {
        if message.carries_file() {
            return Err(WireError::FileMissing);
        }
        self.flush().await?;
        frame::encode(message, &mut self.buffer)?;
        note(self.written.load(Ordering::Acquire) + self.buffer.len() as u64);
        self.flush().await
    }

    /// Sends a message with an open file.
    ///
    /// # Errors
    ///
    /// The message is too large or carries no file, or the connection has ended.
    pub async fn send_with_file(&mut self, message: &M, file: OwnedFd) -> Result<(), WireError> {
        if !message.carries_file() {
            return Err(WireError::TooManyFiles);
        }
        self.flush().await?;
        frame::encode(message, &mut self.buffer)?;
        self.file = Some(file);
        self.flush().await
    }

    /// Finishes a frame that a cancelled send has started.
    ///
    /// # Errors
    ///
    /// The connection has ended.
    pub async fn flush(&mut self) -> Result<(), WireError> {
        while self.sent < self.buffer.len() {
            let rest = &self.buffer[self.sent..];
            let file = self.file.as_ref().map(AsFd::as_fd);
            // The socket nearly always accepts a frame at once, so the write comes before a wait for readiness.
            let (stream, counter, length) = (&self.stream, &self.written, rest.len() as u64);
            // Counted before the other end can read it: who asks meanwhile may count too much, and never too little.
            let counted = || {
                counter.fetch_add(length, Ordering::AcqRel);
                let written = write(stream.as_fd(), rest, file);
                counter.fetch_sub(length - written.as_ref().map_or(0, |n| *n as u64), Ordering::AcqRel);
                written
            };
            let written = match counted() {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    stream.async_io(Interest::WRITABLE, counted).await?
                }
                other => other?,
            };
            self.file = None;
            self.sent += written;
        }
        self.sent = 0;
        self.buffer.clear();
        self.buffer.shrink_to(KEEP_BUFFER);
        Ok(())
    }
}

/// The bytes received from the other end.
#[derive(Debug, Clone)]
pub struct Inbox(Arc<UnixStream>);

impl Inbox {
    /// Checks whether there are bytes that are not read here yet.
    #[must_use]
    pub fn has_some(&self) -> bool {
        rustix::io::ioctl_fionread(&*self.0).is_ok_and(|bytes| bytes > 0)
    }
}

fn write(socket: BorrowedFd<'_>, bytes: &[u8], file: Option<BorrowedFd<'_>>) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let files = file.map(|file| [file]);
    if let Some(files) = &files
        && !control.push(SendAncillaryMessage::ScmRights(files))
    {
        return Err(io::Error::other("no room for a file descriptor"));
    }
    loop {
        match rustix::net::sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL) {
            Err(rustix::io::Errno::INTR) => {}
            other => return Ok(other?),
        }
    }
}

/// A message and its file.
#[derive(Debug)]
pub struct Received<M> {
    /// The message.
    pub message: M,
    /// Present exactly for messages that carry a file.
    pub file: Option<OwnedFd>,
}

/// The receiving half.
#[derive(Debug)]
pub struct Receiver<M> {
    stream: Arc<UnixStream>,
    /// Fully initialised; `start..end` has arrived and is not processed yet.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    files: VecDeque<OwnedFd>,
    direction: PhantomData<fn() -> M>,
}

impl<M: Message> Receiver<M> {
    /// Returns the next message. Cancel-safe.
    ///
    /// # Errors
    ///
    /// The connection has ended or received something invalid. After any error it is unusable.
    pub async fn recv(&mut self) -> Result<Received<M>, WireError> {
        loop {
            if let Some(message) = self.take_message()? {
                let file = match message.carries_file() {
                    true => Some(self.files.pop_front().ok_or(WireError::FileMissing)?),
                    false => None,
                };
                return Ok(Received { message, file });
            }
            self.make_room();
            let (stream, free, files) = (&self.stream, &mut self.buffer[self.end..], &mut self.files);
            let read = stream.async_io(Interest::READABLE, || read(stream.as_fd(), free, files)).await?;
            if self.files.len() > MAX_WAITING_FILES {
                return Err(WireError::TooManyFiles);
            }
            if read == 0 {
                return Err(if self.start == self.end { WireError::Closed } else { WireError::Truncated });
            }
            self.end += read;
        }
    }

    fn take_message(&mut self) -> Result<Option<M>, WireError> {
        let arrived = &self.buffer[self.start..self.end];
        let Some(header) = arrived.first_chunk::<HEADER>() else { return Ok(None) };
        let length = frame::body_length(*header)?;
        let Some(body) = arrived.get(HEADER..HEADER + length) else { return Ok(None) };
        let message = frame::decode(body)?;
        self.start += HEADER + length;
        Ok(Some(message))
    }

    /// Makes room for the next read. The buffer grows with the bytes that have arrived, never with a length in a
    /// header.
    fn make_room(&mut self) {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
            if self.buffer.len() > KEEP_BUFFER {
                self.buffer = Vec::new();
            }
        }
        if self.end == self.buffer.len() {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
            if self.buffer.len() - self.end < READ_CHUNK {
                self.buffer.resize((self.buffer.len() * 2).max(READ_CHUNK), 0);
            }
        }
    }
}

fn read(socket: BorrowedFd<'_>, free: &mut [u8], files: &mut VecDeque<OwnedFd>) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_PER_READ))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(free)];
    let received = loop {
        match rustix::net::recvmsg(socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => {}
            other => break other?,
        }
    };
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            files.extend(received);
        }
    }
    if received.flags.contains(ReturnFlags::CTRUNC) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "more open files in one message than are taken"));
    }
    Ok(received.bytes)
}
