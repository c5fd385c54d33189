//! The one writing thread: group commit, and the clean-up between commits.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::{Connection, Transaction, params};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, oneshot};

use super::clean::{self, Cleaning};
use super::error::StoreError;
use super::log::Log;
use super::outbox::{self, Counts};
use super::query::{self, StoredJob};
use super::receipts;
use super::record::{Added, NewReturn};
use super::returner::Destination;

/// Bound on the writes in a commit, so that the first one does not wait for too many others.
const BATCH: usize = 512;
/// How long a return that is committed waits for a sync that somebody else needs. Syncs cost more than all else that a job costs here;
/// a minion keeps its return that much longer.
const SYNC_WITHIN: Duration = Duration::from_millis(2);
/// Bound on the commands that wait for a sync.
const UNSYNCED_MAX: usize = 4_096;

pub(super) enum Command {
    Job(Box<StoredJob>, Destination, Told<()>),
    Return(Box<NewReturn>, Destination, Told<Added>),
    Settled { returner: String, ids: Vec<i64>, reply: oneshot::Sender<Result<(), StoreError>> },
    Clean { before_ms: i64, reply: oneshot::Sender<Result<usize, StoreError>> },
    Close(oneshot::Sender<()>),
}

/// The replies to the sender of a job or a return.
pub(super) struct Told<T> {
    /// Sent after the commit; dropped if the commit failed.
    pub(super) stored: oneshot::Sender<T>,
    /// Sent after the sync.
    pub(super) synced: oneshot::Sender<Result<T, StoreError>>,
}

/// The replies to one command.
struct Answer {
    /// Runs after the commit, for callers that do not wait for the sync.
    committed: Option<Box<dyn FnOnce() + Send>>,
    /// Runs after the sync or a failure.
    synced: Box<dyn FnOnce(Result<(), StoreError>) + Send>,
}

/// Commits that wait for their sync.
#[derive(Default)]
struct Unsynced {
    answers: Vec<Answer>,
    /// When it is to be synced.
    due: Option<Instant>,
    /// The last commit failed.
    failed: bool,
}

impl Unsynced {
    fn add(&mut self, answers: Vec<Answer>, due: Instant) {
        self.answers.extend(answers);
        self.due = Some(self.due.map_or(due, |before| before.min(due)));
    }

    fn is_due(&self) -> bool {
        self.answers.len() >= UNSYNCED_MAX || self.due.is_some_and(|due| due <= Instant::now())
    }
}

/// The writer's state.
pub(super) struct Writer {
    path: Arc<Path>,
    connection: Connection,
    log: Log,
    counts: Arc<Counts>,
    cleaning: Option<Cleaning>,
    unsynced: Unsynced,
    /// The last commit or sync failed. The error is logged once, and not for every return of that time.
    failing: bool,
    /// Waits for commands, with a limit.
    runtime: Runtime,
}

impl Writer {
    pub(super) fn new(path: Arc<Path>, connection: Connection, counts: Arc<Counts>) -> io::Result<Self> {
        let (log, unsynced) = (Log::of(&path), Unsynced::default());
        let runtime = Builder::new_current_thread().enable_time().build()?;
        Ok(Self { path, connection, log, counts, cleaning: None, unsynced, failing: false, runtime })
    }

    pub(super) fn run(mut self, mut commands: mpsc::Receiver<Command>) {
        loop {
            let Some(first) = self.next(&mut commands) else { return self.sync() };
            let mut closing = None;
            let mut batch = Vec::new();
            for command in first.into_iter().chain(std::iter::from_fn(|| commands.try_recv().ok())) {
                match command {
                    Command::Clean { before_ms, reply } => {
                        Cleaning::begin(&mut self.cleaning, before_ms, reply);
                        break;
                    }
                    Command::Close(reply) => closing = Some(reply),
                    command => batch.push(command),
                }
                if batch.len() == BATCH || closing.is_some() {
                    break;
                }
            }
            if !batch.is_empty() {
                let committed = self.commit(batch);
                self.unsynced.failed = committed.is_err();
                committed.err().into_iter().for_each(|error| self.tell(Some(error)));
            }
            if closing.is_some() || self.unsynced.is_due() {
                self.sync();
            }
            if let Some(reply) = closing {
                // After this the file alone is complete, for copying. If a reader blocks it, the log stays, which loses
                // nothing.
                if let Err(error) = clean::checkpoint(&self.connection, Duration::from_millis(200)) {
                    tracing::debug!("the log of the job store stays: {error}");
                }
                drop(self);
                let _ = reply.send(());
                return;
            }
            if let Some(cleaning) = self.cleaning.take() {
                self.cleaning = cleaning.step(&mut self.connection, &self.counts, &self.path);
            }
        }
    }

    /// Waits for the next command, but not longer than commits may wait for their sync. During a clean-up it does not wait: commands
    /// come before the next step. Returns `None` at the end.
    fn next(&self, commands: &mut mpsc::Receiver<Command>) -> Option<Option<Command>> {
        if self.cleaning.is_some() {
            return Some(commands.try_recv().ok());
        }
        self.runtime.block_on(async {
            match self.unsynced.due {
                Some(due) => match tokio::time::timeout_at(due.into(), commands.recv()).await {
                    Ok(command) => command.map(Some),
                    Err(_) => Some(None),
                },
                None => commands.recv().await.map(Some),
            }
        })
    }

