//! The keys of sealed publications (§5.5).

use aws_lc_rs::hkdf::{HKDF_SHA256, Salt};
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use sha2::{Digest as _, Sha256};

use super::aead::KEY_LEN;
use super::{EPOCH_LEN, SIGNATURE_LEN};
use crate::crypticle::AesKey;
use crate::ids::MinionId;
use crate::keys::{KeyError, PrivateKey, PrivateOps, PublicKey, SignAlg};
use crate::value::{Value, ValueExt, map};

/// By which algorithm the RSA key vouches.
const VOUCH: SignAlg = SignAlg::Pkcs1v15Sha224;
const EPOCH: &[u8] = b"brine epoch 1\0";
const MINION_KEY: &[u8] = b"brine sealed publication 1";

/// Names a publish key without telling it.
pub type EpochId = [u8; EPOCH_LEN];

/// The [`EpochId`] of a publish key: the first 16 bytes of SHA-256 over `brine epoch 1`, a zero byte and the key's text.
pub fn epoch_id(publish: &AesKey) -> EpochId {
    let hash: [u8; 32] = Sha256::new_with_prefix(EPOCH).chain_update(publish.text().expose()).finalize().into();
    let mut id = [0; EPOCH_LEN];
    id.copy_from_slice(&hash[..EPOCH_LEN]);
    id
}

fn epoch_message(id: &EpochId) -> Vec<u8> {
    [EPOCH, id].concat()
}

/// The key that signs a master's sealed publications. It does not print.
pub struct SigningKey(Ed25519KeyPair);

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SigningKey({})", hex::encode(self.public()))
    }
}

impl SigningKey {
    /// The key of the master with this RSA key. It follows from the RSA key, so there is no file to keep beside it, and it
    /// changes with it.
    ///
    /// # Errors
    /// [`KeyError::Operation`].
    pub fn of(rsa: &PrivateKey) -> Result<Self, KeyError> {
        let seed = rsa.derive(b"brine publications key 1");
        Ed25519KeyPair::from_seed_unchecked(seed.expose()).map(Self).map_err(|_| KeyError::Operation)
    }

    /// The public half.
    pub fn public(&self) -> [u8; 32] {
        self.0.public_key().as_ref().try_into().unwrap_or_default()
    }

    pub(super) fn sign(&self, message: &[u8]) -> [u8; SIGNATURE_LEN] {
        self.0.sign(message).as_ref().try_into().expect("an Ed25519 signature has 64 bytes")
    }
}

/// What a master tells a minion at sign-in: the key that signs sealed publications, and its RSA key's word for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealOffer {
    /// The Ed25519 key.
    pub key: [u8; 32],
    /// PKCS#1 v1.5 with SHA-224 over two lines, `brine publications key 1` and the key in hex.
    pub vouch: Vec<u8>,
}

impl SealOffer {
    /// The master's RSA key vouches for its signing key. One private operation.
    ///
    /// # Errors
    /// When the operation fails.
    pub fn make(key: &SigningKey, rsa: &dyn PrivateOps) -> Result<Self, KeyError> {
        let key = key.public();
        Ok(Self { vouch: rsa.sign(VOUCH, &statement(&key))?, key })
    }

    /// The field `sealed` of an accept reply: a map of `key` and `sig`.
    pub fn to_value(&self) -> Value {
        map([("key", Value::Binary(self.key.to_vec())), ("sig", Value::Binary(self.vouch.clone()))])
    }

    /// Reads the field, and verifies the word of this RSA key. None if it is not the master's.
    pub fn from_value(value: &Value, master: &PublicKey) -> Option<Self> {
        let key: [u8; 32] = value.get_bytes("key")?.try_into().ok()?;
        let vouch = value.get_bytes("sig")?.to_vec();
        Some(Self { key, vouch }).filter(|offer| offer.is_of(master))
    }

    /// Whether this is the master's word (§5.5) that the epoch is one of it.
    pub(crate) fn is_epoch(&self, id: &EpochId, word: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, self.key).verify(&epoch_message(id), word).is_ok()
    }

    /// Whether this RSA key vouches for the key.
    pub fn is_of(&self, master: &PublicKey) -> bool {
        master.verify(VOUCH, &statement(&self.key), &self.vouch)
    }
}

fn statement(key: &[u8; 32]) -> Vec<u8> {
    format!("brine publications key 1\n{}\n", hex::encode(key)).into_bytes()
}

/// The time of one publish key, at the master. Serials count from its begin.
pub struct Epoch {
    pub(super) id: EpochId,
    /// The signing key's word that this is an epoch of the master.
    pub(super) word: [u8; SIGNATURE_LEN],
    salt: Salt,
}

impl std::fmt::Debug for Epoch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Epoch({})", hex::encode(self.id))
    }
}

impl Epoch {
    /// Of this publish key.
    pub fn new(publish: &AesKey, signer: &SigningKey) -> Self {
        let id = epoch_id(publish);
        Self { id, word: signer.sign(&epoch_message(&id)), salt: salt(publish) }
    }

    /// The master's word for the epoch.
    pub const fn word(&self) -> &[u8] {
        &self.word
    }

    /// The key that encrypts the headers for the minion with this session key.
    pub(super) fn minion_key(&self, session: &AesKey) -> [u8; KEY_LEN] {
        minion_key(&self.salt, session)
    }
}

fn salt(publish: &AesKey) -> Salt {
    Salt::new(HKDF_SHA256, publish.text().expose().as_bytes())
}

/// HKDF-SHA256 (RFC 5869): the publish key's text as salt, the session key's text as input.
fn minion_key(salt: &Salt, session: &AesKey) -> [u8; KEY_LEN] {
    let mut key = [0; KEY_LEN];
    let secret = salt.extract(session.text().expose().as_bytes());
    secret.expand(&[MINION_KEY], HKDF_SHA256).and_then(|okm| okm.fill(&mut key)).expect("one block of output");
    key
}

/// What a minion opens sealed publications with.
#[derive(Clone)]
pub struct SealKeys {
    pub(super) id: MinionId,
    pub(super) epoch: EpochId,
    pub(super) key: [u8; KEY_LEN],
    pub(super) offer: SealOffer,
}

impl std::fmt::Debug for SealKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SealKeys({}, <secret>)", hex::encode(self.epoch))
    }
}

impl SealKeys {
    /// Of the minion with this id, after a sign-in with this offer.
    pub fn new(id: &MinionId, offer: SealOffer, publish: &AesKey, session: &AesKey) -> Self {
        let key = minion_key(&salt(publish), session);
        Self { id: id.clone(), epoch: epoch_id(publish), key, offer }
    }

    /// The key that signs, and the master's word for it.
    pub const fn offer(&self) -> &SealOffer {
        &self.offer
    }
}
