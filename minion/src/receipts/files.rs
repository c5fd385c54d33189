//! `cachedir/receipts/NUMBER.receipts`: files that only grow. Each begins with the ends of all chains, since earlier files are removed when
//! there are too many. The room of a file is reserved on the disk when it is made, so that a full disk does not keep a receipt from being
//! written whose return is already in the spool. The daemon and `salt-call` write the same files: each locks the folder for one receipt, and
//! first takes over what the others wrote.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use brine_receipts::{ChainId, Digest, Head, MAX_COMPACT, Receipt, Record, SignedReceipt};
use rustix::fs::{FallocateFlags, FlockOperation};
use rustix::io::Errno;
use tracing::error;

/// Bytes of one file.
const FILE_BYTES: u64 = 4 << 20;
/// Files that together reach the setting.
const FILES_MIN: u64 = 4;
/// Upper bound on one entry: a receipt, and a publication with its signature.
const ENTRY_MAX: u64 = MAX_COMPACT as u64 + 64 * 1024;
/// Upper bound on the bytes of a file: each ends with the first entry beyond its size.
pub(super) const FILE_MAX: u64 = 2 * (FILE_BYTES + ENTRY_MAX);
const LOCK: &str = ".lock";
/// How long another program may hold the lock: it writes one receipt, and a return before it.
const PATIENCE: Duration = Duration::from_secs(5);
const TICK: Duration = Duration::from_millis(1);

/// The ends of chains.
pub(super) type Heads = HashMap<ChainId, Head>;

/// The lock of the folder, which ends with the file.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
    path: PathBuf,
}

impl Lock {
    /// Waits until nobody else has the lock.
    pub(super) fn wait(dir: &Path) -> io::Result<Self> {
        let path = dir.join(LOCK);
        let lock = Self { file: brine_files::create_own(&path, 0o600)?, path };
        lock.enter()?;
        Ok(lock)
    }

