//! The outbox: records that other returners must still get, on the embedded store's disk and in its transactions. A
//! restart loses no acknowledged record, and a server that is away delays nobody.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brine_protocol::ids::{Jid, MinionId};
use brine_protocol::msgpack;
use brine_protocol::value::{Value, ValueExt};
use rusqlite::{Connection, Transaction, params};
use tokio::sync::Notify;

use super::query::StoredJob;
use super::record::{NewReturn, Record};
use super::returner::ReturnerName;

/// Bound on the records that wait for one returner: some hours of a busy master, and the most disk space that a server
/// costs which never comes back.
const ROWS_MAX: u64 = 200_000;
/// The same bound in bytes.
const BYTES_MAX: u64 = 1 << 30;
/// Bound on the records that are read at once and written to the other server in one transaction.
const READ_ROWS: u32 = 256;
/// The same bound in bytes; a single larger record is still read.
const READ_BYTES: usize = 8 << 20;

/// A waiting record.
#[derive(Debug, Clone)]
pub(super) struct Waiting {
    /// Its place in the queue.
    pub(super) id: i64,
    /// The record; `None` if its row is damaged.
    pub(super) record: Option<Record>,
}

/// The number of waiting records of one returner, and of lost ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) rows: u64,
    pub(super) bytes: u64,
    /// Lost records since the master's start.
    pub(super) lost: u64,
}

/// The counts of all returners, with notifications of new records.
#[derive(Debug)]
pub(super) struct Counts {
    rows_max: u64,
    state: Mutex<HashMap<String, (Count, Arc<Notify>)>>,
}

impl Default for Counts {
    fn default() -> Self {
        Self::bounded(ROWS_MAX)
    }
}

impl Counts {
    pub(super) fn bounded(rows_max: u64) -> Self {
        Self { rows_max, state: Mutex::default() }
    }

    /// Loads the counts of the records that an earlier run left.
    pub(super) fn load(&self, connection: &Connection) -> rusqlite::Result<()> {
        let mut statement =
            connection.prepare("select returner, count(*), sum(length(load)) from outbox group by returner")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let count = Count { rows: unsigned(row.get(1)?), bytes: unsigned(row.get(2)?), lost: 0 };
            self.lock().entry(row.get(0)?).or_default().0 = count;
        }
        Ok(())
    }

    /// Returns the counts of one returner.
    pub(super) fn of(&self, returner: &str) -> Count {
        self.lock().get(returner).map(|(count, _)| *count).unwrap_or_default()
    }

    /// Returns the returners with waiting records.
    pub(super) fn names(&self) -> Vec<String> {
        self.lock().iter().filter(|(_, (count, _))| count.rows > 0).map(|(name, _)| name.clone()).collect()
    }

    pub(super) fn notify(&self, returner: &str) -> Arc<Notify> {
        Arc::clone(&self.lock().entry(returner.to_owned()).or_default().1)
    }

    /// Counts lost records. Returns the new total.
    pub(super) fn lose(&self, returner: &str, rows: u64) -> u64 {
        let mut state = self.lock();
        let (count, _) = state.entry(returner.to_owned()).or_default();
        count.lost += rows;
        count.lost
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, (Count, Arc<Notify>)>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The changes of one transaction, which are counted after the commit.
pub(super) struct Batch<'a> {
    counts: &'a Counts,
    changes: HashMap<String, Change>,
}

#[derive(Default)]
struct Change {
    added: Count,
    removed: Count,
}

impl<'a> Batch<'a> {
    pub(super) fn new(counts: &'a Counts) -> Self {
        Self { counts, changes: HashMap::new() }
    }

    /// Adds a record for each of these returners. For a returner with too many waiting records it is lost.
    pub(super) fn put(
        &mut self,
        transaction: &Transaction<'_>,
        returners: &[ReturnerName],
        minion: &str,
        jid: &Jid,
        at_ms: i64,
        load: &[u8],
    ) -> rusqlite::Result<()> {
        for returner in returners {
            let name = returner.to_string();
            let before = self.counts.of(&name);
            let change = self.changes.entry(name.clone()).or_default();
            let bytes = load.len() as u64;
            if before.rows + change.added.rows >= self.counts.rows_max
                || before.bytes + change.added.bytes + bytes > BYTES_MAX
            {
                change.added.lost += 1;
                continue;
            }
            transaction
                .prepare_cached("insert into outbox (returner, minion, jid, at, load) values (?1, ?2, ?3, ?4, ?5)")?
                .execute(params![name, minion, jid.as_str(), at_ms, load])?;
            change.added.rows += 1;
            change.added.bytes += bytes;
        }
        Ok(())
    }

