//! `hash_type`: the algorithm for the hashes of files, keys and jobs.

use brine_protocol::config::{Config, ConfigError, settings};
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

/// The hash algorithms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the algorithms'")]
pub enum HashType {
    Sha224,
    Sha256,
    Sha384,
    Sha512,
}

impl HashType {
    /// Reads `hash_type`.
    ///
    /// # Errors
    /// The setting is no text.
    pub fn from_config(c: &Config) -> Result<Self, ConfigError> {
        Ok(Self::parse(&c.get(settings::HASH_TYPE)?).unwrap_or(Self::Sha256))
    }

    /// The algorithm with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "sha224" => Self::Sha224,
            "sha256" => Self::Sha256,
            "sha384" => Self::Sha384,
            "sha512" => Self::Sha512,
            _ => return None,
        })
    }

    /// Hashes bytes. Returns hexadecimal text.
    pub fn digest(self, bytes: &[u8]) -> String {
        match self {
            Self::Sha224 => hex::encode(Sha224::digest(bytes)),
            Self::Sha256 => hex::encode(Sha256::digest(bytes)),
            Self::Sha384 => hex::encode(Sha384::digest(bytes)),
            Self::Sha512 => hex::encode(Sha512::digest(bytes)),
        }
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sha224 => "sha224",
            Self::Sha256 => "sha256",
            Self::Sha384 => "sha384",
            Self::Sha512 => "sha512",
        }
    }
}
