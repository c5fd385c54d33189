//! The master's side: proves the sender of a request and makes replies.

use super::TOKEN;
use super::content::{self, Asked};
use crate::auth::{RUN, SEALS};
use crate::crypticle::{AesKey, CryptError, Crypticle};
use crate::envelope::{AesEnvelope, VERSION};
use crate::ids::MinionId;
use crate::keys::{EncAlg, KeyError, PrivateOps, PublicKey, SignAlg};
use crate::msgpack::{self, Limits};
use crate::value::{self, Value, ValueExt};

/// The master's requirements for a request.
#[derive(Debug, Clone, Copy)]
pub struct RequestPolicy {
    /// `minimum_auth_version`.
    pub minimum_version: u64,
    /// `request_server_ttl` in seconds; 0 is off.
    pub ttl: u64,
    /// The present time in seconds since the epoch.
    pub now: i64,
    /// The limits on decoding.
    pub limits: Limits,
}

impl RequestPolicy {
    /// Salt's defaults and the present time.
    pub fn now() -> Self {
        Self { minimum_version: VERSION, ttl: 0, now: jiff::Timestamp::now().as_second(), limits: Limits::REQUEST }
    }
}

/// A request whose sender is proved.
#[derive(Debug, Clone)]
pub struct Request {
    /// The sender: proved by session key and token, and named by both envelope and load.
    pub id: MinionId,
    /// The load without `nonce`, `tok`, `seals` and `master_run`.
    pub load: Value,
    /// Whether the sender opens sealed publications (§5.5).
    pub seals: bool,
    /// What it says of the master's run (§3.10); None if it knows nothing of runs.
    pub run: Option<Vec<u8>>,
    /// The nonce for the reply.
    pub nonce: Option<String>,
    /// `cmd`.
    pub cmd: String,
    /// The algorithm to encrypt a private reply with, from the envelope.
    pub enc_algo: Option<String>,
    /// The algorithm to sign a private reply with, from the envelope.
    pub sig_algo: Option<String>,
}

/// Why a request is refused. [`RequestRefusal::reply`] is the reply to the sender; the message is for the log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestRefusal {
    /// The version is below the minimum.
    #[error("protocol version {version} is below minimum_auth_version {minimum}")]
    Version {
        /// The sender's version.
        version: u64,
        /// The configured minimum.
        minimum: u64,
    },
    /// The envelope names no valid minion, or the minion has no session.
    #[error("the envelope names no known minion")]
    UnknownMinion,
    /// The load does not open with the session key of the named minion.
    #[error("the load cannot be opened with the session key of {id}: {why}")]
    Crypt {
        /// The minion that the envelope names.
        id: MinionId,
        /// The cause.
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
        /// The sender.
        id: MinionId,
    },
    /// Envelope and load name different minions.
    #[error("the envelope names {id}, the load names another minion")]
    IdMismatch {
        /// The minion that the envelope names.
        id: MinionId,
    },
    /// The token is missing or was not made with the minion's accepted key.
    #[error("a request of {id} has no token of its accepted key")]
    Token {
        /// The minion that the envelope names.
        id: MinionId,
    },
    /// The nonce is not 32 ASCII characters.
    #[error("a request of {id} has a malformed nonce")]
    Nonce {
        /// The sender.
        id: MinionId,
    },
    /// The signature of the load is wrong, or is missing although it is required.
    #[error("a request of {id} is not signed by its accepted key")]
    Signature {
        /// The minion that the envelope names.
        id: MinionId,
    },
}

impl RequestRefusal {
    /// The unencrypted reply to the sender (§4.2).
    pub fn reply(&self) -> Value {
        match self {
            Self::NotMap | Self::NulId | Self::IdNotText(_) => Value::from(self.to_string()),
            _ => Value::from("bad load"),
        }
    }
}

/// Opens a request with the session key of the minion that its envelope names, and proves that this minion sent it.
/// `accepted_key` returns the minion's accepted key.
///
/// # Errors
/// In the order of §4.2.
pub fn open_request(
    envelope: &AesEnvelope,
    session: &Crypticle,
    policy: &RequestPolicy,
    accepted_key: impl FnOnce(&MinionId) -> Option<PublicKey>,
) -> Result<Request, RequestRefusal> {
    open_request_with(envelope, session, policy, |id, token| accepted_key(id).is_some_and(|key| is_token(&key, token)))
}

/// Whether this token of a request (§4.1) was made with this key. Takes one public operation. The token of a key never
/// changes, so a caller may remember a valid token and skip this check.
pub fn is_token(key: &PublicKey, token: &[u8]) -> bool {
    is_tokens_message(key.x931_recover(token).as_deref())
}

