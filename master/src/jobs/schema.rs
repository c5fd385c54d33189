//! The database file: its tables, and how it is opened.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::StoreError;

/// "Brin", so that `file`, and a master with a wrong path, can recognise the database.
const APPLICATION_ID: i32 = 0x4272_696e;
const SCHEMA_VERSION: i32 = 3;
/// Time that a connection waits for a lock. Only an operator's `sqlite3` could hold one that long.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// Size in bytes to which the log is truncated after a checkpoint.
const WAL_BYTES_MAX: i64 = 64 * 1024 * 1024;
/// Size of the writer's cache in KiB: enough for the ends of all indices of a million returns, so that a commit reads
/// nothing from the disk.
const WRITER_CACHE_KIB: i64 = 32 * 1024;
/// Size of each reader's cache in KiB. The system caches the file too.
const READER_CACHE_KIB: i64 = 4 * 1024;

const TABLES: &str = "
create table jobs (
    jid       text primary key not null,
    fun       text not null,
    user      text not null,
    tgt       text not null,     -- for reading; the exact target is in load
    tgt_type  text not null,
    started   integer not null,  -- unix time, ms
    minions   blob not null,     -- msgpack: the ids that were expected to answer
    load      blob not null      -- msgpack: the published load
) without rowid;
create index jobs_by_start on jobs (started);

create table returns (
    jid       text not null,
    minion    text not null,
    fun       text not null,
    at        integer not null,  -- unix time, ms
    retcode   integer not null,
    success   integer not null,
    load      blob not null      -- msgpack: the whole return, as its event shows it
);
create unique index returns_once on returns (jid, minion);
create index returns_by_minion on returns (minion, at);
create index returns_by_fun on returns (fun, at);
create index returns_by_time on returns (at);
";

/// The additions of version 2 to version 1, which are applied when the database is opened.
const SINCE_2: &str = "
create index jobs_by_fun on jobs (fun, started);

-- What other returners have to be told yet, oldest first.
create table outbox (
    id        integer primary key autoincrement,
    returner  text not null,     -- its name, as [`super::returner::ReturnerName`] writes it
    minion    text not null,     -- whose return; empty: the job itself
    jid       text not null,
    at        integer not null,  -- unix time, ms: of the return, or when the job was published
    load      blob not null      -- msgpack: the whole return, or the published load with `Minions`
);
create index outbox_by_returner on outbox (returner, id);
";

/// The additions of version 3: the receipts that came with returns.
const SINCE_3: &str = "
-- Receipts of one minion, signed by one key, about the jobs of one master. Rows stay when their receipts are old.
create table receipt_chains (
    id        integer primary key,
    minion    text not null,
    key       blob not null,     -- the Ed25519 key
    master    blob not null,     -- the fingerprint of its key, or nothing for jobs of the minion's own; after `direct`: no gap is odd
    vouch     blob not null,     -- the signature of the minion's RSA key over the key
    pem       text not null,     -- the RSA key
    number    integer not null,  -- of the last receipt
    hash      blob not null,     -- of the last receipt
    missing   integer,           -- the first number that may be missing
    since     integer not null   -- unix time, ms: when that was noticed
);
create unique index receipt_chains_once on receipt_chains (minion, key, master);

create table receipts (
    chain     integer not null,
    number    integer not null,
    jid       text not null,
    minion    text not null,
    hash      blob not null,
    previous  blob,              -- the hash of the one before
    odd       text,              -- what was odd when it came
    compact   blob not null      -- the receipt, as salt-run receipts.show prints it
);
create index receipts_by_number on receipts (chain, number);
create index receipts_by_job on receipts (jid, minion);
";

/// Opens the database for writing. Makes its tables if it is new.
pub(super) fn open_writer(path: &Path) -> Result<Connection, StoreError> {
    let at = |why: String| StoreError::Open { path: path.to_owned(), why };
    let failed = |error: rusqlite::Error| StoreError::open(path, &error);
    // Made here with a fixed mode, independent of the umask, because the file contains the results of jobs.
    crate::files::touch_private(path).map_err(|e| at(e.to_string()))?;
    let connection = Connection::open(path).map_err(failed)?;
    prepare(&connection).map_err(failed)?;
    let id: i32 = connection.pragma_query_value(None, "application_id", |r| r.get(0)).map_err(failed)?;
    let version: i32 = connection.pragma_query_value(None, "user_version", |r| r.get(0)).map_err(failed)?;
    // One transaction each, so that a crash leaves either none or all of the changes.
    let make = |sql: &str| {
        let sql = format!(
            "begin immediate; {sql} pragma application_id = {APPLICATION_ID}; pragma user_version = {SCHEMA_VERSION}; commit;"
        );
        connection.execute_batch(&sql).map_err(failed)
    };
    match (id, version) {
        (0, 0) => make(&format!("{TABLES} {SINCE_2} {SINCE_3}"))?,
        (APPLICATION_ID, 1) => make(&format!("{SINCE_2} {SINCE_3}"))?,
        (APPLICATION_ID, 2) => make(SINCE_3)?,
        (APPLICATION_ID, SCHEMA_VERSION) => {}
        (APPLICATION_ID, other) => {
            return Err(at(format!(
                "it has version {other}, this salt-master writes version {SCHEMA_VERSION}; move it away"
            )));
        }
        _ => return Err(at("it is a database of another program".to_owned())),
    }
    Ok(connection)
}

/// Opens the database for reading beside its writer.
pub(super) fn open_reader(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let open = || -> rusqlite::Result<Connection> {
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.pragma_update(None, "cache_size", -READER_CACHE_KIB)?;
        Ok(connection)
    };
    open().map_err(|error| StoreError::open(path, &error))
}

fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY_TIMEOUT)?;
    // Must come before the first table. Allows giving the space of deleted jobs back in small steps.
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // NORMAL: a returned commit survives the end of the process; after a crash of the machine it is there completely or
    // not at all. [`super::log::Log::sync`] makes it durable before a return is acknowledged.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "journal_size_limit", WAL_BYTES_MAX)?;
    connection.pragma_update(None, "cache_size", -WRITER_CACHE_KIB)?;
    connection.pragma_update(None, "trusted_schema", false)?;
    Ok(())
}
