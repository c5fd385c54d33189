//! The writer thread, its queue and its group commit.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use brine_protocol::ids::{Jid, MinionId};
use rusqlite::{Connection, Transaction, params};
use tokio::sync::{mpsc, oneshot};

use super::query::{self, Job, JobFilter, JobReturn};
use super::schema;

/// Writes waiting for the disk. A writer behind by more makes its callers wait.
const QUEUE: usize = 4_096;
/// Writes a commit holds at most, so that the first of them is not kept waiting by the last.
const BATCH: usize = 512;
/// Pages given back to the file system after a clean-up (4 KiB each), a bound on how long that takes.
const VACUUM_PAGES: u32 = 4_096;

/// Why the store could not do what was asked.
#[derive(Debug, thiserror::Error, Clone)]
pub enum StoreError {
    /// The file cannot be used at all; the master does not start.
    #[error("the job store {path} cannot be opened: {why}", path = path.display())]
    Open {
        /// The database file.
        path: PathBuf,
        /// What SQLite or the system said.
        why: String,
    },
    /// A write or query failed, for example because the disk is full.
    #[error("the job store failed: {0}")]
    Failed(String),
    /// The master is stopping.
    #[error("the job store is closed")]
    Closed,
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// A return on its way into the store.
#[derive(Debug, Clone)]
pub struct NewReturn {
    /// The job it answers.
    pub jid: Jid,
    /// Who sent it, as the channel proved.
    pub minion: MinionId,
    /// The function that ran.
    pub fun: String,
    /// When it arrived, unix ms.
    pub at_ms: i64,
    /// The job's exit code.
    pub retcode: i64,
    /// Whether the function succeeded.
    pub success: bool,
    /// The whole return, disk flavour of msgpack.
    pub load: Vec<u8>,
}

/// What became of a return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Added {
    /// It is in the store now, on disk.
    New,
    /// The store had one for this job and minion; the first one stays.
    Duplicate,
}

enum Command {
    Job(Box<Job>, oneshot::Sender<Result<(), StoreError>>),
    Return(Box<NewReturn>, oneshot::Sender<Result<Added, StoreError>>),
    Clean { before_ms: i64, reply: oneshot::Sender<Result<usize, StoreError>> },
    Close(oneshot::Sender<()>),
}

/// The store. Clones share it.
#[derive(Clone)]
pub struct JobStore {
    queue: mpsc::Sender<Command>,
    reader: Arc<Mutex<Connection>>,
}

impl JobStore {
    /// Opens or makes the database and starts its writer.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let writer = schema::open_writer(path)?;
        let reader = schema::open_reader(path)?;
        let (queue, commands) = mpsc::channel(QUEUE);
        std::thread::Builder::new()
            .name("job-store".to_owned())
            .spawn(move || write_loop(writer, commands))
            .map_err(|e| StoreError::Open { path: path.to_owned(), why: e.to_string() })?;
        Ok(Self { queue, reader: Arc::new(Mutex::new(reader)) })
    }

    /// Records a job. For a jid that is there already (3008's batch publishes one jid several times) the minions are added.
    pub async fn add_job(&self, job: Job) -> Result<(), StoreError> {
        self.ask(|reply| Command::Job(Box::new(job), reply)).await
    }

    /// Records a return, once for each (jid, minion); resolves when it is on disk.
    pub async fn add_return(&self, new: NewReturn) -> Result<Added, StoreError> {
        self.ask(|reply| Command::Return(Box::new(new), reply)).await
    }

    /// Forgets jobs and returns from before `before_ms`; answers how many jobs went.
    pub async fn clean(&self, before_ms: i64) -> Result<usize, StoreError> {
        self.ask(|reply| Command::Clean { before_ms, reply }).await
    }

    /// The job `jid`, if it was published here.
    pub async fn job(&self, jid: &Jid) -> Result<Option<Job>, StoreError> {
        let jid = jid.clone();
        self.read(move |connection| query::job(connection, &jid)).await
    }

    /// Every return of the job `jid`, by minion.
    pub async fn returns(&self, jid: &Jid) -> Result<Vec<JobReturn>, StoreError> {
        let jid = jid.clone();
        self.read(move |connection| query::returns(connection, &jid)).await
    }

    /// Jobs that `filter` lets through, newest first.
    pub async fn find(&self, filter: JobFilter) -> Result<Vec<Job>, StoreError> {
        self.read(move |connection| query::find(connection, &filter)).await
    }

    /// Writes what has queued up and ends the writer.
    pub async fn close(&self) {
        let (reply, closed) = oneshot::channel();
        if self.queue.send(Command::Close(reply)).await.is_ok() {
            let _ = closed.await;
        }
    }

    async fn ask<T>(
        &self,
        make: impl FnOnce(oneshot::Sender<Result<T, StoreError>>) -> Command,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        self.queue.send(make(reply)).await.map_err(|_| StoreError::Closed)?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    async fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let reader = Arc::clone(&self.reader);
        let run = move || {
            let connection = reader.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            query(&connection)
        };
        tokio::task::spawn_blocking(run).await.map_err(|_| StoreError::Closed)?
    }
}

