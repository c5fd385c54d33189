//! The job store: published jobs and their returns.
//!
//! One SQLite file, written by one thread that commits all writes that queued up during the previous commit (group
//! commit). Lookups use connections of their own. A return is acknowledged to its minion only when its commit is on the
//! disk: [`JobStore::add_return`] resolves then and not earlier. Clients that wait for the return get its event as soon
//! as it is committed ([`Adding::stored`]).
//!
//! Measured for the choice of SQLite: 10,000 returns of 300 bytes on a 2-core machine, every commit on disk (WAL),
//! against redb 4:
//!
//! | returns a commit | rusqlite | redb | database |
//! |---|---|---|---|
//! | 1 | 7,991/s | 4,835/s | 9.2 MB / 5.3 MB |
//! | 16 | 54,944/s | 28,875/s | |
//! | 128 | 203,721/s | 160,820/s | 8.3 MB / 4.2 MB |
//! | 1,000 | 312,306/s | 396,872/s | |
//!
//! Reading the 1,000 returns of one job takes 0.20 to 0.35 ms with either. SQLite is faster for small commits, which
//! matter here, and has indices by minion, function and time. An operator can query it while the master runs: `sqlite3
//! jobs.db "select minion, retcode, success from returns where jid = '…'"`; redb locks its file and has no such tool.
//!
//! Each returner that an operator names (`ext_job_cache`, `master_job_cache`, `--return`) is another [`Returner`],
//! which gets its records from the store's outbox.

mod cache;
mod clean;
mod disk;
mod error;
mod forward;
mod log;
mod outbox;
mod pages;
mod postgres;
mod python_files;
mod query;
mod receipts;
mod recent;
mod record;
mod returner;
mod schema;
mod store;
mod writer;

pub(crate) use cache::JobCache;
pub use cache::JobCacheOpts;
pub use error::StoreError;
pub(crate) use pages::{JobPlace, Outcome, Walked};
pub use postgres::PostgresOpts;
pub use python_files::PythonJobFiles;
pub use query::{JobFilter, JobReturn, StoredJob};
pub(crate) use receipts::PAGE;
pub use receipts::{Found, NewReceipt, StoredReceipt};
pub(crate) use recent::Standing;
pub use record::{Added, NewReturn, Record, Saved};
pub use returner::{Destination, KeptEvent, Returner, ReturnerError, ReturnerKind, ReturnerName};
pub use store::{Adding, JobStore};

/// Returns the time in unix ms.
pub(crate) fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
