//! The master's file server (PROTOCOL §6.1, §6.5, §6.6): list, hash, fetch, push. What comes is bounded, and what was fetched
//! is compared with the hash that the master said before.

mod pace;

use std::fmt;

use brine_protocol::ids::{SafePath, Saltenv};
use brine_protocol::value::{Value, ValueExt, map};
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

use crate::connection::{ChannelError, Masters};
use pace::Pace;

/// More files than a tree of modules has.
const MAX_FILES: usize = 100_000;
/// Environments of a master.
const MAX_ENVS: usize = 10_000;
/// A file that changes while it is fetched is fetched again so often.
const TRIES: u32 = 3;
/// Where the size is in the master's `stat` list.
const STAT_SIZE: usize = 6;

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
    #[error("{path} is larger than the {max} bytes that a file fetched for this may have")]
    TooLarge {
        /// The file.
        path: SafePath,
        /// The bound.
        max: u64,
    },
    /// It comes, and would not be whole in any time.
    #[error("the master serves {path} too slowly: {why}")]
    TooSlow {
        /// The file.
        path: SafePath,
        /// What came, and in which time.
        why: String,
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
    /// This host could not keep it.
    #[error("the file could not be kept: {0}")]
    Keep(std::io::Error),
}

/// What to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listing {
    /// `_file_list`
    Files,
    /// `_dir_list`
    Dirs,
    /// `_file_list_emptydirs`
    EmptyDirs,
    /// `_symlink_list`
    Symlinks,
}

/// A hash as the master says it, of any kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stated {
    /// `sha256`
    pub kind: String,
    /// The digest.
    pub hex: String,
    /// The file's size, where the master said it.
    pub size: Option<u64>,
}

impl Stated {
    fn parse(answer: &Value, size: Option<u64>) -> Result<Self, FileError> {
        let (Some(kind), Some(hex)) = (answer.get_text("hash_type"), answer.get_text("hsum")) else {
            return Err(FileError::Malformed("_file_hash"));
        };
        let kind_fits = kind.len() <= 20 && kind.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-/".contains(&b));
        if !kind_fits || hex.len() > 128 || !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(FileError::Malformed("_file_hash"));
        }
        Ok(Self { kind: kind.to_owned(), hex: hex.to_ascii_lowercase(), size })
    }
}

