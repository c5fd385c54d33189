//! Publications on 4505 (§5): a job load under the publish key, signed by the master, with a serial.
//!
//! Stricter than Salt: a minion always verifies the signature, and a load without a serial is refused.

use crate::crypticle::{AesKey, CryptError, Crypticle, SerialGuard};
use crate::ids::MinionId;
use crate::keys::{KeyError, PrivateOps, PublicKey, SignAlg};
use crate::msgpack::{self, Limits};
use crate::value::{self, Value, ValueExt};

/// The topic of publications that are not for named minions (§5.4).
pub const BROADCAST: &str = "broadcast";

/// The topic of publications for one minion (§5.4): the hex SHA-1 of its id.
pub fn topic(id: &MinionId) -> String {
    id.topic()
}

/// Seals a load for all minions: sets its serial, encrypts and signs. One private operation.
///
/// # Errors
/// When signing fails.
pub fn seal(
    mut load: Value,
    serial: u64,
    crypticle: &Crypticle,
    signer: &dyn PrivateOps,
    alg: SignAlg,
) -> Result<bytes::Bytes, KeyError> {
    load.insert("serial", serial);
    let blob = crypticle.seal(&load, None);
    let signature = signer.sign(alg, &blob)?;
    Ok(bytes::Bytes::from(envelope(blob, alg, signature)))
}

fn envelope(blob: Vec<u8>, alg: SignAlg, signature: Vec<u8>) -> Vec<u8> {
    msgpack::encode_network(&value::map([
        ("enc", Value::from("aes")),
        ("load", Value::Binary(blob)),
        ("sig_algo", Value::from(alg.as_str())),
        ("sig", Value::Binary(signature)),
    ]))
}

/// Why a publication is dropped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PublicationError {
    /// It has not the form of one.
    #[error("a publication is malformed: {0}")]
    Malformed(String),
    /// Its signature is missing or not the master's.
    #[error("a publication is not signed by the master's key")]
    BadSignature,
    /// It was encrypted with another publish key: the master's key may have been rotated, authenticate again.
    #[error("a publication was made with another publish key")]
    BadMac,
    /// Its serial was seen before.
    #[error("a publication was replayed: its serial {0} is not new")]
    Replayed(u64),
    /// It decrypts, but holds no load.
    #[error("a publication holds no load: {0}")]
    Content(CryptError),
}

impl PublicationError {
    /// Whether authenticating again and opening it again may help (§3.5).
    pub const fn wants_reauth(&self) -> bool {
        matches!(self, Self::BadMac)
    }
}

/// Opens one publication: signature, then MAC, then serial. Returns the load without its serial.
///
/// # Errors
/// When any of them does not hold.
pub fn open(
    bytes: &[u8],
    master: &PublicKey,
    crypticle: &Crypticle,
    serials: &mut SerialGuard,
) -> Result<Value, PublicationError> {
    let envelope =
        msgpack::decode(bytes, &Limits::PUBLICATION).map_err(|e| PublicationError::Malformed(e.to_string()))?;
    if envelope.get_text("enc") != Some("aes") {
        return Err(PublicationError::Malformed("its enc is not aes".to_owned()));
    }
    let blob = envelope
        .get_bytes("load")
        .ok_or_else(|| PublicationError::Malformed("its load is not bytes".to_owned()))?;
    let signature = envelope.get_bytes("sig").ok_or(PublicationError::BadSignature)?;
    let alg = match envelope.get("sig_algo") {
        None => SignAlg::default(),
        Some(name) => name.text().unwrap_or_default().parse().map_err(|_| PublicationError::BadSignature)?,
    };
    if !master.verify(alg, blob, signature) {
        return Err(PublicationError::BadSignature);
    }
    let mut load = crypticle.open(blob, None, &Limits::PUBLICATION).map_err(|e| match e {
        CryptError::BadMac => PublicationError::BadMac,
        other => PublicationError::Content(other),
    })?;
    if !matches!(load, Value::Map(_)) {
        return Err(PublicationError::Content(CryptError::Malformed("it is not a map")));
    }
    let serial = load
        .remove("serial")
        .and_then(|serial| serial.as_u64())
        .ok_or(PublicationError::Content(CryptError::Malformed("it has no serial")))?;
    if !serials.accept(serial) {
        return Err(PublicationError::Replayed(serial));
    }
    Ok(load)
}

/// Opens a master's publications one after the other, across key rotations.
#[derive(Debug)]
pub struct Receiver {
    master: PublicKey,
    key: AesKey,
    crypticle: Crypticle,
    serials: SerialGuard,
}

impl Receiver {
    /// Of this master and publish key.
    pub fn new(master: PublicKey, key: AesKey) -> Self {
        let crypticle = Crypticle::new(&key);
        Self { master, key, crypticle, serials: SerialGuard::new() }
    }

    /// After a re-authentication. The serials seen so far are forgotten only if the publish key is another one.
    pub fn rekey(&mut self, master: PublicKey, key: AesKey) {
        if key != self.key {
            self.crypticle = Crypticle::new(&key);
            self.serials = SerialGuard::new();
            self.key = key;
        }
        self.master = master;
    }

    /// Opens the next publication.
    ///
    /// # Errors
    /// As [`open`].
    pub fn open(&mut self, bytes: &[u8]) -> Result<Value, PublicationError> {
        open(bytes, &self.master, &self.crypticle, &mut self.serials)
    }
}
