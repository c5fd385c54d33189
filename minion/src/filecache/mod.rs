//! `cachedir/files/<saltenv>/<path>`: files of the master's file server, in Salt's layout. A file is there whole and verified, or not at
//! all.
//!
//! Paths are opened one name at a time from the root, and symbolic links are never followed: a user who can place a link
//! there could otherwise choose which file the minion overwrites.

mod ahead;
mod group;

pub(crate) use group::CachedAs;

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use brine_protocol::ids::{SafePath, Saltenv};
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use tokio::sync::Semaphore;
use tracing::{debug, warn};

use crate::fileclient::{FileClient, FileError, FileHash, Sink, StatedHash};

/// Upper bound on a file. A module with the grant `files` can make the minion fetch any file that the master serves.
pub(crate) const MAX_FILE: u64 = 512 << 20;
/// Upper bound on all files together: four of the largest. The oldest files are removed first.
const MAX_BYTES: u64 = 4 * MAX_FILE;
/// What a file or a folder takes on the disk at least, and so counts for.
const LEAST: u64 = 4 << 10;
/// Upper bound on the files examined when looking for the oldest. Where there are more, half of these go, until there are fewer.
const MAX_WALK: usize = 100_000;
/// Upper bound on the folders that a file is in, the environment's among them: all are counted.
const MAX_DEPTH: usize = 64;
/// Upper bound on the bytes of a file's path, so that with the cache's own it is one that the kernel takes.
const MAX_PATH: usize = 2_048;
/// Attempts to put a file into folders that another one takes away at the same moment.
const TRIES: usize = 8;
/// How long a count of the files is used; `salt-call` adds files here too.
const COUNTED_FOR: Duration = Duration::from_secs(60);
/// Fetches at once. Each takes one of the channel's connections.
const FETCHES: usize = 2;
/// Upper bound on the files whose hash is remembered. Each is kept open.
const MAX_KEPT: usize = 64;
/// Age at which the unfinished files of ended processes are removed.
const LEFT_FOR: Duration = Duration::from_secs(24 * 3600);

/// The cache of one file server.
pub(crate) struct FileCache {
    client: FileClient,
    root: PathBuf,
    parts: PathBuf,
    fetches: Semaphore,
    kept: Mutex<Kept>,
    /// A lower bound on the free bytes, and when it was counted. Counting all files for each of thousands would take longer than
    /// fetching them.
    room: Mutex<Option<(u64, Instant)>>,
}

/// A file of the cache.
#[derive(Debug, Clone)]
pub(crate) struct Cached {
    /// Open, so that its content stays the same whatever becomes of the path.
    pub(crate) file: Arc<File>,
    /// The file's path.
    pub(crate) path: PathBuf,
}

#[derive(Default)]
struct Kept {
    entries: HashMap<(Saltenv, SafePath), Entry>,
    /// Counts uses, to find the file that was unused for the longest time.
    clock: u64,
}

#[derive(Debug, Clone)]
struct Entry {
    hash: FileHash,
    file: Arc<File>,
    identity: Identity,
    used: u64,
}

/// What identifies the file at a path as the one that was verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

impl Identity {
    fn read(file: &File) -> io::Result<Self> {
        let meta = file.metadata()?;
        let modified = (meta.mtime(), meta.mtime_nsec());
        Ok(Self { device: meta.dev(), inode: meta.ino(), size: meta.len(), modified })
    }
}

impl FileCache {
    /// A cache below `cachedir`.
    pub(crate) fn new(client: FileClient, cachedir: &Path) -> Self {
        let (root, parts) = (cachedir.join("files"), cachedir.join("files.part"));
        Self { client, root, parts, fetches: Semaphore::new(FETCHES), kept: Mutex::default(), room: Mutex::default() }
    }

    /// The file server.
    pub(crate) fn client(&self) -> &FileClient {
        &self.client
    }

