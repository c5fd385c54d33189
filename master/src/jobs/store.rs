//! The writer thread, its queue and its group commit.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use brine_protocol::ids::{Jid, MinionId};
use rusqlite::{Connection, ErrorCode, Transaction, params};
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
    #[error("the job store {path} failed: {why}{advice}", path = path.display())]
    Failed {
        /// The database file.
        path: PathBuf,
        /// What SQLite or the system said.
        why: String,
        /// What to do, if that is known.
        advice: &'static str,
    },
    /// The master is stopping.
    #[error("the job store is closed")]
    Closed,
}

impl StoreError {
    fn failed(path: &Path, error: &rusqlite::Error) -> Self {
        let advice = match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull | ErrorCode::SystemIoFailure) => {
                ". Make room on its disk; until then minions keep their returns"
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
        Self::Failed { path: path.to_owned(), why: error.to_string(), advice }
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
    path: Arc<Path>,
}

impl JobStore {
    /// Opens or makes the database and starts its writer.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let writer = schema::open_writer(path)?;
        let reader = schema::open_reader(path)?;
        Self::with(path.into(), writer, reader)
    }

    fn with(path: Arc<Path>, writer: Connection, reader: Connection) -> Result<Self, StoreError> {
        let (queue, commands) = mpsc::channel(QUEUE);
        let writer = Writer { path: Arc::clone(&path), connection: writer, failing: false };
        std::thread::Builder::new()
            .name("job-store".to_owned())
            .spawn(move || writer.run(commands))
            .map_err(|e| StoreError::Open { path: path.to_path_buf(), why: e.to_string() })?;
        Ok(Self { queue, reader: Arc::new(Mutex::new(reader)), path })
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
        query: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reader, path) = (Arc::clone(&self.reader), Arc::clone(&self.path));
        let run = move || {
            let connection = reader.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            query(&connection).map_err(|error| StoreError::failed(&path, &error))
        };
        tokio::task::spawn_blocking(run).await.map_err(|_| StoreError::Closed)?
    }
}

/// What is told to a caller once the commit is through.
type Answer = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

/// The one that writes.
struct Writer {
    path: Arc<Path>,
    connection: Connection,
    /// The last commit failed; said once and not for every return that is tried meanwhile.
    failing: bool,
}

impl Writer {
    fn run(mut self, mut commands: mpsc::Receiver<Command>) {
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
            let cleaned = batch.iter().any(|c| matches!(c, Command::Clean { .. }));
            let outcome = self.commit(batch);
            self.tell(outcome.err());
            if cleaned
                && let Err(error) =
                    self.connection.execute_batch(&format!("pragma incremental_vacuum({VACUUM_PAGES});"))
            {
                tracing::warn!("the job store could not give space back: {error}");
            }
            if let Some(reply) = closing {
                drop(self);
                let _ = reply.send(());
                return;
            }
        }
    }

    /// Writes all of a batch that can be written, and answers each of its commands.
    fn commit(&mut self, batch: Vec<Command>) -> Result<(), StoreError> {
        let failed = |error: rusqlite::Error| StoreError::failed(&self.path, &error);
        let mut answers: Vec<Answer> = Vec::with_capacity(batch.len());
        let mut first_error = None;
        let mut commands = batch.into_iter();
        let transaction = match self.connection.transaction() {
            Ok(transaction) => transaction,
            Err(error) => {
                let error = failed(error);
                commands.for_each(|command| command.refuse(&error));
                return Err(error);
            }
        };
        for command in commands.by_ref() {
            let (answer, error) = command.write(&transaction, &self.path);
            answers.push(answer);
            first_error = first_error.or(error);
            // On a full disk SQLite ends the transaction by itself. What is written after that would be in no transaction and could
            // stay although its sender is told that it did not.
            if transaction.is_autocommit() {
                break;
            }
        }
        let committed = match &first_error {
            Some(error) if transaction.is_autocommit() => Err(error.clone()),
            _ => transaction.commit().map_err(failed),
        };
        if let Err(error) = &committed {
            commands.for_each(|command| command.refuse(error));
        }
        for answer in answers {
            answer(committed.clone());
        }
        committed.and(first_error.map_or(Ok(()), Err))
    }

    fn tell(&mut self, error: Option<StoreError>) {
        match error {
            Some(error) if !self.failing => tracing::error!("{error}"),
            None if self.failing => tracing::warn!("the job store {} works again", self.path.display()),
            Some(_) | None => return,
        }
        self.failing = !self.failing;
    }
}

