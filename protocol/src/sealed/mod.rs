//! Sealed publications (§5.5), between a Brine master and Brine minions: only the minions that are meant can read one.
//!
//! All minions of a Salt master share one publish key, so each of them can read all publications. Here the body of a
//! publication is encrypted once, with a key of its own; each minion that is meant gets a header for it, which holds that
//! key, encrypted with a key of the minion's session and of the publish key. The master signs the body with an Ed25519
//! key, for which its RSA key vouches ([`SealOffer`]), so no publication takes an RSA operation, and a host can prove who
//! asked.

mod aead;
mod keys;
mod vault;

#[cfg(test)]
mod tests;

use aws_lc_rs::signature::{ED25519, UnparsedPublicKey};
use bytes::Bytes;

use crate::crypticle::{AesKey, CryptError};
use crate::ids::MinionId;
use crate::msgpack::{self, Limits};
use crate::value::Value;
use aead::{KEY_LEN, TAG_LEN};
pub use keys::{Epoch, EpochId, SealKeys, SealOffer, SigningKey, epoch_id};
pub use vault::Vault;

/// The name of the signatures, as receipts have it.
pub const ALGORITHM: &str = "Ed25519";

/// The first byte of a header.
const VERSION: u8 = 1;
const SIGNATURE_LEN: usize = 64;
const EPOCH_LEN: usize = 16;
/// Version, epoch, the master's word for the epoch, serial, and the encrypted key of the body.
const HEADER_LEN: usize = 1 + EPOCH_LEN + SIGNATURE_LEN + 8 + KEY_LEN + TAG_LEN;

/// What a signature of a publication begins with, so that it is none of anything else.
const PUBLICATION: &[u8] = b"brine publication 1\0";
/// The data that the encryption of a header and of a body authenticate besides.
const HEADER: &[u8] = b"brine publication header 1\0";
const BODY: &[u8] = b"brine publication body 1\0";

/// What the master signs: the load with the epoch and the serial, so that a signed load works in one publication.
fn signed_message(epoch: &EpochId, serial: u64, load: &[u8]) -> Vec<u8> {
    [PUBLICATION, epoch, &serial.to_be_bytes(), load].concat()
}

/// The body of a publication, and the key that its headers hold.
pub struct Body {
    key: [u8; KEY_LEN],
    serial: u64,
    bytes: Bytes,
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Body(<secret>, serial {}, {} bytes)", self.serial, self.bytes.len())
    }
}

impl Body {
    /// Signs and encrypts a load. No serial of an epoch may be used twice.
    pub fn seal(load: &Value, serial: u64, epoch: &Epoch, signer: &SigningKey) -> Self {
        let load = msgpack::encode_network(load);
        let signature = signer.sign(&signed_message(&epoch.id, serial, &load));
        let mut bytes = Vec::with_capacity(SIGNATURE_LEN + load.len() + TAG_LEN);
        bytes.extend_from_slice(&signature);
        bytes.extend_from_slice(&load);
        // A key of its own for each body, so one nonce is enough.
        let key = rand::random();
        aead::seal(&key, 0, BODY, &mut bytes);
        Self { key, serial, bytes: bytes.into() }
    }

    /// The encrypted body, which all headers share.
    pub const fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The header for the minion with this id and session key.
    pub fn header(&self, id: &MinionId, session: &AesKey, epoch: &Epoch) -> Bytes {
        let mut header = Vec::with_capacity(HEADER_LEN);
        header.push(VERSION);
        header.extend_from_slice(&epoch.id);
        header.extend_from_slice(&epoch.word);
        header.extend_from_slice(&self.serial.to_be_bytes());
        let mut wrapped = self.key.to_vec();
        aead::seal(&epoch.minion_key(session), self.serial, &header_data(&epoch.id, id), &mut wrapped);
        header.extend_from_slice(&wrapped);
        header.into()
    }
}

fn header_data(epoch: &EpochId, id: &MinionId) -> Vec<u8> {
    [HEADER, epoch, id.as_str().as_bytes()].concat()
}

/// Why a sealed publication does not open.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// The header has another form.
    #[error("its header is none of this version")]
    Malformed,
    /// It is of another epoch of the master, or another session of the minion.
    #[error("it was made with other keys")]
    OtherKeys,
    /// It is not the master's.
    #[error("it is not the master's")]
    Forged,
    /// It decrypts to something other than a load.
    #[error("it holds no load: {0}")]
    Content(CryptError),
}

