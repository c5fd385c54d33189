//! The minion's side of authentication: makes requests and verifies the replies (§3.4).

use base64::Engine as _;

use super::{ABOUT, AGAIN_SOON, AuthRequest, MasterRun, OFFER, about};
use crate::crypticle::{AesKey, CryptError};
use crate::envelope::{self, Envelope, into_bytes};
use crate::ids::MinionId;
use crate::keys::{EncAlg, KeyError, PrivateKey, PrivateOps, PublicKey, SignAlg, clean_pem};
use crate::msgpack::{self, Limits};
use crate::sealed::{SealKeys, SealOffer};
use crate::secret::Secret;
use crate::value::{Value, ValueExt};

/// The data of a minion for authentication: its identity and its knowledge of the master.
#[derive(Debug, Clone)]
pub struct MinionAuth<'a> {
    /// The minion's id.
    pub id: &'a MinionId,
    /// The minion's key.
    pub key: &'a dyn PrivateOps,
    /// The master's key as cached at first contact (`minion_master.pub`); none before that.
    pub master: Option<&'a PublicKey>,
    /// `master_finger`: the only trusted fingerprint; empty to trust any.
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
    /// Whether this minion opens sealed publications (§5.5).
    pub seals: bool,
    /// `require_sealed`: trust no master that makes none.
    pub require_sealed: bool,
    /// Whether the master is known to say whom a verdict is about, as Brine's do.
    pub verdicts_say_who: bool,
}

impl<'a> MinionAuth<'a> {
    /// With Salt's default algorithms, no cached key and no options.
    pub const fn new(id: &'a MinionId, key: &'a PrivateKey) -> Self {
        Self::with(id, key)
    }

    /// As [`MinionAuth::new`], with another implementation of the key's operations.
    pub const fn with(id: &'a MinionId, key: &'a dyn PrivateOps) -> Self {
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
            seals: false,
            require_sealed: false,
            verdicts_say_who: false,
        }
    }

    /// Makes a new request, with a nonce and, if the master's key is known, a token of its own.
    ///
    /// # Errors
    /// When the token cannot be encrypted to the master's key.
    pub fn attempt(&self) -> Result<AuthAttempt<'a>, AuthError> {
        // In Salt's form: 32 hex digits and 76 random characters.
        let nonce = hex::encode(rand::random::<[u8; 16]>());
        let token = self.master.map(|_| Secret::new(AesKey::generate().text().expose().clone().into_bytes()));
        self.attempt_with(nonce, token)
    }

    pub(crate) fn attempt_with(
        &self,
        nonce: String,
        token: Option<Secret<Vec<u8>>>,
    ) -> Result<AuthAttempt<'a>, AuthError> {
        let sealed = match (self.master, &token) {
            (Some(master), Some(token)) => Some(master.encrypt(self.enc_algo, token.expose())?),
            _ => None,
        };
        let request = AuthRequest {
            id: self.id.clone(),
            nonce: nonce.clone(),
            pub_pem: self.key.public().clean_pem().to_owned(),
            enc_algo: self.enc_algo,
            sig_algo: self.sig_algo,
            token: sealed,
            autosign_grains: self.autosign_grains.clone(),
            seals: self.seals,
            version: envelope::VERSION,
        };
        let payload = Envelope::clear(request.to_load()).encode();
        Ok(AuthAttempt { auth: self.clone(), nonce, token, payload })
    }
}

