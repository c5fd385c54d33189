//! The master's side of authentication: reads requests and builds the replies (§3.1 to §3.3).
//!
//! The master decides which reply a key gets; this module only encodes it.

use crate::crypticle::AesKey;
use crate::ids::MinionId;
use crate::keys::{EncAlg, KeyError, PrivateOps, PublicKey, SignAlg, clean_pem};
use crate::msgpack;
use crate::sealed::SealOffer;
use crate::secret::Secret;
use crate::value::{self, Value, ValueExt};

use super::{ABOUT, AGAIN_SOON, MasterRun, OFFER, RUN, SEALS, about};

/// The hex digits of a nonce, of every version of Salt.
///
/// The master signs what it answers, with the sender's nonce in it, by the key that signs publications for all minions (§5.1). Any other text
/// of 113 bytes could make of the answer a publication that the master never made: whoever has the publish key, as each accepted minion does,
/// finds one in minutes.
const NONCE_DIGITS: usize = 32;

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
    /// Whether the sender says that it opens sealed publications (§5.5). Anybody could have said so.
    pub seals: bool,
    /// The envelope's version.
    pub version: u64,
}

/// A request that is refused before its key is examined. It carries the data for the reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AuthRefusal {
    /// The id is not valid: answered with a signed `ret: False` (§3.2).
    #[error("{why}")]
    InvalidId {
        /// The reason.
        why: String,
        /// The sender's nonce.
        nonce: String,
        /// How to sign the reply.
        sig_algo: SignAlg,
        /// The envelope's version.
        version: u64,
    },
    /// The id has a NUL.
    #[error("bad load: id contains a null byte")]
    NulId,
    /// The id is not text.
    #[error("bad load: id {0} is not a string")]
    IdNotText(String),
    /// An encryption algorithm that does not exist.
    #[error("unknown encryption algorithm {0:?}")]
    EncAlgo(String),
    /// A signing algorithm that does not exist.
    #[error("unknown signing algorithm {0:?}")]
    SigAlgo(String),
    /// The envelope's version is below the configured minimum (CVE-2025-62349).
    #[error("protocol version {version} is below minimum_auth_version {minimum}")]
    Version {
        /// The sender's version.
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
        let ret = |why: &str| value::map([("enc", Value::from("clear")), ("load", value::map([("ret", why)]))]);
        let reply = match self {
            Self::InvalidId { nonce, sig_algo, version, .. } => {
                return verdict(value::map([("ret", false)]), nonce, *sig_algo, *version, signer);
            }
            Self::EncAlgo(_) => ret("bad enc algo"),
            Self::SigAlgo(_) => ret("bad sig algo"),
            Self::NulId | Self::IdNotText(_) => Value::from(self.to_string()),
            Self::Version { .. } => Value::from("bad load"),
            Self::Malformed(_) => Value::from("Some exception handling minion payload"),
        };
        Ok(msgpack::encode_network(&reply))
    }
}

/// The parts of an accept reply.
pub struct Accepted<'a> {
    /// The publish key.
    pub publish_key: &'a AesKey,
    /// The [`publish_key_signature`] of the publish key; it is the same for all minions and is therefore made once.
    pub publish_key_sig: &'a [u8],
    /// The minion's session key.
    pub session_key: &'a AesKey,
    /// The port of publications.
    pub publish_port: u16,
    /// The key that signs the master's key (`master_sign_pubkey`), if configured.
    pub sign_key: Option<&'a dyn PrivateOps>,
    /// The key of sealed publications, if the master makes them.
    pub offer: Option<&'a SealOffer>,
    /// The master's run, if the session is of an earlier one.
    pub run: Option<&'a MasterRun>,
}

/// The X9.31 signature over the publish key that every accept reply carries (§3.3).
///
/// # Errors
/// When the private operation fails.
pub fn publish_key_signature(signer: &dyn PrivateOps, key: &AesKey) -> Result<Vec<u8>, KeyError> {
    signer.x931_sign(key.digest().as_bytes())
}

