//! TLS between a master and its nodes (salt-api on another host): version 1.3 alone, and each side proves an RSA key of its own as
//! a raw public key (RFC 7250). There are no certificates, so there is nothing to sign, to expire, or to parse: what counts is
//! whose key it is, and that is for the caller to judge, by the key that a connection comes with.
//!
//! - `verify.rs`  what a side demands of the other's key
//!
//! A client that offers certificates, or older versions, fails at its first message, before the master has computed anything.

mod verify;

use std::fmt;
use std::io;
use std::sync::Arc;

use brine_protocol::keys::{PrivateKey, PublicKey};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::rustls::client::{AlwaysResolvesClientRawPublicKeys, Resumption};
use tokio_rustls::rustls::crypto::{CryptoProvider, aws_lc_rs};
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::server::{AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{self, ClientConfig, ServerConfig, version};
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};

use verify::{OfMaster, OfNode};

/// A master's end of a connection.
pub type MasterStream<S> = server::TlsStream<S>;
/// A node's end of a connection.
pub type NodeStream<S> = client::TlsStream<S>;

/// The name of what is spoken inside (ALPN): another service's connection is never taken for one of these.
const ALPN: &[u8] = b"brine-nodes";
/// A name that TLS wants and that says nothing: it is not sent, and no key has a name.
const NOBODY: &str = "master";

/// A key that cannot be used for TLS.
#[derive(Debug, thiserror::Error)]
#[error("the key of {bits} bits cannot be used for TLS: {why}")]
pub struct IdentityError {
    bits: usize,
    why: String,
}

/// A key pair, ready for TLS.
#[derive(Clone)]
pub struct Identity(Arc<CertifiedKey>);

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Identity(<secret>)")
    }
}

impl Identity {
    /// Makes a key pair ready.
    ///
    /// # Errors
    /// When it has less than 2,048 or more than 4,096 bits.
    pub fn new(key: &PrivateKey) -> Result<Self, IdentityError> {
        let bits = key.public().bits();
        let wrong = |why: String| IdentityError { bits, why };
        let der = PrivateKeyDer::from_pem_slice(key.to_pem().expose().as_bytes())
            // The error of a key never repeats the key.
            .map_err(|_| wrong("it has no usable form".to_owned()))?;
        let signer = aws_lc_rs::sign::any_supported_type(&der).map_err(|error| wrong(error.to_string()))?;
        let public = signer.public_key().ok_or_else(|| wrong("it has no public half".to_owned()))?;
        let public = CertificateDer::from(public.as_ref().to_vec());
        Ok(Self(Arc::new(CertifiedKey::new(vec![public], signer))))
    }
}

/// Accepts connections of nodes, as a master.
#[derive(Clone)]
pub struct Acceptor(TlsAcceptor);

impl fmt::Debug for Acceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Acceptor")
    }
}

impl Acceptor {
    /// Accepts connections with this key.
    pub fn new(identity: Identity) -> Self {
        let keys = Arc::new(AlwaysResolvesServerRawPublicKeys::new(identity.0));
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&version::TLS13])
            .expect("the provider has suites of TLS 1.3")
            .with_client_cert_verifier(Arc::new(OfNode))
            .with_cert_resolver(keys);
        config.alpn_protocols = vec![ALPN.to_vec()];
        // Each connection proves its key.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Self(TlsAcceptor::from(Arc::new(config)))
    }

    /// Accepts a connection. Returns the node's key, which it has proved; whether that may do anything is not said yet. It has no
    /// time limit.
    ///
    /// # Errors
    /// When the peer does not speak this TLS, or proves no usable key.
    pub async fn accept<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
    ) -> io::Result<(MasterStream<S>, PublicKey)> {
        let stream = self.0.accept(stream).await?;
        let (_, state) = stream.get_ref();
        let key = proved(state.alpn_protocol(), state.peer_certificates())?;
        Ok((stream, key))
    }
}

/// Why a connection to a master cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The peer has proved another key than the master's.
    #[error("it has another key, {}", .0.fingerprint())]
    OtherKey(Box<PublicKey>),
    /// The connection broke, or the peer does not speak this TLS.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Connects to a master that has a key which `is_masters` accepts; with another one, the peer learns no more than this side's
/// public key. Returns the master's key. It has no time limit.
///
/// # Errors
/// When the peer has another key, or does not speak this TLS.
pub async fn connect<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    identity: &Identity,
    is_masters: impl Fn(&PublicKey) -> bool + Send + Sync + 'static,
) -> Result<(NodeStream<S>, PublicKey), ConnectError> {
    let judge = Arc::new(OfMaster::new(is_masters));
    let keys = Arc::new(AlwaysResolvesClientRawPublicKeys::new(Arc::clone(&identity.0)));
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&version::TLS13])
        .map_err(io::Error::other)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::clone(&judge) as _)
        .with_client_cert_resolver(keys);
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.enable_sni = false;
    config.resumption = Resumption::disabled();
    let name = ServerName::try_from(NOBODY).map_err(io::Error::other)?;
    let stream = match TlsConnector::from(Arc::new(config)).connect(name, stream).await {
        Ok(stream) => stream,
        Err(error) => {
            return Err(judge.refused().map_or(ConnectError::Io(error), |key| ConnectError::OtherKey(Box::new(key))));
        }
    };
    let (_, state) = stream.get_ref();
    let key = proved(state.alpn_protocol(), state.peer_certificates())?;
    Ok((stream, key))
}

/// AWS-LC's algorithms, and of TLS those of version 1.3.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

/// Returns the key that the peer has proved.
fn proved(alpn: Option<&[u8]>, keys: Option<&[CertificateDer<'_>]>) -> io::Result<PublicKey> {
    let wrong = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why.to_owned());
    if alpn != Some(ALPN) {
        return Err(wrong("it speaks something else inside of TLS"));
    }
    let [key] = keys.unwrap_or_default() else { return Err(wrong("it has proved no key")) };
    verify::read(key).map_err(|error: rustls::Error| wrong(&error.to_string()))
}

#[cfg(test)]
mod tests;
