//! Bounded reads for pages: a walk through the jobs from the newest on, their numbers of returns, and the returns of some
//! minions of a job.

use std::ops::ControlFlow;

use brine_protocol::ids::{Jid, MinionId};
use brine_protocol::value::Value;
use rusqlite::types::Value as Sql;
use rusqlite::{Connection, Row, params_from_iter};

use super::error::StoreError;
use super::query::{self, JobReturn};
use super::store::JobStore;

/// A place in the list of jobs: the start in unix ms, and the jid.
pub(crate) type JobPlace = (i64, String);

/// A job on a walk. Its minions and its load are decoded only when they are asked for.
pub(crate) struct Walked<'a> {
    pub(crate) jid: Jid,
    pub(crate) fun: String,
    pub(crate) user: String,
    pub(crate) tgt: String,
    pub(crate) tgt_type: String,
    pub(crate) started_ms: i64,
    minions: Vec<u8>,
    load: Vec<u8>,
    connection: &'a Connection,
}

/// One return without its content.
#[derive(Debug, Clone)]
pub(crate) struct Outcome {
    pub(crate) minion: MinionId,
    pub(crate) at_ms: i64,
    pub(crate) failed: bool,
}

impl Walked<'_> {
    /// The minions that were expected to return.
    pub(crate) fn minions(&self) -> Vec<MinionId> {
        query::unpack_minions(&self.minions)
    }

    /// The number of these minions.
    pub(crate) fn expected(&self) -> usize {
        // The head of a packed list. What is none counts as decoded.
        match *self.minions.as_slice() {
            [head @ 0x90..=0x9f, ..] => usize::from(head & 0x0f),
            [0xdc, a, b, ..] => usize::from(u16::from_be_bytes([a, b])),
            _ => self.minions().len(),
        }
    }

    /// The published load.
    pub(crate) fn load(&self) -> Value {
        query::decode(&self.load)
    }

    /// The size of what is decoded on demand.
    pub(crate) fn bytes(&self) -> usize {
        self.minions.len() + self.load.len()
    }

    /// The number of returns.
    pub(crate) fn returned(&self) -> rusqlite::Result<i64> {
        // The index has all that this needs.
        let mut statement = self.connection.prepare_cached("select count(*) from returns where jid = ?1")?;
        statement.query_row([self.jid.as_str()], |row| row.get(0))
    }

    /// The number of returns of failed jobs.
    pub(crate) fn failed(&self) -> rusqlite::Result<i64> {
        let sql = "select count(*) from returns where jid = ?1 and (success = 0 or retcode <> 0)";
        self.connection.prepare_cached(sql)?.query_row([self.jid.as_str()], |row| row.get(0))
    }
}

impl JobStore {
    /// Shows `visit` the jobs after a place, from the newest to the oldest, until it breaks; with `fun` only those of
    /// that function.
    pub(crate) async fn walk<T: Send + 'static>(
        &self,
        after: Option<JobPlace>,
        fun: Option<String>,
        mut state: T,
        mut visit: impl FnMut(&mut T, Walked<'_>) -> rusqlite::Result<ControlFlow<()>> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.read(move |connection| {
            let (sql, values) = walk_sql(after, fun);
            let mut statement = connection.prepare_cached(&sql)?;
            let mut rows = statement.query(params_from_iter(values))?;
            while let Some(row) = rows.next()? {
                if visit(&mut state, walked(connection, row)?)?.is_break() {
                    break;
                }
            }
            Ok(state)
        })
        .await
    }

    /// Returns how each minion's return to the job ended, by minion.
    pub(crate) async fn outcomes(&self, jid: &Jid) -> Result<Vec<Outcome>, StoreError> {
        let jid = jid.clone();
        self.read(move |connection| {
            let sql = "select minion, at, success = 0 or retcode <> 0 from returns where jid = ?1 order by minion";
            let mut statement = connection.prepare_cached(sql)?;
            let rows = statement.query_map([jid.as_str()], |row| {
                Ok(Outcome { minion: query::parsed(row, 0)?, at_ms: row.get(1)?, failed: row.get(2)? })
            })?;
            rows.collect()
        })
        .await
    }

    /// Returns the returns of these minions to the job, in their order.
    pub(crate) async fn returns_of(&self, jid: &Jid, ids: Vec<MinionId>) -> Result<Vec<JobReturn>, StoreError> {
        let jid = jid.clone();
        self.read(move |connection| {
            let sql = "select minion, at, retcode, success, load from returns where jid = ?1 and minion = ?2";
            let mut statement = connection.prepare_cached(sql)?;
            let mut found = Vec::with_capacity(ids.len());
            for id in ids {
                let mut rows = statement.query([jid.as_str(), id.as_str()])?;
                if let Some(row) = rows.next()? {
                    found.push(query::to_return(row)?);
                }
            }
            Ok(found)
        })
        .await
    }
}

