//! Authentication (§3): how a minion and a master come to share a publish and a session key.
//!
//! The minion's side is [`MinionAuth`] → [`AuthAttempt`] → [`AuthOutcome`]; the master's side is [`AuthRequest`] with its
//! reply builders.

use crate::crypticle::{AesKey, CryptError};
use crate::ids::MinionId;
use crate::keys::{EncAlg, KeyError, PrivateKey, PrivateOps, PublicKey, SignAlg};
use crate::secret::Secret;
use crate::value::Value;

/// How a minion authenticates: who it is and what it knows of its master.
#[derive(Debug, Clone)]
pub struct MinionAuth<'a> {
    /// The minion's id.
    pub id: &'a MinionId,
    /// The minion's key.
    pub key: &'a PrivateKey,
    /// The master's key as it was cached at first contact (`minion_master.pub`), if it was.
    pub master: Option<&'a PublicKey>,
    /// `master_finger`: the only fingerprint to be trusted; empty for any.
    pub master_finger: &'a str,
    /// `open_mode`: trust any master key.
    pub open_mode: bool,
    /// `verify_master_pubkey_sign`: the key (`master_sign.pub`) that must have signed the master's key.
    pub verify_key: Option<&'a PublicKey>,
    /// `encryption_algorithm`.
    pub enc_algo: EncAlg,
    /// `signing_algorithm`.
    pub sig_algo: SignAlg,
    /// Grains for `autosign_grains_dir`, a map, if configured.
    pub autosign_grains: Option<Value>,
}

impl<'a> MinionAuth<'a> {
    /// With Salt's default algorithms, nothing cached and nothing special.
    pub const fn new(id: &'a MinionId, key: &'a PrivateKey) -> Self {
        Self {
            id,
            key,
            master: None,
            master_finger: "",
            open_mode: false,
            verify_key: None,
            enc_algo: EncAlg::OaepSha1,
            sig_algo: SignAlg::Pkcs1v15Sha1,
            autosign_grains: None,
        }
    }

    /// A new request, with a nonce and (if the master's key is known) a token of its own.
    ///
    /// # Errors
    /// When the token cannot be encrypted to the master's key.
    pub fn attempt(&self) -> Result<AuthAttempt<'a>, AuthError> {
        todo!()
    }
}

/// One request for authentication on its way, and what its reply must contain.
#[derive(Debug)]
pub struct AuthAttempt<'a> {
    auth: MinionAuth<'a>,
    nonce: String,
    token: Option<Secret<Vec<u8>>>,
    payload: Vec<u8>,
}

impl AuthAttempt<'_> {
    /// The message to send to the master.
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// Checks the master's reply: signature, nonce, master key, token and keys (§3.4).
    ///
    /// # Errors
    /// When the reply proves nothing. The connection, not the minion, is at fault unless [`AuthError::is_permanent`].
    pub fn verify_reply(&self, reply: &[u8]) -> Result<AuthOutcome, AuthError> {
        let _ = (reply, &self.auth, &self.nonce, &self.token);
        todo!()
    }
}

/// What the master decided.
#[derive(Debug)]
pub enum AuthOutcome {
    /// Accepted.
    Accepted(Box<Credentials>),
    /// The key waits for an operator.
    Pending,
    /// The key was rejected or denied.
    Rejected,
    /// The master has as many minions as it may (`max_minions`).
    Full,
}

/// What an accepted minion works with.
#[derive(Debug, Clone)]
pub struct Credentials {
    /// The key of publications, shared by all minions.
    pub publish_key: AesKey,
    /// The key of this minion's requests.
    pub session_key: AesKey,
    /// Where the master publishes.
    pub publish_port: u16,
    /// The master's key.
    pub master: PublicKey,
    /// Whether the master's key is not the cached one and must be written to `minion_master.pub`.
    pub master_is_new: bool,
}

