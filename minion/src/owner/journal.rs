//! The file of refusals: lines of JSON that the minion and each `salt-call` append. Lines about the same are added up when they are read,
//! and when the file gets large.

use std::collections::HashMap;
use std::collections::hash_map;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use brine_protocol::files::write_atomic;
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// Bytes of the file. Before it gets larger, what is in it is added to the sum of what was before, and it begins again.
const FILE_MAX: u64 = 4 << 20;
/// Bytes of that sum, without a line for each master with the number of what had no room.
const SUM_MAX: usize = 3 << 20;
/// Bytes of one line.
const LINE_MAX: usize = 32 << 10;
/// How long another program may have the file: it adds it up.
const PATIENCE: Duration = Duration::from_secs(5);
const TICK: Duration = Duration::from_millis(2);
const MODE: u32 = 0o600;

/// What was refused, and how often.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    /// Seconds since 1970.
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) times: u64,
    /// The fingerprint of the master that asked; none for this host.
    pub(super) master: Option<String>,
    pub(super) module: String,
    pub(super) function: String,
    pub(super) what: String,
    pub(super) line: Option<String>,
    /// The jobs, the last one first, as far as they are kept.
    pub(super) jids: Vec<String>,
}

/// What the entry says that counts refusals without listing them.
const LEFT_OUT: &str = "others: the list had no room for them";

/// What makes two refusals the same.
type Key = (Option<String>, String, String, Option<String>);

impl Entry {
    /// Counts what this master's jobs were refused and the list has no room for: none yet.
    pub(super) fn left_out(master: Option<&str>) -> Self {
        Self {
            first: u64::MAX,
            last: 0,
            times: 0,
            master: master.map(str::to_owned),
            module: String::new(),
            function: String::new(),
            what: LEFT_OUT.to_owned(),
            line: None,
            jids: Vec::new(),
        }
    }

    /// Whether it counts what is not listed. No module has an empty name.
    pub(super) fn is_left_out(&self) -> bool {
        self.module.is_empty()
    }

    /// Counts these too, which are not listed.
    pub(super) fn count(&mut self, first: u64, last: u64, times: u64) {
        self.first = self.first.min(first);
        self.last = self.last.max(last);
        self.times = self.times.saturating_add(times);
    }

    pub(super) fn key(&self) -> Key {
        (self.master.clone(), self.function.clone(), self.what.clone(), self.line.clone())
    }

    /// Adds another of the same, of which `most` jobs are kept.
    pub(super) fn join(&mut self, other: &Self, most: usize) {
        self.first = self.first.min(other.first);
        self.times = self.times.saturating_add(other.times);
        let (newer, older) =
            if other.last >= self.last { (&other.jids, &self.jids) } else { (&self.jids, &other.jids) };
        let mut jids = newer.clone();
        jids.extend(older.iter().filter(|jid| !newer.contains(jid)).cloned());
        jids.truncate(most);
        self.jids = jids;
        self.last = self.last.max(other.last);
    }
}

/// The file.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
}

impl Journal {
    pub(super) fn new(cachedir: &Path) -> Self {
        Self { path: cachedir.join("refusals.jsonl") }
    }

    /// The sum of what was before.
    fn before(&self) -> PathBuf {
        self.path.with_extension("jsonl.1")
    }

    /// Appends these. Other programs may append at the same time.
    pub(super) fn append(&self, entries: &[Entry], most_jids: usize) -> io::Result<()> {
        // What was cut off in a crash ends here.
        let mut lines = vec![b'\n'];
        entries.iter().for_each(|entry| add_line(&mut lines, entry));
        let mut file = self.locked()?;
        if file.metadata()?.len() + lines.len() as u64 > FILE_MAX {
            // A crash between these two counts what is in both twice, and loses nothing.
            write_atomic(&self.before(), &sum(&self.entries(most_jids)), MODE)?;
            file.set_len(0)?;
        }
        file.write_all(&lines)
    }

    /// All that is kept, the last first, of each with at most so many jobs. What is no entry is left out.
    pub(super) fn read(&self, most_jids: usize) -> Vec<Entry> {
        // Without the lock the counts may be wrong, and all entries are there.
        let _lock = self.locked();
        self.entries(most_jids)
    }

    fn entries(&self, most_jids: usize) -> Vec<Entry> {
        let mut all: HashMap<Key, Entry> = HashMap::new();
        for path in [self.before(), self.path.clone()] {
            let Ok(bytes) = brine_files::read_own(&path, FILE_MAX * 2) else { continue };
            for line in bytes.split(|byte| *byte == b'\n').filter(|line| line.len() < LINE_MAX) {
                let Ok(entry) = serde_json::from_slice::<Entry>(line) else { continue };
                match all.entry(entry.key()) {
                    hash_map::Entry::Occupied(mut known) => known.get_mut().join(&entry, most_jids),
                    hash_map::Entry::Vacant(new) => drop(new.insert(entry)),
                }
            }
        }
        let mut all: Vec<Entry> = all.into_values().collect();
        all.sort_by(|a, b| (b.last, &a.function, &a.what).cmp(&(a.last, &b.function, &b.what)));
        all
    }

