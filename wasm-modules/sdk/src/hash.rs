//! Hashes by name, in hex.

use md5::Md5;
use sha1::Sha1;
use sha2::digest::DynDigest;
use sha2::{Sha224, Sha256, Sha384, Sha512};

/// The hash types, with the length of each in hex.
pub const KINDS: [(&str, usize); 6] =
    [("md5", 32), ("sha1", 40), ("sha224", 56), ("sha256", 64), ("sha384", 96), ("sha512", 128)];

/// A hash that is being computed.
pub struct Hash(Box<dyn DynDigest>);

impl Hash {
    /// Begins a hash; none if no type has this name.
    pub fn new(kind: &str) -> Option<Self> {
        Some(Self(match kind {
            "md5" => Box::new(Md5::default()),
            "sha1" => Box::new(Sha1::default()),
            "sha224" => Box::new(Sha224::default()),
            "sha256" => Box::new(Sha256::default()),
            "sha384" => Box::new(Sha384::default()),
            "sha512" => Box::new(Sha512::default()),
            _ => return None,
        }))
    }

    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Ends it.
    pub fn hex(mut self) -> String {
        let mut out = vec![0; self.0.output_size()];
        self.0.finalize_into_reset(&mut out).expect("the buffer has the hash's size");
        let digit = |value: u8| char::from(b"0123456789abcdef"[usize::from(value)]);
        out.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
    }
}

/// The SHA-256 of bytes, in hex.
pub fn sha256(bytes: &[u8]) -> String {
    let mut hash = Hash(Box::new(Sha256::default()));
    hash.update(bytes);
    hash.hex()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_by_name() {
        let hex = |text: &str, kind: &str| {
            let mut hash = Hash::new(kind).unwrap();
            hash.update(text.as_bytes());
            hash.hex()
        };
        assert_eq!(hex("a", "md5"), "0cc175b9c0f1b6a831c399e269772661");
        for (kind, length) in KINDS {
            assert_eq!(hex("1", kind).len(), length, "{kind}");
        }
        assert!(Hash::new("nope").is_none());
    }
}
