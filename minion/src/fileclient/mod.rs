//! The master's file server (PROTOCOL §6.1, §6.5, §6.6): list, hash, fetch, push. What comes is bounded, and what was fetched
//! is compared with the hash that the master said before.

mod error;
mod hash;
mod transfer_rate;

use brine_protocol::ids::{SafePath, Saltenv};
use brine_protocol::value::{Value, ValueExt, map};

pub use error::FileError;
pub use hash::{FileHash, StatedHash};

use crate::connection::Masters;
use hash::Hasher;
use transfer_rate::TransferRate;

/// More files than a tree of modules has.
const MAX_FILES: usize = 100_000;
/// Environments of a master.
const MAX_ENVS: usize = 10_000;
/// A file that changes while it is fetched is fetched again so often.
const TRIES: u32 = 3;
/// Where the size is in the master's `stat` list.
const STAT_SIZE: usize = 6;

/// What to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileListing {
    /// `_file_list`
    Files,
    /// `_dir_list`
    Dirs,
    /// `_file_list_emptydirs`
    EmptyDirs,
    /// `_symlink_list`
    Symlinks,
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
        self.masters.preferred().ok()?.current_sign_in().map(|live| live.master.to_string())
    }

    /// The files below a folder. Names that are not safe paths are left out.
    pub async fn list(&self, saltenv: &Saltenv, prefix: &str) -> Result<Vec<SafePath>, FileError> {
        self.listing(FileListing::Files, saltenv, prefix).await
    }

    /// What there is below a folder. Names that are not safe paths are left out.
    pub async fn listing(
        &self,
        what: FileListing,
        saltenv: &Saltenv,
        prefix: &str,
    ) -> Result<Vec<SafePath>, FileError> {
        let cmd = match what {
            FileListing::Files => "_file_list",
            FileListing::Dirs => "_dir_list",
            FileListing::EmptyDirs => "_file_list_emptydirs",
            FileListing::Symlinks => "_symlink_list",
        };
        let names = self.request_names(cmd, saltenv, prefix).await?;
        Ok(names.iter().filter_map(|name| SafePath::try_from(name).ok()).collect())
    }

    /// The environments. Names that are none are left out.
    pub async fn list_envs(&self) -> Result<Vec<Saltenv>, FileError> {
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
            if !self.request_names(cmd, saltenv, "").await?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn request_names(&self, cmd: &'static str, saltenv: &Saltenv, prefix: &str) -> Result<Vec<Value>, FileError> {
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
    pub async fn request_hash(&self, path: &SafePath, saltenv: &Saltenv) -> Result<Option<FileHash>, FileError> {
        let answer = self.masters.preferred()?.request(file_load("_file_hash", path, saltenv)).await?;
        if !answer.truthy() {
            return Ok(None);
        }
        FileHash::parse(&answer).map(Some)
    }

    /// What the master says of a file, whether it proves something or not; none where there is no such file.
    pub async fn request_hash_and_size(
        &self,
        path: &SafePath,
        saltenv: &Saltenv,
    ) -> Result<Option<StatedHash>, FileError> {
        let answer = self.masters.preferred()?.request(file_load("_file_hash_and_stat", path, saltenv)).await?;
        let Value::Array(parts) = answer else { return Err(FileError::Malformed("_file_hash_and_stat")) };
        let Some(hash) = parts.first().filter(|hash| hash.truthy()) else { return Ok(None) };
        let size = parts.get(1).and_then(|stat| stat.list()?.get(STAT_SIZE)?.as_u64());
        StatedHash::parse(hash, size).map(Some)
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
        let mut pace = TransferRate::begin();
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
            let now = self.request_hash(path, saltenv).await?.ok_or_else(|| FileError::Missing(path.clone()))?;
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
        pace: &mut TransferRate,
        sink: &mut dyn Sink,
    ) -> Result<String, FileError> {
        loop {
            let mut load = file_load("_serve_file", path, saltenv);
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
            pace.add_piece(data.len()).map_err(|why| FileError::TooSlow { path: path.clone(), why })?;
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

fn file_load(cmd: &str, path: &SafePath, saltenv: &Saltenv) -> Value {
    map([("cmd", Value::from(cmd)), ("path", Value::from(path)), ("saltenv", Value::from(saltenv))])
}