/// Why a reply does not authenticate.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// The reply has not the form of one.
    #[error("the master's reply is malformed: {0}")]
    Malformed(&'static str),
    /// The master answered with an error text.
    #[error("the master refused the request: {0}")]
    Refused(String),
    /// The reply's signature is missing or not the master's.
    #[error("the reply is not signed by the master's key")]
    BadSignature,
    /// The reply answers another request.
    #[error("the reply does not carry the nonce of this request")]
    WrongNonce,
    /// The master has another key than before.
    #[error(
        "the master's key is not the one this minion trusts (got {got}, trusted {trusted}). If the master was re-keyed on purpose, remove minion_master.pub from pki_dir"
    )]
    MasterKeyChanged {
        /// The fingerprint of the key in the reply.
        got: String,
        /// The fingerprint of the cached key.
        trusted: String,
    },
    /// The master's key has not the configured fingerprint.
    #[error("the master's key has fingerprint {got}, but master_finger is {expected}")]
    WrongFinger {
        /// The fingerprint of the key in the reply.
        got: String,
        /// The configured one.
        expected: String,
    },
    /// The master's key is not signed as configured, or is signed and not configured.
    #[error("the signature over the master's key does not fit verify_master_pubkey_sign: {0}")]
    PubSig(&'static str),
    /// The publish key is not the one that the master signed.
    #[error("the publish key in the reply is not signed by the master")]
    BadKeySignature,
    /// The token did not come back.
    #[error("the master did not return the token of this request")]
    WrongToken,
    /// A key in the reply does not decrypt or is no key.
    #[error("a key in the reply is not usable: {0}")]
    Key(#[from] KeyError),
    /// A decrypted key is no AES key.
    #[error("a key in the reply is not usable: {0}")]
    Aes(#[from] CryptError),
}

impl AuthError {
    /// Whether trying again cannot help until someone changes a configuration or a key.
    pub const fn is_permanent(&self) -> bool {
        matches!(self, Self::MasterKeyChanged { .. } | Self::WrongFinger { .. } | Self::PubSig(_))
    }
}

/// A minion's request as the master reads it.
#[derive(Debug, Clone)]
pub struct AuthRequest {
    /// The id that the sender claims.
    pub id: MinionId,
    /// The sender's nonce.
    pub nonce: String,
    /// The sender's public key, cleaned. It may be no key at all: parse it with [`AuthRequest::key`].
    pub pub_pem: String,
    /// How to encrypt to the sender.
    pub enc_algo: EncAlg,
    /// How to sign the reply.
    pub sig_algo: SignAlg,
    /// The encrypted token, if the sender knows the master's key.
    pub token: Option<Vec<u8>>,
    /// Grains for auto-signing, a map.
    pub autosign_grains: Option<Value>,
    /// The envelope's version.
    pub version: u64,
}

/// A request that is refused before any key is looked at, and what to answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuthRefusal {
    /// The id is not valid: answered with a signed `ret: False` (§3.2).
    #[error("{why}")]
    InvalidId {
        /// Why.
        why: String,
        /// The sender's nonce.
        nonce: String,
        /// How to sign the reply.
        sig_algo: SignAlg,
    },
    /// An encryption algorithm that does not exist.
    #[error("unknown encryption algorithm {0:?}")]
    EncAlgo(String),
    /// A signing algorithm that does not exist.
    #[error("unknown signing algorithm {0:?}")]
    SigAlgo(String),
    /// The envelope's version is below the configured minimum (CVE-2025-62349).
    #[error("protocol version {version} is below minimum_auth_version {minimum}")]
    Version {
        /// The sender's.
        version: u64,
        /// The configured minimum.
        minimum: u64,
    },
    /// A field is missing or has the wrong type.
    #[error("the auth request is malformed: {0}")]
    Malformed(&'static str),
}

impl AuthRefusal {
    /// The reply to send.
    ///
    /// # Errors
    /// When signing fails.
    pub fn reply(&self, signer: &dyn PrivateOps) -> Result<Vec<u8>, KeyError> {
        let _ = signer;
        todo!()
    }
}

/// What an accept reply is made of.
pub struct Accepted<'a> {
    /// The publish key.
    pub publish_key: &'a AesKey,
    /// [`publish_key_signature`] of it; the same for every minion, so made once.
    pub publish_key_sig: &'a [u8],
    /// The minion's session key.
    pub session_key: &'a AesKey,
    /// The port of publications.
    pub publish_port: u16,
    /// The key that signs the master's key (`master_sign_pubkey`), if configured.
    pub sign_key: Option<&'a dyn PrivateOps>,
}

/// The X9.31 signature over the publish key that every accept reply carries (§3.3).
///
/// # Errors
/// When the private operation fails.
pub fn publish_key_signature(signer: &dyn PrivateOps, key: &AesKey) -> Result<Vec<u8>, KeyError> {
    let _ = (signer, key);
    todo!()
}

impl AuthRequest {
    /// Reads the load of a clear `_auth` envelope; `minimum_version` is `minimum_auth_version`.
    ///
    /// # Errors
    /// A refusal that knows its reply.
    pub fn parse(load: &Value, version: u64, minimum_version: u64) -> Result<Self, AuthRefusal> {
        let _ = (load, version, minimum_version);
        todo!()
    }

    /// The sender's public key.
    ///
    /// # Errors
    /// When it is none.
    pub fn key(&self) -> Result<PublicKey, KeyError> {
        PublicKey::from_pem(&self.pub_pem)
    }

    /// The reply for a key that waits for an operator.
    ///
    /// # Errors
    /// When signing fails.
    pub fn pending(&self, signer: &dyn PrivateOps) -> Result<Vec<u8>, KeyError> {
        self.verdict(Value::Boolean(true), signer)
    }

    /// The reply for a key that is rejected or denied.
    ///
    /// # Errors
    /// When signing fails.
    pub fn rejected(&self, signer: &dyn PrivateOps) -> Result<Vec<u8>, KeyError> {
        self.verdict(Value::Boolean(false), signer)
    }

    /// The reply when the master has as many minions as it may.
    ///
    /// # Errors
    /// When signing fails.
    pub fn full(&self, signer: &dyn PrivateOps) -> Result<Vec<u8>, KeyError> {
        self.verdict(Value::from("full"), signer)
    }

    fn verdict(&self, ret: Value, signer: &dyn PrivateOps) -> Result<Vec<u8>, KeyError> {
        let _ = (ret, signer);
        todo!()
    }

    /// The reply for an accepted key. Up to two private operations.
    ///
    /// # Errors
    /// When the sender's key is none, or signing fails.
    pub fn accepted(&self, signer: &dyn PrivateOps, accepted: &Accepted<'_>) -> Result<Vec<u8>, KeyError> {
        let _ = (signer, accepted);
        todo!()
    }
}
