//! The queries and statements, in SQL.

use brine_protocol::ids::{Jid, MinionId};
use futures_util::future::{BoxFuture, try_join_all};
use futures_util::{TryStreamExt, pin_mut};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Statement};

use super::options::PostgresOpts;
use super::rows;
use super::session::{PgFailure, PgSession};
use crate::jobs::error::StoreError;
use crate::jobs::query::{FIND_MAX, JobFilter, JobReturn, StoredJob};
use crate::jobs::record::{Added, Record, Saved};
use crate::jobs::returner::{KeptEvent, Returner, ReturnerError, ReturnerKind, ReturnerName};

/// Bound on the returns of one job that are read: more minions than any fleet has, and some duplicates.
const RETURNS_MAX: i64 = 200_000;
/// Jobs that one query reads during a search.
const FIND_PAGE: i64 = 1_000;
/// Bound on the jobs that a search reads in all, for filters that match few.
const FIND_LOOKED_AT_MAX: u32 = 1_000_000;
/// Rows that one statement of a clean-up deletes, so that no statement holds locks for long.
const CLEAN_ROWS: i64 = 5_000;

/// One server's tables.
pub(super) struct Postgres {
    name: ReturnerName,
    /// Two connections, so that a lookup does not wait for a batch.
    writing: PgSession,
    reading: PgSession,
}

impl Postgres {
    /// Connects when it is used.
    pub(super) fn new(name: ReturnerName, opts: PostgresOpts) -> Self {
        // At level debug the crate would log every statement with its values, such as results of jobs, which may
        // contain secrets. Nothing else here logs through the `log` crate.
        log::set_max_level(log::LevelFilter::Warn);
        Self { name, writing: PgSession::new(opts.clone()), reading: PgSession::new(opts) }
    }

    fn failed(&self, failure: PgFailure) -> StoreError {
        let (PgFailure::Refused(why) | PgFailure::Now(why)) = failure;
        StoreError::Returner(ReturnerError { name: self.name.to_string(), why })
    }

