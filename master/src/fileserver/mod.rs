//! The file server (§6.1, §6.5): the files under `file_roots` (`brine_fileserver`) for every accepted minion, a bounded number of
//! requests at a time; and what minions push.

mod opts;
mod recv;

use std::path::Path;
use std::sync::Arc;

use arc_swap::ArcSwap;
use brine_fileserver::FileTree;
pub(crate) use brine_fileserver::{FileRequest, Root, Roots, ServedModule, WholeFile, roots};
use brine_protocol::ids::MinionId;
use brine_protocol::value::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::of_one::OfOne;
pub(crate) use opts::FileOpts;

/// Bound on concurrent requests that read files. More would only make the disk seek.
const AT_A_TIME: usize = 32;
/// Bound on those of one minion: a Brine minion has no more under way. Lists of large trees take long, and would keep the files of all others
/// waiting.
const OF_ONE: usize = 12;

/// The file server.
pub(crate) struct FileServer {
    inner: ArcSwap<Inner>,
    at_a_time: Arc<Semaphore>,
    of_one: OfOne,
}

struct Inner {
    tree: FileTree,
    received: recv::PushedFiles,
}

impl FileServer {
    /// Makes a file server. Files that minions push are stored below `cachedir`.
    pub(crate) fn new(opts: &FileOpts, cachedir: &Path) -> Result<Self, String> {
        let received = recv::PushedFiles::new(cachedir.join("minions"), opts);
        let inner = Inner { tree: FileTree::new(&opts.tree)?, received };
        Ok(Self {
            inner: ArcSwap::from_pointee(inner),
            at_a_time: Arc::new(Semaphore::new(AT_A_TIME)),
            of_one: OfOne::new(OF_ONE),
        })
    }

    /// Forgets unused hashes, and old sums of pushed files.
    pub(crate) fn upkeep(&self) {
        let inner = self.inner.load();
        inner.tree.upkeep();
        inner.received.upkeep();
    }

    /// Takes over the settings of another file server.
    pub(crate) fn replace(&self, other: &Self) {
        self.inner.store(other.inner.load_full());
    }

    /// Answers a request of a minion. A missing file has Salt's empty answer.
    pub(crate) async fn answer_to(&self, id: &MinionId, what: FileRequest, load: Value) -> Value {
        let own = self.of_one.turn(id).await;
        self.answer_within(own, what, load).await
    }

    /// Answers a request of the master itself.
    pub(crate) async fn answer(&self, what: FileRequest, load: Value) -> Value {
        self.answer_within(None, what, load).await
    }

    /// Answers a request that has a turn of its minion.
    async fn answer_within(&self, own: Option<OwnedSemaphorePermit>, what: FileRequest, load: Value) -> Value {
        if what == FileRequest::Envs {
            return self.inner.load().tree.answer(what, &load);
        }
        let Ok(permit) = Arc::clone(&self.at_a_time).acquire_owned().await else { return Value::Nil };
        let inner = self.inner.load_full();
        let work = move || {
            let answer = inner.tree.answer(what, &load);
            drop((permit, own));
            answer
        };
        // A panic in the task becomes nil, like a closed semaphore above.
        tokio::task::spawn_blocking(work).await.unwrap_or(Value::Nil)
    }

    /// Returns the environments.
    pub(crate) fn envs(&self) -> Vec<String> {
        self.inner.load().tree.envs()
    }

    /// Returns the files of an environment. Blocks while it reads the disk.
    pub(crate) fn files(&self, saltenv: &str) -> Vec<String> {
        self.inner.load().tree.files(saltenv)
    }

    /// Reads a file of an environment, as minions get it: none if it is not served. Blocks while it reads the disk.
    ///
    /// # Errors
    /// It has more than `most` bytes, or cannot be read.
    pub(crate) fn whole(&self, saltenv: &str, path: &str, most: u64) -> Result<Option<WholeFile>, String> {
        self.inner.load().tree.whole(saltenv, path, most)
    }

    /// Lists the modules of all environments. Blocks while it reads the disk.
    pub(crate) fn modules(&self) -> Vec<ServedModule> {
        self.inner.load().tree.modules()
    }

    /// Forgets the lists of the environments for which `is_meant` is true. Returns their names.
    pub(crate) fn forget_lists(&self, is_meant: impl Fn(&str) -> bool) -> Vec<String> {
        self.inner.load().tree.forget_lists(is_meant)
    }

    /// Stores a chunk of a file that a minion pushes (§6.6). The error is the reason of a refusal.
    pub(crate) async fn receive(&self, id: MinionId, load: Value) -> Result<(), String> {
        let failed = |_| "it failed".to_owned();
        let own = self.of_one.turn(&id).await;
        let permit = Arc::clone(&self.at_a_time).acquire_owned().await.map_err(|_| "it failed".to_owned())?;
        let inner = self.inner.load_full();
        let work = move || {
            let stored = inner.received.store(&id, &load);
            drop((permit, own));
            stored
        };
        tokio::task::spawn_blocking(work).await.map_err(failed)?
    }
}

#[cfg(test)]
mod tests;
