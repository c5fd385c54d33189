//! `cachedir/schedule.journal`: until when each entry's firings are settled, and which jobs have not ended, for a start after this process
//! was killed.
//!
//! A line is appended before a job starts and another when it has ended, so that no job runs again in a period in which it ran, and a run
//! that was cut off is known. What was lost is said before a line settles its time. The lines: `J MILLISECONDS JID NAME` (a job starts that
//! was due then), `E JID` (it has ended), `S MILLISECONDS NAME` (firings until then are settled), `X NAME` (forgotten). Names are in
//! hex. The file is made anew when most of its lines are old.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use tracing::warn;

/// Upper bound on the bytes that are read.
const MAX_BYTES: u64 = 64 << 20;
/// The file is made anew when it has this many more lines than there are entries.
const MAX_OLD: usize = 4_096;
/// Upper bound on the entries that are known: as many as there may be at once. Of more, those that fired last stay.
const MAX_KNOWN: usize = 2 * super::table::MAX_ENTRIES;
/// The secrets are not in it, but it says what runs when.
const MODE: u32 = 0o600;

/// The file, and what it says.
pub(super) struct Journal {
    path: Option<PathBuf>,
    file: Option<File>,
    lines: usize,
    settled: HashMap<String, Timestamp>,
    /// The jobs that have not ended, by jid. Their number is bounded by that of jobs at once.
    open: BTreeMap<String, Open>,
    told: bool,
}

/// A job that has not ended.
#[derive(Debug, Clone, PartialEq)]
struct Open {
    name: String,
    due: Timestamp,
}

/// What is settled about an entry.
#[derive(Debug, Clone)]
pub(super) struct Note {
    pub(super) name: String,
    /// Firings until then have happened, or it was said that they did not.
    pub(super) settled: Timestamp,
    /// A job that starts now: its jid, and when it was due.
    pub(super) job: Option<(String, Timestamp)>,
}

impl Journal {
    /// One that notes nothing.
    pub(super) fn none() -> Self {
        Self { path: None, file: None, lines: 0, settled: HashMap::new(), open: BTreeMap::new(), told: false }
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
        let time = |text: &str| text.parse().ok().and_then(|time| Timestamp::from_millisecond(time).ok());
        let name = |hexed: &str| hex::decode(hexed).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        match parts.as_slice() {
            ["J", due, jid, hexed] => {
                if let Some((name, due)) = name(hexed).zip(time(due)) {
                    self.open.insert((*jid).to_owned(), Open { name, due });
                }
            }
            ["E", jid] => drop(self.open.remove(*jid)),
            ["S", settled, hexed] => {
                if let Some((name, settled)) = name(hexed).zip(time(settled)) {
                    self.settled.insert(name, settled);
                }
            }
            ["X", hexed] => {
                if let Some(name) = name(hexed) {
                    self.settled.remove(&name);
                }
            }
            _ => {}
        }
    }

    /// Until when the firings of an entry are settled; none if it was never seen.
    pub(super) fn settled(&self, name: &str) -> Option<Timestamp> {
        self.settled.get(name).copied()
    }

    /// The jobs that have not ended: jid, entry, and when it was due. At a start, those were cut off.
    pub(super) fn open_jobs(&self) -> Vec<(String, String, Timestamp)> {
        self.open.iter().map(|(jid, open)| (jid.clone(), open.name.clone(), open.due)).collect()
    }

    /// Notes what is settled.
    pub(super) fn note(&mut self, notes: Vec<Note>) {
        let (mut text, mut lines) = (String::new(), 0);
        for Note { name, settled, job } in notes {
            // First the job: a line that is torn off leaves a time that is not settled, and never a job that nobody knows.
            if let Some((jid, due)) = job {
                let open = Open { name: name.clone(), due };
                text += &open.line(&jid);
                self.open.insert(jid, open);
                lines += 1;
            }
            text += &settled_line(&name, settled);
            self.settled.insert(name, settled);
            lines += 1;
        }
        self.write(&text, lines);
    }

    /// Notes that a job has ended.
    pub(super) fn ended(&mut self, jid: &str) {
        if self.open.remove(jid).is_some() {
            self.write(&format!("E {jid}\n"), 1);
        }
    }

    /// Forgets an entry; its jobs go on.
    pub(super) fn forget(&mut self, name: &str) {
        if self.settled.remove(name).is_some() {
            self.write(&format!("X {}\n", hex::encode(name)), 1);
        }
    }

    fn write(&mut self, text: &str, lines: usize) {
        if text.is_empty() {
            return;
        }
        self.lines += lines;
        if self.lines > self.settled.len() + self.open.len() + MAX_OLD {
            return self.rewrite();
        }
        let Some(file) = &mut self.file else { return };
        if let Err(e) = file.write_all(text.as_bytes()) {
            self.say(&e);
        }
    }

