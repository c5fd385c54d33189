//! What a side demands of the other's key: that it is one, of a good size, and that the other has its private half.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use brine_protocol::keys::PublicKey;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::crypto::{aws_lc_rs, verify_tls13_signature_with_raw_key};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use tokio_rustls::rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use tokio_rustls::rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, OtherError, SignatureScheme,
};

/// Lower bound on the bits of a key. Salt's protocol takes shorter ones; nobody needs them here.
const BITS_MIN: usize = 2_048;

/// Reads a key of the wire.
pub(crate) fn read(der: &CertificateDer<'_>) -> Result<PublicKey, Error> {
    let key = PublicKey::from_der(der).map_err(|_| CertificateError::BadEncoding)?;
    if key.bits() < BITS_MIN { Err(CertificateError::BadSignature.into()) } else { Ok(key) }
}

fn alone(others: &[CertificateDer<'_>]) -> Result<(), Error> {
    if others.is_empty() { Ok(()) } else { Err(CertificateError::BadEncoding.into()) }
}

fn signed(
    message: &[u8],
    key: &CertificateDer<'_>,
    signature: &DigitallySignedStruct,
) -> Result<HandshakeSignatureValid, Error> {
    let algorithms = aws_lc_rs::default_provider().signature_verification_algorithms;
    verify_tls13_signature_with_raw_key(message, &SubjectPublicKeyInfoDer::from(key.as_ref()), signature, &algorithms)
}

/// The signatures that RSA keys make in TLS 1.3.
fn schemes() -> Vec<SignatureScheme> {
    vec![SignatureScheme::RSA_PSS_SHA256, SignatureScheme::RSA_PSS_SHA384, SignatureScheme::RSA_PSS_SHA512]
}

fn no_tls12() -> Error {
    Error::General("TLS 1.2 is not spoken here".to_owned())
}

/// A node's key: any. The master judges it when it is proved.
#[derive(Debug)]
pub(crate) struct OfNode;

impl ClientCertVerifier for OfNode {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        key: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        alone(others)?;
        read(key).map(|_| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(no_tls12())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        signed(message, key, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        schemes()
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

/// The master's key: one that a function accepts.
pub(crate) struct OfMaster<F> {
    is_masters: F,
    refused: Mutex<Option<PublicKey>>,
}

impl<F> fmt::Debug for OfMaster<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OfMaster")
    }
}

/// The error of a key that is not the master's.
#[derive(Debug, thiserror::Error)]
#[error("this is not the master's key")]
struct NotMasters;

impl<F> OfMaster<F> {
    pub(crate) fn new(is_masters: F) -> Self {
        Self { is_masters, refused: Mutex::default() }
    }

    /// Returns the key that was refused, if that was the reason.
    pub(crate) fn refused(&self) -> Option<PublicKey> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl<F: Fn(&PublicKey) -> bool + Send + Sync> ServerCertVerifier for OfMaster<F> {
    fn verify_server_cert(
        &self,
        key: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        alone(others)?;
        let key = read(key)?;
        if (self.is_masters)(&key) {
            return Ok(ServerCertVerified::assertion());
        }
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(key);
        Err(CertificateError::Other(OtherError(Arc::new(NotMasters))).into())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(no_tls12())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        signed(message, key, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        schemes()
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}
