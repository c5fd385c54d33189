//! Publications on 4505 for all minions (§5): a job load, encrypted with the publish key and signed by the master, with a serial.
//!
//! This is stricter than Salt: a minion always verifies the signature and refuses a load without a serial.

use bytes::Bytes;

use crate::crypticle::{CryptError, Crypticle, SerialGuard};
use crate::ids::MinionId;
use crate::keys::{KeyError, PrivateOps, PublicKey, SignAlg};
use crate::msgpack::{self, Limits};
use crate::sealed::SealError;
use crate::value::{self, Value, ValueExt};

/// The topic of publications to all minions (§5.4).
pub const BROADCAST: &str = "broadcast";

/// What the signed part of a refusal (§3.3) begins with: `{"ret": …, "nonce": …}`. Python's masters sign it over any nonce that a stranger sends, by
/// the same key: who has the publish key could make it a publication. An IV begins so once in 2⁴⁰.
const REFUSAL: &[u8] = b"\x82\xa3ret";

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
) -> Result<Bytes, KeyError> {
    load.insert("serial", serial);
    let blob = crypticle.seal(&load, None);
    let signature = signer.sign(alg, &blob)?;
    Ok(Bytes::from(envelope(blob, alg, signature)))
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
    /// The publication is malformed.
    #[error("a publication is malformed: {0}")]
    Malformed(String),
    /// The signature is missing or not by the master.
    #[error("a publication is not signed by the master's key")]
    BadSignature,
    /// The publication was encrypted with another publish key: the key may have been rotated, so the minion has to
    /// authenticate again.
    #[error("a publication was made with another publish key")]
    BadMac,
    /// The serial was seen before.
    #[error("a publication was replayed: its serial {0} is not new")]
    Replayed(u64),
    /// The publication is for all minions, and this minion takes only sealed ones.
    #[error("a publication is not sealed for this minion alone (require_sealed)")]
    NotSealed,
    /// The publication is for all minions, and this minion has had its own copy.
    #[error("this minion has had its own copy of the publication")]
    Twin,
    /// The publication decrypts to something other than a load.
    #[error("a publication holds no load: {0}")]
    Content(CryptError),
}

impl PublicationError {
    /// Whether the publication may open after the minion has authenticated again (§3.5).
    pub const fn wants_reauth(&self) -> bool {
        matches!(self, Self::BadMac)
    }

    /// Whether such publications are on the wire when all is well.
    pub const fn is_ordinary(&self) -> bool {
        matches!(self, Self::NotSealed | Self::Twin)
    }
}

impl From<SealError> for PublicationError {
    fn from(error: SealError) -> Self {
        match error {
            SealError::Malformed => Self::Malformed("its header is none of this version".to_owned()),
            SealError::OtherKeys => Self::BadMac,
            SealError::Forged => Self::BadSignature,
            SealError::Content(why) => Self::Content(why),
        }
    }
}

/// A publication for all minions as received, not verified.
#[derive(Debug, Clone)]
pub struct Shared {
    blob: Vec<u8>,
    signature: Option<(SignAlg, Vec<u8>)>,
}

impl Shared {
    /// The signed and encrypted part. Anyone can change the rest of the envelope.
    pub(crate) fn blob(&self) -> &[u8] {
        &self.blob
    }

    /// The master's signature and its algorithm, as they came.
    pub(crate) const fn signature(&self) -> Option<&(SignAlg, Vec<u8>)> {
        self.signature.as_ref()
    }

    /// Parses the envelope.
    ///
    /// # Errors
    /// When the bytes are not a publication.
    pub fn parse(bytes: &[u8]) -> Result<Self, PublicationError> {
        let mut envelope =
            msgpack::decode(bytes, &Limits::PUBLICATION).map_err(|e| PublicationError::Malformed(e.to_string()))?;
        if envelope.get_text("enc") != Some("aes") {
            return Err(PublicationError::Malformed("its enc is not aes".to_owned()));
        }
        let mut taken = |key: &str| match envelope.remove(key)? {
            Value::Binary(bytes) => Some(bytes),
            other => other.bytes().map(<[u8]>::to_vec),
        };
        let blob = taken("load").ok_or_else(|| PublicationError::Malformed("its load is not bytes".to_owned()))?;
        let signature = taken("sig");
        let alg = match envelope.get("sig_algo") {
            None => Some(SignAlg::default()),
            Some(name) => name.text().unwrap_or_default().parse().ok(),
        };
        Ok(Self { blob, signature: alg.zip(signature) })
    }

