//! Small records that live for milliseconds, in the slots of one file that stays open.
//!
//! A record is written with one system call and removed with another. Opening, renaming and removing a file for each of them costs a
//! short job more than the rest of its work on the disk. A record that lives longer moves to a file of its own.
//!
//! A slot is one block: the end of the process leaves it all old or all new, and so does a power failure. A slot holds the length of its
//! record (0: the slot is free), the number of the write, the record (the length of its name, its name, its content), and the number
//! again. Other processes read the file without a lock; the two numbers differ where they read during a write.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::fs::FlockOperation;
use tracing::{debug, warn};

/// One block of every file system in use.
const SLOT_BYTES: usize = 4096;
/// Upper bound on the records at once: the jobs of a busy minion. Further records get files at once.
const MAX_SLOTS: usize = 128;
/// Time for an earlier process to end. It may be writing the files of its last returns.
const ENDING: Duration = Duration::from_secs(2);
const LENGTH: usize = 4;
const NUMBER: usize = 8;
/// Upper bound on the bytes of a record.
const MAX_RECORD: usize = SLOT_BYTES - LENGTH - 2 * NUMBER;

/// The file. One process writes it.
#[derive(Debug)]
pub(crate) struct Slots {
    file: File,
    /// The folder of the file, until it was synced once.
    folder: Mutex<Option<PathBuf>>,
    free: Mutex<Vec<Slot>>,
    /// The number of the next write. It begins with the time, so that the numbers of another process are others.
    next: AtomicU64,
}

/// Waits for a minion that is just ending: what it leaves is in the slots.
fn lock(file: &File) -> io::Result<()> {
    let begun = Instant::now();
    loop {
        match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
            Err(rustix::io::Errno::WOULDBLOCK) if begun.elapsed() < ENDING => std::thread::sleep(ENDING / 100),
            other => return Ok(other?),
        }
    }
}

/// What a slot holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    /// The name of the file that it would have.
    pub(crate) name: String,
    pub(crate) content: Vec<u8>,
}

/// The place of one record, from [`Slots::put`] to [`Slots::clear`].
#[derive(Debug)]
pub(crate) struct Slot(u16);

impl Slots {
    /// Opens the file, and makes it if it is missing. Returns the records that an earlier process left; each keeps its slot until
    /// [`Slots::clear`].
    ///
    /// # Errors
    /// When the file cannot be used, or another process writes it.
    pub(crate) fn open(path: &Path) -> io::Result<(Self, Vec<(Slot, Record)>)> {
        let file = brine_files::create_own(path, 0o600)?;
        lock(&file)?;
        let (mut free, mut left) = (Vec::new(), Vec::new());
        // The first slots are used first, which keeps the file small.
        for number in (0..MAX_SLOTS).rev() {
            let slot = Slot(u16::try_from(number).expect("few slots"));
            match read_slot(&file, &slot)? {
                Some(record) => left.push((slot, record)),
                None => free.push(slot),
            }
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let next = AtomicU64::new(u64::try_from(now.as_nanos()).unwrap_or(0));
        let folder = Mutex::new(path.parent().map(Path::to_owned));
        Ok((Self { file, folder, free: Mutex::new(free), next }, left))
    }

    /// Writes a record. Returns none if it is too large, no slot is free, or the disk does not take it.
    pub(crate) fn put(&self, name: &str, content: &[u8]) -> Option<Slot> {
        let name_length = u8::try_from(name.len()).ok()?;
        let length = 1 + name.len() + content.len();
        let length = u32::try_from(length).ok().filter(|_| length <= MAX_RECORD)?;
        let slot = self.free().pop()?;
        let number = self.next.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        let bytes = [&length.to_be_bytes()[..], &number, &[name_length], name.as_bytes(), content, &number].concat();
        if let Err(e) = self.file.write_all_at(&bytes, slot.offset()) {
            // The record gets a file, or what is said of that.
            debug!("a record does not get a slot: {e}");
            self.clear(slot);
            return None;
        }
        Some(slot)
    }

    /// Reads the content of a record.
    pub(crate) fn read(&self, slot: &Slot) -> Option<Vec<u8>> {
        Some(read_slot(&self.file, slot).ok()??.content)
    }

    /// Syncs all records. Blocks on the disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()?;
        // The file may be a new one.
        let mut folder = self.folder.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(path) = &*folder {
            File::open(path)?.sync_all()?;
            *folder = None;
        }
        Ok(())
    }

    /// Removes a record. The slot is free for another one.
    pub(crate) fn clear(&self, slot: Slot) {
        if let Err(e) = self.file.write_all_at(&[0; LENGTH], slot.offset()) {
            warn!("a record stays in its slot: {e}");
        }
        self.free().push(slot);
    }

    fn free(&self) -> std::sync::MutexGuard<'_, Vec<Slot>> {
        // No panic is possible while the lock is held.
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    fn offset(&self) -> u64 {
        u64::from(self.0) * SLOT_BYTES as u64
    }
}