/// What is told to a caller once the commit is through.
type Answer = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

fn write_loop(mut connection: Connection, mut commands: mpsc::Receiver<Command>) {
    while let Some(first) = commands.blocking_recv() {
        let mut closing = None;
        let mut batch = vec![first];
        while batch.len() < BATCH
            && let Ok(next) = commands.try_recv()
        {
            batch.push(next);
        }
        if let Some(at) = batch.iter().position(|c| matches!(c, Command::Close(_)))
            && let Some(Command::Close(reply)) = batch.drain(at..).next()
        {
            closing = Some(reply);
        }
        commit(&mut connection, batch);
        if let Some(reply) = closing {
            drop(connection);
            let _ = reply.send(());
            return;
        }
    }
}

fn commit(connection: &mut Connection, batch: Vec<Command>) {
    let mut answers: Vec<Answer> = Vec::with_capacity(batch.len());
    let mut cleaned = false;
    let transaction = match connection.transaction() {
        Ok(transaction) => transaction,
        Err(error) => return refuse(batch, &StoreError::from(error)),
    };
    for command in batch {
        match command {
            Command::Job(job, reply) => answers.push(answer(write_job(&transaction, &job), reply)),
            Command::Return(new, reply) => answers.push(answer(write_return(&transaction, &new), reply)),
            Command::Clean { before_ms, reply } => {
                cleaned = true;
                answers.push(answer(clean(&transaction, before_ms), reply));
            }
            Command::Close(_) => {}
        }
    }
    let committed = transaction.commit().map_err(StoreError::from);
    if let Err(error) = &committed {
        tracing::error!("{error}");
    }
    for answer in answers {
        answer(committed.clone());
    }
    if cleaned && let Err(error) = connection.execute_batch(&format!("pragma incremental_vacuum({VACUUM_PAGES});")) {
        tracing::warn!("the job store could not give space back: {error}");
    }
}

/// Keeps a statement's result back until the commit's is known.
fn answer<T: Send + 'static>(done: rusqlite::Result<T>, reply: oneshot::Sender<Result<T, StoreError>>) -> Answer {
    let done = done.map_err(StoreError::from);
    Box::new(move |committed| {
        let _ = reply.send(committed.and(done));
    })
}

fn refuse(batch: Vec<Command>, error: &StoreError) {
    tracing::error!("{error}");
    for command in batch {
        match command {
            Command::Job(_, reply) => drop(reply.send(Err(error.clone()))),
            Command::Return(_, reply) => drop(reply.send(Err(error.clone()))),
            Command::Clean { reply, .. } => drop(reply.send(Err(error.clone()))),
            Command::Close(_) => {}
        }
    }
}

fn write_job(transaction: &Transaction<'_>, job: &Job) -> rusqlite::Result<()> {
    let mut minions = job.minions.clone();
    if let Some(before) = query::minions_of(transaction, &job.jid)? {
        minions.extend(before);
    }
    minions.sort();
    minions.dedup();
    let packed = query::pack_minions(&minions);
    transaction
        .prepare_cached(
            "insert into jobs (jid, fun, user, tgt, tgt_type, started, minions, load) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
             on conflict (jid) do update set minions = excluded.minions",
        )?
        .execute(params![
            job.jid.as_str(),
            job.fun,
            job.user,
            job.tgt,
            job.tgt_type,
            job.started_ms,
            packed,
            job.load
        ])?;
    Ok(())
}

fn write_return(transaction: &Transaction<'_>, new: &NewReturn) -> rusqlite::Result<Added> {
    let changed = transaction
        .prepare_cached(
            "insert or ignore into returns (jid, minion, fun, at, retcode, success, load) values (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute(params![
            new.jid.as_str(),
            new.minion.as_str(),
            new.fun,
            new.at_ms,
            new.retcode,
            new.success,
            new.load
        ])?;
    Ok(if changed == 1 { Added::New } else { Added::Duplicate })
}