    /// Writes the file anew, with one line for each entry and for each job that has not ended.
    fn rewrite(&mut self) {
        let Some(path) = self.path.clone() else { return };
        if self.settled.len() > MAX_KNOWN {
            let mut times: Vec<Timestamp> = self.settled.values().copied().collect();
            times.sort_unstable_by(|one, other| other.cmp(one));
            let oldest = times[MAX_KNOWN - 1];
            self.settled.retain(|_, settled| *settled >= oldest);
        }
        let open = self.open.iter().map(|(jid, open)| open.line(jid));
        let text: String =
            open.chain(self.settled.iter().map(|(name, settled)| settled_line(name, *settled))).collect();
        self.lines = self.settled.len() + self.open.len();
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

impl Open {
    fn line(&self, jid: &str) -> String {
        format!("J {} {jid} {}\n", self.due.as_millisecond(), hex::encode(&self.name))
    }
}

fn settled_line(name: &str, settled: Timestamp) -> String {
    format!("S {} {}\n", settled.as_millisecond(), hex::encode(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn note(name: &str, settled: i64, job: Option<&str>) -> Note {
        let job = job.map(|jid| (jid.to_owned(), at(settled - 1)));
        Note { name: name.to_owned(), settled: at(settled), job }
    }

    #[test]
    fn what_fired_is_known_after_a_crash() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("schedule.journal");
        let strange = "../a b\n-";
        let [ended, first, second] = ["20261124000000000001", "20261124000000000002", "20261124000000000003"];
        let mut journal = Journal::open(&path);
        journal.note(vec![note("one", 5, Some(ended)), note(strange, 6, Some(first)), note("gone", 7, None)]);
        // Two jobs of one entry, of which none hides the other.
        journal.note(vec![note(strange, 8, Some(second))]);
        journal.ended(ended);
        journal.forget("gone");
        journal.forget(strange);
        // Killed while it wrote.
        std::fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"S 9000 6f6e").unwrap();
        drop(journal);
        for _ in 0..2 {
            let journal = Journal::open(&path);
            assert_eq!(
                (journal.settled("one"), journal.settled(strange), journal.settled("gone")),
                (Some(at(5)), None, None)
            );
            let open = [(first, strange, at(5)), (second, strange, at(7))];
            assert_eq!(journal.open_jobs(), open.map(|(jid, name, due)| (jid.to_owned(), name.to_owned(), due)));
        }
        let mut journal = Journal::open(&path);
        [first, second].iter().for_each(|jid| journal.ended(jid));
        for n in 0..10_000 {
            journal.note(vec![note("one", n, None)]);
        }
        assert!(std::fs::metadata(&path).unwrap().len() < 200_000);
        drop(journal);
        let journal = Journal::open(&path);
        assert_eq!((journal.settled("one"), journal.open_jobs()), (Some(at(9_999)), Vec::new()));
    }

    #[test]
    fn entries_that_are_gone_do_not_fill_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("schedule.journal");
        let mut journal = Journal::open(&path);
        for n in 0..30_000 {
            journal.note(vec![note(&format!("job{n}"), n, None)]);
        }
        drop(journal);
        let journal = Journal::open(&path);
        assert_eq!(journal.settled.len(), MAX_KNOWN);
        assert_eq!((journal.settled("job29999"), journal.settled("job1")), (Some(at(29_999)), None));
    }

    /// Whatever of the last write a crash leaves: a job that was to start is known, or its time is not settled.
    #[test]
    fn a_torn_line_hides_no_job() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("schedule.journal");
        let mut journal = Journal::open(&path);
        journal.note(vec![note("one", 5, Some("20261124000000000001"))]);
        drop(journal);
        let whole = std::fs::read(&path).unwrap();
        for length in 0..=whole.len() {
            brine_protocol::files::write_synced(&path, &whole[..length], MODE).unwrap();
            let journal = Journal::open(&path);
            assert!(journal.settled("one").is_none() || journal.open_jobs().len() == 1, "{length}");
        }
    }

    #[test]
    fn a_file_of_anything_is_no_harm() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("schedule.journal");
        let anything =
            b"S x 6f\nS 1\nS 99999999999999999999 6f\nE\nJ\nJ 1 2\nJ 1 2 zz\n\xff\xfe\nS 1000 zz\nS 1000 6f\n";
        brine_protocol::files::write_synced(&path, anything, MODE).unwrap();
        let journal = Journal::open(&path);
        assert_eq!((journal.settled.len(), journal.open.len()), (1, 0));
        assert_eq!(journal.settled("o"), Some(at(1)));
    }
}
