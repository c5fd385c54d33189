//! The part of a module that an interrupted fetch left: in memory while the fetch goes on, and on the disk for a fetch after the end of
//! this process. The part belongs to the hash that the master named. It proves nothing by itself: the whole module is hashed at the end.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use brine_sandbox::ModuleName;
use rustix::fs::{FlockOperation, OFlags};
use tracing::{debug, info};

use crate::fileclient::{FileHash, Sink};

/// A shorter part is not kept: two chunks of the file server.
const KEPT_FROM: usize = 512 << 10;
/// Upper bound on the files that are kept. Each is at most as large as a module may be.
const MAX_FILES: usize = 4;
/// Files are kept for this time. After that, the master may not have the module any more.
const KEPT_FOR: Duration = Duration::from_secs(7 * 24 * 3600);
/// How long a fetch waits for one that another process may be ending.
const ENDING: Duration = Duration::from_millis(200);
/// Time between two lines in the log about a fetch that takes long.
const PROGRESS: Duration = Duration::from_secs(5);

/// The folder of interrupted fetches, `partial` in the folder of fetched modules.
pub(super) struct Partials {
    dir: PathBuf,
    /// Upper bound on the bytes of a module.
    max: u64,
}

impl Partials {
    pub(super) fn new(modules: &Path, max: u64) -> Self {
        Self { dir: modules.join("partial"), max }
    }

    /// The whole content of an installed module, for a fetch that needs only a new signature.
    pub(super) async fn open_installed(&self, name: &ModuleName, said: &FileHash) -> Part {
        let file = self.dir.with_file_name(format!("{name}.wasm"));
        let max = self.max;
        let read = tokio::task::spawn_blocking(move || brine_files::read_own(&file, max));
        let content = read.await.unwrap_or_else(|error| Err(io::Error::other(error))).unwrap_or_default();
        // If the file has another content by now, the fetch notices that by the hash.
        self.part(name, said, None, (None, content))
    }

    /// The part of a module that is kept. It is empty if no fetch began, or if another process fetches the module right now.
    pub(super) async fn open(&self, name: &ModuleName, said: &FileHash, size: Option<u64>) -> Part {
        let (dir, path, max) = (self.dir.clone(), self.path(said), self.max);
        let read = tokio::task::spawn_blocking(move || {
            sweep(&dir, &path);
            read(&path, max)
        });
        let (file, content) = match read.await {
            Ok(Ok((file, content))) => (Some(file), content),
            _ => (None, Vec::new()),
        };
        if !content.is_empty() {
            info!("fetching module {name} goes on at {} bytes", content.len());
        }
        self.part(name, said, size, (file, content))
    }

    fn part(
        &self,
        name: &ModuleName,
        said: &FileHash,
        size: Option<u64>,
        (file, content): (Option<File>, Vec<u8>),
    ) -> Part {
        let now = Instant::now();
        Part {
            name: name.clone(),
            said: said.clone(),
            path: self.path(said),
            lost: false,
            file,
            began: (now, content.len()),
            shown: now,
            content,
            size,
            max: None,
        }
    }

    fn path(&self, said: &FileHash) -> PathBuf {
        self.dir.join(said.to_string())
    }
}

/// Removes old files and files beyond [`MAX_FILES`], except `but`.
fn sweep(dir: &Path, but: &Path) {
    let mut files: Vec<(SystemTime, PathBuf)> = Vec::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten().filter(|entry| entry.path() != but) {
        let modified = entry.metadata().and_then(|meta| meta.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
        files.push((modified, entry.path()));
    }
    files.sort();
    let too_many = (files.len() + 1).saturating_sub(MAX_FILES);
    for (index, (modified, path)) in files.iter().enumerate() {
        if index < too_many || modified.elapsed().is_ok_and(|age| age > KEPT_FOR) {
            let _ = fs::remove_file(path);
        }
    }
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    options.read(true).append(true).mode(0o600).custom_flags(i32::try_from(flags).expect("open's flags are an int"));
    options
}

fn locked(file: File) -> io::Result<File> {
    rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    Ok(file)
}

/// Locks a file, also if who had it ends just now: a program that is being started has its files until it runs.
fn locked_soon(file: File) -> io::Result<File> {
    let until = Instant::now() + ENDING;
    loop {
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(rustix::io::Errno::WOULDBLOCK) if Instant::now() < until => std::thread::sleep(ENDING / 10),
            Err(error) => return Err(error.into()),
        }
    }
}

