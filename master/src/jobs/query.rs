//! Queries: one job, its returns, and lists of jobs.

use brine_protocol::ids::{Jid, MinionId};
use brine_protocol::msgpack;
use brine_protocol::value::{Value, ValueExt, list};
use rusqlite::types::Value as Sql;
use rusqlite::{Connection, OptionalExtension, Row, params_from_iter};

/// Bound on the jobs in a list, so that a runner's reply stays an event of reasonable size.
pub(super) const FIND_MAX: u32 = 10_000;
/// Limits for stored loads. The store wrote them itself, after they were checked on arrival; these limits protect
/// against a damaged file.
const STORED: msgpack::Limits = msgpack::Limits::EVENT;

/// A published job.
#[derive(Debug, Clone)]
pub struct StoredJob {
    /// Its id.
    pub jid: Jid,
    /// The function, several joined by commas.
    pub fun: String,
    /// The user who published it.
    pub user: String,
    /// The target as text.
    pub tgt: String,
    /// The type of the target.
    pub tgt_type: String,
    /// When it was published, unix ms.
    pub started_ms: i64,
    /// The minions that were expected to return, sorted.
    pub minions: Vec<MinionId>,
    /// The published load, disk flavour of msgpack.
    pub load: Vec<u8>,
}

impl StoredJob {
    /// Returns the published load.
    pub fn load(&self) -> Value {
        decode(&self.load)
    }
}

/// A return as it was stored.
#[derive(Debug, Clone)]
pub struct JobReturn {
    /// The minion.
    pub minion: MinionId,
    /// When it arrived, unix ms.
    pub at_ms: i64,
    /// The job's exit code.
    pub retcode: i64,
    /// Whether it succeeded.
    pub success: bool,
    /// The whole return, disk flavour of msgpack.
    pub load: Vec<u8>,
}

impl JobReturn {
    /// Returns the whole return as a value.
    pub fn load(&self) -> Value {
        decode(&self.load)
    }
}

/// A filter for lists of jobs. Every set field must match.
#[derive(Debug, Clone, Default)]
pub struct JobFilter {
    /// Jobs with a return of this minion.
    pub minion: Option<MinionId>,
    /// Jobs of this function.
    pub fun: Option<String>,
    /// Published at or after, unix ms.
    pub since_ms: Option<i64>,
    /// Published before, unix ms.
    pub until_ms: Option<i64>,
    /// Bound on the number of jobs, newest first.
    pub limit: Option<u32>,
}

/// Decodes a stored load.
pub(super) fn decode(load: &[u8]) -> Value {
    msgpack::decode(load, &STORED).unwrap_or(Value::Nil)
}

pub(super) const COLUMNS: &str = "jid, fun, user, tgt, tgt_type, started, minions, load";

pub(super) fn job(connection: &Connection, jid: &Jid) -> rusqlite::Result<Option<StoredJob>> {
    let sql = format!("select {COLUMNS} from jobs where jid = ?1");
    connection.prepare_cached(&sql)?.query_row([jid.as_str()], to_job).optional()
}

pub(super) fn returns(connection: &Connection, jid: &Jid) -> rusqlite::Result<Vec<JobReturn>> {
    let mut statement = connection
        .prepare_cached("select minion, at, retcode, success, load from returns where jid = ?1 order by minion")?;
    let rows = statement.query_map([jid.as_str()], to_return)?;
    rows.collect()
}

pub(super) fn one_return(connection: &Connection, jid: &Jid, minion: &MinionId) -> rusqlite::Result<Option<JobReturn>> {
    let sql = "select minion, at, retcode, success, load from returns where jid = ?1 and minion = ?2";
    connection.prepare_cached(sql)?.query_row([jid.as_str(), minion.as_str()], to_return).optional()
}

/// Reads a row of minion, at, retcode, success and load.
pub(super) fn to_return(row: &Row<'_>) -> rusqlite::Result<JobReturn> {
    Ok(JobReturn {
        minion: parsed(row, 0)?,
        at_ms: row.get(1)?,
        retcode: row.get(2)?,
        success: row.get(3)?,
        load: row.get(4)?,
    })
}

pub(super) fn find(connection: &Connection, filter: &JobFilter) -> rusqlite::Result<Vec<StoredJob>> {
    let (sql, values) = find_sql(filter);
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map(params_from_iter(values), to_job)?;
    rows.collect()
}

fn find_sql(filter: &JobFilter) -> (String, Vec<Sql>) {
    let mut sql = format!("select {COLUMNS} from jobs where 1 = 1");
    let mut values: Vec<Sql> = Vec::new();
    let mut also = |clause: &str, value: Sql| {
        values.push(value);
        sql.push_str(&clause.replace('?', &format!("?{}", values.len())));
    };
    if let Some(fun) = &filter.fun {
        also(" and fun = ?", Sql::Text(fun.clone()));
    }
    if let Some(since) = filter.since_ms {
        also(" and started >= ?", Sql::Integer(since));
    }
    if let Some(until) = filter.until_ms {
        also(" and started < ?", Sql::Integer(until));
    }
    if let Some(minion) = &filter.minion {
        also(
            " and exists (select 1 from returns where returns.jid = jobs.jid and returns.minion = ?)",
            Sql::Text(minion.as_str().to_owned()),
        );
    }
    also(" order by started desc limit ?", Sql::Integer(filter.limit.unwrap_or(FIND_MAX).min(FIND_MAX).into()));
    (sql, values)
}

/// Returns SQLite's query plan, one line for each step.
#[cfg(test)]
pub(super) fn find_plan(connection: &Connection, filter: &JobFilter) -> rusqlite::Result<Vec<String>> {
    let (sql, values) = find_sql(filter);
    let mut statement = connection.prepare(&format!("explain query plan {sql}"))?;
    statement.query_map(params_from_iter(values), |row| row.get("detail"))?.collect()
}

pub(super) fn minions_of(connection: &Connection, jid: &Jid) -> rusqlite::Result<Option<Vec<MinionId>>> {
    connection
        .prepare_cached("select minions from jobs where jid = ?1")?
        .query_row([jid.as_str()], |row| Ok(unpack_minions(&row.get::<_, Vec<u8>>(0)?)))
        .optional()
}

pub(super) fn pack_minions(minions: &[MinionId]) -> Vec<u8> {
    msgpack::encode_disk(&list(minions.iter().map(|id| Value::from(id.as_str()))))
}

pub(super) fn unpack_minions(packed: &[u8]) -> Vec<MinionId> {
    let value = msgpack::decode(packed, &STORED).unwrap_or(Value::Nil);
    let items = value.list().unwrap_or_default();
    items.iter().filter_map(|item| MinionId::try_from(item.text()?).ok()).collect()
}

fn to_job(row: &Row<'_>) -> rusqlite::Result<StoredJob> {
    Ok(StoredJob {
        jid: parsed(row, 0)?,
        fun: row.get(1)?,
        user: row.get(2)?,
        tgt: row.get(3)?,
        tgt_type: row.get(4)?,
        started_ms: row.get(5)?,
        minions: unpack_minions(&row.get::<_, Vec<u8>>(6)?),
        load: row.get(7)?,
    })
}

pub(super) fn parsed<T>(row: &Row<'_>, column: usize) -> rusqlite::Result<T>
where
    T: for<'a> TryFrom<&'a str>,
{
    let text: String = row.get(column)?;
    T::try_from(&text).map_err(|_| {
        let why = format!("{text:?} is not valid here");
        rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, why.into())
    })
}