    /// Checks the signature, then the MAC. Returns the load without its serial, and the serial.
    pub(crate) fn open(&self, master: &PublicKey, crypticle: &Crypticle) -> Result<(Value, u64), PublicationError> {
        let (alg, signature) = self.signature.as_ref().ok_or(PublicationError::BadSignature)?;
        if self.blob.starts_with(REFUSAL) {
            return Err(PublicationError::BadSignature);
        }
        if !master.verify(*alg, &self.blob, signature) {
            return Err(PublicationError::BadSignature);
        }
        let mut load = crypticle.open(&self.blob, None, &Limits::PUBLICATION).map_err(|e| match e {
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
        Ok((load, serial))
    }
}

/// Opens one publication for all minions.
///
/// # Errors
/// As [`Receiver::open`].
pub fn open(
    bytes: &[u8],
    master: &PublicKey,
    crypticle: &Crypticle,
    serials: &mut SerialGuard,
) -> Result<Value, PublicationError> {
    let (load, serial) = Shared::parse(bytes)?.open(master, crypticle)?;
    if serials.accept(serial) { Ok(load) } else { Err(PublicationError::Replayed(serial)) }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::*;
    use crate::auth::Credentials;
    use crate::crypticle::AesKey;
    use crate::keys::PrivateKey;
    use crate::receiver::{Received, Receiver};
    use crate::value::{map, text};

    static MASTER: LazyLock<PrivateKey> = LazyLock::new(|| PrivateKey::generate(1024).unwrap());
    static OTHER: LazyLock<PrivateKey> = LazyLock::new(|| PrivateKey::generate(1024).unwrap());
    static KEY: LazyLock<AesKey> = LazyLock::new(AesKey::generate);

    fn load() -> Value {
        map([("fun", text("test.ping")), ("jid", text("20261120134740245008"))])
    }

    fn sealed(serial: u64, key: &AesKey, signer: &PrivateKey) -> bytes::Bytes {
        seal(load(), serial, &Crypticle::new(key), signer, SignAlg::Pkcs1v15Sha224).unwrap()
    }

    fn credentials(key: &AesKey) -> Credentials {
        Credentials {
            publish_key: key.clone(),
            session_key: AesKey::generate(),
            publish_port: 4505,
            master: MASTER.public().clone(),
            master_is_new: false,
            offer: None,
            run: None,
        }
    }

    struct Minion(Receiver);

    impl Minion {
        fn open(&mut self, bytes: &[u8]) -> Result<Value, PublicationError> {
            let received = Received::parse(&[Bytes::copy_from_slice(bytes)], b"own")?.expect("of one frame");
            self.0.open(&received).map(|opened| opened.load)
        }
    }

    fn receiver() -> Minion {
        Minion(Receiver::new(&MinionId::new("web1").unwrap(), &credentials(&KEY), false))
    }

    fn changed(sealed: &[u8], change: impl FnOnce(&mut Value)) -> Vec<u8> {
        let mut envelope = msgpack::decode(sealed, &Limits::PUBLICATION).unwrap();
        change(&mut envelope);
        msgpack::encode_network(&envelope)
    }

    #[test]
    fn cve_2022_22936_a_publication_opens_once() {
        let mut r = receiver();
        let first = sealed(1, &KEY, &MASTER);
        assert_eq!(r.open(&first), Ok(load()));
        assert_eq!(r.open(&first), Err(PublicationError::Replayed(1)));
        assert_eq!(r.open(&sealed(3, &KEY, &MASTER)), Ok(load()));
        assert_eq!(r.open(&sealed(2, &KEY, &MASTER)), Err(PublicationError::Replayed(2)));
    }

    #[test]
    fn an_unsigned_or_wrongly_signed_one_is_refused() {
        let good = sealed(1, &KEY, &MASTER);
        for bad in [
            changed(&good, |e| drop(e.remove("sig"))),
            changed(&good, |e| e.insert("sig", value::bytes([0; 128]))),
            changed(&good, |e| e.insert("sig", "")),
            changed(&good, |e| e.insert("sig", Value::Nil)),
            changed(&good, |e| e.insert("sig_algo", "PKCS1v15-SHA1")),
            changed(&good, |e| e.insert("sig_algo", "none")),
            changed(&good, |e| e.insert("load", value::bytes([1; 64]))),
            sealed(1, &KEY, &OTHER).to_vec(),
        ] {
            assert_eq!(receiver().open(&bad), Err(PublicationError::BadSignature));
        }
        assert!(receiver().open(&good).is_ok());
    }

    #[test]
    fn another_publish_key_asks_for_authentication() {
        let rotated = AesKey::generate();
        let next = sealed(1, &rotated, &MASTER);
        let mut r = receiver();
        r.open(&sealed(7, &KEY, &MASTER)).unwrap();
        let error = r.open(&next).unwrap_err();
        assert_eq!(error, PublicationError::BadMac);
        assert!(error.wants_reauth());
        assert!(r.0.rekey(&credentials(&KEY)).is_none());
        assert_eq!(
            r.open(&sealed(7, &KEY, &MASTER)),
            Err(PublicationError::Replayed(7)),
            "the same key, the same serials"
        );
        assert!(r.0.rekey(&credentials(&rotated)).is_some_and(|earlier| earlier.is(&KEY)));
        assert_eq!(r.open(&next), Ok(load()));
    }

    #[test]
    fn a_load_without_a_serial_is_refused() {
        let crypticle = Crypticle::new(&KEY);
        for load in [load(), text("x"), Value::Nil, map([("serial", text("9"))]), map([("serial", -1)])] {
            let blob = crypticle.seal(&load, None);
            let signature = MASTER.sign(SignAlg::Pkcs1v15Sha1, &blob).unwrap();
            let sealed = envelope(blob, SignAlg::Pkcs1v15Sha1, signature);
            assert!(matches!(receiver().open(&sealed), Err(PublicationError::Content(_))), "{load}");
        }
    }

    /// A hostile minion knows the publish key, and asks the master to authenticate it with the rest of such a blob as its nonce.
    #[test]
    fn an_answer_that_the_master_signed_for_a_stranger_is_no_publication() {
        let crypticle = Crypticle::new(&KEY);
        let mut forged = load();
        forged.insert("serial", 9);
        let made = |iv: [u8; 16]| {
            let blob = crypticle.seal_with(iv, 64, |out| {
                out.extend_from_slice(b"pickle::");
                out.extend_from_slice(&msgpack::encode_network(&forged));
            });
            let signature = MASTER.sign(SignAlg::Pkcs1v15Sha1, &blob).unwrap();
            receiver().open(&envelope(blob, SignAlg::Pkcs1v15Sha1, signature))
        };
        assert_eq!(made(*b"\x82\xa3ret\xc2\xa5nonce\xda\0\x71x"), Err(PublicationError::BadSignature));
        assert_eq!(made(*b"an ordinary one."), Ok(load()));
    }

    #[test]
    fn nothing_but_aes_is_a_publication() {
        let good = sealed(1, &KEY, &MASTER);
        for enc in [text("clear"), text("pub"), Value::Nil] {
            let bad = changed(&good, |e| e.insert("enc", enc));
            assert!(matches!(receiver().open(&bad), Err(PublicationError::Malformed(_))));
        }
        assert!(matches!(receiver().open(&[0xc1]), Err(PublicationError::Malformed(_))));
        assert!(matches!(receiver().open(&[0xc0]), Err(PublicationError::Malformed(_))));
    }

    proptest! {
        #[test]
        fn hostile_bytes_do_not_open(b in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(receiver().open(&b).is_err());
            let shaped = map([("enc", text("aes")), ("load", value::bytes(b.clone())), ("sig", value::bytes(b))]);
            prop_assert!(receiver().open(&msgpack::encode_network(&shaped)).is_err());
        }
    }
}
