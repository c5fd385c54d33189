//! What outlives one job of the module `state`: the pauses of runs and the runs that were requested, in the files where
//! Salt has them.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use brine_protocol::files::write_atomic;
use brine_protocol::ids::Jid;
use brine_protocol::msgpack;
use brine_protocol::value::Value;
use brine_sandbox::{MAX_PAUSE_BYTES, MAX_REQUESTS_BYTES};

/// Upper bound on the files of pauses: they are of runs that somebody wants to pause, one each.
const MAX_PAUSES: usize = 1_000;
/// Upper bound on the bytes of all of them.
const MAX_PAUSES_BYTES: u64 = 4 << 20;
/// Bounds on a value. Its items take forty times their bytes in memory.
const VALUE: msgpack::Limits = msgpack::Limits { max_bytes: MAX_REQUESTS_BYTES, max_depth: 128, max_items: 128 << 10 };

/// The files. All that is done with them takes as long as the disk.
pub(crate) struct Remembered {
    cachedir: PathBuf,
    /// Held while a file is written, so that the bounds count what others write.
    writing: Mutex<()>,
}

/// What a name stands for.
enum Name {
    Pauses(Jid),
    Requests,
}

impl Name {
    fn read(name: &str) -> Option<Self> {
        match name.strip_prefix("pauses/") {
            Some(jid) => jid.parse().ok().map(Self::Pauses),
            None => (name == "requests").then_some(Self::Requests),
        }
    }

    /// Upper bound on the bytes of its value.
    fn most(&self) -> usize {
        match self {
            Self::Pauses(_) => MAX_PAUSE_BYTES,
            Self::Requests => MAX_REQUESTS_BYTES,
        }
    }
}

impl Remembered {
    pub(crate) fn new(cachedir: &Path) -> Self {
        Self { cachedir: cachedir.to_owned(), writing: Mutex::default() }
    }

    fn pauses(&self) -> PathBuf {
        self.cachedir.join("state_pause")
    }

    fn path(&self, name: &Name) -> PathBuf {
        match name {
            Name::Pauses(jid) => self.pauses().join(jid.as_str()),
            Name::Requests => self.cachedir.join("req_state.p"),
        }
    }

    /// The value that is kept under a name: `requests`, or `pauses/` and a job's id. None if there is none, or it cannot be
    /// read.
    pub(crate) fn recall(&self, name: &str) -> Option<Value> {
        let name = Name::read(name)?;
        let bytes = brine_files::read_own(&self.path(&name), name.most() as u64).ok()?;
        msgpack::decode_disk(&bytes, &VALUE).ok()
    }

