//! The database's write-ahead log, and its syncs.
//!
//! With `synchronous=FULL` SQLite would sync within the commit, and nobody could read a commit before it is on disk.
//! Here a commit can be read and announced while the disk writes it; callers that need durability wait for
//! [`Log::sync`].

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;

use super::clean;
use super::error::StoreError;

/// The log of one database.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    /// Opened at the first commit, and the same file until the database is closed.
    file: Option<File>,
    /// A sync failed. The system may have dropped the data, so the success of another sync would prove nothing.
    doubtful: bool,
}

impl Log {
    /// Makes the log of this database.
    pub(super) fn of(database: &Path) -> Self {
        let mut path = database.as_os_str().to_owned();
        path.push("-wal");
        Self { path: path.into(), file: None, doubtful: false }
    }

    /// Waits until all committed data is on the disk.
    pub(super) fn sync(&mut self, connection: &Connection, database: &Path) -> Result<(), StoreError> {
        if self.doubtful {
            // The checkpoint writes all data once more, into the database file.
            if !clean::checkpoint(connection, Duration::ZERO).map_err(|error| StoreError::failed(database, &error))? {
                return Err(StoreError::unsynced(database, "readers are in the way of its recovery"));
            }
            self.doubtful = false;
        }
        self.sync_data().map_err(|error| {
            self.doubtful = true;
            StoreError::unsynced(database, &error.to_string())
        })
    }

    fn sync_data(&mut self) -> io::Result<()> {
        let file = match &self.file {
            Some(file) => file,
            None => {
                let file = File::open(&self.path)?;
                // Syncs the file's entry in its folder.
                if let Some(folder) = self.path.parent() {
                    File::open(folder)?.sync_all()?;
                }
                self.file.insert(file)
            }
        };
        file.sync_data()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::schema;

    fn pages_in_log(path: &Path) -> u64 {
        std::fs::metadata(path).map_or(0, |meta| meta.len())
    }

    #[test]
    fn after_a_sync_that_failed_all_is_written_once_more() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("jobs.db");
        let connection = schema::open_writer(&path).unwrap();
        let mut log = Log::of(&path);
        log.sync(&connection, &path).unwrap();
        assert!(pages_in_log(&log.path) > 0);
        // A file that cannot be synced.
        log.file = Some(File::open("/proc/self/status").unwrap());
        let error = log.sync(&connection, &path).unwrap_err().to_string();
        assert!(error.contains("jobs.db failed: ") && error.contains("minions keep their returns"), "{error}");
        assert!(log.doubtful);
        log.file = None;
        log.sync(&connection, &path).unwrap();
        assert!(!log.doubtful);
        assert_eq!(pages_in_log(&log.path), 0, "what was in doubt is in the database");
    }

    #[test]
    fn a_log_that_is_not_there_is_no_success() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("jobs.db");
        let connection = schema::open_writer(&path).unwrap();
        let mut log = Log::of(&dir.path().join("other.db"));
        assert!(log.sync(&connection, &path).is_err());
    }
}
