//! The master's file server (PROTOCOL §6.1, §6.5, §6.6): list, hash, fetch, push. Every answer has a bound, and each fetched file is
//! compared with the hash that the master announced. Without a master, the host's own files take its place.

mod batch;
mod error;
mod flow;
mod hash;
mod own;
mod pieces;
mod transfer_rate;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use brine_protocol::ids::{SafePath, Saltenv};
use brine_protocol::value::{Value, ValueExt, map};

pub(crate) use batch::{MAX_TOGETHER, MAX_TOGETHER_BYTES, SMALL_FILE};
pub use error::FileError;
pub use hash::{FileHash, StatedHash};

use crate::connection::Masters;
use flow::Flow;
use hash::{HashKind, Hasher};
pub(crate) use own::OwnFiles;
use pieces::Pieces;
use tokio::sync::Semaphore;
use transfer_rate::TransferRate;

/// Upper bound on the names in one listing: more than a tree of modules has.
const MAX_FILES: usize = 100_000;
/// Upper bound on a master's environments.
const MAX_ENVS: usize = 10_000;
/// Fetches of a file that keeps changing while it is fetched.
const TRIES: u32 = 3;
/// Index of the size in the master's `stat` list.
const STAT_SIZE: usize = 6;
/// The place of the mode there.
const STAT_MODE: usize = 0;

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
    /// Begins a file with this hash. Passes the part that is kept of it to `kept` and returns that part's length; the fetch continues
    /// after it. By default, nothing is kept.
    ///
    /// # Errors
    /// When the destination cannot be read or written.
    fn resume(&mut self, said: &FileHash, kept: &mut dyn FnMut(&[u8])) -> std::io::Result<u64> {
        let _ = (said, kept);
        self.restart()?;
        Ok(0)
    }
    /// Drops everything so far: the file is fetched again.
    ///
    /// # Errors
    /// When the destination cannot be written.
    fn restart(&mut self) -> std::io::Result<()>;
    /// Appends the next bytes.
    ///
    /// # Errors
    /// When the destination cannot be written.
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

/// A client of the file server.
#[derive(Clone)]
pub struct FileClient {
    server: Server,
    max_file: u64,
    /// Turns of the requests about many files.
    side_by_side: Arc<Semaphore>,
    /// What the connection carried when the last piece came.
    flow: Arc<Mutex<Flow>>,
}

/// Who is asked.
#[derive(Clone)]
enum Server {
    /// The preferred master.
    Master(Masters),
    /// Nobody: the files are on this host.
    Own(OwnFiles),
}

impl FileClient {
    /// Upper bound on the bytes of a file.
    pub fn max_file(&self) -> u64 {
        self.max_file
    }

    /// A client of the preferred master's file server. Files are at most `max_file` bytes.
    pub fn of_masters(masters: &Masters, max_file: u64) -> Self {
        Self::new(Server::Master(masters.clone()), max_file)
    }

    /// A client of this host's own files.
    pub(crate) fn of_host(files: OwnFiles, max_file: u64) -> Self {
        Self::new(Server::Own(files), max_file)
    }

    fn new(server: Server, max_file: u64) -> Self {
        Self { server, max_file, side_by_side: Arc::new(Semaphore::new(batch::SIDE_BY_SIDE)), flow: Arc::default() }
    }

