//! The master's file server (PROTOCOL §6.1, §6.5): list, hash, fetch. What comes is bounded, and what was fetched is
//! compared with the hash that the master said before.

use std::sync::Arc;

use brine_protocol::ids::{SafePath, Saltenv};
use brine_protocol::value::{Value, ValueExt, map};
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

use crate::connection::{Channel, ChannelError};

/// More files than a tree of modules has.
const MAX_FILES: usize = 100_000;
/// A file that changes while it is fetched is fetched again so often.
const TRIES: u32 = 3;

/// Why a file could not be had.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The channel.
    #[error("the master could not be asked: {0}")]
    Channel(#[from] ChannelError),
    /// The answer.
    #[error("the master's answer to {0} is malformed")]
    Malformed(&'static str),
    /// It is not there any more.
    #[error("the master does not have {0} any more")]
    Missing(SafePath),
    /// It is too large.
    #[error("{path} is larger than the {max} bytes a module may have")]
    TooLarge {
        /// The file.
        path: SafePath,
        /// The bound.
        max: u64,
    },
    /// What came is not what was announced.
    #[error("{path} has another hash ({got}) than the master said ({said})")]
    WrongHash {
        /// The file.
        path: SafePath,
        /// Of what came.
        got: String,
        /// What was announced.
        said: String,
    },
    /// The master's `hash_type`.
    #[error("the master hashes files with {0}, which proves nothing; set hash_type to sha256 there")]
    HashType(String),
}

/// A hash as the master says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileHash {
    kind: HashKind,
    hex: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HashKind {
    Sha224,
    Sha256,
    Sha384,
    Sha512,
}

impl FileHash {
    fn parse(answer: &Value) -> Result<Self, FileError> {
        let malformed = FileError::Malformed("_file_hash");
        let (Some(kind), Some(hex)) = (answer.get_text("hash_type"), answer.get_text("hsum")) else {
            return Err(malformed);
        };
        let kind = match kind {
            "sha224" => HashKind::Sha224,
            "sha256" => HashKind::Sha256,
            "sha384" => HashKind::Sha384,
            "sha512" => HashKind::Sha512,
            other => return Err(FileError::HashType(other.chars().take(20).collect())),
        };
        if hex.len() > 128 || !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(malformed);
        }
        Ok(Self { kind, hex: hex.to_ascii_lowercase() })
    }

    /// Whether it is this SHA-256.
    pub fn is_sha256(&self, digest: &[u8; 32]) -> bool {
        self.kind == HashKind::Sha256 && self.hex == hex::encode(digest)
    }

    fn of(&self, content: &[u8]) -> String {
        match self.kind {
            HashKind::Sha224 => hex::encode(Sha224::digest(content)),
            HashKind::Sha256 => hex::encode(Sha256::digest(content)),
            HashKind::Sha384 => hex::encode(Sha384::digest(content)),
            HashKind::Sha512 => hex::encode(Sha512::digest(content)),
        }
    }
}

/// Asks the file server.
pub struct FileClient {
    channel: Arc<Channel>,
    max_file: u64,
}

impl FileClient {
    /// Files are at most `max_file` bytes.
    pub fn new(channel: Arc<Channel>, max_file: u64) -> Self {
        Self { channel, max_file }
    }

    /// The files below a folder. Names that are not safe paths are left out.
    pub async fn list(&self, saltenv: &Saltenv, prefix: &str) -> Result<Vec<SafePath>, FileError> {
        let files = self.paths("_file_list", saltenv, prefix).await?;
        Ok(files.iter().filter_map(|f| SafePath::try_from(f).ok()).collect())
    }

    /// Whether an environment has anything in it. A master answers an environment that it does not have, or whose folder is
    /// not mounted, as one that is empty.
    pub async fn has_anything(&self, saltenv: &Saltenv) -> Result<bool, FileError> {
        for cmd in ["_dir_list", "_file_list"] {
            if !self.paths(cmd, saltenv, "").await?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn paths(&self, cmd: &'static str, saltenv: &Saltenv, prefix: &str) -> Result<Vec<Value>, FileError> {
        let load = map([("cmd", Value::from(cmd)), ("saltenv", Value::from(saltenv)), ("prefix", Value::from(prefix))]);
        match self.channel.request(load).await? {
            Value::Array(paths) if paths.len() <= MAX_FILES => Ok(paths),
            _ => Err(FileError::Malformed(cmd)),
        }
    }

    /// A file's hash; none where there is no such file.
    pub async fn hash(&self, path: &SafePath, saltenv: &Saltenv) -> Result<Option<FileHash>, FileError> {
        let answer = self.channel.request(load("_file_hash", path, saltenv)).await?;
        if !answer.truthy() {
            return Ok(None);
        }
        FileHash::parse(&answer).map(Some)
    }

    /// A file whose hash was asked for before.
    pub async fn fetch(&self, path: &SafePath, saltenv: &Saltenv, said: &FileHash) -> Result<Vec<u8>, FileError> {
        let mut said = said.clone();
        let mut tries = TRIES;
        loop {
            let content = self.chunks(path, saltenv).await?;
            let got = said.of(&content);
            if got == said.hex {
                return Ok(content);
            }
            tries -= 1;
            let now = self.hash(path, saltenv).await?.ok_or_else(|| FileError::Missing(path.clone()))?;
            if tries == 0 || now == said {
                return Err(FileError::WrongHash { path: path.clone(), got, said: said.hex });
            }
            said = now; // it was changed while it was fetched
        }
    }

    async fn chunks(&self, path: &SafePath, saltenv: &Saltenv) -> Result<Vec<u8>, FileError> {
        let mut content = Vec::new();
        loop {
            let mut load = load("_serve_file", path, saltenv);
            load.insert("loc", content.len() as u64);
            let answer = self.channel.request_raw(load).await?;
            let data = answer.get_bytes("data").ok_or(FileError::Malformed("_serve_file"))?;
            if data.is_empty() {
                let dest = answer.get_bytes("dest").unwrap_or_default();
                if content.is_empty() && dest.is_empty() {
                    return Err(FileError::Missing(path.clone()));
                }
                return Ok(content);
            }
            if (content.len() + data.len()) as u64 > self.max_file {
                return Err(FileError::TooLarge { path: path.clone(), max: self.max_file });
            }
            content.extend_from_slice(data);
        }
    }
}

fn load(cmd: &str, path: &SafePath, saltenv: &Saltenv) -> Value {
    map([("cmd", Value::from(cmd)), ("path", Value::from(path)), ("saltenv", Value::from(saltenv))])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_that_prove_something_are_taken() {
        let said = |kind: &str, hex: &str| FileHash::parse(&map([("hash_type", kind), ("hsum", hex)]));
        let good = said("sha256", &hex::encode(Sha256::digest(b"x"))).unwrap();
        assert!(good.is_sha256(&Sha256::digest(b"x").into()));
        assert!(!good.is_sha256(&Sha256::digest(b"y").into()));
        assert_eq!(said("sha512", "AB").unwrap().hex, "ab");
        assert!(matches!(said("md5", "00"), Err(FileError::HashType(_))));
        for (kind, hex) in [("sha256", "zz"), ("sha256", &"0".repeat(129))] {
            assert!(matches!(said(kind, hex), Err(FileError::Malformed(_))));
        }
        assert!(FileHash::parse(&Value::from("text")).is_err());
    }
}
