//! The way to the master: its socket on this host, or its port on another host.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use brine_protocol::nodes::{self, Cursor, FrameReader, Refusal, TO_NODE_MAX, ToNode};
use brine_tls::ConnectError;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;

use super::remote::Remote;

/// The master says something at least this often; then the connection is given up.
pub(super) const SILENCE: Duration = Duration::from_secs(5);

/// A reader of the master's messages.
pub(super) type Reader = FrameReader<Box<dyn AsyncRead + Send + Unpin>>;
/// The other direction.
pub(super) type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// The way.
#[derive(Debug)]
pub(super) enum Route {
    /// A socket on this host.
    Local(PathBuf),
    /// A port on another host.
    Remote(Box<Remote>),
}

/// A connection whose other end is the master.
pub(super) struct Opened {
    pub(super) reader: Reader,
    pub(super) writer: Writer,
    /// The place of the last event.
    pub(super) at: Cursor,
    /// The master's clock.
    pub(super) now: u64,
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum RouteError {
    /// It cannot be reached, or speaks something else.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It is not the master, or this node may not do anything yet: a person has to do something.
    #[error("{0}")]
    Refused(String),
}

impl Route {
    /// What the log calls the other end.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Local(socket) => format!("the master's socket {}", socket.display()),
            Self::Remote(remote) => format!("the master at {}", remote.address()),
        }
    }

    /// The pause before the next attempt, after so many in a row that failed; longer when a person has to do something.
    pub(super) fn pause(&self, failed: u32, is_refused: bool) -> Duration {
        const FIRST: Duration = Duration::from_millis(200);
        match self {
            Self::Local(_) => FIRST,
            // Not all nodes at once.
            Self::Remote(_) => {
                let longest = if is_refused { Duration::from_secs(5) } else { Duration::from_secs(2) };
                let pause = FIRST.saturating_mul(1 << failed.min(8)).min(longest);
                pause.mul_f64(rand::random_range(0.75..1.25))
            }
        }
    }

    /// Connects, and waits for the master's first message.
    pub(super) async fn open(&self) -> Result<Opened, RouteError> {
        match self {
            Self::Local(socket) => {
                let (reader, writer) = UnixStream::connect(socket).await?.into_split();
                open(FrameReader::new(Box::new(reader), TO_NODE_MAX), Box::new(writer)).await
            }
            Self::Remote(remote) => {
                let (reader, writer) = remote.connect().await?;
                open(FrameReader::new(reader, TO_NODE_MAX), writer).await
            }
        }
        .map_err(|error| match (self, error) {
            (Self::Remote(remote), RouteError::Refused(why)) => RouteError::Refused(remote.explain(&why)),
            (_, error) => error,
        })
    }
}

impl From<ConnectError> for RouteError {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::OtherKey(_) => Self::Refused(error.to_string()),
            ConnectError::Io(error) => Self::Io(error),
        }
    }
}

async fn open(mut reader: Reader, writer: Writer) -> Result<Opened, RouteError> {
    match next(&mut reader).await? {
        Some(ToNode::Hello { version: nodes::VERSION, at, now }) => Ok(Opened { reader, writer, at, now }),
        Some(ToNode::Hello { .. }) => Err(RouteError::Refused(Refusal::Version.to_string())),
        Some(ToNode::Refused(why)) => Err(RouteError::Refused(why.to_string())),
        Some(_) => Err(io::Error::from(io::ErrorKind::InvalidData).into()),
        None => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
    }
}

/// Waits for the next message; none at the end.
pub(super) async fn next(reader: &mut Reader) -> io::Result<Option<ToNode>> {
    let silent = || io::Error::new(io::ErrorKind::TimedOut, "it says nothing");
    let Some(message) = tokio::time::timeout(SILENCE, reader.next()).await.map_err(|_| silent())?? else {
        return Ok(None);
    };
    ToNode::decode(&message).map(Some).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_a_bound() {
        let local = Route::Local(PathBuf::new());
        assert_eq!(local.pause(30, true), Duration::from_millis(200));
        let remote = Route::Remote(Box::new(Remote::nowhere()));
        for (failed, is_refused, least, most) in
            [(0, false, 150, 250), (1, false, 300, 500), (9, false, 1_500, 2_500), (99, true, 3_750, 6_250)]
        {
            let pause = remote.pause(failed, is_refused).as_millis();
            assert!((least..=most).contains(&pause), "{failed}: {pause} ms");
        }
    }
}