    fn flow(&self) -> Flow {
        *self.flow.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_flow(&self, flow: Flow) {
        *self.flow.lock().unwrap_or_else(PoisonError::into_inner) = flow;
    }

    /// Asks for anything but the piece of a file.
    async fn request(&self, load: Value) -> Result<Value, FileError> {
        match &self.server {
            Server::Master(masters) => Ok(masters.preferred()?.request(load).await?),
            Server::Own(files) => files.answer(load).await,
        }
    }

    /// Asks for the piece of a file.
    async fn request_piece(&self, load: Value) -> Result<Value, FileError> {
        match &self.server {
            Server::Master(masters) => Ok(masters.preferred()?.request_content(load).await?),
            Server::Own(files) => files.answer(load).await,
        }
    }

    /// The fingerprint of the master's key, once the minion has signed in.
    pub fn master(&self) -> Option<String> {
        let Server::Master(masters) = &self.server else { return None };
        masters.preferred().ok()?.current_sign_in().map(|live| live.master.to_string())
    }

    /// Lists the files below a folder. Names that are not safe paths are left out.
    ///
    /// # Errors
    /// When the master cannot be asked or its answer is malformed.
    pub async fn list(&self, saltenv: &Saltenv, prefix: &str) -> Result<Vec<SafePath>, FileError> {
        self.listing(FileListing::Files, saltenv, prefix).await
    }

    /// Lists one kind of entries below a folder. Names that are not safe paths are left out.
    ///
    /// # Errors
    /// When the master cannot be asked or its answer is malformed.
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

    /// Lists the environments. Invalid names are left out.
    ///
    /// # Errors
    /// When the master cannot be asked or its answer is malformed.
    pub async fn list_envs(&self) -> Result<Vec<Saltenv>, FileError> {
        match self.request(map([("cmd", "_file_envs")])).await? {
            Value::Array(envs) if envs.len() <= MAX_ENVS => {
                Ok(envs.iter().filter_map(|env| Saltenv::try_from(env).ok()).collect())
            }
            _ => Err(FileError::Malformed("_file_envs")),
        }
    }

    /// Whether an environment has any content. A master shows an environment that it does not have, or whose folder is not mounted, as
    /// empty.
    ///
    /// # Errors
    /// When the master cannot be asked or its answer is malformed.
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
        match self.request(load).await? {
            Value::Array(names) if names.len() <= MAX_FILES => Ok(names),
            // A map of symbolic links to their targets.
            Value::Map(links) if links.len() <= MAX_FILES && cmd == "_symlink_list" => {
                Ok(links.into_iter().map(|(link, _)| link).collect())
            }
            _ => Err(FileError::Malformed(cmd)),
        }
    }

    /// Asks for the hash of a file; none if there is no such file.
    ///
    /// # Errors
    /// When the master cannot be asked, or names no hash by which a file can be verified.
    pub async fn request_hash(&self, path: &SafePath, saltenv: &Saltenv) -> Result<Option<FileHash>, FileError> {
        let answer = self.request(file_load("_file_hash", path, saltenv)).await?;
        if !answer.truthy() {
            return Ok(None);
        }
        FileHash::parse(&answer).map(Some)
    }

    /// Asks for the hash of a file, of any kind, and its size; none if there is no such file.
    ///
    /// # Errors
    /// When the master cannot be asked or its answer is malformed.
    pub async fn request_hash_and_size(
        &self,
        path: &SafePath,
        saltenv: &Saltenv,
    ) -> Result<Option<StatedHash>, FileError> {
        stated_hash(&self.request(file_load("_file_hash_and_stat", path, saltenv)).await?)
    }

    /// Fetches a file with this hash.
    ///
    /// # Errors
    /// When the file cannot be fetched or has another hash, see [`FileError`].
    pub async fn fetch(&self, path: &SafePath, saltenv: &Saltenv, said: &FileHash) -> Result<Vec<u8>, FileError> {
        let mut content = Vec::new();
        self.fetch_into(path, saltenv, (said, None), &mut content).await?;
        Ok(content)
    }