/// A hash by which a file can be verified.
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
        Stated::parse(answer, None)?.try_into()
    }

    /// Whether it is this SHA-256.
    pub fn is_sha256(&self, digest: &[u8; 32]) -> bool {
        self.kind == HashKind::Sha256 && self.hex == hex::encode(digest)
    }

    /// Whether it is of these bytes.
    pub fn matches(&self, content: &[u8]) -> bool {
        let mut hasher = Hasher::new(self.kind);
        hasher.update(content);
        hasher.hex() == self.hex
    }

    /// Whether it is what a file holds, read from its start.
    pub(crate) fn is_of(&self, file: &std::fs::File) -> std::io::Result<bool> {
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

/// `sha256-9f2c…`: a name for a file.
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

impl TryFrom<Stated> for FileHash {
    type Error = FileError;

    fn try_from(stated: Stated) -> Result<Self, FileError> {
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

/// Hashes what comes, piece by piece.
enum Hasher {
    Sha224(Sha224),
    Sha256(Sha256),
    Sha384(Sha384),
    Sha512(Sha512),
}

impl Hasher {
    fn new(kind: HashKind) -> Self {
        match kind {
            HashKind::Sha224 => Self::Sha224(Sha224::new()),
            HashKind::Sha256 => Self::Sha256(Sha256::new()),
            HashKind::Sha384 => Self::Sha384(Sha384::new()),
            HashKind::Sha512 => Self::Sha512(Sha512::new()),
        }
    }

    fn update(&mut self, data: &[u8]) {
        match self {
            Self::Sha224(hasher) => hasher.update(data),
            Self::Sha256(hasher) => hasher.update(data),
            Self::Sha384(hasher) => hasher.update(data),
            Self::Sha512(hasher) => hasher.update(data),
        }
    }

    fn hex(self) -> String {
        match self {
            Self::Sha224(hasher) => hex::encode(hasher.finalize()),
            Self::Sha256(hasher) => hex::encode(hasher.finalize()),
            Self::Sha384(hasher) => hex::encode(hasher.finalize()),
            Self::Sha512(hasher) => hex::encode(hasher.finalize()),
        }
    }
}

/// Where a fetched file goes.
pub trait Sink: Send {
    /// A file of this hash is to come. What is there of it from before is shown to `kept` and goes on to count, and the rest comes;
    /// says how many bytes that is. By default nothing is.
    fn resume(&mut self, said: &FileHash, kept: &mut dyn FnMut(&[u8])) -> std::io::Result<u64> {
        let _ = (said, kept);
        self.restart()?;
        Ok(0)
    }
    /// Forgets what came so far: the file is fetched again.
    fn restart(&mut self) -> std::io::Result<()>;
    /// The next bytes.
    fn write(&mut self, data: &[u8]) -> std::io::Result<()>;
}

impl Sink for Vec<u8> {
    fn restart(&mut self) -> std::io::Result<()> {
        self.clear();
        Ok(())
    }

    fn write(&mut self, data: &[u8]) -> std::io::Result<()> {
        self.extend_from_slice(data);
        Ok(())
    }
}

/// Asks the file server.
#[derive(Clone)]
pub struct FileClient {
    masters: Masters,
    max_file: u64,
}

impl FileClient {
    /// Bytes that a file may have.
    pub fn max_file(&self) -> u64 {
        self.max_file
    }

    /// A client of the preferred master's file server; none without a master. Files are at most `max_file` bytes.
    pub fn new(masters: &Masters, max_file: u64) -> Option<Self> {
        masters.preferred().is_ok().then(|| Self { masters: masters.clone(), max_file })
    }

    /// The fingerprint of the master's key, once it answered.
    pub fn master(&self) -> Option<String> {
        self.masters.preferred().ok()?.live().map(|live| live.master.to_string())
    }

    /// The files below a folder. Names that are not safe paths are left out.
    pub async fn list(&self, saltenv: &Saltenv, prefix: &str) -> Result<Vec<SafePath>, FileError> {
        self.listing(Listing::Files, saltenv, prefix).await
    }

    /// What there is below a folder. Names that are not safe paths are left out.
    pub async fn listing(&self, what: Listing, saltenv: &Saltenv, prefix: &str) -> Result<Vec<SafePath>, FileError> {
        let cmd = match what {
            Listing::Files => "_file_list",
            Listing::Dirs => "_dir_list",
            Listing::EmptyDirs => "_file_list_emptydirs",
            Listing::Symlinks => "_symlink_list",
        };
        let names = self.names(cmd, saltenv, prefix).await?;
        Ok(names.iter().filter_map(|name| SafePath::try_from(name).ok()).collect())
    }

    /// The environments. Names that are none are left out.
    pub async fn envs(&self) -> Result<Vec<Saltenv>, FileError> {
        match self.masters.preferred()?.request(map([("cmd", "_file_envs")])).await? {
            Value::Array(envs) if envs.len() <= MAX_ENVS => {
                Ok(envs.iter().filter_map(|env| Saltenv::try_from(env).ok()).collect())
            }
            _ => Err(FileError::Malformed("_file_envs")),
        }
    }

    /// Whether an environment has anything in it. A master answers an environment that it does not have, or whose folder is
    /// not mounted, as one that is empty.
    pub async fn has_anything(&self, saltenv: &Saltenv) -> Result<bool, FileError> {
        for cmd in ["_dir_list", "_file_list"] {
            if !self.names(cmd, saltenv, "").await?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn names(&self, cmd: &'static str, saltenv: &Saltenv, prefix: &str) -> Result<Vec<Value>, FileError> {
        let load = map([("cmd", Value::from(cmd)), ("saltenv", Value::from(saltenv)), ("prefix", Value::from(prefix))]);
        match self.masters.preferred()?.request(load).await? {
            Value::Array(names) if names.len() <= MAX_FILES => Ok(names),
            // Links, each with where it leads.
            Value::Map(links) if links.len() <= MAX_FILES && cmd == "_symlink_list" => {
                Ok(links.into_iter().map(|(link, _)| link).collect())
            }
            _ => Err(FileError::Malformed(cmd)),
        }
    }

    /// A file's hash; none where there is no such file.
    pub async fn hash(&self, path: &SafePath, saltenv: &Saltenv) -> Result<Option<FileHash>, FileError> {
        let answer = self.masters.preferred()?.request(load("_file_hash", path, saltenv)).await?;
        if !answer.truthy() {
            return Ok(None);
        }
        FileHash::parse(&answer).map(Some)
    }

    /// What the master says of a file, whether it proves something or not; none where there is no such file.
    pub async fn stated(&self, path: &SafePath, saltenv: &Saltenv) -> Result<Option<Stated>, FileError> {
        let answer = self.masters.preferred()?.request(load("_file_hash_and_stat", path, saltenv)).await?;
        let Value::Array(parts) = answer else { return Err(FileError::Malformed("_file_hash_and_stat")) };
        let Some(hash) = parts.first().filter(|hash| hash.truthy()) else { return Ok(None) };
        let size = parts.get(1).and_then(|stat| stat.list()?.get(STAT_SIZE)?.as_u64());
        Stated::parse(hash, size).map(Some)
    }

    /// A file whose hash was asked for before.
    pub async fn fetch(&self, path: &SafePath, saltenv: &Saltenv, said: &FileHash) -> Result<Vec<u8>, FileError> {
        let mut content = Vec::new();
        self.fetch_into(path, saltenv, said, &mut content).await?;
        Ok(content)
    }

    /// As [`FileClient::fetch`], piece by piece. What is in the sink is the file only once this has returned its hash.
    pub async fn fetch_into(
        &self,
        path: &SafePath,
        saltenv: &Saltenv,
        said: &FileHash,
        sink: &mut dyn Sink,
    ) -> Result<FileHash, FileError> {
        let mut said = said.clone();
        let mut tries = TRIES;
        let mut pace = Pace::begin();
        loop {
            let mut hasher = Hasher::new(said.kind);
            let at = sink.resume(&said, &mut |kept| hasher.update(kept)).map_err(FileError::Keep)?;
            let got = self.chunks(path, saltenv, (hasher, at), &mut pace, sink).await?;
            if got == said.hex {
                return Ok(said);
            }
            sink.restart().map_err(FileError::Keep)?;
            if at > 0 {
                continue; // it may be what was kept that is wrong
            }
            tries -= 1;
            let now = self.hash(path, saltenv).await?.ok_or_else(|| FileError::Missing(path.clone()))?;
            if tries == 0 || now == said {
                return Err(FileError::WrongHash { path: path.clone(), got, said: said.hex });
            }
            said = now; // it was changed while it was fetched
        }
    }

    /// Fetches to the end, from where it was interrupted before, and says the hash of all.
    async fn chunks(
        &self,
        path: &SafePath,
        saltenv: &Saltenv,
        (mut hasher, mut at): (Hasher, u64),
        pace: &mut Pace,
        sink: &mut dyn Sink,
    ) -> Result<String, FileError> {
        loop {
            let mut load = load("_serve_file", path, saltenv);
            load.insert("loc", at);
            let answer = self.masters.preferred()?.request_raw(load).await?;
            let data = answer.get_bytes("data").ok_or(FileError::Malformed("_serve_file"))?;
            if data.is_empty() {
                let dest = answer.get_bytes("dest").unwrap_or_default();
                if at == 0 && dest.is_empty() {
                    return Err(FileError::Missing(path.clone()));
                }
                return Ok(hasher.hex());
            }
            at += data.len() as u64;
            if at > self.max_file {
                return Err(FileError::TooLarge { path: path.clone(), max: self.max_file });
            }
            hasher.update(data);
            sink.write(data).map_err(FileError::Keep)?;
            pace.came(data.len()).map_err(|why| FileError::TooSlow { path: path.clone(), why })?;
        }
    }

    /// Sends some of a file of this host; says whether the master took it (`file_recv`).
    pub async fn push(&self, path: &SafePath, at: u64, size: u64, data: Vec<u8>) -> Result<bool, FileError> {
        let load = map([
            ("cmd", Value::from("_file_recv")),
            ("path", Value::Array(path.as_str().split('/').map(Value::from).collect())),
            ("loc", Value::from(at)),
            ("size", Value::from(size)),
            ("data", Value::Binary(data)),
        ]);
        match self.masters.preferred()?.request(load).await? {
            Value::Boolean(taken) => Ok(taken),
            other if !other.truthy() => Ok(false),
            _ => Err(FileError::Malformed("_file_recv")),
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
