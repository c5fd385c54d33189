//! The embedded store: one SQLite file, the queue of its writer, and its readers.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use brine_protocol::ids::{Jid, MinionId};
use futures_util::future::BoxFuture;
use rusqlite::Connection;
use tokio::sync::{Notify, Semaphore, mpsc, oneshot};

use super::error::StoreError;
use super::outbox::{self, Counts, Waiting};
use super::query::{self, JobFilter, JobReturn, StoredJob};
use super::record::{Added, NewReturn, Record, Saved};
use super::returner::{Destination, KeptEvent, Returner, ReturnerName};
use super::schema;
use super::writer::{Command, Told, Writer};

/// Bound on queued writes. With a full queue, callers wait.
const QUEUE: usize = 4_096;
/// Concurrent queries. A long list of jobs then does not delay the lookup of one job.
const READERS: usize = 4;

/// A job or a return that is being written. `T` is what the commit tells of it.
#[derive(Debug)]
pub struct Adding<T> {
    stored: oneshot::Receiver<T>,
    synced: oneshot::Receiver<Result<T, StoreError>>,
}

impl<T: Copy> Adding<T> {
    pub(super) fn new() -> (Self, Told<T>) {
        let ((stored, is_stored), (synced, is_synced)) = (oneshot::channel(), oneshot::channel());
        (Self { stored: is_stored, synced: is_synced }, Told { stored, synced })
    }

    /// Makes one for what is stored nowhere.
    pub(super) fn nothing(told: T) -> Self {
        let (adding, Told { stored, synced }) = Self::new();
        // The receivers exist, so sending cannot fail.
        let _ = (stored.send(told), synced.send(Ok(told)));
        adding
    }

    /// Waits for the commit: what was written can then be looked up, and survives the end of this process, but maybe not a
    /// crash of the machine. Returns `None` if the commit failed.
    pub async fn stored(&mut self) -> Option<T> {
        (&mut self.stored).await.ok()
    }

    /// Waits until it is on disk.
    ///
    /// # Errors
    /// If it could not be written or synced, or the store is closed.
    pub async fn synced(self) -> Result<T, StoreError> {
        self.synced.await.map_err(|_| StoreError::Closed)?
    }
}

/// The store. Clones share it.
#[derive(Clone)]
pub struct JobStore {
    queue: mpsc::Sender<Command>,
    readers: Arc<Readers>,
    counts: Arc<Counts>,
    path: Arc<Path>,
}

/// The idle connections, and a semaphore with one permit for each connection.
struct Readers {
    free: Mutex<Vec<Connection>>,
    permits: Arc<Semaphore>,
}

