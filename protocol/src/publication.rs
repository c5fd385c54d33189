//! Publications on 4505 (§5): a job load, encrypted with the publish key and signed by the master, with a serial; or sealed
//! for one minion (§5.5).
//!
//! This is stricter than Salt: a minion always verifies the signature and refuses a load without a serial.

use bytes::Bytes;
use sha2::{Digest as _, Sha256};

use crate::auth::Credentials;
use crate::crypticle::{AesKey, CryptError, Crypticle, SerialGuard};
use crate::ids::MinionId;
use crate::keys::{KeyError, PrivateOps, PublicKey, SignAlg};
use crate::msgpack::{self, Limits};
use crate::sealed::{self, EpochId, SealKeys, SealOffer, Sealed};
use crate::value::{self, Value, ValueExt};

/// The topic of publications to all minions (§5.4).
pub const BROADCAST: &str = "broadcast";

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

/// A publication for all minions as received, not verified.
#[derive(Debug, Clone)]
pub struct Shared {
    blob: Vec<u8>,
    signature: Option<(SignAlg, Vec<u8>)>,
}

impl Shared {
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
    fn open(&self, master: &PublicKey, crypticle: &Crypticle) -> Result<(Value, u64), PublicationError> {
        let (alg, signature) = self.signature.as_ref().ok_or(PublicationError::BadSignature)?;
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

/// A publication as received, not verified.
#[derive(Debug, Clone)]
pub enum Received {
    /// For all minions (§5.1).
    Shared(Shared),
    /// For this minion (§5.5).
    Sealed(Sealed),
}

impl Received {
    /// Reads the frames of a message. None if it is for another minion: a subscription filters only by prefix.
    ///
    /// # Errors
    /// When the frames are not a publication.
    pub fn parse(frames: &[Bytes], own_topic: &[u8]) -> Result<Option<Self>, PublicationError> {
        match frames {
            [payload] => Shared::parse(payload).map(Self::Shared).map(Some),
            [topic, payload] if *topic == own_topic || *topic == BROADCAST.as_bytes() => {
                Shared::parse(payload).map(Self::Shared).map(Some)
            }
            [topic, header, body] if *topic == own_topic => Sealed::parse(header, body).map(Self::Sealed).map(Some),
            [_, _] | [_, _, _] => Ok(None),
            _ => Err(PublicationError::Malformed("it has another number of parts".to_owned())),
        }
    }

    /// Bytes that it takes in memory, to bound what is kept.
    pub fn size(&self) -> usize {
        match self {
            Self::Shared(shared) => shared.blob.len(),
            Self::Sealed(sealed) => sealed.parts().iter().map(|part| part.len()).sum(),
        }
    }

    /// Half of a SHA-256 over what the master made of it. Only the master itself could make two with the same one.
    pub fn digest(&self) -> [u8; 16] {
        let mut hash = Sha256::new();
        match self {
            Self::Shared(shared) => hash.update(&shared.blob),
            Self::Sealed(sealed) => sealed.parts().iter().for_each(|part| hash.update(part)),
        }
        let hash: [u8; 32] = hash.finalize().into();
        let mut half = [0; 16];
        half.copy_from_slice(&hash[..16]);
        half
    }
}

/// A publish key that is not in use any more.
#[derive(Debug)]
pub struct EarlierKey {
    key: AesKey,
    crypticle: Crypticle,
    epoch: EpochId,
}

impl EarlierKey {
    /// Of this key.
    pub fn new(key: AesKey) -> Self {
        Self { crypticle: Crypticle::new(&key), epoch: sealed::epoch_id(&key), key }
    }

    /// Whether it is this key.
    pub fn is(&self, key: &AesKey) -> bool {
        self.key == *key
    }

    /// Whether a publication was made with it.
    pub fn made(&self, received: &Received) -> bool {
        match received {
            Received::Shared(shared) => self.crypticle.made(&shared.blob),
            Received::Sealed(sealed) => sealed.epoch() == self.epoch,
        }
    }
}

/// What the master signed of a publication, for who has to prove it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signed {
    /// The algorithm.
    pub algorithm: &'static str,
    /// The signature.
    pub signature: Vec<u8>,
    /// What it is over: of one for all minions the encrypted load, of a sealed one the load in clear (§5.5).
    pub message: Vec<u8>,
    /// The key that signed a sealed one. One for all minions is signed by the master's RSA key.
    pub offer: Option<SealOffer>,
}

/// An opened publication.
#[derive(Debug)]
pub struct Opened {
    /// The load, without its serial.
    pub load: Value,
    /// What the master signed.
    pub signed: Signed,
}

/// Opens a master's publications one after the other, across key rotations.
#[derive(Debug)]
pub struct Receiver {
    id: MinionId,
    master: PublicKey,
    key: AesKey,
    crypticle: Crypticle,
    sealed: Option<SealKeys>,
    require_sealed: bool,
    serials: SerialGuard,
    /// The serial of the last sealed one. One for all minions that follows with the same serial is the same job.
    last_sealed: Option<u64>,
}

impl Receiver {
    /// For the minion with this id and these credentials. With `require_sealed` it opens no publication that other minions can read.
    pub fn new(id: &MinionId, credentials: &Credentials, require_sealed: bool) -> Self {
        Self {
            id: id.clone(),
            master: credentials.master.clone(),
            key: credentials.publish_key.clone(),
            crypticle: Crypticle::new(&credentials.publish_key),
            sealed: seal_keys(id, credentials),
            require_sealed,
            serials: SerialGuard::new(),
            last_sealed: None,
        }
    }