    /// Returns the SQL type that casts a parameter of JSON text for its column.
    const fn json(&self) -> &'static str {
        match self.name.kind {
            ReturnerKind::Postgres => "text",
            ReturnerKind::Pgjsonb => "text::jsonb",
        }
    }

    async fn save_all(&self, rows: &[rows::Row]) -> Result<Vec<Saved>, PgFailure> {
        self.writing
            .with(async |client| {
                let insert = Insert::prepare(client, self.json()).await?;
                let transaction = client.transaction().await?;
                // All statements are sent before the first reply is awaited.
                let saved = try_join_all(rows.iter().map(|row| insert.one(&transaction, row))).await?;
                transaction.commit().await?;
                Ok(saved)
            })
            .await
    }

    /// Saves each row in its own transaction, to separate rows that are refused for ever from the others.
    async fn save_each(&self, rows: &[rows::Row]) -> Result<Vec<Saved>, PgFailure> {
        let mut saved = Vec::with_capacity(rows.len());
        for row in rows {
            let one = self.writing.with(async |client| {
                let insert = Insert::prepare(client, self.json()).await?;
                insert.one(client, row).await
            });
            saved.push(match one.await {
                Ok(saved) => saved,
                Err(PgFailure::Refused(why)) => Saved::Refused(why),
                Err(now) => return Err(now),
            });
        }
        Ok(saved)
    }

    async fn find_jobs(&self, filter: &JobFilter) -> Result<Vec<StoredJob>, PgFailure> {
        let limit = filter.limit.unwrap_or(FIND_MAX).min(FIND_MAX) as usize;
        let since = filter.since_ms.map_or_else(String::new, rows::jid_at);
        let minion = filter.minion.as_ref().map(MinionId::as_str).unwrap_or_default();
        // `~` sorts after every digit.
        let mut before = filter.until_ms.map_or_else(|| "~".to_owned(), rows::jid_at);
        let (mut found, mut looked_at) = (Vec::new(), 0);
        while found.len() < limit && looked_at < FIND_LOOKED_AT_MAX {
            let page = self
                .reading
                .with(async |client| {
                    let sql = "select jid, load::text from jids where jid < $1 and jid >= $2 and ($3 = '' or exists \
                               (select 1 from salt_returns r where r.jid = jids.jid and r.id = $3)) order by jid desc limit $4";
                    client.query(sql, &[&before, &since, &minion, &FIND_PAGE]).await
                })
                .await?;
            let Some(last) = page.last() else { break };
            before = last.try_get(0).map_err(|error| unreadable(&error))?;
            looked_at += FIND_PAGE as u32;
            for row in &page {
                let job = rows::job(row).map_err(|error| unreadable(&error))?;
                found.extend(job.filter(|job| filter.fun.as_ref().is_none_or(|fun| job.fun == *fun)));
            }
        }
        found.truncate(limit);
        Ok(found)
    }

    async fn save_event_rows(&self, master: &str, rows: &[rows::EventRow]) -> Result<(), PgFailure> {
        let sql = format!(
            "insert into salt_events (tag, data, master_id, alter_time) values ($1::text, $2::{}, $3::text, to_timestamp($4))",
            self.json()
        );
        self.writing
            .with(async |client| {
                let insert = client.prepare(&sql).await?;
                let transaction = client.transaction().await?;
                let each = rows.iter().map(async |row| {
                    let values: [&(dyn ToSql + Sync); 4] = [&row.tag, &row.data, &master, &row.at];
                    transaction.execute(&insert, &values).await
                });
                try_join_all(each).await?;
                transaction.commit().await
            })
            .await
    }

    /// Deletes like Salt's pgjsonb, in parts: a job is deleted when its last return is old.
    async fn delete_before(&self, before_ms: i64) -> Result<u64, PgFailure> {
        let jobs = "delete from jids where jid in (select r.jid from salt_returns r where r.alter_time < to_timestamp($1) and exists \
                    (select 1 from jids j where j.jid = r.jid) and not exists (select 1 from salt_returns n where n.jid = r.jid and \
                    n.alter_time >= to_timestamp($1)) limit $2)";
        let returns = "delete from salt_returns where ctid = any(array(select ctid from salt_returns where alter_time < \
                       to_timestamp($1) limit $2))";
        let events = "delete from salt_events where ctid = any(array(select ctid from salt_events where alter_time < \
                      to_timestamp($1) limit $2))";
        let before = before_ms as f64 / 1_000.0;
        let mut gone = 0;
        for (sql, counts) in [(jobs, true), (returns, false), (events, false)] {
            loop {
                let rows = self.writing.with(async |client| client.execute(sql, &[&before, &CLEAN_ROWS]).await).await?;
                gone += if counts { rows } else { 0 };
                if rows == 0 {
                    break;
                }
            }
        }
        Ok(gone)
    }
}

/// Makes the error for a row that is no job or return of Salt.
fn unreadable(error: &Error) -> PgFailure {
    PgFailure::Now(format!("its tables are not those of Salt's returner: {error}"))
}

/// The prepared statements for writing.
struct Insert {
    job: Statement,
    ret: Statement,
}

impl Insert {
    async fn prepare(client: &Client, json: &str) -> Result<Self, Error> {
        // A jid that is published again (a batch of 3008) has more minions.
        let job = format!(
            "insert into jids (jid, load) values ($1::text, $2::{json}) on conflict (jid) do update set load = excluded.load"
        );
        // Salt's tables accept duplicates: after a connection that was lost after the commit, or of a minion that wrote
        // the return itself.
        let ret = format!(
            "insert into salt_returns (fun, jid, return, id, success, full_ret, alter_time) select $1::text, $2::text, $3::{json}, \
             $4::text, $5::text, $6::{json}, to_timestamp($7) where not exists (select 1 from salt_returns where jid = $2::text and id = $4::text)"
        );
        let (job, ret) = futures_util::future::try_join(client.prepare(&job), client.prepare(&ret)).await?;
        Ok(Self { job, ret })
    }