fn clean(transaction: &Transaction<'_>, before_ms: i64) -> rusqlite::Result<usize> {
    // A return goes with its job; one without a job (a schedule's, or a job from before a restore) by its own age.
    transaction.execute(
        "delete from returns where at < ?1 and not exists (select 1 from jobs where jobs.jid = returns.jid and jobs.started >= ?1)",
        [before_ms],
    )?;
    transaction.execute("delete from returns where jid in (select jid from jobs where started < ?1)", [before_ms])?;
    transaction.execute("delete from jobs where started < ?1", [before_ms])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jid(text: &str) -> Jid {
        Jid::try_from(text).unwrap()
    }

    fn id(text: &str) -> MinionId {
        MinionId::try_from(text).unwrap()
    }

    fn job(jid_text: &str, started_ms: i64, minions: &[&str]) -> Job {
        Job {
            jid: jid(jid_text),
            fun: "test.ping".to_owned(),
            user: "root".to_owned(),
            tgt: "*".to_owned(),
            tgt_type: "glob".to_owned(),
            started_ms,
            minions: minions.iter().map(|m| id(m)).collect(),
            load: vec![0x80],
        }
    }

    fn ret(jid_text: &str, minion: &str, at_ms: i64) -> NewReturn {
        NewReturn {
            jid: jid(jid_text),
            minion: id(minion),
            fun: "test.ping".to_owned(),
            at_ms,
            retcode: 0,
            success: true,
            load: vec![0xc3],
        }
    }

    const A: &str = "20261120134740245008";
    const B: &str = "20261120134740245009";

    #[tokio::test]
    async fn a_return_is_kept_once_and_survives_reopening() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("jobs.db");
        let store = JobStore::open(&path).unwrap();
        store.add_job(job(A, 1_000, &["a", "b"])).await.unwrap();
        assert_eq!(store.add_return(ret(A, "a", 1_500)).await.unwrap(), Added::New);
        let second = NewReturn { load: vec![0xc2], ..ret(A, "a", 1_600) };
        assert_eq!(store.add_return(second).await.unwrap(), Added::Duplicate);
        store.close().await;
        let store = JobStore::open(&path).unwrap();
        let returns = store.returns(&jid(A)).await.unwrap();
        assert_eq!(returns.len(), 1);
        assert_eq!(returns[0].load, vec![0xc3]);
        assert_eq!(store.job(&jid(A)).await.unwrap().unwrap().minions, vec![id("a"), id("b")]);
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[tokio::test]
    async fn one_jid_published_again_gains_minions() {
        let dir = tempfile::tempdir().unwrap();
        let store = JobStore::open(&dir.path().join("jobs.db")).unwrap();
        store.add_job(job(A, 1_000, &["b"])).await.unwrap();
        store.add_job(job(A, 2_000, &["a", "b"])).await.unwrap();
        let found = store.job(&jid(A)).await.unwrap().unwrap();
        assert_eq!((found.minions, found.started_ms), (vec![id("a"), id("b")], 1_000));
    }

    #[tokio::test]
    async fn clean_up_goes_by_age() {
        let dir = tempfile::tempdir().unwrap();
        let store = JobStore::open(&dir.path().join("jobs.db")).unwrap();
        store.add_job(job(A, 1_000, &["a"])).await.unwrap();
        store.add_job(job(B, 9_000, &["a"])).await.unwrap();
        store.add_return(ret(A, "a", 1_100)).await.unwrap();
        store.add_return(ret(B, "a", 4_000)).await.unwrap();
        assert_eq!(store.clean(5_000).await.unwrap(), 1);
        assert!(store.job(&jid(A)).await.unwrap().is_none());
        assert!(store.returns(&jid(A)).await.unwrap().is_empty());
        assert_eq!(store.returns(&jid(B)).await.unwrap().len(), 1, "it belongs to a job that stays");
    }

    #[tokio::test]
    async fn many_writers_share_commits() {
        let dir = tempfile::tempdir().unwrap();
        let store = JobStore::open(&dir.path().join("jobs.db")).unwrap();
        let mut tasks = tokio::task::JoinSet::new();
        for n in 0..500 {
            let store = store.clone();
            tasks.spawn(async move { store.add_return(ret(A, &format!("m{n}"), n)).await.unwrap() });
        }
        assert!(tasks.join_all().await.into_iter().all(|added| added == Added::New));
        assert_eq!(store.returns(&jid(A)).await.unwrap().len(), 500);
    }

    #[test]
    fn another_programs_database_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("jobs.db");
        Connection::open(&path).unwrap().execute_batch("create table t (x); pragma user_version = 7;").unwrap();
        let error = JobStore::open(&path).err().unwrap().to_string();
        assert!(error.contains("another program"), "{error}");
    }
}
