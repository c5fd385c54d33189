//! The sockets that connect: one attempt, from the name to the established connection.

use std::{io, net::SocketAddr, time::Duration};

use bytes::Bytes;
use tokio::{
    net::{TcpSocket, UnixStream, lookup_host},
    time::timeout,
};

use crate::{
    Endpoint, Heartbeat, Keepalive, SocketLimits,
    connection::{Connection, ConnectionConfig},
    frame::DecoderLimits,
    handshake::{HandshakeError, SocketType, handshake},
    stream::Stream,
};

/// Upper bound on the bytes of a command from a server; PING with its context has 21 bytes.
const MAX_COMMAND_LEN: usize = 4096;

/// The parameters of an attempt.
#[derive(Debug, Clone)]
pub(crate) struct Connector {
    pub(crate) endpoint: Endpoint,
    pub(crate) socket_type: SocketType,
    pub(crate) identity: Option<Bytes>,
    pub(crate) limits: SocketLimits,
    pub(crate) heartbeat: Heartbeat,
    pub(crate) keepalive: Keepalive,
    pub(crate) connect_timeout: Duration,
}

/// An attempt failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    #[error("cannot resolve {host}: {source}")]
    Resolve { host: String, source: io::Error },
    #[error("cannot connect: {0}")]
    Io(#[from] io::Error),
    #[error("cannot connect within {0:?}")]
    Deadline(Duration),
    #[error("{0}")]
    Handshake(#[from] HandshakeError),
}

impl Connector {
    /// Connects and performs the handshake, each under its own deadline.
    pub(crate) async fn connect(&self) -> Result<Connection, ConnectError> {
        let stream = timeout(self.connect_timeout, open(&self.endpoint, &self.keepalive))
            .await
            .map_err(|_| ConnectError::Deadline(self.connect_timeout))??;
        // An identity that ZMTP cannot encode is left out, because nothing here routes by identity.
        let identity = self.identity.as_ref().filter(|identity| identity.len() <= 255);
        let established = handshake(stream, self.socket_type, identity, self.limits.handshake).await?;
        let decoder = DecoderLimits {
            max_message: self.limits.max_message,
            max_frames: self.limits.max_frames,
            max_command: MAX_COMMAND_LEN,
        };
        let config = ConnectionConfig {
            decoder,
            heartbeat: self.heartbeat,
            write_stall: self.limits.write_stall,
            min_write_rate: self.limits.min_write_rate,
            read_grace: self.limits.read_grace,
            min_read_rate: self.limits.min_read_rate,
        };
        Ok(Connection::new(established, config))
    }
}

/// Connects to the first address of the name that accepts.
async fn open(endpoint: &Endpoint, keepalive: &Keepalive) -> Result<Stream, ConnectError> {
    let (host, port, source) = match endpoint {
        Endpoint::Ipc(path) => return Ok(Stream::Unix(UnixStream::connect(path).await?)),
        Endpoint::Tcp { host, port, source } => (host, *port, source),
    };
    let sources = match source {
        Some((host, port)) => Some(resolve(host, *port).await?),
        None => None,
    };
    let mut error = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in resolve(host, port).await? {
        // The source address must be of the same family.
        let source = match &sources {
            None => None,
            Some(sources) => match sources.iter().find(|source| source.is_ipv4() == address.is_ipv4()) {
                Some(source) => Some(*source),
                None => continue,
            },
        };
        match open_tcp(address, source, keepalive).await {
            Ok(stream) => return Ok(stream),
            Err(failed) => error = failed,
        }
    }
    Err(error.into())
}

async fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, ConnectError> {
    let addresses =
        lookup_host((host, port)).await.map_err(|source| ConnectError::Resolve { host: host.to_owned(), source })?;
    Ok(addresses.collect())
}

async fn open_tcp(address: SocketAddr, source: Option<SocketAddr>, keepalive: &Keepalive) -> io::Result<Stream> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    if let Some(source) = source {
        // Otherwise a fixed source port would be unusable for a minute after each connection.
        socket.set_reuseaddr(true)?;
        socket.bind(source)?;
    }
    Stream::tcp(socket.connect(address).await?, keepalive)
}
