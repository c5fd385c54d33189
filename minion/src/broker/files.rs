//! `brine:host/files`: reads files of the master's file server and sends files to the master.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use brine_protocol::ids::{SafePath, Saltenv};
use brine_protocol::value::{Value, list, map};
use brine_sandbox::{Caller, FilesOp, HostError, ListKind};
use tokio::sync::Semaphore;

use super::{MinionBroker, Perform};
use crate::filecache::{Cached, CachedAs, FileCache};
use crate::fileclient::{FileClient, FileError, FileListing, StatedHash};

/// Upper bound on requests to the master at once, for all jobs. Each takes one of the channel's connections.
const AT_ONCE: usize = 2;
/// Upper bound on the bytes of one reply to `read`.
const MAX_READ: u32 = 1 << 20;
/// Upper bound on the bytes of one pushed piece: four times the size of Salt's pieces.
const MAX_PUSH: usize = 1 << 20;
/// Upper bound on the files that jobs are reading. Each is kept open.
const MAX_READING: usize = 64;
/// Time after which a job's next read gets the present version of the file.
const READING_FOR: Duration = Duration::from_secs(120);
/// Time for which a job's questions about a file are answered by what the master stated when the job asked about it with others.
const STATED_FOR: Duration = Duration::from_secs(10);
/// Upper bound on such statements, for all jobs. Without one, the master is asked again.
const MAX_STATED: usize = 4096;

impl Perform<FilesOp> for MinionBroker {
    async fn perform(&self, caller: &Caller, op: FilesOp) -> Result<Value, HostError> {
        self.files.answer(caller, op).await
    }
}

/// A job's file: its jid, the environment and the path.
type JobFile = (String, Saltenv, SafePath);
/// What the master stated of files, and when.
type Stated = HashMap<JobFile, (StatedHash, Instant)>;

/// The files of the master, or of this host where there is none.
pub(super) struct Files {
    cache: FileCache,
    turns: Semaphore,
    reading: Mutex<HashMap<JobFile, Reading>>,
    stated: Mutex<Stated>,
}

/// The file that a job read last. The job reads the rest from the same content, even if the file changes on the master.
struct Reading {
    file: Arc<File>,
    at: Instant,
}

impl Files {
    /// Caches the files of `client` below `cachedir`.
    pub(super) fn new(client: FileClient, cachedir: &Path) -> Self {
        Self {
            cache: FileCache::new(client, cachedir),
            turns: Semaphore::new(AT_ONCE),
            reading: Mutex::default(),
            stated: Mutex::default(),
        }
    }