    /// Opens the file for this program alone, until it is closed.
    fn locked(&self) -> io::Result<File> {
        let file = brine_files::append_own(&self.path, MODE)?;
        let since = Instant::now();
        loop {
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(file),
                Err(Errno::WOULDBLOCK) if since.elapsed() < PATIENCE => std::thread::sleep(TICK),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn add_line(lines: &mut Vec<u8>, entry: &Entry) {
    let Ok(line) = serde_json::to_vec(entry) else { return };
    if line.len() < LINE_MAX {
        lines.extend_from_slice(&line);
        lines.push(b'\n');
    }
}

/// The lines of as many entries as there is room for, and the number of the others. The last ones of each module and master come first: one
/// module that is refused much does not push out what others were refused.
fn sum(all: &[Entry]) -> Vec<u8> {
    let mut of_each: HashMap<(&str, Option<&str>), usize> = HashMap::new();
    let (unlisted, listed): (Vec<&Entry>, Vec<&Entry>) = all.iter().partition(|entry| entry.is_left_out());
    let mut left_out = LeftOut::default();
    unlisted.into_iter().for_each(|entry| left_out.add(entry));
    let mut ranked: Vec<(usize, &Entry)> = listed
        .into_iter()
        .map(|entry| {
            let rank = of_each.entry((&entry.module, entry.master.as_deref())).or_default();
            *rank += 1;
            (*rank, entry)
        })
        .collect();
    // Sorting is stable: within a rank the last one stays the first.
    ranked.sort_by_key(|(rank, _)| *rank);
    let (mut lines, mut is_full) = (Vec::new(), false);
    for (_, entry) in ranked {
        let end = lines.len();
        if !is_full {
            add_line(&mut lines, entry);
            is_full = lines.len() > SUM_MAX;
        }
        if is_full {
            lines.truncate(end);
            left_out.add(entry);
        }
    }
    left_out.take().iter().for_each(|entry| add_line(&mut lines, entry));
    lines
}

/// The numbers of what is not listed, of each master. A minion has few masters in its life.
#[derive(Debug, Default)]
pub(super) struct LeftOut(HashMap<Option<String>, Entry>);

impl LeftOut {
    /// Counts what this entry says.
    pub(super) fn add(&mut self, entry: &Entry) {
        self.count(entry.master.as_deref(), entry.first, entry.last, entry.times);
    }

    /// Counts these refusals of a master.
    pub(super) fn count(&mut self, master: Option<&str>, first: u64, last: u64, times: u64) {
        let known = self.0.entry(master.map(str::to_owned));
        known.or_insert_with(|| Entry::left_out(master)).count(first, last, times);
    }

    /// An entry for each master, after which nothing is counted.
    pub(super) fn take(&mut self) -> Vec<Entry> {
        std::mem::take(&mut self.0).into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(module: &str, what: &str, last: u64) -> Entry {
        Entry {
            first: 1,
            last,
            times: 1,
            master: None,
            module: module.to_owned(),
            function: format!("{module}.run"),
            what: what.to_owned(),
            line: Some("l".repeat(2_000)),
            jids: vec!["1".to_owned()],
        }
    }

    #[test]
    fn one_module_does_not_push_out_what_others_were_refused() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::new(dir.path());
        journal.append(&[entry("quiet", "run /bin/x", 1)], 1).unwrap();
        for round in 0..200 {
            let many: Vec<Entry> = (0..64).map(|nth| entry("loud", &format!("{round} {nth}"), 2 + round)).collect();
            journal.append(&many, 1).unwrap();
        }
        let all = journal.read(1);
        assert!(all.len() < 200 * 64, "the file was never full: {}", all.len());
        // What had no room is counted.
        assert!(all.iter().any(Entry::is_left_out), "the sum was never full");
        assert_eq!(all.iter().map(|entry| entry.times).sum::<u64>(), 200 * 64 + 1);
        assert!(all.iter().any(|entry| entry.module == "quiet"));
        let bytes: u64 =
            std::fs::read_dir(dir.path()).unwrap().map(|item| item.unwrap().metadata().unwrap().len()).sum();
        assert!(bytes < FILE_MAX * 2, "{bytes}");
    }

    #[test]
    fn the_same_again_and_again_is_one_entry_however_long() {
        let dir = tempfile::tempdir().unwrap();
        let journal = Journal::new(dir.path());
        let rounds = FILE_MAX / 2_000 * 2;
        for at in 0..rounds {
            journal.append(&[entry("m", "run /bin/x", at)], 1).unwrap();
        }
        let all = journal.read(1);
        assert_eq!((all.len(), all[0].times, all[0].last), (1, rounds, rounds - 1));
    }

    #[test]
    fn programs_that_write_at_once_lose_nothing() {
        let dir = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for module in ["a", "b", "c"] {
                scope.spawn(|| {
                    let journal = Journal::new(dir.path());
                    for at in 0..1_000 {
                        journal.append(&[entry(module, "run /bin/x", at)], 1).unwrap();
                    }
                });
            }
        });
        let times: Vec<u64> = Journal::new(dir.path()).read(1).iter().map(|entry| entry.times).collect();
        assert_eq!(times, [1_000; 3]);
    }
}
