//! Deletes records older than `keep_jobs_seconds` in small steps, so that a store of millions can be cleaned while
//! others write to it. A master that was killed during a clean-up continues it later.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, Transaction};
use tokio::sync::oneshot;

use super::error::StoreError;
use super::outbox::{self, Counts};
use super::receipts;
use super::schema::BUSY_TIMEOUT;

/// Bound on the rows that a step deletes. Each row is in up to five trees; a step takes some milliseconds, the longest
/// time that a return waits for it.
const ROWS: u32 = 500;
/// Bound on the pages of 4 KiB that a step gives back to the file system.
const PAGES: u32 = 256;
/// Free pages that stay in the file for the next jobs, to save giving them back and taking them again.
const PAGES_KEPT: u32 = 1_024;

/// Time that one attempt to shorten the file waits for readers. Writes wait meanwhile.
const CHECKPOINT_WAIT: Duration = Duration::from_millis(20);
/// Number of attempts. If readers never leave a gap, the next clean-up tries again.
const CHECKPOINT_TRIES: u32 = 50;

/// A clean-up in progress.
pub(super) struct Cleaning {
    before_ms: i64,
    jobs: usize,
    stage: Stage,
    replies: Vec<oneshot::Sender<Result<usize, StoreError>>>,
}

#[derive(Clone, Copy)]
enum Stage {
    /// Deletes old jobs with their returns.
    Jobs,
    /// Deletes old returns without a job (of a schedule, or of a job from before a restore) after this (at, rowid).
    Orphans(i64, i64),
    /// Deletes records that have waited too long for another returner.
    Outbox,
    /// Gives free pages back.
    Space,
    /// Writes the log into the file, which shortens the file; with the number of attempts.
    File(u32),
}

impl Cleaning {
    /// Starts a clean-up, or extends the one in progress.
    pub(super) fn begin(running: &mut Option<Self>, before_ms: i64, reply: oneshot::Sender<Result<usize, StoreError>>) {
        let new = running.get_or_insert_with(|| Self { before_ms, jobs: 0, stage: Stage::Jobs, replies: Vec::new() });
        new.before_ms = new.before_ms.max(before_ms);
        new.stage = Stage::Jobs;
        new.replies.push(reply);
    }

    /// Does a bounded part of the work. Returns `None` after the last part, when the callers have their replies.
    pub(super) fn step(mut self, connection: &mut Connection, counts: &Counts, path: &Path) -> Option<Self> {
        match self.work(connection, counts) {
            Ok(Some(stage)) => {
                self.stage = stage;
                Some(self)
            }
            Ok(None) => {
                self.replies.into_iter().for_each(|reply| drop(reply.send(Ok(self.jobs))));
                None
            }
            Err(error) => {
                let error = StoreError::failed(path, &error);
                self.replies.into_iter().for_each(|reply| drop(reply.send(Err(error.clone()))));
                None
            }
        }
    }

    fn work(&mut self, connection: &mut Connection, counts: &Counts) -> rusqlite::Result<Option<Stage>> {
        match self.stage {
            Stage::Space => return Ok(Some(if give_back(connection)? { Stage::Space } else { Stage::File(0) })),
            Stage::File(tries) => {
                let done = checkpoint(connection, CHECKPOINT_WAIT)? || tries >= CHECKPOINT_TRIES;
                return Ok((!done).then_some(Stage::File(tries + 1)));
            }
            Stage::Jobs | Stage::Orphans(..) | Stage::Outbox => {}
        }
        let transaction = connection.transaction()?;
        let mut outbox = outbox::Batch::new(counts);
        let mut jobs = 0;
        let next = match self.stage {
            Stage::Jobs => {
                let more;
                (jobs, more) = delete_jobs(&transaction, self.before_ms)?;
                if more { Stage::Jobs } else { Stage::Orphans(i64::MIN, i64::MIN) }
            }
            Stage::Orphans(at, row) => match delete_orphans(&transaction, self.before_ms, at, row)? {
                Some((at, row)) => Stage::Orphans(at, row),
                None => Stage::Outbox,
            },
            Stage::Outbox | Stage::Space | Stage::File(_) => match outbox.forget(&transaction, self.before_ms, ROWS)? {
                true => Stage::Outbox,
                false => Stage::Space,
            },
        };
        transaction.commit()?;
        outbox.committed();
        self.jobs += jobs;
        Ok(Some(next))
    }
}