    /// Removes records that a returner has, or refused for ever.
    pub(super) fn settle(
        &mut self,
        transaction: &Transaction<'_>,
        returner: &str,
        ids: &[i64],
    ) -> rusqlite::Result<()> {
        let change = self.changes.entry(returner.to_owned()).or_default();
        let mut delete = transaction.prepare_cached("delete from outbox where id = ?1 returning length(load)")?;
        for id in ids {
            for bytes in delete.query_map([id], |row| row.get(0).map(unsigned))? {
                change.removed.rows += 1;
                change.removed.bytes += bytes?;
            }
        }
        Ok(())
    }

    /// Removes up to `rows` records older than the limit for jobs. Returns whether there may be more.
    pub(super) fn forget(
        &mut self,
        transaction: &Transaction<'_>,
        before_ms: i64,
        rows: u32,
    ) -> rusqlite::Result<bool> {
        // The lowest ids are the oldest records.
        let mut old =
            transaction.prepare_cached("select id, returner from outbox where at < ?1 order by id limit ?2")?;
        let old = old.query_map((before_ms, rows), |row| Ok((row.get(0)?, row.get(1)?)))?;
        let old: Vec<(i64, String)> = old.collect::<Result<_, _>>()?;
        for (id, returner) in &old {
            self.settle(transaction, returner, &[*id])?;
            self.changes.entry(returner.clone()).or_default().added.lost += 1;
        }
        Ok(old.len() == rows as usize)
    }

    /// Counts the changes, after the commit.
    pub(super) fn committed(self) {
        for (name, change) in self.changes {
            let mut state = self.counts.lock();
            let (count, filled) = state.entry(name.clone()).or_default();
            count.rows = (count.rows + change.added.rows).saturating_sub(change.removed.rows);
            count.bytes = (count.bytes + change.added.bytes).saturating_sub(change.removed.bytes);
            count.lost += change.added.lost;
            let total = *count;
            if change.added.rows > 0 {
                filled.notify_one();
            }
            drop(state);
            if change.added.lost > 0 {
                // A queue that stays full loses thousands: each loss is reported up to ten, and then each thousandth.
                let before = total.lost - change.added.lost;
                if before < 10 || total.lost / 1_000 > before / 1_000 {
                    tracing::error!(
                        "the returner {name} will not get {} jobs or returns ({} since the start): {} wait for it already, or have waited for longer than keep_jobs_seconds",
                        change.added.lost,
                        total.lost,
                        total.rows
                    );
                }
            }
        }
    }
}

/// SQLite has signed numbers only.
fn unsigned(n: i64) -> u64 {
    u64::try_from(n).unwrap_or(0)
}

/// Reads the oldest records that wait for a returner.
pub(super) fn next(connection: &Connection, returner: &str) -> rusqlite::Result<Vec<Waiting>> {
    let mut statement = connection
        .prepare_cached("select id, minion, jid, at, load from outbox where returner = ?1 order by id limit ?2")?;
    let mut rows = statement.query((returner, READ_ROWS))?;
    let (mut found, mut bytes) = (Vec::new(), 0);
    while let Some(row) = rows.next()? {
        let load = row.get_ref(4)?.as_bytes()?;
        bytes += load.len();
        if bytes > READ_BYTES && !found.is_empty() {
            break;
        }
        let (minion, jid): (String, String) = (row.get(1)?, row.get(2)?);
        let load = super::query::decode(load);
        found.push(Waiting { id: row.get(0)?, record: record(&minion, &jid, row.get(3)?, load) });
    }
    Ok(found)
}

fn record(minion: &str, jid: &str, at_ms: i64, load: Value) -> Option<Record> {
    let jid = Jid::try_from(jid).ok()?;
    Some(match minion {
        "" => Record::Job(StoredJob::from_load(jid, at_ms, load)),
        minion => Record::Return(NewReturn::from_load(jid, MinionId::try_from(minion).ok()?, at_ms, &load)),
    })
}

/// Returns a job's load for other returners: with the expected ids, which Python's readers show.
pub(super) fn job_load(job: &StoredJob, minions: &[MinionId]) -> Vec<u8> {
    let mut load = job.load();
    load.insert("Minions", Value::Array(minions.iter().map(Value::from).collect()));
    msgpack::encode_disk(&load)
}
