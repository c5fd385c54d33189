//! Encrypted requests of an accepted minion and their replies (§4, §6).

use std::sync::Arc;

use crate::auth::Credentials;
use crate::crypticle::{CryptError, Crypticle};
use crate::envelope::AesEnvelope;
use crate::ids::MinionId;
use crate::keys::{EncAlg, KeyError, PrivateKey, PrivateOps, PublicKey, SignAlg};
use crate::msgpack::Limits;
use crate::value::Value;

/// The minion's side: everything that turns a load into a request and a reply into a value.
#[derive(Debug, Clone)]
pub struct Session {
    id: MinionId,
    token: Vec<u8>,
    crypticle: Crypticle,
    key: Arc<PrivateKey>,
    master: PublicKey,
    enc_algo: EncAlg,
    sig_algo: SignAlg,
    sign: bool,
}

/// A request ready to be sent.
#[derive(Debug, Clone)]
pub struct SealedRequest {
    /// The envelope.
    pub payload: Vec<u8>,
    /// The nonce that the reply must carry.
    pub nonce: String,
}

/// Why a reply is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplyError {
    /// The master refused the request with an unencrypted text, such as `bad load`. Authenticate again and send it again.
    #[error("the master refused the request: {0}")]
    Text(String),
    /// The reply is not MessagePack.
    #[error("the reply does not decode: {0}")]
    Decode(#[from] crate::msgpack::DecodeError),
    /// The reply is not authentic, or answers another request.
    #[error("the reply cannot be opened: {0}")]
    Crypt(#[from] CryptError),
    /// The reply has another form than was expected.
    #[error("the reply is malformed: {0}")]
    Malformed(&'static str),
    /// The pillar is not signed by the master.
    #[error("the pillar is not signed by the master's key")]
    BadSignature,
    /// The private key operation failed.
    #[error("the pillar's key does not decrypt")]
    Key,
}

impl ReplyError {
    /// Whether authenticating again and repeating the request may help (§3.5).
    pub const fn wants_reauth(&self) -> bool {
        matches!(self, Self::Text(_) | Self::Crypt(_) | Self::Key)
    }
}

impl Session {
    /// A session of an accepted minion. Makes the minion's token: one private operation.
    ///
    /// # Errors
    /// When the private operation fails.
    pub fn new(
        id: &MinionId,
        key: Arc<PrivateKey>,
        credentials: &Credentials,
        enc_algo: EncAlg,
        sig_algo: SignAlg,
    ) -> Result<Self, KeyError> {
        let _ = (id, key, credentials, enc_algo, sig_algo);
        todo!()
    }

    /// Signs every load (`minion_sign_messages`, §6.3).
    #[must_use]
    pub const fn signing(mut self, sign: bool) -> Self {
        self.sign = sign;
        self
    }

    /// The minion's id.
    pub const fn id(&self) -> &MinionId {
        &self.id
    }

    /// Adds what every request carries (id, nonce, ts, tok and, if asked for, sig) and encrypts the load, a map.
    ///
    /// # Errors
    /// When the load cannot be signed.
    pub fn seal_request(&self, load: Value) -> Result<SealedRequest, KeyError> {
        let _ = (load, &self.token, &self.crypticle, &self.key, &self.master, self.enc_algo, self.sig_algo, self.sign);
        todo!()
    }

    /// Opens a reply.
    ///
    /// # Errors
    /// When it is a refusal, not authentic, or not the reply to this nonce.
    pub fn open_reply(&self, reply: &[u8], nonce: &str) -> Result<Value, ReplyError> {
        let _ = (reply, nonce);
        todo!()
    }

    /// Opens a reply leaving every byte string as bytes, keys too: for `_serve_file` (§6.5).
    ///
    /// # Errors
    /// As [`Session::open_reply`].
    pub fn open_raw_reply(&self, reply: &[u8], nonce: &str) -> Result<Value, ReplyError> {
        let _ = (reply, nonce);
        todo!()
    }

    /// Opens the private reply to `_pillar` (§6.4) and returns the pillar.
    ///
    /// # Errors
    /// When it is a refusal, not signed by the master, or not the reply to this nonce.
    pub fn open_pillar_reply(&self, reply: &[u8], nonce: &str) -> Result<Value, ReplyError> {
        let _ = (reply, nonce);
        todo!()
    }
}

/// What the master demands of a request.
#[derive(Debug, Clone, Copy)]
pub struct RequestPolicy {
    /// `minimum_auth_version`.
    pub minimum_version: u64,
    /// `request_server_ttl` in seconds; 0 is off.
    pub ttl: u64,
    /// The time now, seconds since the epoch.
    pub now: i64,
    /// What may be decoded.
    pub limits: Limits,
}

impl RequestPolicy {
    /// Salt's defaults at this moment.
    pub fn now() -> Self {
        Self {
            minimum_version: crate::envelope::VERSION,
            ttl: 0,
            now: jiff::Timestamp::now().as_second(),
            limits: Limits::REQUEST,
        }
    }
}

/// A request whose sender is proved.
#[derive(Debug, Clone)]
pub struct Request {
    /// Who sent it: proved by session key and token, equal in envelope and load.
    pub id: MinionId,
    /// The load without `nonce` and `tok`.
    pub load: Value,
    /// The nonce the reply must carry.
    pub nonce: Option<String>,
    /// `cmd`.
    pub cmd: String,
    /// What a private reply is to be encrypted with, as the envelope says.
    pub enc_algo: Option<String>,
    /// What a private reply is to be signed with, as the envelope says.
    pub sig_algo: Option<String>,
}

/// Why a request is refused. [`RequestError::reply`] is what the sender sees, the message is for the log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The version is below the minimum.
    #[error("protocol version {version} is below minimum_auth_version {minimum}")]
    Version {
        /// The sender's.
        version: u64,
        /// The configured minimum.
        minimum: u64,
    },
    /// The envelope names no valid minion, or the minion has no session.
    #[error("the envelope names no known minion")]
    UnknownMinion,
    /// The load is not this minion's session's.
    #[error("the load cannot be opened with the session key of {id}: {why}")]
    Crypt {
        /// Who the envelope names.
        id: MinionId,
        /// Why.
        why: CryptError,
    },
    /// The load is not a map.
    #[error("payload and load must be a dict")]
    NotMap,
    /// The load's id has a NUL.
    #[error("bad load: id contains a null byte")]
    NulId,
    /// The load's id is not text.
    #[error("bad load: id {0} is not a string")]
    IdNotText(String),
    /// The request is too old.
    #[error("a request of {id} is older than request_server_ttl")]
    Expired {
        /// Who sent it.
        id: MinionId,
    },
    /// Envelope and load name different minions.
    #[error("the envelope names {id}, the load names another minion")]
    IdMismatch {
        /// Who the envelope names.
        id: MinionId,
    },
    /// The token is missing or was not made with the minion's accepted key.
    #[error("a request of {id} has no token of its accepted key")]
    Token {
        /// Who the envelope names.
        id: MinionId,
    },
    /// The load is signed wrongly, or not although signatures are required.
    #[error("a request of {id} is not signed by its accepted key")]
    Signature {
        /// Who the envelope names.
        id: MinionId,
    },
}

impl RequestError {
    /// What the sender is answered (§4.2), unencrypted.
    pub fn reply(&self) -> Value {
        match self {
            Self::NotMap | Self::NulId | Self::IdNotText(_) => Value::from(self.to_string()),
            _ => Value::from("bad load"),
        }
    }
}

/// Opens a request with the session key of the minion that its envelope names and proves that this minion sent it.
/// `accepted_key` is asked for the minion's accepted key.
///
/// # Errors
/// In the order of §4.2.
pub fn open_request(
    envelope: &AesEnvelope,
    session: &Crypticle,
    policy: &RequestPolicy,
    accepted_key: impl FnOnce(&MinionId) -> Option<PublicKey>,
) -> Result<Request, RequestError> {
    let _ = (envelope, session, policy);
    let _ = accepted_key;
    todo!()
}

/// Whether the load's `sig` is the minion's (`minion_sign_messages`, §6.3); none if there is no `sig`.
pub fn verify_load_signature(load: &Value, key: &PublicKey, alg: SignAlg) -> Option<bool> {
    let _ = (load, key, alg);
    todo!()
}

/// The reply to a request: the value under the session key, with the request's nonce.
pub fn seal_reply(session: &Crypticle, value: &Value, nonce: Option<&str>) -> Vec<u8> {
    let _ = (session, value, nonce);
    todo!()
}

/// A reply in clear text: refusals and everything local clients get.
pub fn clear_reply(value: &Value) -> Vec<u8> {
    crate::msgpack::encode_network(value)
}

/// The private reply to `_pillar` (§6.4): a fresh key encrypted to the minion, and the signed pillar under it.
///
/// # Errors
/// When an algorithm is unknown or a key operation fails.
pub fn seal_pillar_reply(
    pillar: &Value,
    request: &Request,
    minion: &PublicKey,
    signer: &dyn PrivateOps,
) -> Result<Vec<u8>, KeyError> {
    let _ = (pillar, request, minion, signer);
    todo!()
}