impl JobStore {
    /// Opens or makes the database, and starts its writer.
    ///
    /// # Errors
    /// If the database cannot be opened, or the system cannot start another thread.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let writer = schema::open_writer(path)?;
        Self::with(path.into(), writer, Counts::default())
    }

    pub(super) fn with(path: Arc<Path>, writer: Connection, counts: Counts) -> Result<Self, StoreError> {
        let readers = (0..READERS).map(|_| schema::open_reader(&path)).collect::<Result<Vec<_>, _>>()?;
        counts.load(&writer).map_err(|error| StoreError::open(&path, &error))?;
        let counts = Arc::new(counts);
        let (queue, commands) = mpsc::channel(QUEUE);
        let failed = |error: io::Error| StoreError::Open { path: path.to_path_buf(), why: error.to_string() };
        let writer = Writer::new(Arc::clone(&path), writer, Arc::clone(&counts)).map_err(failed)?;
        std::thread::Builder::new().name("job-store".to_owned()).spawn(move || writer.run(commands)).map_err(failed)?;
        let readers = Readers { free: Mutex::new(readers), permits: Arc::new(Semaphore::new(READERS)) };
        Ok(Self { queue, readers: Arc::new(readers), counts, path })
    }

    /// Stores a job. For a jid that exists already (3008's batch publishes one jid several times) it adds the minions.
    ///
    /// # Errors
    /// If the job could not be written or synced, or the store is closed.
    pub async fn add_job(&self, job: StoredJob) -> Result<(), StoreError> {
        self.put_job(job, Destination::default()).await
    }

    /// Stores a job like [`JobStore::add_job`], also for other returners, and waits until it is on disk.
    ///
    /// # Errors
    /// If the job could not be written or synced, or the store is closed.
    pub async fn put_job(&self, job: StoredJob, to: Destination) -> Result<(), StoreError> {
        self.begin_job(job, to).await?.synced().await
    }

    /// Queues a job like [`JobStore::put_job`], for callers that need to know of the commit before the sync.
    ///
    /// # Errors
    /// If the store is closed.
    pub async fn begin_job(&self, job: StoredJob, to: Destination) -> Result<Adding<()>, StoreError> {
        let (adding, told) = Adding::new();
        let command = Command::Job(Box::new(job), to, told);
        self.queue.send(command).await.map_err(|_| StoreError::Closed)?;
        Ok(adding)
    }

    /// Stores a return, once for each (jid, minion), and waits until it is on disk.
    ///
    /// # Errors
    /// If the return could not be written or synced, or the store is closed.
    pub async fn add_return(&self, new: NewReturn) -> Result<Added, StoreError> {
        self.put_return(new, Destination::default()).await
    }

    /// Stores a return like [`JobStore::add_return`], also for other returners. If the embedded store does not keep it,
    /// it never counts as a duplicate.
    ///
    /// # Errors
    /// If the return could not be written or synced, or the store is closed.
    pub async fn put_return(&self, new: NewReturn, to: Destination) -> Result<Added, StoreError> {
        self.begin_return(new, to).await?.synced().await
    }

    /// Queues a return like [`JobStore::put_return`], for callers that need to know of the commit before the sync.
    ///
    /// # Errors
    /// If the store is closed.
    pub async fn begin_return(&self, new: NewReturn, to: Destination) -> Result<Adding<Added>, StoreError> {
        let (adding, told) = Adding::new();
        let command = Command::Return(Box::new(new), to, told);
        self.queue.send(command).await.map_err(|_| StoreError::Closed)?;
        Ok(adding)
    }

    /// Deletes jobs and returns from before `before_ms`, in bounded steps between other writes. Returns the number of
    /// deleted jobs.
    ///
    /// # Errors
    /// If a step failed, or the store is closed.
    pub async fn clean(&self, before_ms: i64) -> Result<usize, StoreError> {
        self.ask(|reply| Command::Clean { before_ms, reply }).await
    }

    /// Returns the job `jid`, if it was published here.
    ///
    /// # Errors
    /// If the lookup failed, or the store is closed.
    pub async fn job(&self, jid: &Jid) -> Result<Option<StoredJob>, StoreError> {
        let jid = jid.clone();
        self.read(move |connection| query::job(connection, &jid)).await
    }

    /// Returns every return of the job `jid`, by minion.
    ///
    /// # Errors
    /// If the lookup failed, or the store is closed.
    pub async fn returns(&self, jid: &Jid) -> Result<Vec<JobReturn>, StoreError> {
        let jid = jid.clone();
        self.read(move |connection| query::returns(connection, &jid)).await
    }

    /// Returns the return of one minion.
    ///
    /// # Errors
    /// If the lookup failed, or the store is closed.
    pub async fn one_return(&self, jid: &Jid, minion: &MinionId) -> Result<Option<JobReturn>, StoreError> {
        let (jid, minion) = (jid.clone(), minion.clone());
        self.read(move |connection| query::one_return(connection, &jid, &minion)).await
    }

    /// Returns the jobs that match `filter`, newest first.
    ///
    /// # Errors
    /// If the lookup failed, or the store is closed.
    pub async fn find(&self, filter: JobFilter) -> Result<Vec<StoredJob>, StoreError> {
        self.read(move |connection| query::find(connection, &filter)).await
    }

    /// Returns the oldest records that wait for a returner, a bounded number of them.
    pub(super) async fn waiting(&self, returner: &ReturnerName) -> Result<Vec<Waiting>, StoreError> {
        let returner = returner.to_string();
        self.read(move |connection| outbox::next(connection, &returner)).await
    }

    /// Removes records from the outbox that a returner has, or refused for ever.
    pub(super) async fn settled(&self, returner: &ReturnerName, ids: Vec<i64>) -> Result<(), StoreError> {
        let returner = returner.to_string();
        self.ask(|reply| Command::Settled { returner, ids, reply }).await
    }

    /// Returns the numbers of waiting and lost records of each returner.
    pub(super) fn counts(&self) -> &Arc<Counts> {
        &self.counts
    }

    /// Returns the notification of new records in the outbox.
    pub(super) fn outbox_filled(&self, returner: &ReturnerName) -> Arc<Notify> {
        self.counts.notify(&returner.to_string())
    }

    /// Writes all queued records and ends the writer.
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

    pub(super) async fn read<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (readers, path) = (Arc::clone(&self.readers), Arc::clone(&self.path));
        let permit = Arc::clone(&self.readers.permits).acquire_owned().await.map_err(|_| StoreError::Closed)?;
        let run = move || {
            let free = || readers.free.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(connection) = free().pop() else { return Err(StoreError::Closed) };
            let found = query(&connection).map_err(|error| StoreError::failed(&path, &error));
            free().push(connection);
            drop(permit);
            found
        };
        tokio::task::spawn_blocking(run).await.map_err(|_| StoreError::Closed)?
    }
}

impl Returner for JobStore {
    fn save<'a>(&'a self, batch: Vec<Record>) -> BoxFuture<'a, Result<Vec<Saved>, StoreError>> {
        // Stored concurrently, so that they share commits.
        let each = batch.into_iter().map(|record| async move {
            Ok(Saved::Kept(match record {
                Record::Job(job) => self.add_job(job).await.map(|()| Added::New)?,
                Record::Return(new) => self.add_return(new).await?,
            }))
        });
        Box::pin(futures_util::future::try_join_all(each))
    }

    fn job<'a>(&'a self, jid: &'a Jid) -> BoxFuture<'a, Result<Option<StoredJob>, StoreError>> {
        Box::pin(JobStore::job(self, jid))
    }

    fn returns<'a>(&'a self, jid: &'a Jid) -> BoxFuture<'a, Result<Vec<JobReturn>, StoreError>> {
        Box::pin(JobStore::returns(self, jid))
    }

    fn find(&self, filter: JobFilter) -> BoxFuture<'_, Result<Vec<StoredJob>, StoreError>> {
        Box::pin(JobStore::find(self, filter))
    }

    fn clean(&self, before_ms: i64) -> BoxFuture<'_, Result<usize, StoreError>> {
        Box::pin(JobStore::clean(self, before_ms))
    }

    fn save_events<'a>(
        &'a self,
        _master: &'a str,
        events: &'a [KeptEvent],
    ) -> BoxFuture<'a, Result<Vec<String>, StoreError>> {
        // The embedded store has no table of events, and the configuration cannot name it for events.
        Box::pin(async { Ok(events.iter().map(|_| "the embedded store keeps no events".to_owned()).collect()) })
    }
}

#[cfg(test)]
mod measure;
#[cfg(test)]
mod tests;