    fn enter(&self) -> io::Result<()> {
        let since = Instant::now();
        loop {
            match rustix::fs::flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(()),
                Err(Errno::WOULDBLOCK) if since.elapsed() < PATIENCE => std::thread::sleep(TICK),
                Err(Errno::WOULDBLOCK) => {
                    return Err(io::Error::other(format!("another program keeps {} locked", self.path.display())));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn leave(&self) {
        let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
    }
}

/// The folder.
#[derive(Debug)]
pub(super) struct Files {
    dir: PathBuf,
    key: Digest,
    max_bytes: u64,
    lock: Lock,
    /// This process has the lock.
    locked: bool,
    /// The numbers of the files, in order.
    numbers: Vec<u64>,
    /// The last file.
    last: Option<Open>,
    /// The last file lacks a receipt that was given away, or is damaged: the next receipt needs a new file, which begins with the ends of
    /// all chains.
    pub(super) full: bool,
}

#[derive(Debug)]
struct Open {
    file: File,
    bytes: u64,
    /// The room of the file is reserved on the disk. Cutting a file off gives up what was reserved behind its end, and a copy has none.
    reserved: bool,
}

impl Files {
    /// Makes the folder if it is missing, and locks it. The lock is held until [`Files::unlock`].
    pub(super) fn open(dir: &Path, max_bytes: u64) -> io::Result<Self> {
        crate::spare_files::private_dir(dir)?;
        let lock = Lock::wait(dir)?;
        let key = Digest([0; 32]);
        let (numbers, last) = (Vec::new(), None);
        Ok(Self { dir: dir.to_owned(), key, max_bytes, lock, locked: true, numbers, last, full: false })
    }

    /// Reads the ends of the chains of this key.
    pub(super) fn read(&mut self, key: Digest) -> io::Result<Heads> {
        self.key = key;
        let mut heads = Heads::new();
        self.load(&mut heads)?;
        Ok(heads)
    }

    pub(super) fn unlock(&mut self) {
        if std::mem::take(&mut self.locked) {
            self.lock.leave();
        }
    }

    /// Locks the folder, unless it is locked still, takes over what others wrote, and makes sure that one more entry has room.
    pub(super) fn enter(&mut self, heads: &mut Heads) -> io::Result<()> {
        if !self.locked {
            self.lock.enter()?;
            self.locked = true;
            self.catch_up(heads).inspect_err(|_| self.unlock())?;
        }
        self.reserve(heads)
    }

    fn catch_up(&mut self, heads: &mut Heads) -> io::Result<()> {
        let Some((last, number)) = self.last.as_mut().zip(self.numbers.last()) else { return self.load(heads) };
        let meta = last.file.metadata()?;
        if meta.nlink() == 0 || meta.len() < last.bytes || path(&self.dir, number + 1).try_exists()? {
            return self.load(heads);
        }
        if meta.len() > last.bytes {
            if meta.len() > FILE_MAX {
                return Err(io::Error::other("the last file is larger than any"));
            }
            let mut added = vec![0; usize::try_from(meta.len() - last.bytes).unwrap_or(0)];
            last.file.read_exact_at(&mut added, last.bytes)?;
            let good = last.bytes + follow(&added, self.key, heads)? as u64;
            if good < meta.len() {
                // The other program was killed within its write.
                last.file.set_len(good)?;
                last.reserved = false;
            }
            last.bytes = good;
        }
        Ok(())
    }

    /// Reads the last file anew.
    fn load(&mut self, heads: &mut Heads) -> io::Result<()> {
        self.last = None;
        self.numbers = brine_receipts::files(&self.dir)?.into_iter().map(|(number, _)| number).collect();
        while let Some(number) = self.numbers.last().copied() {
            let path = path(&self.dir, number);
            let content = brine_files::read_own(&path, FILE_MAX)?;
            let good = follow(&content, self.key, heads).map_err(|e| at(&path, &e))?;
            if good == 0 {
                // A crash came before its first entry was whole.
                fs::remove_file(&path)?;
                self.numbers.pop();
                continue;
            }
            let file = brine_files::append_own(&path, 0o600)?;
            let mut bytes = good as u64;
            match content.len() - good {
                0 => {}
                // A crash left the last entry torn.
                torn if torn as u64 <= ENTRY_MAX => file.set_len(bytes)?,
                more => {
                    error!("{}: {more} bytes behind {good} are damaged; receipts go on in a new file", path.display());
                    (self.full, bytes) = (true, content.len() as u64);
                }
            }
            self.last = Some(Open { file, bytes, reserved: false });
            break;
        }
        Ok(())
    }

    /// Makes sure that one more entry has room.
    pub(super) fn reserve(&mut self, heads: &Heads) -> io::Result<()> {
        let file_bytes = FILE_BYTES.min(self.max_bytes / FILES_MIN);
        let size = file_bytes.max(ENTRY_MAX + 65_536);
        let full = self.full;
        if let Some(last) = self.last.as_mut().filter(|last| !full && last.bytes + ENTRY_MAX <= size) {
            if !last.reserved {
                reserve(&last.file, size)?;
                last.reserved = true;
            }
            return Ok(());
        }
        let number = self.numbers.last().map_or(0, |number| number + 1);
        let path = path(&self.dir, number);
        let made = self.make(&path, size, heads).inspect_err(|_| drop(fs::remove_file(&path)))?;
        self.last = Some(made);
        self.full = false;
        self.numbers.push(number);
        let most = usize::try_from(self.max_bytes / file_bytes).unwrap_or(usize::MAX);
        while self.numbers.len() > most {
            let oldest = self.numbers.remove(0);
            fs::remove_file(self::path(&self.dir, oldest))?;
        }
        Ok(())
    }

    fn make(&self, path: &Path, bytes: u64, heads: &Heads) -> io::Result<Open> {
        let mut file = brine_files::append_own(path, 0o600)?;
        reserve(&file, bytes)?;
        let first = Record::Heads { key: self.key, heads: heads.values().copied().collect() }.to_bytes();
        file.write_all(&first)?;
        Ok(Open { file, bytes: first.len() as u64, reserved: true })
    }

    /// Appends an entry.
    pub(super) fn append(&mut self, entry: &[u8]) -> io::Result<()> {
        let Some(last) = &mut self.last else { return Err(io::Error::other("no file is open")) };
        if let Err(e) = last.file.write_all(entry) {
            self.full = true;
            // What was written in part would hide all that follows.
            last.file.set_len(last.bytes)?;
            return Err(e);
        }
        last.bytes += entry.len() as u64;
        Ok(())
    }

    /// The next write fails.
    #[cfg(test)]
    pub(super) fn fail_next(&mut self) {
        if let Some(last) = &mut self.last {
            last.file = File::open(path(&self.dir, self.numbers[self.numbers.len() - 1])).unwrap();
        }
    }

    /// The open file, to sync it.
    pub(super) fn handle(&self) -> io::Result<File> {
        self.last.as_ref().map_or_else(|| Err(io::ErrorKind::NotFound.into()), |last| last.file.try_clone())
    }
}

/// Reserves room on the disk for this many bytes of a file.
fn reserve(file: &File, bytes: u64) -> io::Result<()> {
    match rustix::fs::fallocate(file, FallocateFlags::KEEP_SIZE, 0, bytes) {
        // Some file systems cannot.
        Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

fn path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{number:020}.receipts"))
}

fn at(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Takes the ends of the chains of this key after all whole entries, where they are further than the known ones. Returns the bytes of the
/// whole entries.
fn follow(content: &[u8], key: Digest, heads: &mut Heads) -> io::Result<usize> {
    let bad = |e| io::Error::new(io::ErrorKind::InvalidData, format!("an entry cannot be used: {e}"));
    let mut take = |head: Head| {
        let known = heads.entry(head.chain()).or_insert(head);
        if known.number < head.number {
            *known = head;
        }
    };
    let (mut good, mut last) = (0, HashMap::<ChainId, Receipt>::new());
    while let Some((record, size)) = Record::read(&content[good..]).map_err(bad)? {
        good += size;
        match record {
            Record::Heads { key: of, heads } if of == key => heads.into_iter().for_each(&mut take),
            Record::Heads { .. } => {}
            Record::Receipt { compact, .. } => {
                let (receipt, by) = SignedReceipt::unverified(&compact).map_err(bad)?;
                if by == key.0 {
                    last.insert(receipt.chain(), receipt);
                }
            }
        }
    }
    for receipt in last.into_values() {
        take(Head::of(&receipt, receipt.hash()));
    }
    Ok(good)
}