    pub(super) async fn answer(&self, caller: &Caller, op: FilesOp) -> Result<Value, HostError> {
        let cache = &self.cache;
        match op {
            FilesOp::List { saltenv, prefix, kind } => {
                let what = match kind {
                    ListKind::Files => FileListing::Files,
                    ListKind::Dirs => FileListing::Dirs,
                    ListKind::EmptyDirs => FileListing::EmptyDirs,
                    ListKind::Symlinks => FileListing::Symlinks,
                };
                let prefix = checked_prefix(&prefix)?;
                let found = self.turn(cache.client().listing(what, &env(&saltenv)?, prefix)).await?;
                let mut names: Vec<String> = found.into_iter().map(SafePath::into_string).collect();
                // A master may return more names than requested. The sandbox removes those that are not granted.
                names.retain(|name| name.starts_with(prefix));
                names.sort_unstable();
                Ok(list(names))
            }
            FilesOp::Envs => {
                let mut envs = self.turn(cache.client().list_envs()).await?;
                envs.sort();
                Ok(list(envs))
            }
            FilesOp::Hash { path, saltenv } => {
                let key = (caller.job.jid.clone(), env(&saltenv)?, safe(&path)?);
                let stated = match self.stated_for(&key) {
                    Some(stated) => Some(stated),
                    None => self.turn(cache.client().request_hash_and_size(&key.2, &key.1)).await?,
                };
                Ok(stated.map_or(Value::Nil, digest))
            }
            FilesOp::HashAll { paths, saltenv } => {
                let (saltenv, paths) = (env(&saltenv)?, all_safe(&paths)?);
                let all = cache.client().request_hashes_and_sizes(&paths, &saltenv).await.map_err(|e| failed(&e))?;
                let files = paths.into_iter().zip(&all).filter_map(|(path, stated)| Some((path, stated.clone()?)));
                self.remember(caller, &saltenv, files);
                Ok(Value::Array(all.into_iter().map(|stated| stated.map_or(Value::Nil, digest)).collect()))
            }
            FilesOp::Mode { path, saltenv } => {
                let key = (caller.job.jid.clone(), env(&saltenv)?, safe(&path)?);
                let stated = match self.stated_for(&key) {
                    Some(stated) => Some(stated),
                    None => self.turn(cache.client().request_hash_and_size(&key.2, &key.1)).await?,
                };
                Ok(stated.and_then(|stated| stated.mode).map_or(Value::Nil, Value::from))
            }
            FilesOp::Read { path, saltenv, offset, length } => {
                let key = (caller.job.jid.clone(), env(&saltenv)?, safe(&path)?);
                let length = usize::try_from(length.min(MAX_READ)).unwrap_or(0);
                let Some(file) = self.open(key, offset).await? else { return Ok(Value::Nil) };
                let read = tokio::task::spawn_blocking(move || read(&file, offset, length));
                let read = read.await.map_err(|_| HostError::Failed("the minion failed".to_owned()))?;
                read.map(Value::Binary).map_err(|e| HostError::Failed(format!("{path} cannot be read: {e}")))
            }
            FilesOp::Cache { path, saltenv } => {
                let cached = self.cached(&(caller.job.jid.clone(), env(&saltenv)?, safe(&path)?)).await?;
                Ok(cached.map_or(Value::Nil, |cached| Value::from(cached.path.to_string_lossy().into_owned())))
            }
            FilesOp::CacheAll { paths, saltenv } => {
                let (saltenv, paths) = (env(&saltenv)?, all_safe(&paths)?);
                let all = cache.get_all(&paths, &saltenv).await.map_err(|e| failed(&e))?;
                let name = |cached: &Option<CachedAs>| {
                    cached.as_ref().map_or(Value::Nil, |(place, _)| Value::from(place.to_string_lossy().into_owned()))
                };
                let names = all.iter().map(name).collect();
                let files = paths.into_iter().zip(all).filter_map(|(path, cached)| Some((path, cached?.1)));
                self.remember(caller, &saltenv, files);
                Ok(Value::Array(names))
            }
            FilesOp::Push { path, offset, data, size } => {
                let path = pushed(&path)?;
                if data.len() > MAX_PUSH {
                    return Err(HostError::Failed(format!("at most {MAX_PUSH} bytes can be pushed at once")));
                }
                if offset.checked_add(data.len() as u64).is_none_or(|end| end > size) {
                    return Err(HostError::Failed("these bytes are not within the file's size".to_owned()));
                }
                let taken = self.turn(cache.client().push(&path, offset, size, data.into_vec())).await?;
                Ok(Value::from(taken))
            }
        }
    }

    /// Fetches a file into the minion's cache and opens it; none if there is no such file.
    pub(super) async fn fetch(
        &self,
        caller: &Caller,
        path: &str,
        saltenv: &str,
    ) -> Result<Option<Arc<File>>, HostError> {
        let cached = self.cached(&(caller.job.jid.clone(), env(saltenv)?, safe(path)?)).await?;
        Ok(cached.map(|cached| cached.file))
    }

    /// The file for a job, in the version that the job was told of with others if it was.
    async fn cached(&self, key: &JobFile) -> Result<Option<Cached>, HostError> {
        let (_, saltenv, path) = key;
        let cached = match self.stated_for(key) {
            Some(stated) => self.cache.get_stated(path, saltenv, stated).await,
            None => self.cache.get(path, saltenv).await,
        };
        cached.map_err(|e| failed(&e))
    }

    /// Keeps what the master stated of files that a job asks about together.
    fn remember(&self, caller: &Caller, saltenv: &Saltenv, files: impl Iterator<Item = (SafePath, StatedHash)>) {
        let mut stated = self.stated();
        stated.retain(|_, (_, at)| at.elapsed() < STATED_FOR);
        for (path, said) in files {
            if stated.len() < MAX_STATED {
                stated.insert((caller.job.jid.clone(), saltenv.clone(), path), (said, Instant::now()));
            }
        }
    }

    /// What the master stated of the file when the job asked about it with others.
    fn stated_for(&self, key: &JobFile) -> Option<StatedHash> {
        self.stated().get(key).filter(|(_, at)| at.elapsed() < STATED_FOR).map(|(stated, _)| stated.clone())
    }

