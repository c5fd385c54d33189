//! TLS of connections: certificates, and the protocols that a client may choose.

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};

use crate::settings::TlsFiles;

/// Upper bound on the bytes of a file of certificates or keys.
const PEM_MAX: u64 = 1 << 20;
/// The name of HTTP/2 in ALPN.
pub const HTTP2: &[u8] = b"h2";
/// The name of HTTP/1.1 in ALPN.
const HTTP1: &[u8] = b"http/1.1";

/// TLS, with certificates that can be replaced.
#[derive(Debug)]
pub struct Tls(RwLock<Arc<ServerConfig>>);

impl Tls {
    /// Reads the certificates.
    ///
    /// # Errors
    /// One line, when they cannot be used.
    pub fn read(files: &TlsFiles) -> Result<Self, String> {
        server_config(files).map(|config| Self(RwLock::new(config)))
    }

    /// Reads the certificates anew, for connections from now on.
    ///
    /// # Errors
    /// One line, when they cannot be used; those before stay.
    pub fn replace(&self, files: &TlsFiles) -> Result<(), String> {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = server_config(files)?;
        Ok(())
    }

    /// Accepts connections with the certificates of now.
    pub fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

fn server_config(files: &TlsFiles) -> Result<Arc<ServerConfig>, String> {
    let read = |path: &Path| {
        brine_files::read_named_text(path, PEM_MAX)
            .map_err(|error| format!("{} cannot be read: {error}", path.display()))
    };
    let wrong = |path: &Path, error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let mut chain = Vec::new();
    for path in std::iter::once(&files.crt).chain(&files.chain) {
        let text = read(path)?;
        let certificates = CertificateDer::pem_slice_iter(text.as_bytes()).collect::<Result<Vec<_>, _>>();
        let certificates = certificates.map_err(|error| wrong(path, &error))?;
        if certificates.is_empty() {
            return Err(wrong(path, &"there is no certificate in it"));
        }
        chain.extend(certificates);
    }
    let key = brine_protocol::secret::Secret::new(read(&files.key)?);
    // The error of a key never repeats the key.
    let key = PrivateKeyDer::from_pem_slice(key.expose().as_bytes());
    let key = key.map_err(|_| wrong(&files.key, &"there is no private key in it"))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
        .map_err(|error| error.to_string())?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error: rustls::Error| wrong(&files.crt, &error))?;
    config.alpn_protocols = [HTTP2, HTTP1].map(<[u8]>::to_vec).to_vec();
    Ok(Arc::new(config))
}
