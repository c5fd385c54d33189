//! The standard modules that a start has found and that are not verified and compiled yet. The names are known from the
//! start; each module is prepared when a job needs it or, on a minion, one after the other beside the jobs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::{Entry, InstallError, LeftOut, Store, Table, small_compilers};
use crate::ModuleName;

/// How long a job waits for a module, or for all of them. After that it fails with the advice to try again.
pub(crate) const WAIT: Duration = Duration::from_secs(50);
/// Modules that are prepared at once beside those that jobs wait for: one more than compile at once, so that a compiler
/// does not wait for the disk.
const AT_ONCE_MORE: usize = 1;

/// The modules that are prepared first, because most jobs use them or the modules before them call them.
const MOST_USED: [&str; 16] = [
    "test", "saltutil", "grains", "sys", "state", "cmd", "file", "pkg", "service", "pillar", "config", "user", "cp",
    "status", "sandbox", "schedule",
];

/// The modules that are not ready, the most used ones first.
#[derive(Debug, Default)]
pub(super) struct Pending {
    found: Mutex<Vec<Found>>,
    /// True when the sandbox ends: nothing more is prepared.
    ended: watch::Sender<bool>,
}

/// A module that was found.
#[derive(Debug)]
struct Found {
    name: ModuleName,
    /// Whether someone has begun to prepare it.
    begun: bool,
}

impl Pending {
    fn found(&self) -> MutexGuard<'_, Vec<Found>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes these names up, sorted by their use.
    pub(super) fn add(&self, names: impl Iterator<Item = ModuleName>) {
        let mut found = self.found();
        found.extend(names.map(|name| Found { name, begun: false }));
        found.sort_by_key(|found| MOST_USED.iter().position(|name| *name == found.name.as_str()).unwrap_or(usize::MAX));
    }

    /// Marks the next module of which nobody has begun the preparation.
    fn begin_next(&self) -> Option<ModuleName> {
        let mut found = self.found();
        let next = found.iter_mut().find(|found| !found.begun)?;
        next.begun = true;
        Some(next.name.clone())
    }

    /// Marks a module as begun, whoever did. None if it is not pending.
    fn begin(&self, name: &str) -> Option<ModuleName> {
        let mut found = self.found();
        let this = found.iter_mut().find(|found| found.name.as_str() == name)?;
        this.begun = true;
        Some(this.name.clone())
    }

    /// Returns the name of this module if it is pending.
    pub(super) fn name(&self, module: &str) -> Option<ModuleName> {
        self.found().iter().find(|found| found.name.as_str() == module).map(|found| found.name.clone())
    }

    fn remove(&self, name: &ModuleName) {
        let mut found = self.found();
        found.retain(|found| found.name != *name);
        if found.is_empty() {
            found.shrink_to_fit();
        }
    }
}

impl Store {
    /// Checks whether this is a standard module that is not prepared yet.
    pub(crate) fn is_pending(&self, name: &str) -> bool {
        self.pending.name(name).is_some()
    }

    /// Checks whether any standard module is not prepared yet.
    pub(crate) fn has_pending(&self) -> bool {
        !self.pending.found().is_empty()
    }

    /// Returns the standard modules that are not prepared yet, the most used ones first.
    pub(crate) fn pending(&self) -> Vec<ModuleName> {
        self.pending.found().iter().map(|found| found.name.clone()).collect()
    }

    /// Prepares all pending modules, as many at once as there are compilers. Goes on if the caller goes away.
    pub(crate) async fn settle_all(self: &Arc<Self>) {
        let workers = (0..small_compilers() + AT_ONCE_MORE).map(|_| tokio::spawn(Arc::clone(self).settle_next_ones()));
        futures_util::future::join_all(workers).await;
        // Others have begun to prepare these.
        for name in self.pending() {
            self.settle(name.as_str()).await;
        }
    }

    async fn settle_next_ones(self: Arc<Self>) {
        while let Some(name) = self.pending.begin_next() {
            self.settle_now(&name).await;
        }
    }

    /// Waits for a module that is still pending, and prepares it now if nobody does. The preparation continues if the
    /// caller goes away.
    pub(crate) async fn settle(self: &Arc<Self>, module: &str) {
        let Some(name) = self.pending.begin(module) else { return };
        let store = Arc::clone(self);
        let _ = tokio::spawn(async move { store.settle_now(&name).await }).await;
    }

    async fn settle_now(&self, name: &ModuleName) {
        let settled = async {
            let _alone = self.installing.enter(name).await;
            self.settle_locked(name).await;
        };
        let mut ended = self.pending.ended.subscribe();
        tokio::select! {
            biased;
            _ = ended.wait_for(|ended| *ended) => {}
            () = settled => {}
        }
    }

    /// Ends all preparations, and their compilers. What they have not finished is left to the next start.
    pub(crate) fn stop_settling(&self) {
        self.pending.ended.send_replace(true);
    }

    /// Prepares a standard module, unless that is done. The caller must hold the lock of this name.
    pub(crate) async fn settle_locked(&self, name: &ModuleName) {
        if !self.is_pending(name.as_str()) {
            return;
        }
        let read = self.standard(name).await;
        match read {
            Ok(entry) => entry.into_iter().for_each(|entry| self.switch_in_beside(&Arc::new(entry))),
            Err(error) => self.leave_out_beside(name, &error),
        }
        self.pending.remove(name);
    }

    /// Puts a standard module into the table, unless an installed one of its name is there. Why an installed one is left
    /// out stays known.
    fn switch_in_beside(&self, entry: &Arc<Entry>) {
        self.table.rcu(|table| {
            let mut table = Table::clone(table);
            table.entry(entry.name().clone()).or_insert_with(|| Arc::clone(entry));
            table
        });
    }

    fn leave_out_beside(&self, name: &ModuleName, error: &InstallError) {
        tracing::error!(module = %name, "{error}");
        self.all_left_out().entry(name.clone()).or_insert_with(|| LeftOut::new(error, None));
    }

    /// Drops a standard module that is not prepared yet, because another one has its name.
    pub(super) fn not_pending(&self, name: &ModuleName) {
        self.pending.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::name;

    #[test]
    fn the_most_used_come_first_and_each_is_begun_once() {
        let pending = Pending::default();
        pending.add(["acl", "file", "state", "test", "zfs"].into_iter().map(name));
        let names: Vec<String> = pending.found().iter().map(|found| found.name.to_string()).collect();
        assert_eq!(names, ["test", "state", "file", "acl", "zfs"]);
        assert!(pending.name("zfs").is_some() && pending.name("pkg").is_none());
        assert_eq!(pending.begin("file"), Some(name("file")));
        let next: Vec<ModuleName> = std::iter::from_fn(|| pending.begin_next()).collect();
        assert_eq!(next, ["test", "state", "acl", "zfs"].map(name));
        pending.remove(&name("test"));
        assert!(pending.name("test").is_none() && pending.name("file").is_some());
        assert_eq!(pending.begin("test"), None);
    }
}
