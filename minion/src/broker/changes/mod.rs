//! `brine:host/changes`: changes of files, made by the minion for its modules.
//!
//! - `place.rs`   finds what a path means, within what is granted; `guard.rs` what no grant opens, `own.rs` the minion's own files
//! - `entry.rs`   what is at a place; `content.rs` reads and hashes
//! - `put.rs`     makes and replaces files; `journal.rs` its temporary files; `stage.rs` content that comes in parts
//! - `tree.rs`    makes and removes directories; `links.rs` links, names, owners, modes and times
//! - `backup.rs`  keeps what a file was; `plan.rs` what a change would lead to
//! - `finder.rs` finds files for what watches them; `failure.rs` errors, in Python's words
//!
//! Each operation runs on a thread of its own, because a file system may hang. A change that has begun is completed or
//! undone even if its job ends meanwhile.

mod backup;
mod content;
mod entry;
mod failure;
mod finder;
mod guard;
mod journal;
mod links;
mod own;
mod place;
mod plan;
mod put;
mod stage;
#[cfg(test)]
mod tests;
mod tree;

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use brine_protocol::value::{Value, map};
use brine_sandbox::{Caller, Change, ChangesOp, Content, HostError, Tree, UsersOp};

use self::entry::Entry;
use self::failure::Failure;
pub(super) use self::failure::Said;
pub(super) use self::finder::{Finder, Found};
use self::guard::Guard;
use self::journal::Journal;
use self::stage::Stages;
use super::slow::Slow;
use super::users::Users;
use super::{MinionBroker, Perform};
use crate::config::MinionOpts;

/// Upper bound on operations at once, for all jobs. Each takes a thread.
const AT_ONCE: usize = 16;
/// The longest time of one operation: a large file over a slow file system.
const PATIENCE: Duration = Duration::from_secs(3_600);

impl Perform<ChangesOp> for MinionBroker {
    async fn perform(&self, caller: &Caller, op: ChangesOp) -> Result<Value, HostError> {
        self.changes.answer(self, caller, op).await
    }
}

/// Changes files.
pub(super) struct Changes {
    slow: Slow,
    host: Arc<Host>,
}

/// What the threads use.
struct Host {
    guard: Guard,
    journal: Journal,
    backups: backup::Backups,
    stages: Stages,
}

/// One operation on its thread.
struct Task {
    host: Arc<Host>,
    trees: Vec<Tree>,
    /// Whether the job has ended.
    over: Arc<AtomicBool>,
    /// A file that was fetched from the master.
    fetched: Option<Arc<File>>,
    /// The number of the running call, to which stages belong.
    job: stage::Job,
    /// The bytes that the call may write.
    most: u64,
}

/// What a change led to.
#[derive(Default)]
struct Done {
    before: Option<Entry>,
    after: Option<Entry>,
    backup: Option<String>,
    /// Names that were made or removed.
    count: u64,
    written: u64,
    new_files: u64,
}

