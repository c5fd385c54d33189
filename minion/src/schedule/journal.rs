//! `cachedir/schedule.journal`: when each entry last fired, for a start after this process was killed.
//!
//! A line is appended before a job starts and another when it has ended, so that no job runs again in a period in which it ran, and a run
//! that was cut off is known. The lines: `F MILLISECONDS JID NAME` (fired, `-` for no job), `E JID` (ended), `X NAME` (forgotten). Names
//! are in hex. The file is made anew when most of its lines are old.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use tracing::warn;

/// Upper bound on the bytes that are read.
const MAX_BYTES: u64 = 64 << 20;
/// The file is made anew when it has this many more lines than there are entries.
const MAX_OLD: usize = 4_096;
/// The secrets are not in it, but it says what runs when.
const MODE: u32 = 0o600;

/// The file, and what it says.
pub(super) struct Journal {
    path: Option<PathBuf>,
    file: Option<File>,
    lines: usize,
    last: HashMap<String, Last>,
    told: bool,
}

#[derive(Debug, Clone, PartialEq)]
struct Last {
    due: Timestamp,
    /// The job, until it has ended.
    jid: Option<String>,
}

impl Journal {
    /// One that notes nothing.
    pub(super) fn none() -> Self {
        Self { path: None, file: None, lines: 0, last: HashMap::new(), told: false }
    }

    /// Reads the file. One that cannot be read counts as empty.
    pub(super) fn open(path: &Path) -> Self {
        let mut this = Self { path: Some(path.to_owned()), ..Self::none() };
        match brine_files::read_own(path, MAX_BYTES) {
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes);
                // The last line may be torn.
                text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n')).for_each(|line| this.take(line));
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => warn!("{} cannot be read: {e}; it is not known which jobs of the schedule ran", path.display()),
        }
        this.rewrite();
        this
    }

    fn take(&mut self, line: &str) {
        let parts: Vec<&str> = line.split(' ').collect();
        let name = |hexed: &str| hex::decode(hexed).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        match parts.as_slice() {
            ["F", due, jid, hexed] => {
                if let Some(name) = name(hexed)
                    && let Some(due) = due.parse().ok().and_then(|due| Timestamp::from_millisecond(due).ok())
                {
                    self.last.insert(name, Last { due, jid: (*jid != "-").then(|| (*jid).to_owned()) });
                }
            }
            ["E", jid] => self.forget_job(jid),
            ["X", hexed] => {
                if let Some(name) = name(hexed) {
                    self.last.remove(&name);
                }
            }
            _ => {}
        }
    }

    fn forget_job(&mut self, jid: &str) {
        for last in self.last.values_mut().filter(|last| last.jid.as_deref() == Some(jid)) {
            last.jid = None;
        }
    }

    /// When an entry last fired or was first seen.
    pub(super) fn last(&self, name: &str) -> Option<Timestamp> {
        self.last.get(name).map(|last| last.due)
    }

    /// The entries whose last job has not ended, and when they were due: at a start, those were cut off.
    pub(super) fn take_cut_off(&mut self) -> Vec<(String, Timestamp)> {
        let open = self.last.iter_mut().filter_map(|(name, last)| last.jid.take().map(|_| (name.clone(), last.due)));
        open.collect()
    }

    /// Notes that entries fire: name, when they were due, the jid of the job if one starts.
    pub(super) fn fired(&mut self, fired: &[(String, Timestamp, Option<String>)]) {
        let mut text = String::new();
        for (name, due, jid) in fired {
            text += &format!("F {} {} {}\n", due.as_millisecond(), jid.as_deref().unwrap_or("-"), hex::encode(name));
            self.last.insert(name.clone(), Last { due: *due, jid: jid.clone() });
        }
        self.write(&text, fired.len());
    }

    /// Notes that a job has ended.
    pub(super) fn ended(&mut self, jid: &str) {
        self.forget_job(jid);
        self.write(&format!("E {jid}\n"), 1);
    }

    /// Forgets an entry.
    pub(super) fn forget(&mut self, name: &str) {
        if self.last.remove(name).is_some() {
            self.write(&format!("X {}\n", hex::encode(name)), 1);
        }
    }

    fn write(&mut self, text: &str, lines: usize) {
        if text.is_empty() {
            return;
        }
        self.lines += lines;
        if self.lines > self.last.len() + MAX_OLD {
            return self.rewrite();
        }
        let Some(file) = &mut self.file else { return };
        if let Err(e) = file.write_all(text.as_bytes()) {
            self.say(&e);
        }
    }

    /// Writes the file anew, with one line for each entry.
    fn rewrite(&mut self) {
        let Some(path) = self.path.clone() else { return };
        let mut text = String::new();
        for (name, last) in &self.last {
            let jid = last.jid.as_deref().unwrap_or("-");
            text += &format!("F {} {jid} {}\n", last.due.as_millisecond(), hex::encode(name));
        }
        self.lines = self.last.len();
        let made = brine_protocol::files::write_synced(&path, text.as_bytes(), MODE)
            .and_then(|()| std::fs::OpenOptions::new().append(true).open(&path));
        match made {
            Ok(file) => self.file = Some(file),
            Err(e) => {
                self.file = None;
                self.say(&e);
            }
        }
    }

    fn say(&mut self, error: &std::io::Error) {
        if !std::mem::replace(&mut self.told, true) {
            let path = self.path.as_deref().unwrap_or(Path::new("")).display();
            warn!("{path} cannot be written: {error}; after a crash, jobs of the schedule may run twice");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fired_is_known_after_a_crash() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("schedule.journal");
        let at = |second| Timestamp::from_second(second).unwrap();
        let strange = "../a b\n-";
        let mut journal = Journal::open(&path);
        journal.fired(&[
            ("one".into(), at(5), Some("20261124000000000001".into())),
            (strange.into(), at(6), Some("20261124000000000002".into())),
            ("gone".into(), at(7), None),
        ]);
        journal.ended("20261124000000000001");
        journal.forget("gone");
        // Killed while it wrote.
        std::fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"F 9000 - 6f6e").unwrap();
        drop(journal);
        let mut journal = Journal::open(&path);
        assert_eq!(
            (journal.last("one"), journal.last(strange), journal.last("gone")),
            (Some(at(5)), Some(at(6)), None)
        );
        assert_eq!(journal.take_cut_off(), [(strange.to_owned(), at(6))]);
        assert_eq!(journal.take_cut_off(), []);
        for n in 0..10_000 {
            journal.fired(&[("one".into(), at(n), None)]);
        }
        assert!(std::fs::metadata(&path).unwrap().len() < 200_000);
        drop(journal);
        assert_eq!(Journal::open(&path).last("one"), Some(at(9_999)));
    }

    #[test]
    fn a_file_of_anything_is_no_harm() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("schedule.journal");
        std::fs::write(&path, b"F x - 6f\nF 1 -\nF 99999999999999999999 - 6f\nE\n\xff\xfe\nF 1000 - zz\nF 1000 - 6f\n")
            .unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let journal = Journal::open(&path);
        assert_eq!((journal.last.len(), journal.last("o")), (1, Timestamp::from_second(1).ok()));
    }
}
