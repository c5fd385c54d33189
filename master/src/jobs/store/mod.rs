//! The embedded store: one SQLite file, its writer's queue and its readers.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use brine_protocol::ids::Jid;
use futures_util::future::BoxFuture;
use rusqlite::Connection;
use tokio::sync::{Notify, Semaphore, mpsc, oneshot};

use super::error::StoreError;
use super::outbox::{self, Counts, Waiting};
use super::query::{self, Job, JobFilter, JobReturn};
use super::record::{Added, NewReturn, Record, Saved};
use super::returner::{Destination, KeptEvent, Returner, ReturnerName};
use super::schema;
use super::writer::{Command, ReturnReply, Writer};

/// Writes waiting for the disk. A writer behind by more makes its callers wait.
const QUEUE: usize = 4_096;
/// Queries at once. A long list of jobs then holds up nobody who looks for one of them.
const READERS: usize = 4;

/// A return that is being written.
#[derive(Debug)]
pub struct Adding {
    stored: oneshot::Receiver<Added>,
    synced: oneshot::Receiver<Result<Added, StoreError>>,
}

impl Adding {
    /// Nothing has to be written.
    pub(super) fn nothing() -> Self {
        let ((stored, is_stored), (synced, is_synced)) = (oneshot::channel(), oneshot::channel());
        // Their other ends are here.
        let _ = (stored.send(Added::New), synced.send(Ok(Added::New)));
        Self { stored: is_stored, synced: is_synced }
    }

    /// Resolves when it is committed: whoever looks finds it, and the end of this process does not lose it, that of the machine may.
    /// None where that fails.
    pub async fn stored(&mut self) -> Option<Added> {
        (&mut self.stored).await.ok()
    }

    /// Resolves when it is on disk.
    pub async fn synced(self) -> Result<Added, StoreError> {
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

/// Connections that are not in use; as many as the semaphore has permits.
struct Readers {
    free: Mutex<Vec<Connection>>,
    permits: Arc<Semaphore>,
}

impl JobStore {
    /// Opens or makes the database and starts its writer.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let writer = schema::open_writer(path)?;
        Self::with(path.into(), writer, Counts::default())
    }

    pub(super) fn with(path: Arc<Path>, writer: Connection, counts: Counts) -> Result<Self, StoreError> {
        let readers = (0..READERS).map(|_| schema::open_reader(&path)).collect::<Result<Vec<_>, _>>()?;
        counts.load(&writer).map_err(|error| StoreError::open(&path, &error))?;
        let counts = Arc::new(counts);
        let (queue, commands) = mpsc::channel(QUEUE);
        let writer = Writer::new(Arc::clone(&path), writer, Arc::clone(&counts));
        std::thread::Builder::new()
            .name("job-store".to_owned())
            .spawn(move || writer.run(commands))
            .map_err(|e| StoreError::Open { path: path.to_path_buf(), why: e.to_string() })?;
        let readers = Readers { free: Mutex::new(readers), permits: Arc::new(Semaphore::new(READERS)) };
        Ok(Self { queue, readers: Arc::new(readers), counts, path })
    }

    /// Records a job. For a jid that is there already (3008's batch publishes one jid several times) the minions are added.
    pub async fn add_job(&self, job: Job) -> Result<(), StoreError> {
        self.put_job(job, Destination::default()).await
    }

    /// As [`JobStore::add_job`], for other returners too; resolves when it is on disk.
    pub async fn put_job(&self, job: Job, to: Destination) -> Result<(), StoreError> {
        self.ask(|reply| Command::Job(Box::new(job), to, reply)).await
    }

    /// Records a return, once for each (jid, minion); resolves when it is on disk.
    pub async fn add_return(&self, new: NewReturn) -> Result<Added, StoreError> {
        self.put_return(new, Destination::default()).await
    }

    /// As [`JobStore::add_return`], for other returners too. Without a place in the embedded store nothing is a duplicate.
    pub async fn put_return(&self, new: NewReturn, to: Destination) -> Result<Added, StoreError> {
        self.begin_return(new, to).await?.synced().await
    }

    /// As [`JobStore::put_return`], for who wants to know before the disk has it.
    pub async fn begin_return(&self, new: NewReturn, to: Destination) -> Result<Adding, StoreError> {
        let ((stored, is_stored), (synced, is_synced)) = (oneshot::channel(), oneshot::channel());
        let command = Command::Return(Box::new(new), to, ReturnReply { stored, synced });
        self.queue.send(command).await.map_err(|_| StoreError::Closed)?;
        Ok(Adding { stored: is_stored, synced: is_synced })
    }

    /// Forgets jobs and returns from before `before_ms`, a bounded part at a time between what others write; answers how many jobs went.
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

    /// What waits longest for a returner, a bounded part of it.
    pub(super) async fn waiting(&self, returner: &ReturnerName) -> Result<Vec<Waiting>, StoreError> {
        let returner = returner.to_string();
        self.read(move |connection| outbox::next(connection, &returner)).await
    }

    /// Takes out of the outbox what a returner has, or will never take.
    pub(super) async fn settled(&self, returner: &ReturnerName, ids: Vec<i64>) -> Result<(), StoreError> {
        let returner = returner.to_string();
        self.ask(|reply| Command::Settled { returner, ids, reply }).await
    }

    /// How much waits for each returner, and what was lost.
    pub(super) fn counts(&self) -> &Arc<Counts> {
        &self.counts
    }

    /// Resolves when something was put into the outbox since the last call.
    pub(super) fn outbox_filled(&self, returner: &ReturnerName) -> Arc<Notify> {
        self.counts.notify(&returner.to_string())
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
        // All at once: they share commits.
        let each = batch.into_iter().map(|record| async move {
            Ok(Saved::Kept(match record {
                Record::Job(job) => self.add_job(job).await.map(|()| Added::New)?,
                Record::Return(new) => self.add_return(new).await?,
            }))
        });
        Box::pin(futures_util::future::try_join_all(each))
    }

    fn job<'a>(&'a self, jid: &'a Jid) -> BoxFuture<'a, Result<Option<Job>, StoreError>> {
        Box::pin(JobStore::job(self, jid))
    }

    fn returns<'a>(&'a self, jid: &'a Jid) -> BoxFuture<'a, Result<Vec<JobReturn>, StoreError>> {
        Box::pin(JobStore::returns(self, jid))
    }

    fn find(&self, filter: JobFilter) -> BoxFuture<'_, Result<Vec<Job>, StoreError>> {
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
        // It has no table of events, and the configuration names it nowhere where one would be needed.
        Box::pin(async { Ok(events.iter().map(|_| "the embedded store keeps no events".to_owned()).collect()) })
    }
}

#[cfg(test)]
mod measure;
#[cfg(test)]
mod tests;
