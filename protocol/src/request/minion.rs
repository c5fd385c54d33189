//! The minion's side: turns loads into requests and replies into values.

use std::sync::Arc;

use bytes::Bytes;

use super::TOKEN;
use super::content::{self, Asked, MAC_LEN};
use crate::auth::{Credentials, MasterRun, RUN, SEALS};
use crate::crypticle::{AesKey, CryptError, Crypticle};
use crate::envelope::{AesEnvelope, Envelope, VERSION, into_bytes};
use crate::ids::MinionId;
use crate::keys::{EncAlg, KeyError, PrivateOps, PublicKey, SignAlg};
use crate::msgpack::{self, Limits};
use crate::secret::Secret;
use crate::value::{Value, ValueExt};

/// The session of an accepted minion with its master.
#[derive(Debug, Clone)]
pub struct Session {
    id: MinionId,
    token: Secret<Vec<u8>>,
    crypticle: Crypticle,
    session_key: AesKey,
    key: Arc<dyn PrivateOps>,
    master: PublicKey,
    enc_algo: EncAlg,
    sig_algo: SignAlg,
    sign: bool,
    /// The master makes sealed publications, so each request says that this minion opens them.
    seals: bool,
    /// The master's run, if the session is of an earlier one.
    run: Option<MasterRun>,
}

/// A request ready to be sent.
#[derive(Debug, Clone)]
pub struct SealedRequest {
    /// The envelope.
    pub payload: Vec<u8>,
    /// The nonce that the reply must contain.
    pub nonce: String,
    /// The MAC of the request, to which content under an AEAD is bound (§6.5.2).
    pub mac: [u8; MAC_LEN],
}