    /// Writes all commands of a batch that can be written, and replies to each of them, to some after the sync.
    fn commit(&mut self, batch: Vec<Command>) -> Result<(), StoreError> {
        let failed = |error: rusqlite::Error| StoreError::failed(&self.path, &error);
        let mut answers: Vec<Answer> = Vec::with_capacity(batch.len());
        let mut first_error = None;
        // Who publishes a job waits. A minion that returned keeps its return until the sync, and can wait for the next job's.
        let waits = batch.iter().any(|command| matches!(command, Command::Job(..)));
        let mut commands = batch.into_iter();
        let transaction = match self.connection.transaction() {
            Ok(transaction) => transaction,
            Err(error) => {
                let error = failed(error);
                commands.for_each(|command| command.refuse(&error));
                return Err(error);
            }
        };
        let mut outbox = outbox::Batch::new(&self.counts);
        for command in commands.by_ref() {
            let (answer, error) = command.write(&transaction, &mut outbox, &self.path);
            answers.push(answer);
            first_error = first_error.or(error);
            // On a full disk SQLite ends the transaction itself. Later writes would be outside of a transaction, and
            // could stay although their senders get an error.
            if transaction.is_autocommit() {
                break;
            }
        }
        let committed = match first_error.clone().filter(|_| transaction.is_autocommit()) {
            Some(error) => {
                drop(transaction);
                Err(error)
            }
            None => transaction.commit().map_err(failed),
        };
        match committed {
            Ok(()) => {
                outbox.committed();
                for answer in &mut answers {
                    answer.committed.take().into_iter().for_each(|tell| tell());
                }
                self.unsynced.add(answers, Instant::now() + if waits { Duration::ZERO } else { SYNC_WITHIN });
            }
            Err(error) => {
                commands.for_each(|command| command.refuse(&error));
                answers.into_iter().for_each(|answer| (answer.synced)(Err(error.clone())));
                return Err(error);
            }
        }
        first_error.map_or(Ok(()), Err)
    }

    /// Syncs what was committed, and replies to all that wait for it.
    fn sync(&mut self) {
        let Unsynced { answers, failed, .. } = std::mem::take(&mut self.unsynced);
        if answers.is_empty() {
            return;
        }
        let synced = self.log.sync(&self.connection, &self.path);
        for answer in answers {
            (answer.synced)(synced.clone());
        }
        if synced.is_err() || !failed {
            self.tell(synced.err());
        }
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
    fn write(
        self,
        transaction: &Transaction<'_>,
        outbox: &mut outbox::Batch<'_>,
        path: &Path,
    ) -> (Answer, Option<StoreError>) {
        match self {
            Self::Job(job, to, told) => answer_twice(write_job(transaction, outbox, &job, &to), told, path),
            Self::Return(new, to, told) => answer_twice(write_return(transaction, outbox, &new, &to), told, path),
            Self::Settled { returner, ids, reply } => answer(outbox.settle(transaction, &returner, &ids), reply, path),
            Self::Clean { .. } | Self::Close(_) => (Answer { committed: None, synced: Box::new(|_| ()) }, None),
        }
    }

    fn refuse(self, error: &StoreError) {
        match self {
            Self::Job(.., told) => drop(told.synced.send(Err(error.clone()))),
            Self::Return(.., told) => drop(told.synced.send(Err(error.clone()))),
            Self::Settled { reply, .. } => drop(reply.send(Err(error.clone()))),
            Self::Clean { reply, .. } => drop(reply.send(Err(error.clone()))),
            Self::Close(_) => {}
        }
    }
}

/// Makes the replies with a statement's result: one to be sent after the commit, one after the sync.
fn answer_twice<T: Copy + Send + 'static>(
    done: rusqlite::Result<T>,
    Told { stored, synced }: Told<T>,
    path: &Path,
) -> (Answer, Option<StoreError>) {
    let early = done.as_ref().ok().copied().map(|done| -> Box<dyn FnOnce() + Send> {
        // The caller may have gone.
        Box::new(move || {
            let _ = stored.send(done);
        })
    });
    let (answer, error) = answer(done, synced, path);
    (Answer { committed: early, ..answer }, error)
}

/// Makes the reply with a statement's result, to be sent after the sync.
fn answer<T: Send + 'static>(
    done: rusqlite::Result<T>,
    reply: oneshot::Sender<Result<T, StoreError>>,
    path: &Path,
) -> (Answer, Option<StoreError>) {
    let done = done.map_err(|error| StoreError::failed(path, &error));
    let error = done.as_ref().err().cloned();
    let synced = move |synced: Result<(), StoreError>| {
        let _ = reply.send(done.and_then(|done| synced.map(|()| done)));
    };
    (Answer { committed: None, synced: Box::new(synced) }, error)
}

fn write_job(
    transaction: &Transaction<'_>,
    outbox: &mut outbox::Batch<'_>,
    job: &StoredJob,
    to: &Destination,
) -> rusqlite::Result<()> {
    let mut minions = job.minions.clone();
    if let Some(before) = query::minions_of(transaction, &job.jid)? {
        minions.extend(before);
    }
    minions.sort();
    minions.dedup();
    if !to.not_kept {
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
                query::pack_minions(&minions),
                job.load
            ])?;
    }
    if to.also.is_empty() {
        return Ok(());
    }
    outbox.put(transaction, &to.also, "", &job.jid, job.started_ms, &outbox::job_load(job, &minions))
}

fn write_return(
    transaction: &Transaction<'_>,
    outbox: &mut outbox::Batch<'_>,
    new: &NewReturn,
    to: &Destination,
) -> rusqlite::Result<Added> {
    if !to.not_kept {
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
        if changed == 0 {
            return Ok(Added::Duplicate);
        }
        if let Some(receipt) = &new.receipt {
            receipts::write(transaction, (&new.jid, &new.minion, new.at_ms), receipt)?;
        }
    }
    outbox.put(transaction, &to.also, new.minion.as_str(), &new.jid, new.at_ms, &new.load)?;
    Ok(Added::New)
}