    /// As [`FileClient::fetch`], piece by piece. The content of the sink is verified only when this has returned its hash. With the size
    /// that the master said, several pieces are under way at once, and the end need not be asked for.
    ///
    /// # Errors
    /// As [`FileClient::fetch`], and when the sink cannot keep the content.
    pub async fn fetch_into(
        &self,
        path: &SafePath,
        saltenv: &Saltenv,
        (said, size): (&FileHash, Option<u64>),
        sink: &mut dyn Sink,
    ) -> Result<FileHash, FileError> {
        let mut said = said.clone();
        let mut size = size.map_or_else(OnceLock::new, OnceLock::from);
        let mut tries = TRIES;
        let mut pace = TransferRate::begin();
        loop {
            let mut hasher = Hasher::new(said.kind);
            let at = sink.resume(&said, &mut |kept| hasher.update(kept)).map_err(FileError::Keep)?;
            let pieces = Pieces { client: self, path, saltenv, said: Some(&said), size: &size };
            let got = pieces.fetch((hasher, at), &mut pace, sink).await?;
            if got == said.hex {
                return Ok(said);
            }
            sink.restart().map_err(FileError::Keep)?;
            size = OnceLock::new(); // it may be wrong too
            if at > 0 {
                continue; // the kept part may be wrong
            }
            tries -= 1;
            let now = self.request_hash(path, saltenv).await?.ok_or_else(|| FileError::Missing(path.clone()))?;
            if tries == 0 || now == said {
                return Err(FileError::WrongHash { path: path.clone(), got, said: said.hex });
            }
            said = now; // the file changed while it was fetched
        }
    }

    /// Fetches a file while the master is still making its hash. Returns what `stated` said, and whether the sink has that file: it is not
    /// verified otherwise. None if there is no such file.
    ///
    /// # Errors
    /// As [`FileClient::fetch_into`], and those of `stated`.
    pub(crate) async fn fetch_ahead(
        &self,
        path: &SafePath,
        saltenv: &Saltenv,
        stated: impl Future<Output = Result<Option<StatedHash>, FileError>>,
        sink: &mut dyn Sink,
    ) -> Result<Option<(StatedHash, bool)>, FileError> {
        let size = OnceLock::new();
        let stated = async {
            let stated = stated.await?;
            if let Some(said) = stated.as_ref().and_then(|stated| stated.size) {
                let _ = size.set(said);
            }
            Ok(stated)
        };
        let content = async {
            let pieces = Pieces { client: self, path, saltenv, said: None, size: &size };
            // Whatever kind the master uses: most use this one.
            match pieces.fetch((Hasher::new(HashKind::Sha256), 0), &mut TransferRate::begin(), sink).await {
                Err(FileError::Missing(_)) => Ok(None),
                got => got.map(Some),
            }
        };
        let (stated, got) = tokio::try_join!(stated, content)?;
        Ok(stated.map(|stated| {
            let is_same = stated.kind == "sha256" && got.is_some_and(|got| got == stated.hex);
            (stated, is_same)
        }))
    }

    /// Sends a piece of a file of this host. Returns whether the master accepted it (`file_recv`).
    ///
    /// # Errors
    /// When the master cannot be asked or its answer is malformed.
    pub async fn push(&self, path: &SafePath, at: u64, size: u64, data: Vec<u8>) -> Result<bool, FileError> {
        let load = map([
            ("cmd", Value::from("_file_recv")),
            ("path", Value::Array(path.as_str().split('/').map(Value::from).collect())),
            ("loc", Value::from(at)),
            ("size", Value::from(size)),
            ("data", Value::Binary(data)),
        ]);
        match self.request(load).await? {
            Value::Boolean(taken) => Ok(taken),
            other if !other.truthy() => Ok(false),
            _ => Err(FileError::Malformed("_file_recv")),
        }
    }
}

/// Reads the answer to `_file_hash_and_stat`; none if there is no such file.
fn stated_hash(answer: &Value) -> Result<Option<StatedHash>, FileError> {
    let Value::Array(parts) = answer else { return Err(FileError::Malformed("_file_hash_and_stat")) };
    let Some(hash) = parts.first().filter(|hash| hash.truthy()) else { return Ok(None) };
    let stated = |place: usize| parts.get(1).and_then(|stat| stat.list()?.get(place)?.as_u64());
    let mode = stated(STAT_MODE).and_then(|mode| u32::try_from(mode & 0o7777).ok());
    StatedHash::parse(hash, stated(STAT_SIZE), mode).map(Some)
}

fn file_load(cmd: &str, path: &SafePath, saltenv: &Saltenv) -> Value {
    map([("cmd", Value::from(cmd)), ("path", Value::from(path)), ("saltenv", Value::from(saltenv))])
}