fn read(path: &Path, max: u64) -> io::Result<(File, Vec<u8>)> {
    if !fs::symlink_metadata(path)?.is_file() {
        fs::remove_file(path)?; // not a regular file, so this program did not make it
    }
    let file = locked_soon(options().open(path)?)?;
    let mut content = Vec::new();
    (&file).take(max + 1).read_to_end(&mut content)?;
    if content.len() as u64 > max {
        file.set_len(0)?;
        content.clear();
    }
    Ok((file, content))
}

/// A module that is being fetched.
pub(super) struct Part {
    name: ModuleName,
    said: FileHash,
    path: PathBuf,
    content: Vec<u8>,
    /// None while the part is short, and if it cannot be kept; then it is lost at the end of this process.
    file: Option<File>,
    /// The part cannot be kept: another process has the file, or the disk is full.
    lost: bool,
    /// The time when this fetch began, and the bytes that it began with.
    began: (Instant, usize),
    /// The time of the last line in the log.
    shown: Instant,
    /// The bytes of the whole module, if the master stated them.
    size: Option<u64>,
    /// Upper bound on the bytes that are accepted.
    max: Option<u64>,
}

impl Part {
    /// Accepts at most this many bytes.
    pub(super) fn at_most(mut self, max: Option<u64>) -> Self {
        self.max = max;
        self
    }

    /// The bytes of the part.
    pub(super) fn len(&self) -> usize {
        self.content.len()
    }

    /// The content; complete once it was verified.
    pub(super) fn content(&self) -> &[u8] {
        &self.content
    }

    /// Deletes the part.
    pub(super) fn discard(mut self) {
        self.forget();
    }

    fn forget(&mut self) {
        // The file is removed while its lock is held, so it cannot be another process's.
        if let Some(_file) = self.file.take() {
            let _ = fs::remove_file(&self.path);
        }
        self.lost = false;
    }

    /// Writes the part to the disk too.
    fn keep(&mut self, new: usize) -> io::Result<()> {
        if let Some(file) = &mut self.file {
            return file.write_all(&self.content[self.content.len() - new..]);
        }
        if self.lost || self.content.len() < KEPT_FROM {
            return Ok(());
        }
        if let Some(dir) = self.path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        }
        let mut file = locked(options().create_new(true).open(&self.path)?)?;
        file.write_all(&self.content)?;
        self.file = Some(file);
        Ok(())
    }

    fn show_progress(&mut self) {
        if self.shown.elapsed() < PROGRESS {
            return;
        }
        self.shown = Instant::now();
        let (began, from) = self.began;
        info!(
            "fetching module {}: {}",
            self.name,
            progress(self.content.len(), self.content.len().saturating_sub(from), began.elapsed(), self.size)
        );
    }
}

/// `5.2 of 18.4 MB (28%), 1.1 MB/s`
#[expect(clippy::cast_precision_loss, reason = "for people")]
fn progress(bytes: usize, came: usize, within: Duration, size: Option<u64>) -> String {
    let mb = |bytes: f64| bytes / 1e6;
    let rate = mb(came as f64) / within.as_secs_f64().max(0.001);
    let whole = match size {
        Some(size) if size > 0 => format!(" of {:.1} MB ({:.0}%)", mb(size as f64), bytes as f64 * 100.0 / size as f64),
        _ => " MB".to_owned(),
    };
    format!("{:.1}{whole}, {rate:.2} MB/s", mb(bytes as f64))
}

impl Sink for Part {
    fn resume(&mut self, said: &FileHash, kept: &mut dyn FnMut(&[u8])) -> io::Result<u64> {
        if self.said != *said {
            // The module changed on the master meanwhile.
            self.forget();
            self.content.clear();
            self.path.set_file_name(said.to_string());
            self.said = said.clone();
            self.size = None;
        }
        kept(&self.content);
        Ok(self.content.len() as u64)
    }

    fn restart(&mut self) -> io::Result<()> {
        self.forget();
        self.content.clear();
        Ok(())
    }

