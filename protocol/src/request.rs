//! Encrypted requests of an accepted minion and their replies (§4, §6).

use std::sync::Arc;

use crate::auth::Credentials;
use crate::crypticle::{AesKey, CryptError, Crypticle};
use crate::envelope::{AesEnvelope, Envelope, VERSION, into_bytes};
use crate::ids::MinionId;
use crate::keys::{EncAlg, KeyError, PrivateKey, PrivateOps, PublicKey, SignAlg};
use crate::msgpack::{self, Limits};
use crate::secret::Secret;
use crate::value::{self, Value, ValueExt};

/// What a token signs (§4.1).
const TOKEN: &[u8] = b"salt";

/// The minion's side: everything that turns a load into a request and a reply into a value.
#[derive(Debug, Clone)]
pub struct Session {
    id: MinionId,
    token: Secret<Vec<u8>>,
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
        Ok(Self {
            id: id.clone(),
            token: Secret::new(key.x931_sign(TOKEN)?),
            crypticle: Crypticle::new(&credentials.session_key),
            key,
            master: credentials.master.clone(),
            enc_algo,
            sig_algo,
            sign: false,
        })
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
        let nonce = hex::encode(rand::random::<[u8; 16]>());
        self.seal_with(load, nonce, jiff::Timestamp::now().as_second())
    }

    pub(crate) fn seal_with(&self, mut load: Value, nonce: String, ts: i64) -> Result<SealedRequest, KeyError> {
        for key in ["nonce", "ts", "tok", "sig"] {
            load.remove(key);
        }
        load.insert("id", &self.id);
        let mut sent = load;
        let signature = if self.sign {
            // Signed is everything but nonce and token, which the master takes out before it checks.
            let mut signed = sent.clone();
            signed.insert("ts", ts);
            Some(self.key.sign(self.sig_algo, &msgpack::encode_disk(&signed))?)
        } else {
            None
        };
        sent.insert("nonce", nonce.as_str());
        sent.insert("ts", ts);
        sent.insert("tok", Value::Binary(self.token.expose().clone()));
        if let Some(signature) = signature {
            sent.insert("sig", Value::Binary(signature));
        }
        let envelope = Envelope::Aes(AesEnvelope {
            load: self.crypticle.seal(&sent, None),
            version: VERSION,
            id: Some(self.id.clone()),
            enc_algo: Some(self.enc_algo.as_str().to_owned()),
            sig_algo: Some(self.sig_algo.as_str().to_owned()),
        });
        Ok(SealedRequest { payload: envelope.encode(), nonce })
    }

    /// Opens a reply.
    ///
    /// # Errors
    /// When it is a refusal, not authentic, or not the reply to this nonce.
    pub fn open_reply(&self, reply: &[u8], nonce: &str) -> Result<Value, ReplyError> {
        Ok(self.crypticle.open(&blob_of(reply)?, Some(nonce), &Limits::REQUEST)?)
    }

    /// Opens a reply leaving every byte string as bytes, keys too: for `_serve_file` (§6.5).
    ///
    /// # Errors
    /// As [`Session::open_reply`].
    pub fn open_raw_reply(&self, reply: &[u8], nonce: &str) -> Result<Value, ReplyError> {
        Ok(self.crypticle.open_raw(&blob_of(reply)?, Some(nonce), &Limits::REQUEST)?)
    }

    /// Opens the private reply to `_pillar` (§6.4) and returns the pillar.
    ///
    /// # Errors
    /// When it is a refusal, not signed by the master, or not the reply to this nonce.
    pub fn open_pillar_reply(&self, reply: &[u8], nonce: &str) -> Result<Value, ReplyError> {
        let reply = match msgpack::decode(reply, &Limits::REQUEST)? {
            reply @ Value::Map(_) => reply,
            other => {
                // No private reply: a refusal in words, or an ordinary reply (3008, when the minion's key is gone).
                let blob = refusal_or_blob(other)?;
                self.crypticle.open(&blob, Some(nonce), &Limits::REQUEST)?;
                return Err(ReplyError::Text("the master has no accepted key of this minion".to_owned()));
            }
        };
        if let Some(text) = refusal_of(&reply) {
            return Err(ReplyError::Text(text));
        }
        let sealed_key = reply.get_bytes("key").ok_or(ReplyError::Malformed("it has no key"))?;
        let key = Secret::new(self.key.decrypt(self.enc_algo, sealed_key).map_err(|_| ReplyError::Key)?);
        let crypticle = Crypticle::new(&AesKey::from_bytes(key.expose())?);
        let blob = reply.get_bytes("pillar").ok_or(ReplyError::Malformed("it has no pillar"))?;
        let signed = crypticle.open(blob, None, &Limits::REQUEST)?;
        let data = signed.get_bytes("data").ok_or(ReplyError::Malformed("it has no signed data"))?;
        let signature = signed.get_bytes("sig").unwrap_or_default();
        if !self.master.verify(self.sig_algo, data, signature) {
            return Err(ReplyError::BadSignature);
        }
        let mut inner = msgpack::decode(data, &Limits::REQUEST)?;
        // The key was encrypted by anyone who knows ours: the master signs which one it chose, and for which request.
        if inner.get_bytes("key") != Some(sealed_key) {
            return Err(ReplyError::BadSignature);
        }
        if inner.get_text("nonce") != Some(nonce) {
            return Err(CryptError::WrongNonce.into());
        }
        inner.remove("pillar").ok_or(ReplyError::Malformed("it has no pillar"))
    }
}