impl Command {
    fn write(self, transaction: &Transaction<'_>, path: &Path) -> (Answer, Option<StoreError>) {
        match self {
            Self::Job(job, reply) => answer(write_job(transaction, &job), reply, path),
            Self::Return(new, reply) => answer(write_return(transaction, &new), reply, path),
            Self::Clean { before_ms, reply } => answer(clean(transaction, before_ms), reply, path),
            Self::Close(_) => (Box::new(|_| ()), None),
        }
    }

    fn refuse(self, error: &StoreError) {
        match self {
            Self::Job(_, reply) => drop(reply.send(Err(error.clone()))),
            Self::Return(_, reply) => drop(reply.send(Err(error.clone()))),
            Self::Clean { reply, .. } => drop(reply.send(Err(error.clone()))),
            Self::Close(_) => {}
        }
    }
}

/// Keeps a statement's result back until the commit's is known.
fn answer<T: Send + 'static>(
    done: rusqlite::Result<T>,
    reply: oneshot::Sender<Result<T, StoreError>>,
    path: &Path,
) -> (Answer, Option<StoreError>) {
    let done = done.map_err(|error| StoreError::failed(path, &error));
    let error = done.as_ref().err().cloned();
    let answer = move |committed: Result<(), StoreError>| {
        let _ = reply.send(done.and_then(|done| committed.map(|()| done)));
    };
    (Box::new(answer), error)
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

    /// What cannot be stored is an error that names the file, nothing of it stays, and the store goes on when there is room again.
    #[tokio::test]
    async fn a_full_disk() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("jobs.db");
        let writer = schema::open_writer(&path).unwrap();
        let pages: i64 = writer.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
        writer.query_row(&format!("pragma max_page_count = {}", pages + 40), [], |_| Ok(())).unwrap();
        let reader = schema::open_reader(&path).unwrap();
        let store = JobStore::with(path.as_path().into(), writer, reader).unwrap();
        store.add_job(job(A, 1_000, &["old"])).await.unwrap();
        store.add_return(NewReturn { load: vec![0xc3; 100_000], ..ret(A, "old", 1_000) }).await.unwrap();

        // Large ones that do not fit and small ones that might, in whatever batches come of it.
        let mut tasks = tokio::task::JoinSet::new();
        for n in 0..64_i64 {
            let store = store.clone();
            let load = if n % 2 == 0 { vec![0xc3; 200_000] } else { vec![0xc3] };
            let new = NewReturn { load, ..ret(B, &format!("m{n:02}"), 9_000 + n) };
            tasks.spawn(async move { (new.minion.clone(), store.add_return(new).await) });
        }
        let mut told = Vec::new();
        for (minion, added) in tasks.join_all().await {
            match added {
                Ok(added) => {
                    assert_eq!(added, Added::New);
                    told.push(minion);
                }
                Err(error) => {
                    let error = error.to_string();
                    assert!(error.contains("jobs.db failed: database or disk is full. Make room"), "{error}");
                }
            }
        }
        assert!(told.len() <= 32, "no large one fits");
        told.sort();
        let stored: Vec<_> = store.returns(&jid(B)).await.unwrap().into_iter().map(|ret| ret.minion).collect();
        assert_eq!(stored, told, "in the store is exactly what was acknowledged");

        store.clean(5_000).await.unwrap();
        let large = NewReturn { load: vec![0xc3; 60_000], ..ret(B, "late", 9_900) };
        assert_eq!(store.add_return(large).await.unwrap(), Added::New);
        assert!(store.add_return(ret(B, "m01", 9_901)).await.is_ok());
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