/// A sealed publication as received, not verified.
#[derive(Debug, Clone)]
pub struct Sealed {
    header: Bytes,
    body: Bytes,
}

/// What a sealed publication holds.
#[derive(Debug)]
pub(crate) struct Unsealed {
    pub(crate) load: Value,
    pub(crate) serial: u64,
    pub(crate) signature: Vec<u8>,
    pub(crate) message: Vec<u8>,
}

impl Sealed {
    /// Takes the header and the body, the second and the third frame.
    ///
    /// # Errors
    /// When the header is none.
    pub fn parse(header: &Bytes, body: &Bytes) -> Result<Self, SealError> {
        if header.len() != HEADER_LEN || header[0] != VERSION {
            return Err(SealError::Malformed);
        }
        Ok(Self { header: header.clone(), body: body.clone() })
    }

    /// The epoch that the header names.
    pub fn epoch(&self) -> EpochId {
        let mut epoch = [0; EPOCH_LEN];
        epoch.copy_from_slice(&self.header[1..=EPOCH_LEN]);
        epoch
    }

    /// The load of the publication, for who does not check serials.
    ///
    /// # Errors
    /// [`SealError`].
    pub fn load(&self, keys: &SealKeys) -> Result<Value, SealError> {
        self.open(keys).map(|opened| opened.load)
    }

    /// The header and the body.
    pub const fn parts(&self) -> [&Bytes; 2] {
        [&self.header, &self.body]
    }

    /// Opens the header: first the epoch, then the encrypted key. Returns the key of the body and the serial.
    fn open_header(&self, keys: &SealKeys) -> Result<([u8; KEY_LEN], u64), SealError> {
        let rest = &self.header[1 + EPOCH_LEN..];
        let (word, rest) = rest.split_at(SIGNATURE_LEN);
        let (serial, wrapped) = rest.split_at(8);
        let epoch = self.epoch();
        if epoch != keys.epoch {
            // Without this, anyone on the network could make the minion authenticate again.
            return Err(if keys.offer.is_epoch(&epoch, word) { SealError::OtherKeys } else { SealError::Forged });
        }
        let serial = u64::from_be_bytes(serial.try_into().unwrap_or_default());
        let mut wrapped = wrapped.to_vec();
        let data = header_data(&epoch, &keys.id);
        let key = aead::open(&keys.key, serial, &data, &mut wrapped).ok_or(SealError::OtherKeys)?;
        Ok((key.try_into().map_err(|_| SealError::OtherKeys)?, serial))
    }

    /// Whether the header is the minion's with these keys. It says nothing about the body.
    ///
    /// # Errors
    /// [`SealError`].
    pub fn is_for(&self, keys: &SealKeys) -> Result<(), SealError> {
        self.open_header(keys).map(drop)
    }

    /// Opens the publication: the header, then the body, and last the signature.
    ///
    /// # Errors
    /// [`SealError::OtherKeys`] when it is of another epoch of the master, or another session; otherwise when it is not the
    /// master's.
    pub(crate) fn open(&self, keys: &SealKeys) -> Result<Unsealed, SealError> {
        let (key, serial) = self.open_header(keys)?;
        let mut body = self.body.to_vec();
        // Whoever is meant too knows the key of this body, and may have put another one in its place.
        let opened = aead::open(&key, 0, BODY, &mut body).ok_or(SealError::Forged)?;
        let (signature, load) = opened.split_at_checked(SIGNATURE_LEN).ok_or(SealError::Forged)?;
        let message = signed_message(&self.epoch(), serial, load);
        let master = UnparsedPublicKey::new(&ED25519, keys.offer.key);
        master.verify(&message, signature).map_err(|_| SealError::Forged)?;
        let load = msgpack::decode(load, &Limits::PUBLICATION).map_err(|e| SealError::Content(e.into()))?;
        if !matches!(load, Value::Map(_)) {
            return Err(SealError::Content(CryptError::Malformed("it is not a map")));
        }
        Ok(Unsealed { load, serial, signature: signature.to_vec(), message })
    }
}
