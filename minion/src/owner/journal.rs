//! The file of refusals: lines of JSON that the minion and each `salt-call` append. Lines about the same are added up when they are read.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Bytes at which the file is set aside, and the one that was set aside before is removed.
const FILE_MAX: u64 = 4 << 20;
/// Bytes of one line.
const LINE_MAX: usize = 32 << 10;

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

/// What makes two refusals the same.
type Key = (Option<String>, String, String, Option<String>);

impl Entry {
    pub(super) fn key(&self) -> Key {
        (self.master.clone(), self.function.clone(), self.what.clone(), self.line.clone())
    }

    /// Adds another of the same, of which `most` jobs are kept.
    pub(super) fn join(&mut self, other: &Self, most: usize) {
        if other.last >= self.last {
            self.line.clone_from(&other.line);
        }
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

    fn before(&self) -> PathBuf {
        self.path.with_extension("jsonl.1")
    }

    /// Appends these. Other programs may append at the same time.
    pub(super) fn append(&self, entries: &[Entry]) -> io::Result<()> {
        let mut lines = Vec::new();
        for entry in entries {
            let line = serde_json::to_vec(entry)?;
            if line.len() < LINE_MAX {
                lines.extend_from_slice(&line);
                lines.push(b'\n');
            }
        }
        let mut file = brine_files::append_own(&self.path, 0o600)?;
        if file.metadata()?.len() > FILE_MAX {
            fs::rename(&self.path, self.before())?;
            file = brine_files::append_own(&self.path, 0o600)?;
        }
        // One write, so that lines of two programs do not mix.
        file.write_all(&lines)
    }

    /// All that is kept, the last first, of each with at most so many jobs. What is no entry is left out.
    pub(super) fn read(&self, most_jids: usize) -> Vec<Entry> {
        let mut all: HashMap<Key, Entry> = HashMap::new();
        for path in [self.before(), self.path.clone()] {
            let Ok(bytes) = brine_files::read_own(&path, FILE_MAX * 2) else { continue };
            for line in bytes.split(|byte| *byte == b'\n').filter(|line| line.len() < LINE_MAX) {
                let Ok(entry) = serde_json::from_slice::<Entry>(line) else { continue };
                match all.entry(entry.key()) {
                    std::collections::hash_map::Entry::Occupied(mut known) => known.get_mut().join(&entry, most_jids),
                    std::collections::hash_map::Entry::Vacant(new) => drop(new.insert(entry)),
                }
            }
        }
        let mut all: Vec<Entry> = all.into_values().collect();
        all.sort_by(|a, b| (b.last, &a.function, &a.what).cmp(&(a.last, &b.function, &b.what)));
        all
    }
}