/// One authentication request, and the values that its reply must contain.
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

    /// Verifies the master's reply: signature, nonce, master key, token and keys (§3.4).
    ///
    /// # Errors
    /// When the reply is not authentic. Another try may help unless [`AuthError::is_permanent`].
    pub fn verify_reply(&self, reply: &[u8]) -> Result<AuthOutcome, AuthError> {
        let mut reply = decode(reply)?;
        if let Some(text) = reply.text().or_else(|| reply.get_text("error")).or_else(|| reply.get_text("msg")) {
            return Err(AuthError::Refused(shorten(text)));
        }
        if let Some(load @ Value::Map(_)) = reply.get("load") {
            // The reply is unsigned and proves nothing, but it tells the operator the reason.
            return Err(AuthError::Refused(shorten(&load.get("ret").map_or_else(String::new, ValueExt::python_str))));
        }
        let load = reply.remove("load").and_then(into_bytes).ok_or(AuthError::Malformed("it has no load"))?;
        // The signature covers the load's bytes as received, not a new encoding of them.
        let signature = reply.get_bytes("sig");
        let signed_by = |key: &PublicKey| signature.is_some_and(|s| key.verify(self.auth.sig_algo, &load, s));
        let inner = decode(&load)?;

        if inner.has("pub_key") {
            let (master, master_is_new) = self.trusted_master(&inner)?;
            if !signed_by(&master) {
                return Err(AuthError::BadSignature);
            }
            self.check_nonce(&inner)?;
            return self.credentials(&inner, master, master_is_new).map(|c| AuthOutcome::Accepted(Box::new(c)));
        }
        // Before first contact no key can verify a verdict; a verdict without a key reveals nothing.
        if let Some(master) = self.auth.master
            && !signed_by(master)
        {
            return Err(AuthError::BadSignature);
        }
        self.check_nonce(&inner)?;
        self.check_about(&inner)?;
        match inner.get("ret") {
            Some(Value::Boolean(true)) => {
                Ok(AuthOutcome::Pending { again_soon: inner.get(AGAIN_SOON) == Some(&Value::Boolean(true)) })
            }
            Some(Value::Boolean(false)) => Ok(AuthOutcome::Rejected),
            Some(ret) if ret.text() == Some("full") => Ok(AuthOutcome::Full),
            _ => Err(AuthError::Malformed("it has neither keys nor a verdict")),
        }
    }

    fn check_nonce(&self, inner: &Value) -> Result<(), AuthError> {
        if inner.get_text("nonce") == Some(&self.nonce) { Ok(()) } else { Err(AuthError::WrongNonce) }
    }

    fn check_about(&self, inner: &Value) -> Result<(), AuthError> {
        match inner.get_bytes(ABOUT) {
            Some(said) if said == about(self.auth.id, self.auth.key.public().clean_pem()) => Ok(()),
            // Python's masters do not say it.
            None if !self.auth.verdicts_say_who => Ok(()),
            _ => Err(AuthError::OtherVerdict),
        }
    }

    /// The master's key in the reply, if this minion trusts it, and whether it differs from the cached one.
    fn trusted_master(&self, inner: &Value) -> Result<(PublicKey, bool), AuthError> {
        let pem = inner.get_text("pub_key").ok_or(AuthError::Malformed("its pub_key is not text"))?;
        let master = PublicKey::from_pem(pem)?;
        let vouched = match (self.auth.verify_key, inner.get_text("pub_sig")) {
            (None, None) => false,
            (None, Some(_)) => {
                return Err(AuthError::PubSig("the master signs its key, but this minion does not verify it"));
            }
            (Some(_), None) => return Err(AuthError::PubSig("the master does not sign its key")),
            (Some(key), Some(sig)) => {
                // Python's base64 text has line ends in it.
                let sig: String = sig.split_ascii_whitespace().collect();
                let sig = base64::engine::general_purpose::STANDARD
                    .decode(sig)
                    .map_err(|_| AuthError::PubSig("the signature is not base64"))?;
                if !key.verify(self.auth.sig_algo, clean_pem(pem).as_bytes(), &sig) {
                    return Err(AuthError::PubSig("the signature is not of the configured key"));
                }
                true
            }
        };
        let finger = master.fingerprint();
        let expected = self.auth.master_finger.trim();
        if !expected.is_empty() && !expected.eq_ignore_ascii_case(&finger) {
            return Err(AuthError::WrongFinger { got: finger, expected: expected.to_owned() });
        }
        match self.auth.master {
            Some(cached) if *cached == master => Ok((master, false)),
            Some(cached) if !vouched && !self.auth.open_mode => {
                Err(AuthError::MasterKeyChanged { got: finger, trusted: cached.fingerprint() })
            }
            _ => Ok((master, true)),
        }
    }

    fn credentials(&self, inner: &Value, master: PublicKey, master_is_new: bool) -> Result<Credentials, AuthError> {
        let decrypted = |field: &str, missing: &'static str| {
            let sealed = inner.get_bytes(field).ok_or(AuthError::Malformed(missing))?;
            Ok::<_, AuthError>(Secret::new(self.auth.key.decrypt(self.auth.enc_algo, sealed)?))
        };
        let publish_key = AesKey::from_bytes(decrypted("aes", "it has no publish key")?.expose())?;
        let signed = inner.get_bytes("sig").and_then(|sig| master.x931_recover(sig));
        if signed.as_deref() != Some(publish_key.digest().as_bytes()) {
            return Err(AuthError::BadKeySignature);
        }
        // A master with a new key cannot decrypt a token for its old one.
        if let Some(token) = &self.token
            && !master_is_new
        {
            let returned = decrypted("token", "it has no token").map_err(|_| AuthError::WrongToken)?;
            if returned != *token {
                return Err(AuthError::WrongToken);
            }
        }
        let session_key = AesKey::from_bytes(decrypted("session", "it has no session key")?.expose())?;
        let publish_port = publish_port(inner)?;
        let offer = match inner.get(OFFER).filter(|_| self.auth.seals) {
            Some(offer) => Some(SealOffer::from_value(offer, &master).ok_or(AuthError::BadOffer)?),
            None if self.auth.require_sealed => return Err(AuthError::NotSealed),
            None => None,
        };
        let run = super::resume::run(inner).filter(|_| self.auth.seals);
        Ok(Credentials { publish_key, session_key, publish_port, master, master_is_new, offer, run })
    }
}