/// Deletes up to [`ROWS`] rows of the oldest jobs. Returns the number of deleted jobs, and whether there are more.
fn delete_jobs(transaction: &Transaction<'_>, before_ms: i64) -> rusqlite::Result<(usize, bool)> {
    let mut old = transaction.prepare_cached("select jid from jobs where started < ?1 order by started limit ?2")?;
    // Each job has at least one row, so the limit is large enough.
    let old: Vec<String> = old.query_map((before_ms, ROWS), |row| row.get(0))?.collect::<Result<_, _>>()?;
    let (mut left, mut gone) = (ROWS, 0);
    for jid in &old {
        left = left.saturating_sub(receipts::forget_job(transaction, jid, left)?);
        if left == 0 {
            return Ok((gone, true));
        }
        let deleted = transaction
            .prepare_cached("delete from returns where rowid in (select rowid from returns where jid = ?1 limit ?2)")?
            .execute((jid, left))?;
        left = left.saturating_sub(u32::try_from(deleted).unwrap_or(ROWS));
        if left == 0 {
            return Ok((gone, true));
        }
        // Deleted after its last return, so that an interrupted clean-up finds the job again.
        transaction.prepare_cached("delete from jobs where jid = ?1")?.execute([jid])?;
        gone += 1;
        left -= 1;
        if left == 0 {
            break;
        }
    }
    Ok((gone, old.len() == ROWS as usize || gone < old.len()))
}

/// Checks up to [`ROWS`] old returns, and deletes those without a job. Returns where the next step continues.
fn delete_orphans(
    transaction: &Transaction<'_>,
    before_ms: i64,
    at: i64,
    row: i64,
) -> rusqlite::Result<Option<(i64, i64)>> {
    let mut old = transaction.prepare_cached(
        "select at, rowid, exists (select 1 from jobs where jobs.jid = returns.jid) from returns
         where (at, rowid) > (?1, ?2) and at < ?3 order by at, rowid limit ?4",
    )?;
    let rows = old.query_map((at, row, before_ms, ROWS), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let rows: Vec<(i64, i64, bool)> = rows.collect::<Result<_, _>>()?;
    for (_, row, has_job) in &rows {
        if !has_job {
            receipts::forget_return(transaction, *row)?;
            transaction.prepare_cached("delete from returns where rowid = ?1")?.execute([row])?;
        }
    }
    Ok(rows.last().filter(|_| rows.len() == ROWS as usize).map(|(at, row, _)| (*at, *row)))
}

/// Checkpoints and truncates the log. Returns false if a reader blocked it.
pub(super) fn checkpoint(connection: &Connection, wait: Duration) -> rusqlite::Result<bool> {
    connection.busy_timeout(wait)?;
    let busy = connection.query_row("pragma wal_checkpoint(truncate)", [], |row| row.get::<_, bool>(0));
    connection.busy_timeout(BUSY_TIMEOUT)?;
    match busy {
        Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) => Ok(false),
        busy => Ok(!busy?),
    }
}

/// Gives some free pages back. Returns whether there are more.
fn give_back(connection: &Connection) -> rusqlite::Result<bool> {
    let free: u32 = connection.pragma_query_value(None, "freelist_count", |row| row.get(0))?;
    if free <= PAGES_KEPT {
        return Ok(false);
    }
    connection.execute_batch(&format!("pragma incremental_vacuum({});", PAGES.min(free - PAGES_KEPT)))?;
    let left: u32 = connection.pragma_query_value(None, "freelist_count", |row| row.get(0))?;
    // A database from another program may be unable to shrink.
    Ok(left > PAGES_KEPT && left < free)
}