/// Whether this is what a token's signature is over, for other implementations of [`PublicKey::x931_recover`].
pub fn is_tokens_message(message: Option<&[u8]>) -> bool {
    message == Some(TOKEN)
}

/// As [`open_request`], with another check of the token: `is_token` decides whether the token was made with the
/// minion's accepted key.
///
/// # Errors
/// In the order of §4.2.
pub fn open_request_with(
    envelope: &AesEnvelope,
    session: &Crypticle,
    policy: &RequestPolicy,
    is_token: impl FnOnce(&MinionId, &[u8]) -> bool,
) -> Result<Request, RequestRefusal> {
    if envelope.version < policy.minimum_version {
        return Err(RequestRefusal::Version { version: envelope.version, minimum: policy.minimum_version });
    }
    let id = envelope.id.clone().ok_or(RequestRefusal::UnknownMinion)?;
    let mut load = session
        .open(&envelope.load, None, &policy.limits)
        .map_err(|why| RequestRefusal::Crypt { id: id.clone(), why })?;
    if !matches!(load, Value::Map(_)) {
        return Err(RequestRefusal::NotMap);
    }
    match load.get("id") {
        Some(Value::String(inner)) => {
            if inner.as_bytes().contains(&0) {
                return Err(RequestRefusal::NulId);
            }
            if inner.as_str() != Some(id.as_str()) {
                return Err(RequestRefusal::IdMismatch { id });
            }
        }
        Some(other) => return Err(RequestRefusal::IdNotText(other.python_str().chars().take(80).collect())),
        None => return Err(RequestRefusal::IdMismatch { id }),
    }
    if policy.ttl > 0 {
        let age = load.get_i64("ts").map(|ts| policy.now.saturating_sub(ts));
        if age.is_none_or(|age| age > i64::try_from(policy.ttl).unwrap_or(i64::MAX)) {
            return Err(RequestRefusal::Expired { id });
        }
    }
    let token = load.remove("tok");
    let proved = token.as_ref().and_then(ValueExt::bytes).is_some_and(|token| is_token(&id, token));
    if !proved {
        return Err(RequestRefusal::Token { id });
    }
    let nonce = match load.remove("nonce") {
        None => None,
        Some(nonce) => match nonce.text() {
            // The nonce takes 32 characters in the reply.
            Some(text) if text.len() == 32 && text.is_ascii() => Some(text.to_owned()),
            _ => return Err(RequestRefusal::Nonce { id }),
        },
    };
    let seals = load.remove(SEALS) == Some(Value::Boolean(true));
    let run = load.remove(RUN).and_then(|run| run.bytes().map(<[u8]>::to_vec));
    let cmd = load.get_text("cmd").unwrap_or_default().to_owned();
    Ok(Request {
        id,
        load,
        seals,
        run,
        nonce,
        cmd,
        enc_algo: envelope.enc_algo.clone(),
        sig_algo: envelope.sig_algo.clone(),
    })
}

/// Whether the minion made the load's `sig` (`minion_sign_messages`, §6.3); none if there is no `sig`.
pub fn verify_load_signature(load: &Value, key: &PublicKey, alg: SignAlg) -> Option<bool> {
    let mut signed = load.clone();
    let signature = signed.remove("sig")?;
    for key in ["nonce", "tok"] {
        signed.remove(key);
    }
    let signature = signature.bytes().unwrap_or_default();
    Some(key.verify(alg, &msgpack::encode_disk(&signed), signature))
}

/// Encodes the reply to a request: the value, encrypted with the session key, with the request's nonce.
pub fn seal_reply(session: &Crypticle, value: &Value, nonce: Option<&str>) -> Vec<u8> {
    msgpack::encode_network_bytes(&session.seal(value, nonce))
}

/// Encodes the answer to `_serve_file` for a minion that opens content under an AEAD (§6.5.2). It belongs to the request in this envelope,
/// which `session` has opened.
pub fn seal_content_reply(session: &AesKey, answer: Value, envelope: &AesEnvelope) -> Option<Vec<u8>> {
    let (id, mac) = (envelope.id.as_ref()?, envelope.load.last_chunk()?);
    Some(content::seal(answer, Asked { session, id, mac }))
}

/// Encodes a reply in clear text: refusals, and all replies to local clients.
pub fn clear_reply(value: &Value) -> Vec<u8> {
    msgpack::encode_network(value)
}

/// Encodes the private reply to `_pillar` (§6.4): a fresh key encrypted to the minion, and the signed pillar encrypted
/// with that key.
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