struct Over(Arc<AtomicBool>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Changes {
    /// Also removes the temporary files of a minion that was killed.
    pub(super) fn new(opts: &MinionOpts) -> Self {
        let journal = Journal::new(&opts.cachedir);
        journal.sweep();
        let host = Host {
            guard: Guard::new(opts),
            journal,
            backups: backup::Backups::new(&opts.cachedir),
            stages: Stages::new(&opts.cachedir),
        };
        Self { slow: Slow::new(AT_ONCE, PATIENCE), host: Arc::new(host) }
    }

    /// Finds files within what the caller was granted.
    pub(super) fn finder(&self, caller: &Caller) -> Finder {
        Finder::new(Arc::clone(&self.host), caller.grants.changes.clone())
    }

    async fn answer(&self, broker: &MinionBroker, caller: &Caller, op: ChangesOp) -> Result<Value, HostError> {
        // The sandbox lets none come here in plan mode; this check shares no code with that one.
        if let ChangesOp::Do(change) = &op
            && caller.plans()
        {
            return Err(HostError::Planned(format!("would write: {}", change.path())));
        }
        let over = Over(Arc::default());
        let mut task = Task {
            host: Arc::clone(&self.host),
            trees: caller.grants.changes.clone(),
            over: Arc::clone(&over.0),
            fetched: None,
            job: stage::Job::of(&caller.job, caller.module.as_str()),
            most: caller.may_write(),
        };
        if let ChangesOp::Do(change) = &op
            && let Change::Put { content: Content::Master { path, saltenv, .. }, .. } = &**change
        {
            let file = broker.files.fetch(caller, path, saltenv).await?;
            let missing = || HostError::Failed(format!("there is no salt://{path} in the environment {saltenv}"));
            task.fetched = Some(file.ok_or_else(missing)?);
        }
        let what = "changing files";
        let (done, planned) = match op {
            ChangesOp::Look { path, follow, hash } => {
                let look = move || {
                    let found = task.look(&path, follow, hash);
                    found.map_err(|failure| failure.at(&path))
                };
                let mut entry = said(caller, self.slow.ask(what, look).await?)?;
                name(&broker.users, entry.as_mut()).await?;
                return Ok(entry.map_or(Value::Nil, |entry| entry.value()));
            }
            ChangesOp::List { path, after } => {
                let list = move || {
                    let found = task.list(&path, after.as_deref());
                    found.map_err(|failure| failure.at(&path))
                };
                return said(caller, self.slow.ask(what, list).await?);
            }
            ChangesOp::Read { path, offset, length } => {
                let read = move || {
                    let found = task.read(&path, offset, length);
                    found.map_err(|failure| failure.at(&path))
                };
                let bytes = said(caller, self.slow.ask(what, read).await?)?;
                return Ok(bytes.map_or(Value::Nil, Value::Binary));
            }
            ChangesOp::Stage { stage, data } => {
                let take = move || task.host.stages.take(&task.job, stage, &data);
                let number = self.slow.ask(what, take).await?.map_err(HostError::Failed)?;
                return Ok(Value::from(number));
            }
            ChangesOp::Backups { path } => {
                let list = move || {
                    let found = task.backups(&path);
                    found.map_err(|failure| failure.at(&path))
                };
                return said(caller, self.slow.ask(what, list).await?);
            }
            ChangesOp::Do(change) => {
                let make = move || {
                    let done = task.make(&change);
                    done.map_err(|failure| failure.at(change.path()))
                };
                (said(caller, self.slow.ask(what, make).await?)?, false)
            }
            ChangesOp::Plan(change) => {
                let plan = move || {
                    let done = task.plan(&change);
                    done.map_err(|failure| failure.at(change.path()))
                };
                (said(caller, self.slow.ask(what, plan).await?)?, true)
            }
        };
        let Done { mut before, mut after, backup, count, written, new_files } = done;
        for entry in [&mut before, &mut after] {
            name(&broker.users, entry.as_mut()).await?;
        }
        let value = |entry: Option<Entry>| entry.map_or(Value::Nil, |entry| entry.value());
        Ok(map([
            ("before", value(before)),
            ("after", value(after)),
            ("planned", Value::from(planned)),
            ("backup", backup.map_or(Value::Nil, Value::from)),
            ("count", Value::from(count)),
            ("written", Value::from(written)),
            ("new_files", Value::from(new_files)),
        ]))
    }
}

impl Task {
    fn make(&self, change: &Change) -> Result<Done, Failure> {
        match change {
            Change::Put { path, content, owner, mode, backup, follow, expect } => {
                let how = put::How { owner, mode: *mode, backup: *backup, expect: expect.as_deref() };
                self.put(path, content, *follow, &how)
            }
            Change::MakeDirectory { path, parents, owner, mode } => self.make_directory(path, *parents, owner, *mode),
            Change::Symlink { path, target, owner, replace } => self.symlink(path, target, owner, *replace),
            Change::HardLink { path, target } => self.hard_link(path, target),
            Change::Rename { path, to } => self.rename(path, to),
            Change::Remove { path, recursive } => self.remove(path, *recursive),
            Change::SetPermissions { path, owner, mode, follow } => self.set_permissions(path, owner, *mode, *follow),
            Change::Touch { path, atime, mtime } => self.touch(path, *atime, *mtime),
            Change::RemoveBackup { path, name } => self.remove_backup(path, name),
        }
    }
}

/// Adds the names of owner and group.
async fn name(users: &Users, entry: Option<&mut Entry>) -> Result<(), HostError> {
    if let Some(entry) = entry {
        entry.user = text(&users.answer(UsersOp::UserName { uid: entry.uid }).await?);
        entry.group = text(&users.answer(UsersOp::GroupName { gid: entry.gid }).await?);
    }
    Ok(())
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// Adds to a refusal the configuration line that would grant the path.
pub(super) fn said<T>(caller: &Caller, done: Result<T, Said>) -> Result<T, HostError> {
    done.map_err(|said| match said {
        Said::Failed(why) => HostError::Failed(why),
        Said::Denied(why) => HostError::Denied(why),
        Said::NotGranted(path) => {
            let op = ChangesOp::Look { path: path.clone(), follow: false, hash: false };
            match brine_sandbox::check(caller, brine_sandbox::HostOp::Changes(op)) {
                Err(refusal) => refusal,
                Ok(_) => HostError::Denied(format!("{path} may only be looked at by this module")),
            }
        }
    })
}

/// The folder of the minion's own notes about changes.
fn folder(cachedir: &Path) -> std::path::PathBuf {
    cachedir.join("changes")
}