    /// The version of a file of which the master stated this; none if the master does not have it any more.
    ///
    /// # Errors
    /// When the file cannot be fetched or kept.
    pub(crate) async fn get_stated(
        &self,
        path: &SafePath,
        saltenv: &Saltenv,
        stated: StatedHash,
    ) -> Result<Option<Cached>, FileError> {
        let (stated_size, size) = (stated.size, stated.size.unwrap_or(0));
        let hash = FileHash::try_from(stated)?;
        if let Some(cached) = self.find_kept(path, saltenv, &hash) {
            return Ok(Some(cached));
        }
        if size > MAX_FILE {
            return Err(FileError::TooLarge { path: path.clone(), max: MAX_FILE });
        }
        let _turn = self.fetches.acquire().await.expect("the semaphore is never closed");
        // The task that had the turn before may have fetched the file.
        if let Some(cached) = self.find_kept(path, saltenv, &hash) {
            return Ok(Some(cached));
        }
        if let Some(file) = self.find_on_disk(path, saltenv, &hash).await {
            return self.keep(path, saltenv, hash, file).map(Some);
        }
        self.make_room(room_of(path, size)).await;
        let mut part = Part::new(&self.parts).map_err(FileError::Keep)?;
        match self.client.fetch_into(path, saltenv, (&hash, stated_size), &mut part).await {
            Ok(hash) => {
                // A master need not say how large a file is.
                let more = part.size().map_err(FileError::Keep)?.saturating_sub(size);
                if more > 0 {
                    self.make_room(more).await;
                }
                let file = part.put(&self.root, saltenv, path).map_err(FileError::Keep)?;
                debug!("{path} of {saltenv} was fetched");
                self.keep(path, saltenv, hash, file).map(Some)
            }
            Err(FileError::Missing(_)) => Ok(None),
            Err(e) => Err(e),
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The remembered file, if it has this hash and is still at its path.
    fn find_kept(&self, path: &SafePath, saltenv: &Saltenv, hash: &FileHash) -> Option<Cached> {
        let key = (saltenv.clone(), path.clone());
        let entry = self.kept().entries.get(&key).filter(|entry| entry.hash == *hash)?.clone();
        let same = open(&self.root, saltenv, path).and_then(|file| Identity::read(&file));
        let mut kept = self.kept();
        if same.ok() != Some(entry.identity) {
            kept.entries.remove(&key);
            return None;
        }
        kept.clock += 1;
        let now = kept.clock;
        if let Some(entry) = kept.entries.get_mut(&key) {
            entry.used = now;
        }
        Some(Cached { file: entry.file, path: self.path(path, saltenv) })
    }

    fn keep(&self, path: &SafePath, saltenv: &Saltenv, hash: FileHash, file: File) -> Result<Cached, FileError> {
        let identity = Identity::read(&file).map_err(FileError::Keep)?;
        let file = Arc::new(file);
        let mut kept = self.kept();
        kept.clock += 1;
        let entry = Entry { hash, file: Arc::clone(&file), identity, used: kept.clock };
        kept.entries.insert((saltenv.clone(), path.clone()), entry);
        if kept.entries.len() > MAX_KEPT
            && let Some(oldest) = kept.entries.iter().min_by_key(|(_, entry)| entry.used).map(|(key, _)| key.clone())
        {
            kept.entries.remove(&oldest);
        }
        Ok(Cached { file, path: self.path(path, saltenv) })
    }

    fn path(&self, path: &SafePath, saltenv: &Saltenv) -> PathBuf {
        path.under(&self.root.join(saltenv.as_str()))
    }

    /// The file of an earlier run, if it has this hash.
    async fn find_on_disk(&self, path: &SafePath, saltenv: &Saltenv, hash: &FileHash) -> Option<File> {
        let file = open(&self.root, saltenv, path).ok()?;
        let hash = hash.clone();
        let work =
            tokio::task::spawn_blocking(move || hash.matches_file(&file).ok().filter(|same| *same).map(|_| file));
        work.await.ok()?
    }

    /// Removes the oldest files until this many more bytes have room.
    async fn make_room(&self, bytes: u64) {
        if self.takes_room(bytes) {
            return;
        }
        let root = self.root.clone();
        let work = tokio::task::spawn_blocking(move || make_room(&root, bytes, MAX_BYTES, MAX_WALK));
        let left = work.await.ok().map(|left| (left, Instant::now()));
        *self.room.lock().unwrap_or_else(PoisonError::into_inner) = left;
    }

    /// Takes this many bytes of the known room; false if there are not enough. A file that replaces another counts as an additional one.
    fn takes_room(&self, bytes: u64) -> bool {
        let mut room = self.room.lock().unwrap_or_else(PoisonError::into_inner);
        match room.as_mut().filter(|(left, counted)| *left >= bytes && counted.elapsed() < COUNTED_FOR) {
            Some((left, _)) => {
                *left -= bytes;
                true
            }
            None => false,
        }
    }
}

/// The room that a file of this size takes, with the folders that it is in.
fn room_of(path: &SafePath, size: u64) -> u64 {
    let folders = path.as_str().matches('/').count() as u64 + 1;
    size.max(LEAST).saturating_add(folders * LEAST)
}

/// Removes the oldest files until this many more bytes have room. Returns the room that is left then.
fn make_room(root: &Path, bytes: u64, most: u64, most_files: usize) -> u64 {
    loop {
        let mut found = Found::default();
        let is_all = found.walk(root, 0, most_files);
        let mut sum = found.folders.saturating_mul(LEAST);
        sum = found.files.iter().fold(sum, |sum, (_, _, size)| sum.saturating_add(*size));
        found.files.sort();
        let (all, mut gone) = (found.files.len(), 0);
        for (nth, (_, path, size)) in found.files.into_iter().enumerate() {
            if sum.saturating_add(bytes) <= most && (is_all || nth > all / 2) {
                break;
            }
            debug!("the cache of files is full: {} goes", path.display());
            if std::fs::remove_file(&path).is_ok() {
                gone += 1;
                sum = sum.saturating_sub(size);
            }
            // Folders without files take room too.
            for folder in path.ancestors().skip(1).take_while(|folder| *folder != root) {
                if std::fs::remove_dir(folder).is_err() {
                    break;
                }
                sum = sum.saturating_sub(LEAST);
            }
        }
        if gone > 0 {
            warn!("the cache of files was full: {gone} of its oldest files are gone");
        }
        if is_all || gone == 0 {
            return most.saturating_sub(sum.saturating_add(bytes));
        }
    }
}

/// What is in the tree.
#[derive(Default)]
struct Found {
    /// The time of change, the path and the size of each.
    files: Vec<(SystemTime, PathBuf, u64)>,
    folders: u64,
}

impl Found {
    /// Collects what is in a folder. Returns whether that is all.
    fn walk(&mut self, dir: &Path, depth: usize, most: usize) -> bool {
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
        for entry in entries {
            if self.files.len() >= most {
                return false;
            }
            // The metadata of the entry itself: a link to a folder is not a folder.
            let Ok(meta) = entry.metadata() else { continue };
            if meta.is_dir() && depth < MAX_DEPTH {
                self.folders += 1;
                if !self.walk(&entry.path(), depth + 1, most) {
                    return false;
                }
            } else if meta.is_file() {
                let size = meta.len().max(LEAST);
                self.files.push((meta.modified().unwrap_or(SystemTime::UNIX_EPOCH), entry.path(), size));
            }
        }
        true
    }
}

const DIR: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC).union(OFlags::RDONLY);

/// Opens a file of the tree without following links.
fn open(root: &Path, saltenv: &Saltenv, path: &SafePath) -> io::Result<File> {
    let (mut dir, names, name) =
        (rustix::fs::open(root, DIR, Mode::empty())?, parent_folders(saltenv, path), file_name(path));
    for folder in names {
        dir = rustix::fs::openat(&dir, folder, DIR, Mode::empty())?;
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(&dir, name, flags, Mode::empty())?);
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is no file")) }
}

fn parent_folders<'a>(saltenv: &'a Saltenv, path: &'a SafePath) -> impl Iterator<Item = &'a str> {
    let parents = path.as_str().rsplit_once('/').map_or("", |(parents, _)| parents);
    std::iter::once(saltenv.as_str()).chain(parents.split('/').filter(|part| !part.is_empty()))
}

fn file_name(path: &SafePath) -> &str {
    path.as_str().rsplit_once('/').map_or(path.as_str(), |(_, name)| name)
}

/// Opens the root of a tree, private to its owner, and makes it if it is missing.
fn open_private_dir(path: &Path) -> io::Result<OwnedFd> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    let dir = rustix::fs::open(path, DIR, Mode::empty())?;
    rustix::fs::fchmod(&dir, Mode::RWXU)?;
    Ok(dir)
}