    fn write(&mut self, data: &[u8]) -> io::Result<()> {
        if self.max.is_some_and(|max| (self.content.len() + data.len()) as u64 > max) {
            return Err(io::Error::other("more comes than the master said"));
        }
        self.content.extend_from_slice(data);
        if let Err(error) = self.keep(data.len()) {
            debug!("what came of module {} is not kept on the disk: {error}", self.name);
            self.forget();
            self.lost = true;
        }
        self.show_progress();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fileclient::StatedHash;

    fn said(byte: &str) -> FileHash {
        let stated = StatedHash { kind: "sha256".into(), hex: byte.repeat(32), size: None, mode: None };
        stated.try_into().unwrap()
    }

    fn kept(part: &mut Part, said: &FileHash) -> Vec<u8> {
        let mut all = Vec::new();
        let length = part.resume(said, &mut |data| all.extend_from_slice(data)).unwrap();
        assert_eq!(length, all.len() as u64);
        all
    }

    #[tokio::test]
    async fn what_came_is_there_for_the_next_process() {
        let dir = tempfile::tempdir().unwrap();
        let partials = Partials::new(dir.path(), 4 << 20);
        let name: ModuleName = "big".parse().unwrap();
        let (one, two) = (said("01"), said("02"));
        let open = |said| partials.open(&name, said, Some(4 << 20));
        let mut part = open(&one).await;
        assert!(kept(&mut part, &one).is_empty());
        // A short part is not written to a file.
        part.write(&[1; KEPT_FROM - 1]).unwrap();
        assert!(!partials.dir.exists());
        part.write(&[2; 2]).unwrap();
        part.write(&[3; 5]).unwrap();
        // Another process gets none of the part meanwhile and does not disturb it.
        let mut other = open(&one).await;
        assert!(kept(&mut other, &one).is_empty());
        other.write(&[9; KEPT_FROM]).unwrap();
        other.discard();
        let whole = kept(&mut part, &one);
        assert_eq!(whole.len(), KEPT_FROM + 6);
        drop(part);
        let mut again = open(&one).await;
        assert_eq!(kept(&mut again, &one), whole);
        assert!(kept(&mut open(&two).await, &two).is_empty());
        again.write(&[4]).unwrap();
        drop(again);
        let mut again = open(&one).await;
        assert_eq!(again.len(), whole.len() + 1);
        // For another hash, the old part does not count.
        assert!(kept(&mut again, &two).is_empty());
        assert!(fs::read_dir(&partials.dir).unwrap().next().is_none());
        again.write(&[5; KEPT_FROM]).unwrap();
        assert!(partials.path(&two).exists());
        again.restart().unwrap();
        assert!(!partials.path(&two).exists());
        again.write(&[5; KEPT_FROM]).unwrap();
        again.discard();
        assert!(fs::read_dir(&partials.dir).unwrap().next().is_none());
    }

    #[tokio::test]
    async fn they_are_few_and_not_old() {
        let dir = tempfile::tempdir().unwrap();
        let partials = Partials::new(dir.path(), 1 << 20);
        let name: ModuleName = "big".parse().unwrap();
        let all: Vec<FileHash> = (10..17).map(|n| said(&n.to_string())).collect();
        for said in &all {
            partials.open(&name, said, None).await.write(&[0; KEPT_FROM]).unwrap();
        }
        assert!(fs::read_dir(&partials.dir).unwrap().count() <= MAX_FILES);
        let last = partials.path(all.last().unwrap());
        assert!(last.exists());
        // The file alone, so that the bound on files is kept.
        fs::read_dir(&partials.dir).unwrap().flatten().filter(|entry| entry.path() != last).for_each(|entry| {
            fs::remove_file(entry.path()).unwrap();
        });
        drop(partials.open(&name, &all[0], None).await);
        assert!(last.exists());
        let old = SystemTime::now() - KEPT_FOR - Duration::from_secs(60);
        File::options().append(true).open(&last).unwrap().set_modified(old).unwrap();
        drop(partials.open(&name, &all[0], None).await);
        assert!(!last.exists());
        // A part that is larger than a module may be now, or that is no regular file, does not count.
        fs::write(partials.path(&all[0]), vec![0; (1 << 20) + 1]).unwrap();
        assert_eq!(partials.open(&name, &all[0], None).await.len(), 0);
        fs::remove_file(partials.path(&all[0])).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", partials.path(&all[0])).unwrap();
        assert_eq!(partials.open(&name, &all[0], None).await.len(), 0);
    }

    #[test]
    fn progress_is_for_people() {
        let shown = |size| progress(5_200_000, 1_100_000, Duration::from_secs(1), size);
        assert_eq!(shown(Some(18_400_000)), "5.2 of 18.4 MB (28%), 1.10 MB/s");
        assert_eq!(shown(None), "5.2 MB, 1.10 MB/s");
    }
}