/// Why a reply cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReplyError {
    /// The master refused the request with an unencrypted text, such as `bad load`. The minion should authenticate
    /// again and repeat the request.
    #[error("the master refused the request: {0}")]
    Text(String),
    /// The reply is not MessagePack.
    #[error("the reply does not decode: {0}")]
    Decode(#[from] crate::msgpack::DecodeError),
    /// The reply is not authentic, or belongs to another request.
    #[error("the reply cannot be opened: {0}")]
    Crypt(#[from] CryptError),
    /// The reply is malformed.
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
    /// Whether the request may succeed after the minion has authenticated again (§3.5).
    pub const fn wants_reauth(&self) -> bool {
        matches!(self, Self::Text(_) | Self::Crypt(_) | Self::Key)
    }
}

impl Session {
    /// Makes the session of an accepted minion with its token, which takes one private operation.
    ///
    /// # Errors
    /// When the private operation fails.
    pub fn new(
        id: &MinionId,
        key: Arc<impl PrivateOps + 'static>,
        credentials: &Credentials,
        enc_algo: EncAlg,
        sig_algo: SignAlg,
    ) -> Result<Self, KeyError> {
        Ok(Self {
            id: id.clone(),
            token: Secret::new(key.x931_sign(TOKEN)?),
            crypticle: Crypticle::new(&credentials.session_key),
            session_key: credentials.session_key.clone(),
            key,
            master: credentials.master.clone(),
            enc_algo,
            sig_algo,
            sign: false,
            seals: credentials.offer.is_some(),
            run: credentials.run,
        })
    }

    /// The same session at the master's present run, which an answer to [`crate::auth::resume_request`] told.
    #[must_use]
    pub fn resumed(&self, credentials: &Credentials) -> Self {
        Self { run: credentials.run, ..self.clone() }
    }

    /// Sets whether every load is signed (`minion_sign_messages`, §6.3).
    #[must_use]
    pub const fn signing(mut self, sign: bool) -> Self {
        self.sign = sign;
        self
    }

    /// The minion's id.
    pub const fn id(&self) -> &MinionId {
        &self.id
    }

    /// Adds the common fields of a request (id, nonce, ts, tok and, if configured, sig) and encrypts the load, a map.
    ///
    /// # Errors
    /// When the load cannot be signed.
    pub fn seal_request(&self, load: Value) -> Result<SealedRequest, KeyError> {
        let nonce = hex::encode(rand::random::<[u8; 16]>());
        self.seal_with(load, nonce, jiff::Timestamp::now().as_second())
    }

    pub(crate) fn seal_with(&self, mut load: Value, nonce: String, ts: i64) -> Result<SealedRequest, KeyError> {
        for key in ["nonce", "ts", "tok", "sig", SEALS, RUN] {
            load.remove(key);
        }
        load.insert("id", &self.id);
        let mut sent = load;
        let signature = if self.sign {
            // The signature covers everything except nonce, token and mark, which the master removes before it verifies.
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
        if self.seals {
            sent.insert(SEALS, true);
            // Empty if the session is of the master's present run, as far as this minion knows.
            sent.insert(RUN, Value::Binary(self.run.iter().flatten().copied().collect()));
        }
        let blob = self.crypticle.seal(&sent, None);
        let mac = *blob.last_chunk().expect("a blob ends with its MAC");
        let envelope = Envelope::Aes(AesEnvelope {
            load: blob,
            version: VERSION,
            id: Some(self.id.clone()),
            enc_algo: Some(self.enc_algo.as_str().to_owned()),
            sig_algo: Some(self.sig_algo.as_str().to_owned()),
        });
        Ok(SealedRequest { payload: envelope.encode(), nonce, mac })
    }

    /// Opens a reply.
    ///
    /// # Errors
    /// When it is a refusal, not authentic, or not the reply to this nonce.
    pub fn open_reply(&self, reply: &[u8], nonce: &str) -> Result<Value, ReplyError> {
        Ok(self.crypticle.open(&blob_of(reply)?, Some(nonce), &Limits::REQUEST)?)
    }

    /// Opens a reply and keeps every byte string as bytes, also as a key, for `_serve_file` (§6.5).
    ///
    /// # Errors
    /// As [`Session::open_reply`].
    pub fn open_raw_reply(&self, reply: &[u8], nonce: &str) -> Result<Value, ReplyError> {
        Ok(self.crypticle.open_raw(&blob_of(reply)?, Some(nonce), &Limits::REQUEST)?)
    }

    /// Opens the answer to a `_serve_file` that offered an AEAD (§6.5.2). A master that does not know it answers as ever.
    ///
    /// # Errors
    /// As [`Session::open_reply`].
    pub fn open_content(&self, reply: Bytes, nonce: &str, mac: &[u8; MAC_LEN]) -> Result<Value, ReplyError> {
        if !content::is_content(&reply) {
            return self.open_raw_reply(&reply, nonce);
        }
        let asked = Asked { session: &self.session_key, id: &self.id, mac };
        Ok(content::open(reply.into(), asked)?)
    }

    /// Opens the private reply to `_pillar` (§6.4) and returns the pillar.
    ///
    /// # Errors
    /// When it is a refusal, not signed by the master, or not the reply to this nonce.
    pub fn open_pillar_reply(&self, reply: &[u8], nonce: &str) -> Result<Value, ReplyError> {
        let reply = match msgpack::decode(reply, &Limits::REQUEST)? {
            reply @ Value::Map(_) => reply,
            other => {
                // This is not a private reply but a refusal in text, or an ordinary reply (of 3008, when the minion's
                // key is gone).
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
        // Anyone who knows the minion's public key could have encrypted the key. The master's signature proves which
        // key it chose, and for which request.
        if inner.get_bytes("key") != Some(sealed_key) {
            return Err(ReplyError::BadSignature);
        }
        if inner.get_text("nonce") != Some(nonce) {
            return Err(CryptError::WrongNonce.into());
        }
        inner.remove("pillar").ok_or(ReplyError::Malformed("it has no pillar"))
    }
}

/// The blob of an encrypted reply, which is one byte string; a text is a refusal.
fn blob_of(reply: &[u8]) -> Result<Vec<u8>, ReplyError> {
    match msgpack::decode(reply, &Limits::REQUEST)? {
        map @ Value::Map(_) => Err(refusal_of(&map).map_or(ReplyError::Malformed("it is a map"), ReplyError::Text)),
        other => refusal_or_blob(other),
    }
}

/// The text of a refusal that is a map: in `error` since 3008, in `msg` before.
fn refusal_of(reply: &Value) -> Option<String> {
    reply.get_text("error").or_else(|| reply.get_text("msg")).map(|text| brine_text::short(text, MAX_REASON))
}

fn refusal_or_blob(value: Value) -> Result<Vec<u8>, ReplyError> {
    match value.text() {
        // A blob is never shorter than this, and almost never text.
        Some(text) if text.len() < MIN_BLOB || !text.len().is_multiple_of(16) => {
            Err(ReplyError::Text(brine_text::short(text, MAX_REASON)))
        }
        _ => into_bytes(value).ok_or(ReplyError::Malformed("it is not bytes")),
    }
}

/// Upper bound on the characters of a peer's refusal in the log.
const MAX_REASON: usize = 200;
/// Lower bound on the bytes of a blob: IV, one block and MAC.
const MIN_BLOB: usize = 64;