    /// Changes the keys after authenticating again. The serials are forgotten only if the publish key changed. Returns the publish key
    /// until now, if it did.
    pub fn rekey(&mut self, credentials: &Credentials) -> Option<EarlierKey> {
        self.master = credentials.master.clone();
        self.sealed = seal_keys(&self.id, credentials);
        if credentials.publish_key == self.key {
            return None;
        }
        self.crypticle = Crypticle::new(&credentials.publish_key);
        self.serials = SerialGuard::new();
        self.last_sealed = None;
        Some(EarlierKey::new(std::mem::replace(&mut self.key, credentials.publish_key.clone())))
    }

    /// The publish key in use.
    pub const fn publish_key(&self) -> &AesKey {
        &self.key
    }

    /// The highest serial seen under the publish key.
    pub const fn last_serial(&self) -> u64 {
        self.serials.last()
    }

    /// Serials up to this one were seen in an earlier run of the minion.
    pub const fn resume(&mut self, serial: u64) {
        self.serials.accept(serial);
    }

    /// Opens the next publication: checks its signature, that it was made for this publish key and, if it is sealed, this session, and
    /// that its serial is new.
    ///
    /// # Errors
    /// When one of them is wrong.
    pub fn open(&mut self, received: &Received) -> Result<Opened, PublicationError> {
        match received {
            Received::Shared(_) if self.require_sealed => Err(PublicationError::NotSealed),
            Received::Shared(shared) => {
                let (load, serial) = shared.open(&self.master, &self.crypticle)?;
                if self.last_sealed == Some(serial) {
                    return Err(PublicationError::Twin);
                }
                self.accept(serial)?;
                self.last_sealed = None;
                let (alg, signature) = shared.signature.clone().unwrap_or_default();
                let signed = Signed { algorithm: alg.as_str(), signature, message: shared.blob.clone(), offer: None };
                Ok(Opened { load, signed })
            }
            Received::Sealed(sealed) => {
                let keys = self.sealed.as_ref().ok_or(PublicationError::BadSignature)?;
                let opened = sealed.open(keys)?;
                let offer = Some(keys.offer().clone());
                self.accept(opened.serial)?;
                self.last_sealed = Some(opened.serial);
                let (signature, message) = (opened.signature, opened.message);
                Ok(Opened {
                    load: opened.load,
                    signed: Signed { algorithm: sealed::ALGORITHM, signature, message, offer },
                })
            }
        }
    }

    const fn accept(&mut self, serial: u64) -> Result<(), PublicationError> {
        if self.serials.accept(serial) { Ok(()) } else { Err(PublicationError::Replayed(serial)) }
    }
}

fn seal_keys(id: &MinionId, credentials: &Credentials) -> Option<SealKeys> {
    let Credentials { publish_key, session_key, offer, .. } = credentials;
    Some(SealKeys::new(id, offer.clone()?, publish_key, session_key))
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::*;
    use crate::keys::PrivateKey;
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