/// Reads all records of the file at this path, which another process may write at the same time.
pub(crate) fn read_records(path: &Path) -> Vec<Record> {
    let Ok(bytes) = brine_files::read_own(path, (SLOT_BYTES * MAX_SLOTS) as u64) else { return Vec::new() };
    bytes.chunks(SLOT_BYTES).filter_map(record).collect()
}

fn read_slot(file: &File, slot: &Slot) -> io::Result<Option<Record>> {
    let mut bytes = [0; SLOT_BYTES];
    let mut end = 0;
    while end < SLOT_BYTES {
        match file.read_at(&mut bytes[end..], slot.offset() + end as u64) {
            Ok(0) => break,
            Ok(read) => end += read,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(record(&bytes[..end]))
}

/// The record in the bytes of a slot; none if the slot is free or was not written whole.
fn record(slot: &[u8]) -> Option<Record> {
    let (length, rest) = slot.split_first_chunk::<LENGTH>()?;
    let (number, rest) = rest.split_first_chunk::<NUMBER>()?;
    let (record, rest) = rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
    // A slot of length 0 has no name either.
    let (name_length, record) = record.split_first()?;
    let (name, content) = record.split_at_checked(usize::from(*name_length))?;
    let name = str::from_utf8(name).ok()?.to_owned();
    (rest.first_chunk::<NUMBER>()? == number).then(|| Record { name, content: content.to_vec() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> (tempfile::TempDir, std::path::PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("slots");
        (dir, path)
    }

    fn names(path: &Path) -> Vec<String> {
        read_records(path).into_iter().map(|record| record.name).collect()
    }

    #[test]
    fn a_record_is_there_until_it_is_removed_also_for_others() {
        let (_dir, path) = file();
        let (slots, left) = Slots::open(&path).unwrap();
        assert!(left.is_empty());
        let one = slots.put("one", b"a longer content").unwrap();
        let two = slots.put("two", b"").unwrap();
        assert_eq!(slots.read(&one).unwrap(), b"a longer content");
        assert_eq!(slots.read(&two).unwrap(), b"");
        assert_eq!(names(&path), ["one", "two"]);
        slots.clear(one);
        assert_eq!(names(&path), ["two"]);
        let three = slots.put("three", b"short").unwrap();
        assert_eq!(slots.read(&three).unwrap(), b"short");
        slots.clear(two);
        slots.clear(three);
        assert!(names(&path).is_empty());
    }

    #[test]
    fn what_a_process_left_is_found_and_keeps_its_slot() {
        let (_dir, path) = file();
        let (slots, _) = Slots::open(&path).unwrap();
        let _left = slots.put("left", b"content").unwrap();
        let gone = slots.put("gone", b"content").unwrap();
        slots.clear(gone);
        // Two processes would overwrite each other's records.
        assert!(Slots::open(&path).is_err());
        drop(slots);
        let (slots, left) = Slots::open(&path).unwrap();
        let [(slot, record)] = <[_; 1]>::try_from(left).unwrap();
        assert_eq!(record, Record { name: "left".to_owned(), content: b"content".to_vec() });
        let others: Vec<Slot> = std::iter::from_fn(|| slots.put("x", b"")).collect();
        assert_eq!((others.len(), slots.read(&slot)), (MAX_SLOTS - 1, Some(b"content".to_vec())));
        slots.clear(slot);
        assert!(slots.put("x", b"").is_some());
    }

    #[test]
    fn records_are_bounded() {
        let (_dir, path) = file();
        let (slots, _) = Slots::open(&path).unwrap();
        assert!(slots.put("name", &[7; MAX_RECORD - 4]).is_none());
        let largest = slots.put("name", &[7; MAX_RECORD - 5]).unwrap();
        assert_eq!(slots.read(&largest).unwrap(), [7; MAX_RECORD - 5]);
        assert_eq!(names(&path), ["name"]);
        assert_eq!(std::fs::metadata(&path).unwrap().len(), SLOT_BYTES as u64);
    }

    /// A reader may see a part of a write, and a strange file may hold anything.
    #[test]
    fn a_slot_that_is_not_whole_holds_nothing() {
        let mut slot = [&4_u32.to_be_bytes()[..], &[1; 8], b"\x01abc", &[1; 8]].concat();
        assert_eq!(record(&slot), Some(Record { name: "a".to_owned(), content: b"bc".to_vec() }));
        slot[12] = 4;
        assert_eq!(record(&slot), None);
        slot[12] = 1;
        assert_eq!(record(&slot[..23]), None);
        *slot.last_mut().unwrap() = 2;
        assert_eq!(record(&slot), None);
        assert_eq!(record(&u32::MAX.to_be_bytes().repeat(6)), None);
        assert_eq!(record(&[0; SLOT_BYTES]), None);
    }

    #[test]
    fn a_disk_that_takes_nothing_gives_no_slot() {
        let (_dir, path) = file();
        let (slots, _) = Slots::open(&path).unwrap();
        let slots = Slots { file: File::open(&path).unwrap(), ..slots };
        assert!(slots.put("x", b"x").is_none());
        assert_eq!(slots.free().len(), MAX_SLOTS);
    }
}
