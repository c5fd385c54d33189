//! The socket between minion and executor: one write a frame, one read for as many frames as have arrived.

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

/// Open files that may wait for the message they belong to. The minion sends one with each `Load`, so a burst of loads can be on
/// its way; a peer that sends files without messages is stopped here.
const MAX_WAITING_FILES: usize = 64;

/// Open files in one `recvmsg`. The sender puts one with a message; the kernel never joins those of two writes.
const FILES_PER_READ: usize = 4;

/// Bytes asked for in one read: most frames are far smaller, so that one read brings a whole frame.
const READ_CHUNK: usize = 64 << 10;

/// Buffers that grew beyond this for a large frame are given back.
const KEEP_BUFFER: usize = 1 << 20;

/// A connected stream socket that belongs to the tokio runtime it was made in.
#[derive(Debug)]
pub struct Connection {
    stream: UnixStream,
}

impl Connection {
    /// Takes over one end of a socket pair. An error where the descriptor is not a connected unix stream socket.
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

    /// How many bytes of what was written to this end's peer are not read yet: `end` is the end that they wait at.
    pub fn unread(end: &OwnedFd) -> io::Result<u64> {
        Ok(rustix::io::ioctl_fionread(end)?)
    }

    /// Nothing more comes from this end, nor is anything taken there: whoever has the other one reads to the end and writes in vain.
    /// For an end whose process has gone and that is kept for [`Connection::unread`].
    pub fn hang_up(end: &OwnedFd) {
        // Where there is no connection any more, there is nothing to end.
        let _ = rustix::net::shutdown(end, rustix::net::Shutdown::Both);
    }

    /// A connection and the other end of it, which is to become fd 0 of an executor. Both are close-on-exec.
    pub fn pair() -> io::Result<(Self, OwnedFd)> {
        let (here, there) = StdStream::pair()?;
        Ok((Self::from_fd(here.into())?, there.into()))
    }

    /// The minion's side.
    #[must_use]
    pub fn minion(self) -> (Sender<ToExecutor>, Receiver<FromExecutor>) {
        self.split()
    }

    /// The executor's side.
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
    /// One frame; more than nothing is left in it only while a send waits or after one was cancelled.
    buffer: Vec<u8>,
    sent: usize,
    /// Bytes that the socket took, of all frames.
    written: Arc<AtomicU64>,
    /// Goes with the first byte of the frame.
    file: Option<OwnedFd>,
    direction: PhantomData<fn(M)>,
}

impl<M: Message> Sender<M> {
    /// What the other end has said and is not read here yet.
    #[must_use]
    pub fn inbox(&self) -> Inbox {
        Inbox(Arc::clone(&self.stream))
    }

    /// How many bytes the socket has taken so far.
    #[must_use]
    pub fn written(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.written)
    }

    /// Sends a message. Waits while the socket is full. Cancel-safe for the connection: a frame that was begun is finished by the
    /// next send or [`Sender::flush`].
    pub async fn send(&mut self, message: &M) -> Result<(), WireError> {
        self.send_noting(message, |_| {}).await
    }

    /// The same. Before the first byte of it goes it is noted which byte of all that is ever sent will be its last; from then on its frame
    /// is sent, whoever finishes it.
    pub async fn send_noting(&mut self, message: &M, note: impl FnOnce(u64)) -> Result<(), WireError> {
        if message.carries_file() {
            return Err(WireError::FileMissing);
        }
        self.flush().await?;
        frame::encode(message, &mut self.buffer)?;
        note(self.written.load(Ordering::Acquire) + self.buffer.len() as u64);
        self.flush().await
    }

    /// Sends a message together with an open file.
    pub async fn send_with_file(&mut self, message: &M, file: OwnedFd) -> Result<(), WireError> {
        if !message.carries_file() {
            return Err(WireError::TooManyFiles);
        }
        self.flush().await?;
        frame::encode(message, &mut self.buffer)?;
        self.file = Some(file);
        self.flush().await
    }

    /// Finishes a frame that a cancelled send has begun.
    pub async fn flush(&mut self) -> Result<(), WireError> {
        while self.sent < self.buffer.len() {
            let rest = &self.buffer[self.sent..];
            let file = self.file.as_ref().map(AsFd::as_fd);
            // The socket takes a frame at once nearly always: asking for readiness first would only cost.
            let written = match write(self.stream.as_fd(), rest, file) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let stream = &self.stream;
                    stream.async_io(Interest::WRITABLE, || write(stream.as_fd(), rest, file)).await?
                }
                other => other?,
            };
            self.file = None;
            self.sent += written;
            self.written.fetch_add(written as u64, Ordering::Release);
        }
        self.sent = 0;
        self.buffer.clear();
        self.buffer.shrink_to(KEEP_BUFFER);
        Ok(())
    }
}

/// What the other end has said.
#[derive(Debug, Clone)]
pub struct Inbox(Arc<UnixStream>);

impl Inbox {
    /// Whether something of it is not read here yet.
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

/// A message and the file that came with it.
#[derive(Debug)]
pub struct Received<M> {
    /// The message.
    pub message: M,
    /// Always there for messages that carry one, never for others.
    pub file: Option<OwnedFd>,
}

/// The receiving half.
#[derive(Debug)]
pub struct Receiver<M> {
    stream: Arc<UnixStream>,
    /// All of it is initialised; `start..end` is what has arrived and was not taken yet.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    files: VecDeque<OwnedFd>,
    direction: PhantomData<fn() -> M>,
}

impl<M: Message> Receiver<M> {
    /// The next message. Cancel-safe. After any error the connection is over.
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

    /// Room to read into. Grows with what has arrived, never with what a header claims.
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