/// Opens a folder in another one and makes it if it is missing. A file in its place was a file on the master once and is removed;
/// anything else is an error.
fn make_dir(dir: &OwnedFd, name: &str) -> io::Result<OwnedFd> {
    match rustix::fs::mkdirat(dir, name, Mode::RWXU) {
        Err(Errno::EXIST) => {
            let there = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
            match FileType::from_raw_mode(there.st_mode) {
                FileType::Directory => {}
                FileType::RegularFile => {
                    rustix::fs::unlinkat(dir, name, AtFlags::empty())?;
                    rustix::fs::mkdirat(dir, name, Mode::RWXU)?;
                }
                _ => return Err(io::Error::other(format!("{name} in the cache of files is no folder; remove it"))),
            }
        }
        made => made?,
    }
    Ok(rustix::fs::openat(dir, name, DIR, Mode::empty())?)
}

/// A file that is being fetched; removed on drop unless it was put in its place.
struct Part {
    dir: OwnedFd,
    name: String,
    file: Option<File>,
}

impl Part {
    fn new(dir: &Path) -> io::Result<Self> {
        remove_left(dir);
        Self::new_in(&open_private_dir(dir)?)
    }

    /// As [`Part::new`], in a folder that is open already.
    fn new_in(dir: &OwnedFd) -> io::Result<Self> {
        let dir = dir.try_clone()?;
        let name = format!("{}-{:016x}", std::process::id(), rand::random::<u64>());
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&dir, name.as_str(), flags, Mode::RUSR | Mode::WUSR)?;
        Ok(Self { dir, name, file: Some(file.into()) })
    }

    fn file(&mut self) -> io::Result<&mut File> {
        self.file.as_mut().ok_or_else(|| io::Error::other("the file is in its place already"))
    }

    fn size(&mut self) -> io::Result<u64> {
        Ok(self.file()?.metadata()?.len())
    }

    /// Moves the file to its place in one step and replaces what was there.
    fn put(self, root: &Path, saltenv: &Saltenv, path: &SafePath) -> io::Result<File> {
        self.put_in(&open_private_dir(root)?, saltenv, path)
    }

    fn move_in(&self, root: &OwnedFd, saltenv: &Saltenv, path: &SafePath) -> io::Result<()> {
        let mut dir = root.try_clone()?;
        for folder in parent_folders(saltenv, path) {
            dir = make_dir(&dir, folder)?;
        }
        Ok(rustix::fs::renameat(self.dir.as_fd(), self.name.as_str(), &dir, file_name(path))?)
    }

    /// As [`Part::put`], below a root that is open already.
    fn put_in(mut self, root: &OwnedFd, saltenv: &Saltenv, path: &SafePath) -> io::Result<File> {
        if parent_folders(saltenv, path).count() > MAX_DEPTH || path.as_str().len() > MAX_PATH {
            return Err(io::Error::other(format!(
                "it is in more than {MAX_DEPTH} folders, or its path has more than {MAX_PATH} bytes"
            )));
        }
        let mut tries = 0;
        loop {
            match self.move_in(root, saltenv, path) {
                // Whoever makes room takes away folders that are empty.
                Err(error) if error.kind() == io::ErrorKind::NotFound && tries < TRIES => tries += 1,
                moved => break moved?,
            }
        }
        self.file.take().ok_or_else(|| io::Error::other("the file is in its place already"))
    }
}