    /// Keeps a MessagePack value under a name, or forgets it. Pauses are of a job that runs, as `runs` says.
    ///
    /// # Errors
    /// When the value is none or too large, its job does not run, the file cannot be written, or there are too many.
    pub(crate) fn remember(&self, name: &str, value: Option<&[u8]>, runs: impl Fn(&Jid) -> bool) -> io::Result<()> {
        let name = Name::read(name).ok_or_else(|| io::Error::other("there is no such name"))?;
        let path = self.path(&name);
        let Some(value) = value else {
            return match std::fs::remove_file(&path) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
                _ => Ok(()),
            };
        };
        if value.len() > name.most() {
            return Err(io::Error::other(format!("it has {} bytes; the most is {}", value.len(), name.most())));
        }
        msgpack::decode_disk(value, &VALUE).map_err(|e| io::Error::other(e.to_string()))?;
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Name::Pauses(jid) = &name {
            if !runs(jid) {
                return Err(io::Error::other(format!("no job {jid} runs here")));
            }
            self.has_room(&path, value.len() as u64, runs)?;
        }
        write_atomic(&path, value, 0o600)
    }

    /// Checks that pauses of so many bytes fit, once those of jobs that have ended are gone.
    fn has_room(&self, path: &Path, bytes: u64, runs: impl Fn(&Jid) -> bool) -> io::Result<()> {
        crate::spare_files::private_dir(&self.pauses())?;
        self.tidy(runs);
        let (mut count, mut total) = (1, bytes);
        for item in std::fs::read_dir(self.pauses())?.flatten().filter(|item| item.path() != path) {
            count += 1;
            // One that is gone meanwhile takes no room.
            total += item.metadata().map_or(0, |item| item.len());
        }
        if count > MAX_PAUSES || total > MAX_PAUSES_BYTES {
            let most = MAX_PAUSES_BYTES;
            return Err(io::Error::other(format!("{MAX_PAUSES} runs are paused at most, with {most} bytes of pauses")));
        }
        Ok(())
    }

    /// Removes the pauses of jobs that do not run any more, as `runs` says.
    pub(crate) fn tidy(&self, runs: impl Fn(&Jid) -> bool) {
        super::remove_ended(&self.pauses(), runs);
    }

    /// Forgets the pauses of a job, which has ended.
    pub(crate) fn ended(&self, jid: &str) {
        let _ = self.remember(&format!("pauses/{jid}"), None, |_| false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_protocol::value::{map, text};

    const JID: &str = "20260102030405678901";

    #[test]
    fn what_is_remembered_is_there_until_it_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let remembered = Remembered::new(folder.path());
        let value = map([("a", text("b"))]);
        let bytes = msgpack::encode_network(&value);
        let pause = format!("pauses/{JID}");
        for name in ["requests", &pause] {
            assert_eq!(remembered.recall(name), None);
            remembered.remember(name, Some(&bytes), |_| true).unwrap();
            assert_eq!(remembered.recall(name), Some(value.clone()));
        }
        remembered.ended(JID);
        remembered.remember("requests", None, |_| true).unwrap();
        remembered.remember("requests", None, |_| true).unwrap();
        for name in ["requests", &pause] {
            assert_eq!(remembered.recall(name), None);
        }
        for bad in ["", "x", "pauses/", "pauses/../x", "pauses/1/2"] {
            assert!(remembered.remember(bad, Some(&bytes), |_| true).is_err(), "{bad}");
        }
        assert!(remembered.remember("requests", Some(b"\xc1"), |_| true).is_err());
    }

    #[test]
    fn pauses_are_of_jobs_that_run() {
        let folder = tempfile::tempdir().unwrap();
        let remembered = Remembered::new(folder.path());
        let (ended, other) = (format!("pauses/{JID}"), "pauses/20260102030405678902");
        let refused = remembered.remember(&ended, Some(b"\x80"), |_| false).unwrap_err().to_string();
        assert_eq!(refused, format!("no job {JID} runs here"));
        assert!(!folder.path().join("state_pause").exists());
        remembered.remember(&ended, Some(b"\x80"), |_| true).unwrap();
        // The next one tidies up behind a job that has ended, and so does the start of a minion.
        remembered.remember(other, Some(b"\x80"), |jid| jid.as_str() != JID).unwrap();
        assert!(remembered.recall(&ended).is_none() && remembered.recall(other).is_some());
        remembered.tidy(|_| false);
        assert_eq!(remembered.recall(other), None);
        // What is forgotten need not run, and requests are of no job.
        remembered.remember(&ended, None, |_| false).unwrap();
        remembered.remember("requests", Some(b"\x80"), |_| false).unwrap();
    }

    #[test]
    fn pauses_cannot_fill_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let remembered = Remembered::new(folder.path());
        let pause = |number: usize, value: &[u8]| {
            remembered.remember(&format!("pauses/20260102030405{number:06}"), Some(value), |_| true)
        };
        for number in 0..MAX_PAUSES {
            pause(number, b"\x80").unwrap();
        }
        assert!(pause(MAX_PAUSES, b"\x80").is_err());
        pause(0, b"\x80").unwrap();
        remembered.tidy(|_| false);
        let large = msgpack::encode_network(&text("x".repeat(MAX_PAUSE_BYTES - 5)));
        let fit = (0..MAX_PAUSES).take_while(|number| pause(*number, &large).is_ok()).count();
        assert_eq!(fit as u64, MAX_PAUSES_BYTES / large.len() as u64);
        pause(0, &large).unwrap();
    }

    /// Each item takes as much memory as forty bytes.
    #[test]
    fn values_are_small() {
        let folder = tempfile::tempdir().unwrap();
        let remembered = Remembered::new(folder.path());
        let of = |bytes: usize| [&[0xdb][..], &(bytes as u32 - 5).to_be_bytes(), &vec![b'x'; bytes - 5]].concat();
        for (name, most) in [(format!("pauses/{JID}"), MAX_PAUSE_BYTES), ("requests".to_owned(), MAX_REQUESTS_BYTES)] {
            remembered.remember(&name, Some(&of(most)), |_| true).unwrap();
            assert!(remembered.recall(&name).is_some());
            assert!(remembered.remember(&name, Some(&of(most + 1)), |_| true).is_err(), "{name}");
        }
        let nils = msgpack::encode_network(&Value::Array(vec![Value::Nil; 200_000]));
        assert!(remembered.remember("requests", Some(&nils), |_| true).is_err());
    }
}