    fn stated(&self) -> MutexGuard<'_, Stated> {
        self.stated.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs one request after waiting for a free connection.
    async fn turn<T>(&self, request: impl Future<Output = Result<T, FileError>>) -> Result<T, HostError> {
        let _turn = self.turns.acquire().await.map_err(|_| HostError::Failed("the minion is ending".to_owned()))?;
        request.await.map_err(|e| failed(&e))
    }

    /// Opens the file for a job. A read at offset 0 gets the present version on the master; later reads continue in the
    /// version of that first read.
    async fn open(&self, key: JobFile, offset: u64) -> Result<Option<Arc<File>>, HostError> {
        if offset > 0 {
            let mut reading = self.reading();
            if let Some(known) = reading.get_mut(&key).filter(|known| known.at.elapsed() < READING_FOR) {
                known.at = Instant::now();
                return Ok(Some(Arc::clone(&known.file)));
            }
        }
        let Some(cached) = self.cached(&key).await? else { return Ok(None) };
        let mut reading = self.reading();
        reading.retain(|_, known| known.at.elapsed() < READING_FOR);
        if reading.len() >= MAX_READING
            && let Some(oldest) = reading.iter().min_by_key(|(_, known)| known.at).map(|(key, _)| key.clone())
        {
            reading.remove(&oldest);
        }
        reading.insert(key, Reading { file: Arc::clone(&cached.file), at: Instant::now() });
        Ok(Some(cached.file))
    }

    fn reading(&self) -> MutexGuard<'_, HashMap<JobFile, Reading>> {
        self.reading.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(file: &File, offset: u64, length: usize) -> std::io::Result<Vec<u8>> {
    let mut data = vec![0; length];
    let mut filled = 0;
    while filled < length {
        match file.read_at(&mut data[filled..], offset.saturating_add(filled as u64)) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    data.truncate(filled);
    Ok(data)
}

fn env(text: &str) -> Result<Saltenv, HostError> {
    text.parse().map_err(|e| HostError::Failed(format!("{e}")))
}

fn safe(text: &str) -> Result<SafePath, HostError> {
    text.parse().map_err(|e| HostError::Failed(format!("{e}")))
}

/// Checks the prefix of a listing. A prefix may end within a name and may end with a slash.
fn checked_prefix(text: &str) -> Result<&str, HostError> {
    let text = text.trim_end_matches('/');
    if !text.is_empty() {
        safe(text)?;
    }
    Ok(text)
}

/// Joins the parts of a name on the master. No part may lead out of the minion's folder.
fn pushed(parts: &[String]) -> Result<SafePath, HostError> {
    if parts.iter().any(|part| part.contains('/')) {
        return Err(HostError::Failed("a part of the path has a slash".to_owned()));
    }
    safe(&parts.join("/"))
}

fn all_safe(paths: &[String]) -> Result<Vec<SafePath>, HostError> {
    paths.iter().map(|path| safe(path)).collect()
}

/// What `hash` returns.
fn digest(stated: StatedHash) -> Value {
    map([
        ("hash_type", Value::from(stated.kind)),
        ("hsum", Value::from(stated.hex)),
        ("size", stated.size.map_or(Value::Nil, Value::from)),
    ])
}

fn failed(error: &FileError) -> HostError {
    HostError::Failed(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        let parts = |parts: &[&str]| pushed(&parts.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(parts(&["etc", "hosts"]).unwrap().as_str(), "etc/hosts");
        for bad in
            [&["..", "x"][..], &["a", "..", "b"], &["", "etc"], &["a/b"], &["a/../../b"], &[], &["a", ""], &["a\0"]]
        {
            assert!(parts(bad).is_err(), "{bad:?}");
        }
        for bad in ["../x", "/etc/passwd", "a/../../b", "a\\b", ".", ""] {
            assert!(safe(bad).is_err(), "{bad}");
        }
        for (prefix, good) in [("", true), ("a/", true), ("a/b", true), ("../", false), ("/", true), ("/a", false)] {
            assert_eq!(checked_prefix(prefix).is_ok(), good, "{prefix}");
        }
        for bad in ["", "..", "a/b", "a\nb"] {
            assert!(env(bad).is_err(), "{bad}");
        }
    }
}
