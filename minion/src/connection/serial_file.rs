//! The highest serial seen under a publish key, kept across restarts of the minion.
//!
//! A serial that was seen is not accepted again (PROTOCOL §4). Salt forgets the serial when the process ends, so that recordings can be
//! replayed to a restarted minion. The small file `cachedir/serial` prevents that: it holds the hash of the publish key and the serial.
//! It is written in place without syncing: a power failure loses a few seconds, and the end of the process loses nothing.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

use brine_protocol::crypticle::AesKey;
use sha2::{Digest, Sha256};

const RECORD: usize = 32 + 8;

/// The file `cachedir/serial`.
#[derive(Debug)]
pub(super) struct SerialFile {
    file: File,
}

impl SerialFile {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { file: brine_files::create_own(path, 0o600)? })
    }

    /// The highest serial seen under this key; 0 for another key.
    pub(super) fn last(&self, key: &AesKey) -> u64 {
        let mut record = [0; RECORD];
        let mut file = &self.file;
        if io::Seek::rewind(&mut file).is_err() || file.read_exact(&mut record).is_err() {
            return 0;
        }
        let (hash, serial) = record.split_at(32);
        if hash != fingerprint(key) { 0 } else { serial.try_into().map_or(0, u64::from_be_bytes) }
    }

    /// Writes the highest serial seen under this key.
    pub(super) fn keep(&self, key: &AesKey, serial: u64) -> io::Result<()> {
        let mut record = [0; RECORD];
        record[..32].copy_from_slice(&fingerprint(key));
        record[32..].copy_from_slice(&serial.to_be_bytes());
        self.file.write_all_at(&record, 0)
    }
}

/// A hash that identifies the key without revealing it: the key has 448 random bits.
fn fingerprint(key: &AesKey) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(b"brine publish key");
    hash.update(key.text().expose());
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_serial_is_remembered_for_its_key() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("serial");
        let (one, two) = (AesKey::generate(), AesKey::generate());
        let file = SerialFile::open(&path).unwrap();
        assert_eq!(file.last(&one), 0);
        file.keep(&one, 7).unwrap();
        assert_eq!((file.last(&one), file.last(&two)), (7, 0));
        drop(file);
        let file = SerialFile::open(&path).unwrap();
        assert_eq!(file.last(&one), 7);
        file.keep(&two, 1).unwrap();
        assert_eq!((file.last(&one), file.last(&two)), (0, 1));
        std::fs::write(&path, b"short").unwrap();
        assert_eq!(SerialFile::open(&path).unwrap().last(&one), 0);
    }
}