    async fn one(&self, client: &impl tokio_postgres::GenericClient, row: &rows::Row) -> Result<Saved, Error> {
        let changed = match row {
            rows::Row::Job { jid, load } => client.execute(&self.job, &[jid, load]).await?,
            rows::Row::Return { fun, jid, ret, id, success, full, at } => {
                let values: [&(dyn ToSql + Sync); 7] = [fun, jid, ret, id, success, full, at];
                client.execute(&self.ret, &values).await?
            }
        };
        Ok(Saved::Kept(if changed == 0 { Added::Duplicate } else { Added::New }))
    }
}

impl Returner for Postgres {
    fn save<'a>(&'a self, batch: Vec<Record>) -> BoxFuture<'a, Result<Vec<Saved>, StoreError>> {
        Box::pin(async move {
            let rows: Vec<rows::Row> = batch.iter().map(|record| rows::Row::new(record, self.name.kind)).collect();
            let saved = match self.save_all(&rows).await {
                Err(PgFailure::Refused(_)) => self.save_each(&rows).await,
                saved => saved,
            };
            saved.map_err(|failure| self.failed(failure))
        })
    }

    fn job<'a>(&'a self, jid: &'a Jid) -> BoxFuture<'a, Result<Option<StoredJob>, StoreError>> {
        Box::pin(async move {
            let read = self.reading.with(async |client| {
                let row = client.query_opt("select jid, load::text from jids where jid = $1", &[&jid.as_str()]).await?;
                row.as_ref().map_or(Ok(None), rows::job)
            });
            read.await.map_err(|failure| self.failed(failure))
        })
    }

    fn returns<'a>(&'a self, jid: &'a Jid) -> BoxFuture<'a, Result<Vec<JobReturn>, StoreError>> {
        Box::pin(async move {
            let read = self.reading.with(async |client| {
                let sql = "select id, coalesce(full_ret::text, ''), return::text, success, \
                           (extract(epoch from alter_time) * 1000)::int8 from salt_returns where jid = $1 order by alter_time limit $2";
                let values: [&(dyn ToSql + Sync); 2] = [&jid.as_str(), &RETURNS_MAX];
                let rows = client.query_raw(sql, values).await?;
                pin_mut!(rows);
                // By minion, and the last one of several, as Salt's returner reads them.
                let mut found = std::collections::BTreeMap::new();
                while let Some(row) = rows.try_next().await? {
                    if let Some(ret) = rows::ret(&row, jid)? {
                        found.insert(ret.minion.clone(), ret);
                    }
                }
                Ok(found.into_values().collect())
            });
            read.await.map_err(|failure| self.failed(failure))
        })
    }

    fn find(&self, filter: JobFilter) -> BoxFuture<'_, Result<Vec<StoredJob>, StoreError>> {
        Box::pin(async move { self.find_jobs(&filter).await.map_err(|failure| self.failed(failure)) })
    }

    fn clean(&self, before_ms: i64) -> BoxFuture<'_, Result<usize, StoreError>> {
        Box::pin(async move {
            // Salt's `postgres` keeps all records for ever.
            if self.name.kind == ReturnerKind::Postgres {
                return Ok(0);
            }
            let gone = self.delete_before(before_ms).await.map_err(|failure| self.failed(failure))?;
            Ok(usize::try_from(gone).unwrap_or(usize::MAX))
        })
    }

    fn save_events<'a>(
        &'a self,
        master: &'a str,
        events: &'a [KeptEvent],
    ) -> BoxFuture<'a, Result<Vec<String>, StoreError>> {
        Box::pin(async move {
            let rows: Vec<rows::EventRow> =
                events.iter().map(|event| rows::EventRow::new(event, self.name.kind)).collect();
            match self.save_event_rows(master, &rows).await {
                Ok(()) => return Ok(Vec::new()),
                Err(PgFailure::Refused(_)) => {}
                Err(now) => return Err(self.failed(now)),
            }
            // Each event alone, to separate events that are refused for ever from the others.
            let mut refused = Vec::new();
            for row in rows.chunks(1) {
                match self.save_event_rows(master, row).await {
                    Ok(()) => {}
                    Err(PgFailure::Refused(why)) => refused.push(why),
                    Err(now) => return Err(self.failed(now)),
                }
            }
            Ok(refused)
        })
    }
}