fn walk_sql(after: Option<JobPlace>, fun: Option<String>) -> (String, Vec<Sql>) {
    let (started, jid) = after.unwrap_or((i64::MAX, String::new()));
    let mut values = vec![Sql::Integer(started), Sql::Text(jid)];
    let of_fun = if let Some(fun) = fun {
        values.push(Sql::Text(fun));
        " and fun = ?3"
    } else {
        ""
    };
    let columns = query::COLUMNS;
    let sql =
        format!("select {columns} from jobs where (started, jid) < (?1, ?2){of_fun} order by started desc, jid desc");
    (sql, values)
}

fn walked<'a>(connection: &'a Connection, row: &Row<'_>) -> rusqlite::Result<Walked<'a>> {
    Ok(Walked {
        jid: query::parsed(row, 0)?,
        fun: row.get(1)?,
        user: row.get(2)?,
        tgt: row.get(3)?,
        tgt_type: row.get(4)?,
        started_ms: row.get(5)?,
        minions: row.get(6)?,
        load: row.get(7)?,
        connection,
    })
}

/// Returns SQLite's query plan of a walk.
#[cfg(test)]
fn walk_plan(connection: &Connection, after: Option<JobPlace>, fun: Option<String>) -> rusqlite::Result<Vec<String>> {
    let (sql, values) = walk_sql(after, fun);
    let mut statement = connection.prepare(&format!("explain query plan {sql}"))?;
    statement.query_map(params_from_iter(values), |row| row.get("detail"))?.collect()
}

#[cfg(test)]
mod tests {
    use brine_protocol::value::map;

    use super::*;
    use crate::jobs::{NewReturn, StoredJob};

    /// A walk reads in the order of an index, so that its first job costs nothing for all the others.
    #[tokio::test]
    async fn a_walk_goes_by_an_index() {
        let dir = tempfile::tempdir().unwrap();
        let store = JobStore::open(&dir.path().join("jobs.db")).unwrap();
        for (fun, index) in [(None, "jobs_by_start"), (Some("test.ping".to_owned()), "jobs_by_fun")] {
            let plan = store.read(move |c| walk_plan(c, Some((1, "2".to_owned())), fun)).await.unwrap();
            assert!(plan.iter().all(|step| step.contains(index)), "{plan:?}");
        }
    }

    #[tokio::test]
    async fn a_walk_goes_on_after_a_place() {
        let dir = tempfile::tempdir().unwrap();
        let store = JobStore::open(&dir.path().join("jobs.db")).unwrap();
        let minions: Vec<MinionId> = (0..40).map(|n| format!("m{n}").parse().unwrap()).collect();
        // Two of the same millisecond.
        for (at, ms) in [(1, 1), (2, 2), (3, 2), (4, 3)] {
            let jid = Jid::try_from(format!("2026112013474024500{at}").as_str()).unwrap();
            let load = map([("fun", "test.ping"), ("tgt", "*")]);
            let mut job = StoredJob::to_record(jid.clone(), &load, minions.clone());
            job.started_ms = ms;
            store.add_job(job).await.unwrap();
            for (id, failed) in [("m1", false), ("m2", true)] {
                let load = map([("fun", Value::from("test.ping")), ("return", Value::from(true))]);
                let ret = NewReturn::from_load(jid.clone(), id.parse().unwrap(), ms, &load);
                store.add_return(NewReturn { success: !failed, ..ret }).await.unwrap();
            }
        }
        let walk = async |after: Option<JobPlace>| {
            let seen = store.walk(after, None, Vec::new(), |seen: &mut Vec<JobPlace>, job| {
                assert_eq!((job.expected(), job.minions().len()), (40, 40));
                assert_eq!((job.returned()?, job.failed()?), (2, 1));
                seen.push((job.started_ms, job.jid.to_string()));
                Ok(if seen.len() == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            });
            seen.await.unwrap()
        };
        let first = walk(None).await;
        let second = walk(first.last().cloned()).await;
        let last = |places: &[JobPlace]| places.iter().map(|(_, jid)| jid[19..].to_owned()).collect::<String>();
        assert_eq!((last(&first), last(&second)), ("43".to_owned(), "21".to_owned()));
        let jid = Jid::try_from(first[0].1.as_str()).unwrap();
        let outcomes = store.outcomes(&jid).await.unwrap();
        assert_eq!(outcomes.iter().map(|outcome| outcome.failed).collect::<Vec<_>>(), [false, true]);
        let one = store.returns_of(&jid, vec!["m9".parse().unwrap(), "m2".parse().unwrap()]).await.unwrap();
        assert_eq!(one.len(), 1);
        assert_eq!(one[0].minion.as_str(), "m2");
    }
}
