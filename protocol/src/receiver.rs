//! A minion's side of publications, whichever form they have: for all minions (§5.1), or sealed for one (§5.5).

use aws_lc_rs::digest::{Context, SHA256};
use bytes::Bytes;

use crate::auth::Credentials;
use crate::crypticle::{AesKey, Crypticle, SerialGuard};
use crate::ids::MinionId;
use crate::keys::PublicKey;
use crate::publication::{BROADCAST, PublicationError, Shared};
use crate::sealed::{self, EpochId, SealKeys, SealOffer, Sealed};
use crate::value::Value;

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
            [topic, header, body] if *topic == own_topic => Ok(Some(Self::Sealed(Sealed::parse(header, body)?))),
            [_, _] | [_, _, _] => Ok(None),
            _ => Err(PublicationError::Malformed("it has another number of parts".to_owned())),
        }
    }

    /// Bytes that it takes in memory, to bound what is kept.
    pub fn size(&self) -> usize {
        match self {
            Self::Shared(shared) => shared.blob().len(),
            Self::Sealed(sealed) => sealed.parts().iter().map(|part| part.len()).sum(),
        }
    }

    /// Half of a SHA-256 over what the master made of it. Only the master itself could make two with the same one.
    pub fn digest(&self) -> [u8; 16] {
        let mut hash = Context::new(&SHA256);
        match self {
            Self::Shared(shared) => hash.update(shared.blob()),
            Self::Sealed(sealed) => sealed.parts().iter().for_each(|part| hash.update(part)),
        }
        let mut half = [0; 16];
        half.copy_from_slice(&hash.finish().as_ref()[..16]);
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
            Received::Shared(shared) => self.crypticle.made(shared.blob()),
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
            sealed: credentials.seal_keys(id),
            require_sealed,
            serials: SerialGuard::new(),
            last_sealed: None,
        }
    }

    /// Changes the keys after authenticating again. The serials are forgotten only if the publish key changed. Returns the publish key
    /// until now, if it did.
    pub fn rekey(&mut self, credentials: &Credentials) -> Option<EarlierKey> {
        self.master = credentials.master.clone();
        self.sealed = credentials.seal_keys(&self.id);
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
                let (alg, signature) = shared.signature().cloned().unwrap_or_default();
                let signed =
                    Signed { algorithm: alg.as_str(), signature, message: shared.blob().to_vec(), offer: None };
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