impl Sink for Part {
    fn restart(&mut self) -> io::Result<()> {
        use std::io::Seek;
        let file = self.file()?;
        file.set_len(0)?;
        file.rewind()
    }

    fn write(&mut self, data: &[u8]) -> io::Result<()> {
        self.file()?.write_all(data)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if self.file.is_some() {
            let _ = rustix::fs::unlinkat(&self.dir, self.name.as_str(), AtFlags::empty());
        }
    }
}

/// Removes the unfinished files of ended processes.
fn remove_left(dir: &Path) {
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten().take(MAX_WALK) {
        let old = entry.metadata().and_then(|meta| meta.modified()).is_ok_and(|at| {
            at.elapsed().is_ok_and(|age| age > LEFT_FOR) // a clock that was set back removes nothing
        });
        if old {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn put(root: &Path, path: &str, content: &[u8]) -> io::Result<File> {
        let mut part = Part::new(&root.join("files.part"))?;
        part.restart()?;
        part.write(content)?;
        part.put(&root.join("files"), &Saltenv::base(), &path.parse().unwrap())
    }

    fn read(root: &Path, path: &str) -> io::Result<String> {
        io::read_to_string(open(&root.join("files"), &Saltenv::base(), &path.parse().unwrap())?)
    }

    #[test]
    fn files_are_put_whole_and_private() {
        let dir = tempfile::tempdir().unwrap();
        put(dir.path(), "a/b/c.txt", b"one").unwrap();
        put(dir.path(), "a/b/c.txt", b"two").unwrap();
        assert_eq!(read(dir.path(), "a/b/c.txt").unwrap(), "two");
        let mode = |path: &str| std::fs::metadata(dir.path().join(path)).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode("files/base/a/b/c.txt"), 0o600);
        for folder in ["files", "files/base", "files/base/a", "files.part"] {
            assert_eq!(mode(folder), 0o700, "{folder}");
        }
        // A fetch that is given up leaves no file.
        drop(Part::new(&dir.path().join("files.part")).unwrap());
        assert_eq!(std::fs::read_dir(dir.path().join("files.part")).unwrap().count(), 0);
        // A file may become a folder on the master, and a folder a file.
        put(dir.path(), "a/b/c.txt/d", b"three").unwrap();
        assert_eq!(read(dir.path(), "a/b/c.txt/d").unwrap(), "three");
        assert!(put(dir.path(), "a/b", b"x").is_err());
    }

    #[test]
    fn small_and_deep_files_count_and_go_with_their_folders() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("files");
        let deep = |folders: usize| format!("{}f", "a/".repeat(folders));
        put(dir.path(), &deep(MAX_DEPTH - 1), b"x").unwrap();
        let error = put(dir.path(), &deep(MAX_DEPTH), b"x").unwrap_err().to_string();
        assert!(error.contains("more than 64 folders"), "{error}");
        assert!(put(dir.path(), &vec!["n".repeat(200); 11].join("/"), b"x").is_err());
        for nth in 0..20 {
            put(dir.path(), &format!("d{nth}/x"), b"x").unwrap();
        }
        let count = || {
            let mut found = Found::default();
            assert!(found.walk(&root, 0, 1_000));
            (found.files.len(), found.folders)
        };
        assert_eq!(count(), (21, 64 + 20));
        // Nothing goes where there is room.
        let taken = (21 + 84) * LEAST;
        assert_eq!(make_room(&root, LEAST, taken + 3 * LEAST, 1_000), 2 * LEAST);
        // More files than are looked at: they go until all are seen.
        make_room(&root, 0, u64::MAX, 10);
        let (files, folders) = count();
        assert!(files < 10 && folders <= 64 + 9, "{files} {folders}");
        assert_eq!(make_room(&root, LEAST, LEAST, 10), 0);
        assert_eq!(count(), (0, 0));
        let path = "a/b/c".parse().unwrap();
        assert_eq!((room_of(&path, 1), room_of(&path, 1 << 20)), (4 * LEAST, (1 << 20) + 3 * LEAST));
    }

    #[test]
    fn links_in_the_tree_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let outside = dir.path().join("outside");
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(outside.join("shadow"), "secret").unwrap();
        put(dir.path(), "a/x", b"x").unwrap();
        let base = dir.path().join("files/base");
        symlink(&outside, base.join("link")).unwrap();
        symlink(outside.join("shadow"), base.join("a/leaf")).unwrap();
        assert!(read(dir.path(), "link/shadow").is_err());
        assert!(read(dir.path(), "a/leaf").is_err());
        let error = put(dir.path(), "link/shadow", b"over").unwrap_err().to_string();
        assert!(error.contains("link in the cache of files is no folder"), "{error}");
        // A link in the file's own place is replaced, not followed.
        put(dir.path(), "a/leaf", b"mine").unwrap();
        assert_eq!(std::fs::read_to_string(outside.join("shadow")).unwrap(), "secret");
        assert_eq!(read(dir.path(), "a/leaf").unwrap(), "mine");
        // The root of the tree must not be a link either.
        std::fs::rename(dir.path().join("files"), dir.path().join("moved")).unwrap();
        symlink(&outside, dir.path().join("files")).unwrap();
        assert!(put(dir.path(), "b", b"x").is_err());
        assert!(!outside.join("base").exists());
    }
}
