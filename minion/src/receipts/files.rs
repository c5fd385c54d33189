//! `cachedir/receipts/NUMBER.receipts`: files that only grow. Each begins with the ends of all chains, since earlier files are removed when
//! there are too many. The room of a file is reserved on the disk when it is made, so that a full disk does not keep a receipt from being
//! written whose return is already in the spool.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use brine_receipts::{Digest, Head, MAX_COMPACT, Record};
use rustix::fs::FallocateFlags;
use rustix::io::Errno;

/// Bytes of one file.
const FILE_BYTES: u64 = 4 << 20;
/// Files that together reach the setting.
const FILES_MIN: u64 = 4;
/// Upper bound on one entry: a receipt, and a publication with its signature.
const ENTRY_MAX: u64 = MAX_COMPACT as u64 + 64 * 1024;
const SUFFIX: &str = ".receipts";

/// The folder.
#[derive(Debug)]
pub(super) struct Files {
    dir: PathBuf,
    key: Digest,
    max_bytes: u64,
    /// The numbers of the files, in order; the last one is open.
    numbers: Vec<u64>,
    last: Option<Open>,
}

#[derive(Debug)]
struct Open {
    file: File,
    bytes: u64,
}

impl Files {
    /// Opens the folder, and returns the ends of the chains of this key.
    pub(super) fn open(dir: &Path, max_bytes: u64, key: Digest) -> io::Result<(Self, Vec<Head>)> {
        crate::spare_files::private_dir(dir)?;
        let mut numbers = Vec::new();
        for item in fs::read_dir(dir)? {
            let name = item?.file_name().into_string().unwrap_or_default();
            numbers.extend(name.strip_suffix(SUFFIX).and_then(|number| number.parse::<u64>().ok()));
        }
        numbers.sort_unstable();
        let mut this = Self { dir: dir.to_owned(), key, max_bytes, numbers, last: None };
        while let Some(number) = this.numbers.last().copied() {
            let path = this.path(number);
            let content = brine_files::read_own(&path, 2 * (FILE_BYTES + ENTRY_MAX))?;
            let (heads, good) = ends(&content, key);
            match heads {
                Some(heads) => {
                    if good < content.len() {
                        // A crash left the last entry torn.
                        brine_files::create_own(&path, 0o600)?.set_len(good as u64)?;
                    }
                    let file = brine_files::append_own(&path, 0o600)?;
                    this.last = Some(Open { file, bytes: good as u64 });
                    return Ok((this, heads));
                }
                // A crash came before its first entry was whole.
                None => {
                    fs::remove_file(&path)?;
                    this.numbers.pop();
                }
            }
        }
        Ok((this, Vec::new()))
    }

    /// Makes sure that one more entry has room.
    pub(super) fn reserve(&mut self, heads: &[Head]) -> io::Result<()> {
        let file_bytes = FILE_BYTES.min(self.max_bytes / FILES_MIN);
        if self.last.as_ref().is_some_and(|last| last.bytes + ENTRY_MAX <= file_bytes.max(ENTRY_MAX + 65_536)) {
            return Ok(());
        }
        let number = self.numbers.last().map_or(0, |number| number + 1);
        let path = self.path(number);
        let made = self.make(&path, file_bytes.max(ENTRY_MAX + 65_536), heads);
        let made = made.inspect_err(|_| drop(fs::remove_file(&path)))?;
        self.last = Some(made);
        self.numbers.push(number);
        let most = usize::try_from(self.max_bytes / file_bytes).unwrap_or(usize::MAX);
        while self.numbers.len() > most {
            let oldest = self.numbers.remove(0);
            fs::remove_file(self.path(oldest))?;
        }
        Ok(())
    }

    fn make(&self, path: &Path, bytes: u64, heads: &[Head]) -> io::Result<Open> {
        let mut file = brine_files::append_own(path, 0o600)?;
        match rustix::fs::fallocate(&file, FallocateFlags::KEEP_SIZE, 0, bytes) {
            // Some file systems cannot.
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
            Err(e) => return Err(e.into()),
        }
        let first = Record::Heads { key: self.key, heads: heads.to_vec() }.to_bytes();
        file.write_all(&first)?;
        Ok(Open { file, bytes: first.len() as u64 })
    }

    /// Appends an entry.
    pub(super) fn append(&mut self, entry: &[u8]) -> io::Result<()> {
        let Some(last) = &mut self.last else { return Err(io::Error::other("no file is open")) };
        if let Err(e) = last.file.write_all(entry) {
            // What was written in part would hide all that follows.
            last.file.set_len(last.bytes)?;
            return Err(e);
        }
        last.bytes += entry.len() as u64;
        Ok(())
    }

    /// The open file, to sync it.
    pub(super) fn handle(&self) -> io::Result<File> {
        self.last.as_ref().map_or_else(|| Err(io::ErrorKind::NotFound.into()), |last| last.file.try_clone())
    }

    fn path(&self, number: u64) -> PathBuf {
        self.dir.join(format!("{number:020}{SUFFIX}"))
    }
}

/// The ends of the chains of this key after all whole entries, and the bytes of these. None if the first entry is not whole.
fn ends(content: &[u8], key: Digest) -> (Option<Vec<Head>>, usize) {
    let (mut ends, mut good) = (None, 0);
    while let Ok(Some((record, size))) = Record::read(&content[good..]) {
        good += size;
        match (record, &mut ends) {
            (Record::Heads { key: of, heads }, None) => ends = Some(if of == key { heads } else { Vec::new() }),
            (Record::Receipt { compact, .. }, Some(ends)) => {
                let Ok(signed) = brine_receipts::SignedReceipt::from_compact(&compact) else { continue };
                if *signed.key() == key.0 {
                    let receipt = signed.receipt();
                    ends.retain(|head: &Head| head.master != receipt.master);
                    ends.push(Head { master: receipt.master, number: receipt.number, hash: signed.hash() });
                }
            }
            (Record::Heads { .. }, Some(_)) => {}
            (Record::Receipt { .. }, None) => return (None, 0),
        }
    }
    (ends, good)
}
