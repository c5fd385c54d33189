//! Hashes and times: text in JSON, bytes and numbers in the compact encoding.

use std::fmt;
use std::str::FromStr;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

use crate::ReceiptError;

/// A SHA-256; 64 hex digits in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

/// A key's fingerprint as `salt-key -f` prints it: SHA-256, hex with colons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(pub [u8; 32]);

/// Nanoseconds since 1970; RFC 3339 in UTC with nine decimals in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub i64);

impl Digest {
    /// The hash of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }
}

impl Time {
    /// The time now.
    pub fn now() -> Self {
        Self(i64::try_from(jiff::Timestamp::now().as_nanosecond()).unwrap_or(i64::MAX))
    }
}

// Both are written by the dozen into each receipt: in one piece, without text of their own for each byte.
impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0; 64];
        hex::encode_to_slice(self.0, &mut text).map_err(|_| fmt::Error)?;
        f.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [b':'; 95];
        for (byte, pair) in self.0.iter().zip(text.chunks_mut(3)) {
            hex::encode_to_slice([*byte], &mut pair[..2]).map_err(|_| fmt::Error)?;
        }
        f.write_str(std::str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = jiff::Timestamp::from_nanosecond(i128::from(self.0)).map_err(|_| fmt::Error)?;
        write!(f, "{time:.9}")
    }
}

impl FromStr for Digest {
    type Err = ReceiptError;

    fn from_str(text: &str) -> Result<Self, ReceiptError> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes).map_err(|_| ReceiptError::Malformed("a hash is not 64 hex digits"))?;
        Ok(Self(bytes))
    }
}

impl FromStr for Fingerprint {
    type Err = ReceiptError;

    fn from_str(text: &str) -> Result<Self, ReceiptError> {
        let digest: Digest = text.replace(':', "").parse()?;
        let print = Self(digest.0);
        if print.to_string() == text { Ok(print) } else { Err(ReceiptError::Malformed("a fingerprint has colons")) }
    }
}

impl FromStr for Time {
    type Err = ReceiptError;

    fn from_str(text: &str) -> Result<Self, ReceiptError> {
        let time: jiff::Timestamp = text.parse().map_err(|_| ReceiptError::Malformed("a time is not RFC 3339"))?;
        i64::try_from(time.as_nanosecond()).map(Self).map_err(|_| ReceiptError::Malformed("a time is out of range"))
    }
}

macro_rules! as_bytes_or_text {
    ($type:ident) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                if to.is_human_readable() { to.collect_str(self) } else { to.serialize_bytes(&self.0) }
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                if from.is_human_readable() {
                    return String::deserialize(from)?.parse().map_err(D::Error::custom);
                }
                Ok(Self(serde_bytes::ByteArray::<32>::deserialize(from)?.into_array()))
            }
        }
    };
}
as_bytes_or_text!(Digest);
as_bytes_or_text!(Fingerprint);

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if to.is_human_readable() { to.collect_str(self) } else { to.serialize_i64(self.0) }
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        if from.is_human_readable() {
            return String::deserialize(from)?.parse().map_err(D::Error::custom);
        }
        i64::deserialize(from).map(Self)
    }
}
