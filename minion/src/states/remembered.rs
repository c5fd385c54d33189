//! What outlives one job of the module `state`: the pauses of runs and the runs that were requested, in the files where
//! Salt has them.

use std::io;
use std::path::{Path, PathBuf};

use brine_protocol::files::write_atomic;
use brine_protocol::ids::Jid;
use brine_protocol::msgpack;
use brine_protocol::value::Value;

/// Upper bound on the files of pauses: they are of runs that somebody wants to pause, one each.
const MAX_PAUSES: usize = 1_000;
/// Upper bound on the bytes of a file.
const MAX_BYTES: u64 = 16 << 20;
const VALUE: msgpack::Limits = msgpack::Limits { max_bytes: 16 << 20, max_depth: 128, max_items: 4 << 20 };

/// The files.
pub(crate) struct Remembered {
    cachedir: PathBuf,
}

impl Remembered {
    pub(crate) fn new(cachedir: &Path) -> Self {
        Self { cachedir: cachedir.to_owned() }
    }

    fn pauses(&self) -> PathBuf {
        self.cachedir.join("state_pause")
    }

    /// The file of a name: `requests`, or `pauses/` and a job's id.
    fn path(&self, name: &str) -> Option<PathBuf> {
        match name.strip_prefix("pauses/") {
            Some(jid) => jid.parse::<Jid>().ok().map(|jid| self.pauses().join(jid.as_str())),
            None => (name == "requests").then(|| self.cachedir.join("req_state.p")),
        }
    }

    /// The value that is kept under a name. None if there is none, or it cannot be read.
    pub(crate) fn recall(&self, name: &str) -> Option<Value> {
        let bytes = brine_files::read_own(&self.path(name)?, MAX_BYTES).ok()?;
        msgpack::decode_disk(&bytes, &VALUE).ok()
    }

    /// Keeps a MessagePack value under a name, or forgets it.
    ///
    /// # Errors
    /// When the value is none, the file cannot be written, or there are too many.
    pub(crate) fn remember(&self, name: &str, value: Option<&[u8]>) -> io::Result<()> {
        let Some(path) = self.path(name) else { return Err(io::Error::other("there is no such name")) };
        let Some(value) = value else {
            return match std::fs::remove_file(&path) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
                _ => Ok(()),
            };
        };
        msgpack::decode_disk(value, &VALUE).map_err(|e| io::Error::other(e.to_string()))?;
        if name.starts_with("pauses/") {
            crate::spare_files::private_dir(&self.pauses())?;
            if !path.exists() && std::fs::read_dir(self.pauses())?.count() >= MAX_PAUSES {
                return Err(io::Error::other(format!("{MAX_PAUSES} runs are paused")));
            }
        }
        write_atomic(&path, value, 0o600)
    }

    /// Forgets the pauses of a job, which has ended.
    pub(crate) fn ended(&self, jid: &str) {
        let _ = self.remember(&format!("pauses/{jid}"), None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_protocol::value::{map, text};

    #[test]
    fn what_is_remembered_is_there_until_it_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let remembered = Remembered::new(folder.path());
        let value = map([("a", text("b"))]);
        let bytes = msgpack::encode_network(&value);
        let pause = "pauses/20260102030405678901";
        for name in ["requests", pause] {
            assert_eq!(remembered.recall(name), None);
            remembered.remember(name, Some(&bytes)).unwrap();
            assert_eq!(remembered.recall(name), Some(value.clone()));
        }
        remembered.ended("20260102030405678901");
        remembered.remember("requests", None).unwrap();
        remembered.remember("requests", None).unwrap();
        for name in ["requests", pause] {
            assert_eq!(remembered.recall(name), None);
        }
        for bad in ["", "x", "pauses/", "pauses/../x", "pauses/1/2"] {
            assert!(remembered.remember(bad, Some(&bytes)).is_err(), "{bad}");
        }
        assert!(remembered.remember("requests", Some(b"\xc1")).is_err());
    }

    #[test]
    fn pauses_cannot_fill_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let remembered = Remembered::new(folder.path());
        let pause = |number: usize| format!("pauses/20260102030405{number:06}");
        for number in 0..MAX_PAUSES {
            remembered.remember(&pause(number), Some(b"\x80")).unwrap();
        }
        assert!(remembered.remember(&pause(MAX_PAUSES), Some(b"\x80")).is_err());
        remembered.remember(&pause(0), Some(b"\x80")).unwrap();
    }
}