impl AuthRequest {
    /// Reads the load of a clear `_auth` envelope; `minimum_version` is `minimum_auth_version`.
    ///
    /// # Errors
    /// A refusal, which can make the reply.
    pub fn parse(load: &Value, version: u64, minimum_version: u64) -> Result<Self, AuthRefusal> {
        if version < minimum_version {
            return Err(AuthRefusal::Version { version, minimum: minimum_version });
        }
        let id = match load.get("id") {
            None => return Err(AuthRefusal::Malformed("it has no id")),
            Some(id) => match id.text() {
                None => return Err(AuthRefusal::IdNotText(id.python_str().chars().take(80).collect())),
                Some(id) if id.contains('\0') => return Err(AuthRefusal::NulId),
                Some(id) => id,
            },
        };
        let sig_algo = match load.get("sig_algo") {
            None => SignAlg::default(),
            Some(name) => algorithm(name).map_err(AuthRefusal::SigAlgo)?,
        };
        let enc_algo = match load.get("enc_algo") {
            None => EncAlg::default(),
            Some(name) => algorithm(name).map_err(AuthRefusal::EncAlgo)?,
        };
        let nonce = match load.get("nonce").map(ValueExt::text) {
            Some(Some(nonce)) if is_nonce(nonce) => nonce.to_owned(),
            // The first version of the protocol had no nonces.
            None if version < 2 => String::new(),
            _ => return Err(AuthRefusal::Malformed("it has no usable nonce")),
        };
        let id = MinionId::new(id).map_err(|e| AuthRefusal::InvalidId {
            why: e.to_string(),
            nonce: nonce.clone(),
            sig_algo,
            version,
        })?;
        Ok(Self {
            id,
            nonce,
            pub_pem: load.get_text("pub").map(clean_pem).ok_or(AuthRefusal::Malformed("it has no public key"))?,
            enc_algo,
            sig_algo,
            token: load.get_bytes("token").map(<[u8]>::to_vec),
            autosign_grains: load.get("autosign_grains").filter(|g| matches!(g, Value::Map(_))).cloned(),
            seals: load.get(SEALS) == Some(&Value::Boolean(true)),
            version,
        })
    }

    /// The load as a minion sends it.
    pub fn to_load(&self) -> Value {
        let mut load = value::map([
            ("cmd", Value::from("_auth")),
            ("id", Value::from(&self.id)),
            ("nonce", Value::from(self.nonce.as_str())),
            ("enc_algo", Value::from(self.enc_algo.as_str())),
            ("sig_algo", Value::from(self.sig_algo.as_str())),
        ]);
        if let Some(grains) = &self.autosign_grains {
            load.insert("autosign_grains", grains.clone());
        }
        if let Some(token) = &self.token {
            load.insert("token", Value::Binary(token.clone()));
        }
        load.insert("pub", self.pub_pem.as_str());
        if self.seals {
            load.insert(SEALS, true);
        }
        load
    }

    /// Parses the sender's public key.
    ///
    /// # Errors
    /// When the text is not a public key.
    pub fn key(&self) -> Result<PublicKey, KeyError> {
        PublicKey::from_pem(&self.pub_pem)
    }

    /// The reply for a key that waits for an operator. It says that this master bears being asked again at once, to a minion that may know
    /// the field.
    ///
    /// # Errors
    /// When signing fails.
    pub fn pending(&self, signer: &dyn PrivateOps) -> Result<Vec<u8>, KeyError> {
        let mut said = value::map([("ret", true)]);
        if self.seals {
            said.insert(AGAIN_SOON, true);
        }
        self.verdict(said, signer)
    }

    /// The reply for a key that is rejected or denied.
    ///
    /// # Errors
    /// When signing fails.
    pub fn rejected(&self, signer: &dyn PrivateOps) -> Result<Vec<u8>, KeyError> {
        self.verdict(value::map([("ret", false)]), signer)
    }