pub(super) fn publish_port(reply: &Value) -> Result<u16, AuthError> {
    let port = reply.get_u64("publish_port").and_then(|port| u16::try_from(port).ok());
    port.filter(|&port| port != 0).ok_or(AuthError::Malformed("its publish_port is no port"))
}

fn decode(bytes: &[u8]) -> Result<Value, AuthError> {
    msgpack::decode(bytes, &Limits::UNAUTHENTICATED).map_err(|_| AuthError::Malformed("it does not decode"))
}

/// Shortens a peer's text to one line for the log.
fn shorten(text: &str) -> String {
    brine_text::short(text, 200)
}

/// The master's decision.
#[derive(Debug)]
pub enum AuthOutcome {
    /// Accepted.
    Accepted(Box<Credentials>),
    /// The key waits for an operator.
    Pending {
        /// The master bears being asked again at once.
        again_soon: bool,
    },
    /// The key was rejected or denied.
    Rejected,
    /// The master has reached `max_minions`.
    Full,
}

/// The keys and facts that an accepted minion gets.
#[derive(Debug, Clone)]
pub struct Credentials {
    /// The key of publications, which all minions share.
    pub publish_key: AesKey,
    /// The key of this minion's requests.
    pub session_key: AesKey,
    /// The port of publications.
    pub publish_port: u16,
    /// The master's key.
    pub master: PublicKey,
    /// Whether the master's key differs from the cached one and must be written to `minion_master.pub`.
    pub master_is_new: bool,
    /// The key of sealed publications, if the master makes them and the minion opens them.
    pub offer: Option<SealOffer>,
    /// The master's run, if the session is of an earlier one: each request says it.
    pub run: Option<MasterRun>,
}

impl Credentials {
    /// What opens the sealed publications (§5.5) for the minion with this id, if there are any.
    pub fn seal_keys(&self, id: &MinionId) -> Option<SealKeys> {
        Some(SealKeys::new(id, self.offer.clone()?, &self.publish_key, &self.session_key))
    }
}

/// Why a reply does not authenticate.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// The reply is malformed.
    #[error("the master's reply is malformed: {0}")]
    Malformed(&'static str),
    /// The master answered with an error text.
    #[error("the master refused the request: {0}")]
    Refused(String),
    /// The reply's signature is missing or not the master's.
    #[error(
        "the reply is not signed by the master's key. If the master was re-keyed on purpose, remove minion_master.pub from pki_dir"
    )]
    BadSignature,
    /// The reply answers another request.
    #[error("the reply does not carry the nonce of this request")]
    WrongNonce,
    /// The verdict is about another key or id. Somebody between both has asked with this minion's nonce.
    #[error("the master's verdict is not about this minion: somebody between both changed the request")]
    OtherVerdict,
    /// The master's key differs from the cached one.
    #[error(
        "the master's key is not the one this minion trusts (got {got}, trusted {trusted}). If the master was re-keyed on purpose, remove minion_master.pub from pki_dir"
    )]
    MasterKeyChanged {
        /// The fingerprint of the key in the reply.
        got: String,
        /// The fingerprint of the cached key.
        trusted: String,
    },
    /// The master's key does not have the configured fingerprint.
    #[error("the master's key has fingerprint {got}, but master_finger is {expected}")]
    WrongFinger {
        /// The fingerprint of the key in the reply.
        got: String,
        /// The configured one.
        expected: String,
    },
    /// The signature over the master's key is missing, wrong, or present but not configured.
    #[error("the signature over the master's key does not fit verify_master_pubkey_sign: {0}")]
    PubSig(&'static str),
    /// The master did not sign the publish key.
    #[error("the publish key in the reply is not signed by the master")]
    BadKeySignature,
    /// The key of sealed publications is not vouched for by the master's key.
    #[error("the key of sealed publications in the reply is not vouched for by the master's key")]
    BadOffer,
    /// The master makes no sealed publications, and the minion requires them.
    #[error(
        "the master makes no publications for this minion alone (it is no Brine master, or has `publications: shared`), and require_sealed is on"
    )]
    NotSealed,
    /// The master did not return the token.
    #[error("the master did not return the token of this request")]
    WrongToken,
    /// A key in the reply cannot be decrypted or is invalid.
    #[error("a key in the reply is not usable: {0}")]
    Key(#[from] KeyError),
    /// A decrypted key is not an AES key.
    #[error("a key in the reply is not usable: {0}")]
    Aes(#[from] CryptError),
}

impl AuthError {
    /// Whether another try fails until somebody changes a configuration or a key.
    pub const fn is_permanent(&self) -> bool {
        matches!(self, Self::MasterKeyChanged { .. } | Self::WrongFinger { .. } | Self::PubSig(_) | Self::NotSealed)
    }
}
