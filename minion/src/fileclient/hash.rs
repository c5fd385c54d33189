//! Hashes of files as the master states them.

use std::fmt;

use aws_lc_rs::digest::{Context, SHA256, SHA384, SHA512};
use brine_protocol::value::{Value, ValueExt};
use sha2::{Digest as _, Sha224};

use super::error::FileError;

/// A hash as the master states it, of any kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatedHash {
    /// The kind, as in `sha256`.
    pub kind: String,
    /// The digest.
    pub hex: String,
    /// The file's size, if the master states it.
    pub size: Option<u64>,
    /// The file's permission bits, if the master states them.
    pub mode: Option<u32>,
}

impl StatedHash {
    pub(super) fn parse(answer: &Value, size: Option<u64>, mode: Option<u32>) -> Result<Self, FileError> {
        let (Some(kind), Some(hex)) = (answer.get_text("hash_type"), answer.get_text("hsum")) else {
            return Err(FileError::Malformed("_file_hash"));
        };
        let kind_fits = kind.len() <= 20 && kind.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-/".contains(&b));
        if !kind_fits || hex.len() > 128 || !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(FileError::Malformed("_file_hash"));
        }
        Ok(Self { kind: kind.to_owned(), hex: hex.to_ascii_lowercase(), size, mode })
    }
}

/// A hash by which a file can be verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileHash {
    pub(super) kind: HashKind,
    pub(super) hex: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HashKind {
    Sha224,
    Sha256,
    Sha384,
    Sha512,
}

impl FileHash {
    pub(super) fn parse(answer: &Value) -> Result<Self, FileError> {
        StatedHash::parse(answer, None, None)?.try_into()
    }

    /// Whether this is the given SHA-256.
    pub fn is_sha256(&self, digest: &[u8; 32]) -> bool {
        self.kind == HashKind::Sha256 && self.hex == hex::encode(digest)
    }

    /// Whether these bytes have this hash.
    pub fn matches(&self, content: &[u8]) -> bool {
        let mut hasher = Hasher::new(self.kind);
        hasher.update(content);
        hasher.hex() == self.hex
    }

    /// Whether the file has this hash; it is read from its start.
    pub(crate) fn matches_file(&self, file: &std::fs::File) -> std::io::Result<bool> {
        use std::os::unix::fs::FileExt;
        let (mut hasher, mut buffer, mut at) = (Hasher::new(self.kind), vec![0; 128 << 10], 0);
        loop {
            match file.read_at(&mut buffer, at) {
                Ok(0) => return Ok(hasher.hex() == self.hex),
                Ok(n) => {
                    hasher.update(&buffer[..n]);
                    at += n as u64;
                }
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }
}

/// `sha256-9f2c…`: the name of a file on disk.
impl fmt::Display for FileHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            HashKind::Sha224 => "sha224",
            HashKind::Sha256 => "sha256",
            HashKind::Sha384 => "sha384",
            HashKind::Sha512 => "sha512",
        };
        write!(f, "{kind}-{}", self.hex)
    }
}

impl TryFrom<StatedHash> for FileHash {
    type Error = FileError;

    fn try_from(stated: StatedHash) -> Result<Self, FileError> {
        let kind = match stated.kind.as_str() {
            "sha224" => HashKind::Sha224,
            "sha256" => HashKind::Sha256,
            "sha384" => HashKind::Sha384,
            "sha512" => HashKind::Sha512,
            _ => return Err(FileError::HashType(stated.kind)),
        };
        Ok(Self { kind, hex: stated.hex })
    }
}

/// Hashes a file piece by piece: by AWS-LC, which takes half of `sha2`'s time where the processor has no instructions for it, and has no
/// SHA-224.
#[derive(Clone)]
pub(super) enum Hasher {
    Sha224(Sha224),
    Other(Context),
}

impl Hasher {
    pub(super) fn new(kind: HashKind) -> Self {
        match kind {
            HashKind::Sha224 => Self::Sha224(Sha224::new()),
            HashKind::Sha256 => Self::Other(Context::new(&SHA256)),
            HashKind::Sha384 => Self::Other(Context::new(&SHA384)),
            HashKind::Sha512 => Self::Other(Context::new(&SHA512)),
        }
    }

    pub(super) fn update(&mut self, data: &[u8]) {
        match self {
            Self::Sha224(hasher) => hasher.update(data),
            Self::Other(hasher) => hasher.update(data),
        }
    }

    pub(super) fn hex(self) -> String {
        match self {
            Self::Sha224(hasher) => hex::encode(hasher.finalize()),
            Self::Other(hasher) => hex::encode(hasher.finish()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_protocol::value::map;
    use sha2::{Sha256, Sha384, Sha512};

    #[test]
    fn hashes_that_prove_something_are_taken() {
        let said = |kind: &str, hex: &str| FileHash::parse(&map([("hash_type", kind), ("hsum", hex)]));
        let good = said("sha256", &hex::encode(Sha256::digest(b"x"))).unwrap();
        assert!(good.is_sha256(&Sha256::digest(b"x").into()));
        assert!(!good.is_sha256(&Sha256::digest(b"y").into()));
        assert_eq!(said("sha512", "AB").unwrap().hex, "ab");
        assert!(matches!(said("md5", "00"), Err(FileError::HashType(_))));
        for (kind, hex) in [("sha256", "zz"), ("sha256", &"0".repeat(129)), ("sha\n256", "00"), (&"x".repeat(21), "0")]
        {
            assert!(matches!(said(kind, hex), Err(FileError::Malformed(_))));
        }
        assert!(FileHash::parse(&Value::from("text")).is_err());
    }

    #[test]
    fn pieces_hash_like_the_whole() {
        for (kind, whole) in [
            (HashKind::Sha224, hex::encode(Sha224::digest(b"ab"))),
            (HashKind::Sha256, hex::encode(Sha256::digest(b"ab"))),
            (HashKind::Sha384, hex::encode(Sha384::digest(b"ab"))),
            (HashKind::Sha512, hex::encode(Sha512::digest(b"ab"))),
        ] {
            let mut hasher = Hasher::new(kind);
            hasher.update(b"a");
            hasher.update(b"b");
            assert_eq!(hasher.hex(), whole, "{kind:?}");
        }
    }
}