    /// The reply when the master has reached `max_minions`.
    ///
    /// # Errors
    /// When signing fails.
    pub fn full(&self, signer: &dyn PrivateOps) -> Result<Vec<u8>, KeyError> {
        self.verdict(value::map([("ret", "full")]), signer)
    }

    fn verdict(&self, mut said: Value, signer: &dyn PrivateOps) -> Result<Vec<u8>, KeyError> {
        if self.seals {
            said.insert(ABOUT, Value::Binary(about(&self.id, &self.pub_pem).to_vec()));
        }
        verdict(said, &self.nonce, self.sig_algo, self.version, signer)
    }

    /// The reply for an accepted key. Takes up to two private operations.
    ///
    /// # Errors
    /// When the sender's key is invalid or signing fails.
    pub fn accepted(&self, signer: &dyn PrivateOps, accepted: &Accepted<'_>) -> Result<Vec<u8>, KeyError> {
        use base64::Engine as _;
        let minion = self.key()?;
        let pem = signer.public().clean_pem();
        let mut inner = value::map([
            ("enc", Value::from("pub")),
            ("pub_key", Value::from(pem)),
            ("publish_port", Value::from(accepted.publish_port)),
        ]);
        if let Some(sign_key) = accepted.sign_key {
            let signature = sign_key.sign(self.sig_algo, pem.as_bytes())?;
            // Python's base64 ends with a newline.
            inner.insert("pub_sig", base64::engine::general_purpose::STANDARD.encode(signature) + "\n");
        }
        // A token that does not decrypt is left out. The minion then notices that this master cannot read it.
        let token =
            self.token.as_deref().and_then(|sealed| signer.decrypt(self.enc_algo, sealed).ok()).map(Secret::new);
        if let Some(sealed) = token.and_then(|token| minion.encrypt(self.enc_algo, token.expose()).ok()) {
            inner.insert("token", Value::Binary(sealed));
        }
        let sealed = |key: &AesKey| minion.encrypt(self.enc_algo, key.text().expose().as_bytes()).map(Value::Binary);
        inner.insert("aes", sealed(accepted.publish_key)?);
        inner.insert("session", sealed(accepted.session_key)?);
        inner.insert("sig", Value::Binary(accepted.publish_key_sig.to_vec()));
        if self.version < 2 {
            return Ok(msgpack::encode_network(&inner));
        }
        if let Some(offer) = accepted.offer {
            inner.insert(OFFER, offer.to_value());
        }
        if let Some(run) = accepted.run {
            inner.insert(RUN, Value::Binary(run.to_vec()));
        }
        inner.insert("nonce", self.nonce.as_str());
        signed(&inner, self.sig_algo, signer)
    }
}

/// What the master says, which has the field `ret`, with the nonce and signed; unsigned in the first version of the protocol.
fn verdict(
    mut said: Value,
    nonce: &str,
    alg: SignAlg,
    version: u64,
    signer: &dyn PrivateOps,
) -> Result<Vec<u8>, KeyError> {
    if version < 2 {
        return Ok(msgpack::encode_network(&value::map([("enc", Value::from("clear")), ("load", said)])));
    }
    said.insert("nonce", nonce);
    signed(&said, alg, signer)
}

/// The signed form of a reply (§3.3): the signature covers the packed bytes.
fn signed(inner: &Value, alg: SignAlg, signer: &dyn PrivateOps) -> Result<Vec<u8>, KeyError> {
    let load = msgpack::encode_network(inner);
    let signature = signer.sign(alg, &load)?;
    Ok(msgpack::encode_network(&value::map([
        ("enc", Value::from("clear")),
        ("load", Value::Binary(load)),
        ("sig", Value::Binary(signature)),
    ])))
}

fn is_nonce(text: &str) -> bool {
    text.len() == NONCE_DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn algorithm<A: std::str::FromStr>(name: &Value) -> Result<A, String> {
    name.text().unwrap_or_default().parse().map_err(|_| name.python_str().chars().take(40).collect())
}
