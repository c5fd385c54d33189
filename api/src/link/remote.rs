//! The port of a master on another host (`api_port`): TLS in which both prove their keys.
//!
//! Until the master has proved its key it learns this node's public key at most; then it learns the node's name, and when it has accepted
//! that, callers' tokens and passwords.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use brine_protocol::nodes::{self, ToMaster};
use brine_tls::{Identity, NodeStream};
use tokio::io::{AsyncRead, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::route::{RouteError, Writer};
use crate::pki::{NodePki, PinError};

/// Time for a connection, and for the handshake and the first message.
const STEP: Duration = Duration::from_secs(5);

/// The master's port, and who this is there.
#[derive(Debug)]
pub struct Remote {
    host: String,
    port: u16,
    name: String,
    identity: Identity,
    pki: Arc<NodePki>,
}

impl Remote {
    /// The port of a master, for this node by this name.
    ///
    /// # Errors
    /// One line, when the node's key cannot be used for TLS.
    pub fn new(host: String, port: u16, name: String, pki: NodePki) -> Result<Self, String> {
        let identity = Identity::new(pki.key()).map_err(|error| format!("{}: {error}", pki.key_path().display()))?;
        Ok(Self { host, port, name, identity, pki: Arc::new(pki) })
    }

    /// The address, for the log.
    pub(super) fn address(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// Says what a person can do about a refusal.
    pub(super) fn explain(&self, why: &str) -> String {
        let (name, finger) = (&self.name, self.pki.fingerprint());
        format!(
            "{why}. Here it is {name} with the key {finger}: on the master, see salt-key --nodes -F and salt-key --nodes -a {name}"
        )
    }

    /// Connects, proves this node's key, and says its name.
    pub(super) async fn connect(&self) -> Result<(Box<dyn AsyncRead + Send + Unpin>, Writer), RouteError> {
        let late = |_| io::Error::new(io::ErrorKind::TimedOut, "it does not answer");
        let connecting = TcpStream::connect((self.host.as_str(), self.port));
        let stream = tokio::time::timeout(STEP, connecting).await.map_err(late)??;
        let _ = stream.set_nodelay(true);
        let stream = tokio::time::timeout(STEP, self.join(stream)).await.map_err(late)??;
        let (reader, writer) = tokio::io::split(stream);
        Ok((Box::new(reader), Box::new(writer)))
    }

    async fn join(&self, stream: TcpStream) -> Result<NodeStream<TcpStream>, RouteError> {
        // Read anew each time: an operator may have removed it.
        let pin = self.pki.pin().map_err(|error| RouteError::Refused(error.to_string()))?;
        let expected = pin.clone();
        let connected = brine_tls::connect(stream, &self.identity, move |key| expected.fits(key)).await;
        let (mut stream, key) = match connected {
            Ok(connected) => connected,
            Err(brine_tls::ConnectError::OtherKey(key)) => {
                return Err(RouteError::Refused(pin.mismatch(&key)));
            }
            Err(error) => return Err(error.into()),
        };
        self.pki.trust(&pin, &key).map_err(|error: PinError| RouteError::Refused(error.to_string()))?;
        let join = ToMaster::Join { version: nodes::VERSION, name: self.name.clone() };
        stream.write_all(&nodes::frame(&join.encode())).await?;
        stream.flush().await?;
        Ok(stream)
    }

    /// A master that is nowhere.
    #[cfg(test)]
    pub(super) fn nowhere() -> Self {
        let key = brine_protocol::keys::PrivateKey::from_pem(brine_kit::keys::PEM[0]).expect("a key");
        Self {
            host: "192.0.2.1".to_owned(),
            port: 1,
            name: "api1".to_owned(),
            identity: Identity::new(&key).expect("a key"),
            pki: Arc::new(NodePki::of(key)),
        }
    }
}
