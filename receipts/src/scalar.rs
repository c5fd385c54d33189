//! Hashes and times: text in JSON, bytes and numbers in the compact encoding.

use std::fmt;
use std::str::FromStr;

use aws_lc_rs::digest;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

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
        let digest = digest::digest(&digest::SHA256, bytes);
        Self(digest.as_ref().try_into().expect("SHA-256 has 32 bytes"))
    }
}

impl Time {
    /// The time now.
    pub fn now() -> Self {
        Self(i64::try_from(jiff::Timestamp::now().as_nanosecond()).unwrap_or(i64::MAX))
    }
}

// Both are written by the dozen into each receipt: in one piece, and without memory of their own.
impl Digest {
    const CHARS: usize = 64;

    fn text(self) -> [u8; Self::CHARS] {
        let mut text = [0; Self::CHARS];
        for (byte, pair) in self.0.iter().zip(text.chunks_exact_mut(2)) {
            pair.copy_from_slice(&hex_digits(*byte));
        }
        text
    }
}

impl Fingerprint {
    const CHARS: usize = 95;

    fn text(self) -> [u8; Self::CHARS] {
        let mut text = [b':'; Self::CHARS];
        for (byte, pair) in self.0.iter().zip(text.chunks_mut(3)) {
            pair[..2].copy_from_slice(&hex_digits(*byte));
        }
        text
    }
}

const fn hex_digits(byte: u8) -> [u8; 2] {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    [DIGITS[(byte >> 4) as usize], DIGITS[(byte & 15) as usize]]
}

/// Hex digits as text.
fn ascii(text: &[u8]) -> &str {
    std::str::from_utf8(text).unwrap_or_default()
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(ascii(&self.text()))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(ascii(&self.text()))
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
        let malformed = ReceiptError::Malformed("a fingerprint is not 32 pairs of hex digits with colons");
        let mut bytes = [0; 32];
        if text.len() != Self::CHARS {
            return Err(malformed);
        }
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks(3)) {
            hex::decode_to_slice(&pair[..2], std::slice::from_mut(byte)).map_err(|_| malformed.clone())?;
        }
        // Also the colons and the case are as they are written.
        let print = Self(bytes);
        if print.text() == text.as_bytes() { Ok(print) } else { Err(malformed) }
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
                if to.is_human_readable() { to.serialize_str(ascii(&self.text())) } else { to.serialize_bytes(&self.0) }
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
