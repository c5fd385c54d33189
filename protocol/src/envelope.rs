//! What every message on 4506 is wrapped in (§2.1): a closed choice of clear and aes.

use crate::ids::MinionId;
use crate::msgpack::Limits;
use crate::value::{self, Value};

/// The version this implementation sends, and the lowest it takes unless configured otherwise (CVE-2025-62349).
pub const VERSION: u64 = 3;

/// A request's envelope.
#[derive(Debug, Clone, PartialEq)]
pub enum Envelope {
    /// The load in clear text: `_auth` and local clients.
    Clear {
        /// The load, a map.
        load: Value,
        /// The protocol version; 0 when missing or no number.
        version: u64,
    },
    /// The load under the session key of the minion that the envelope names.
    Aes(AesEnvelope),
}

/// An encrypted request.
#[derive(Debug, Clone, PartialEq)]
pub struct AesEnvelope {
    /// The Crypticle blob.
    pub load: Vec<u8>,
    /// The protocol version; 0 when missing or no number.
    pub version: u64,
    /// Who claims to have sent it. Proved by the load's MAC and token, not before.
    pub id: Option<MinionId>,
    /// What a private reply is to be encrypted with; checked only where it is used.
    pub enc_algo: Option<String>,
    /// What a private reply is to be signed with; checked only where it is used.
    pub sig_algo: Option<String>,
}

/// Why bytes are no envelope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    /// Not MessagePack within the limits.
    #[error("not MessagePack: {0}")]
    Decode(#[from] crate::msgpack::DecodeError),
    /// MessagePack, but no envelope.
    #[error("bad envelope: {0}")]
    Malformed(&'static str),
    /// A clear load that is not a map.
    #[error("payload and load must be a dict")]
    LoadNotMap,
}

impl EnvelopeError {
    /// What the sender is answered (§4.2), unencrypted.
    pub fn reply(&self) -> Value {
        match self {
            Self::Decode(_) => value::map([("error", "Routing error")]),
            Self::Malformed(_) => value::text("bad load"),
            Self::LoadNotMap => value::text("payload and load must be a dict"),
        }
    }
}

impl Envelope {
    /// A clear envelope of this version.
    pub const fn clear(load: Value) -> Self {
        Self::Clear { load, version: VERSION }
    }

    /// Decodes an envelope.
    ///
    /// # Errors
    /// When the bytes are no envelope; the error knows what to answer.
    pub fn decode(bytes: &[u8], limits: &Limits) -> Result<Self, EnvelopeError> {
        let _ = (bytes, limits);
        todo!()
    }

    /// Encodes it in the network flavour.
    pub fn encode(&self) -> Vec<u8> {
        todo!()
    }

    /// The protocol version.
    pub const fn version(&self) -> u64 {
        match self {
            Self::Clear { version, .. } => *version,
            Self::Aes(aes) => aes.version,
        }
    }
}
