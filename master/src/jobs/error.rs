//! The errors of the job store, with advice.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use super::disk;

/// The reason why jobs could not be stored or looked up.
#[derive(Debug, thiserror::Error, Clone)]
pub enum StoreError {
    /// The file is unusable, and the master does not start.
    #[error("the job store {path} cannot be opened: {why}", path = path.display())]
    Open {
        /// The database file.
        path: PathBuf,
        /// The error of SQLite or the system.
        why: String,
    },
    /// A write or query failed, for example because the disk is full.
    #[error("the job store {path} failed: {why}{advice}", path = path.display())]
    Failed {
        /// The database file.
        path: PathBuf,
        /// The error of SQLite or the system.
        why: String,
        /// What to do about it, if that is known.
        advice: String,
    },
    /// A returner other than the embedded store failed; see [`super::ReturnerError`].
    #[error("{0}")]
    Returner(#[from] super::ReturnerError),
    /// The master is stopping.
    #[error("the job store is closed")]
    Closed,
}

impl StoreError {
    pub(super) fn open(path: &Path, error: &rusqlite::Error) -> Self {
        let advice = advice(path, error);
        Self::Open { path: path.to_owned(), why: format!("{error}{advice}") }
    }

    pub(super) fn failed(path: &Path, error: &rusqlite::Error) -> Self {
        Self::Failed { path: path.to_owned(), why: error.to_string(), advice: advice(path, error) }
    }

    /// Makes the error of a failed sync: committed data may not be on the disk.
    pub(super) fn unsynced(path: &Path, why: &str) -> Self {
        let advice = ": what was written is not safe on its disk; until it is minions keep their returns".to_owned();
        Self::Failed { path: path.to_owned(), why: why.to_owned(), advice }
    }
}

fn advice(path: &Path, error: &rusqlite::Error) -> String {
    let advice = match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull | ErrorCode::SystemIoFailure) => {
            let disk = disk::describe(path).map_or_else(|| "its disk".to_owned(), |disk| disk.to_string());
            return format!(": {disk}. Make room there; until then minions keep their returns");
        }
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
            ". Make it and its folder writable for the master; until then minions keep their returns"
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            ". Another program holds it locked; until it lets go minions keep their returns"
        }
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            ". Stop the master, move the file away and start it again; until then minions keep their returns"
        }
        _ => "",
    };
    advice.to_owned()
}