/// The blob of an encrypted reply, which is one byte string; texts are refusals.
fn blob_of(reply: &[u8]) -> Result<Vec<u8>, ReplyError> {
    match msgpack::decode(reply, &Limits::REQUEST)? {
        map @ Value::Map(_) => Err(refusal_of(&map).map_or(ReplyError::Malformed("it is a map"), ReplyError::Text)),
        other => refusal_or_blob(other),
    }
}

/// The text of a refusal that is a map: `error` since 3008, `msg` before.
fn refusal_of(reply: &Value) -> Option<String> {
    reply.get_text("error").or_else(|| reply.get_text("msg")).map(one_line)
}

fn refusal_or_blob(value: Value) -> Result<Vec<u8>, ReplyError> {
    match value.text() {
        // A blob is never shorter, and hardly ever text.
        Some(text) if text.len() < MIN_BLOB || !text.len().is_multiple_of(16) => Err(ReplyError::Text(one_line(text))),
        _ => into_bytes(value).ok_or(ReplyError::Malformed("it is not bytes")),
    }
}

/// IV, one block and MAC.
const MIN_BLOB: usize = 64;

/// What a peer says goes to the log: one short line.
fn one_line(text: &str) -> String {
    text.chars().take(200).map(|c| if c.is_control() { ' ' } else { c }).collect()
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
    /// The nonce is not 32 ASCII characters.
    #[error("a request of {id} has a malformed nonce")]
    Nonce {
        /// Who sent it.
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
    if envelope.version < policy.minimum_version {
        return Err(RequestError::Version { version: envelope.version, minimum: policy.minimum_version });
    }
    let id = envelope.id.clone().ok_or(RequestError::UnknownMinion)?;
    let mut load = session
        .open(&envelope.load, None, &policy.limits)
        .map_err(|why| RequestError::Crypt { id: id.clone(), why })?;
    if !matches!(load, Value::Map(_)) {
        return Err(RequestError::NotMap);
    }
    match load.get("id") {
        Some(Value::String(inner)) => {
            if inner.as_bytes().contains(&0) {
                return Err(RequestError::NulId);
            }
            if inner.as_str() != Some(id.as_str()) {
                return Err(RequestError::IdMismatch { id });
            }
        }
        Some(other) => return Err(RequestError::IdNotText(other.python_str().chars().take(80).collect())),
        None => return Err(RequestError::IdMismatch { id }),
    }
    if policy.ttl > 0 {
        let age = load.get_i64("ts").map(|ts| policy.now.saturating_sub(ts));
        if !age.is_some_and(|age| age <= i64::try_from(policy.ttl).unwrap_or(i64::MAX)) {
            return Err(RequestError::Expired { id });
        }
    }
    let token = load.remove("tok");
    let key = accepted_key(&id);
    let proved = match (token.as_ref().and_then(ValueExt::bytes), &key) {
        (Some(token), Some(key)) => key.x931_recover(token).as_deref() == Some(TOKEN),
        _ => false,
    };
    if !proved {
        return Err(RequestError::Token { id });
    }
    let nonce = match load.remove("nonce") {
        None => None,
        Some(nonce) => match nonce.text() {
            // The reply carries it in a place of 32 characters.
            Some(text) if text.len() == 32 && text.is_ascii() => Some(text.to_owned()),
            _ => return Err(RequestError::Nonce { id }),
        },
    };
    let cmd = load.get_text("cmd").unwrap_or_default().to_owned();
    Ok(Request { id, load, nonce, cmd, enc_algo: envelope.enc_algo.clone(), sig_algo: envelope.sig_algo.clone() })
}

/// Whether the load's `sig` is the minion's (`minion_sign_messages`, §6.3); none if there is no `sig`.
pub fn verify_load_signature(load: &Value, key: &PublicKey, alg: SignAlg) -> Option<bool> {
    let mut signed = load.clone();
    let signature = signed.remove("sig")?;
    for key in ["nonce", "tok"] {
        signed.remove(key);
    }
    let signature = signature.bytes().unwrap_or_default();
    Some(key.verify(alg, &msgpack::encode_disk(&signed), signature))
}

/// The reply to a request: the value under the session key, with the request's nonce.
pub fn seal_reply(session: &Crypticle, value: &Value, nonce: Option<&str>) -> Vec<u8> {
    msgpack::encode_network_bytes(&session.seal(value, nonce))
}

/// A reply in clear text: refusals and everything local clients get.
pub fn clear_reply(value: &Value) -> Vec<u8> {
    msgpack::encode_network(value)
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
    let Some(nonce) = &request.nonce else {
        return Ok(clear_reply(&value::map([("error", "Nonce not included in request")])));
    };
    let enc_algo: EncAlg = request.enc_algo.as_deref().map_or(Ok(EncAlg::default()), str::parse)?;
    let sig_algo: SignAlg = request.sig_algo.as_deref().map_or(Ok(SignAlg::default()), str::parse)?;
    let key = AesKey::generate();
    let sealed_key = minion.encrypt(enc_algo, key.text().expose().as_bytes())?;
    let data = msgpack::encode_network(&value::map([
        ("key", Value::Binary(sealed_key.clone())),
        ("pillar", pillar.clone()),
        ("nonce", Value::from(nonce.as_str())),
    ]));
    let sig = signer.sign(sig_algo, &data)?;
    let signed = value::map([("data", Value::Binary(data)), ("sig", Value::Binary(sig))]);
    let blob = Crypticle::new(&key).seal(&signed, None);
    Ok(clear_reply(&value::map([("key", Value::Binary(sealed_key)), ("pillar", Value::Binary(blob))])))
}

#[cfg(test)]
mod tests;
