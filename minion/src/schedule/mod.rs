//! The schedule: jobs that this minion starts at their time.
//!
//! - `table`: the entries of the configuration, of the pillar and of `schedule.*`, and when each fires next
//! - `saved`: `minion.d/_schedule.conf` · `journal`: which entries have fired, for a start after this process was killed
//! - `lost`: firings that did not happen, and who is told of them
//! - `whose`: whose an entry is, and whose rights its jobs have
//! - `runner`: the one timer, and the jobs
//!
//! **Whose rights.** An entry that stands in a configuration file of the owner runs with the rights of this host's own jobs. All others
//! are a master's doing and have the rights of its jobs, also when they come back from `_schedule.conf` after a restart: those of the
//! pillar have those of the preferred master, those by `schedule.*` have those of the master whose job it was, so that no master gets
//! another's rights by waiting. An owner's entry that was changed by `schedule.modify` is the master's.

mod journal;
mod lost;
mod runner;
mod saved;
mod table;
mod whose;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use brine_protocol::config::{Config, settings};
use brine_protocol::value::{Value, ValueExt, empty_map};
use brine_schedule::Now;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use tokio::sync::Notify;
use tracing::warn;

pub(crate) use runner::{Runner, Watchers};
pub(crate) use table::{Change, From};

use crate::config::MinionOpts;
use crate::grains::GrainsStore;
use crate::pillar::PillarStore;
use journal::Journal;
use saved::Saved;
use table::Table;

/// The schedule of this minion.
pub(crate) struct Schedule {
    table: Mutex<Table>,
    saved: Saved,
    pillar: Arc<PillarStore>,
    grains: Arc<GrainsStore>,
    /// Notified when the entries have changed.
    changed: Notify,
}

impl Schedule {
    /// The entries of the configuration and of `_schedule.conf`. `lasting` is false for a process that fires none.
    pub(crate) fn new(
        opts: &MinionOpts,
        pillar: Arc<PillarStore>,
        grains: Arc<GrainsStore>,
        lasting: bool,
    ) -> Arc<Self> {
        let saved = Saved::new(&opts.conf_dir);
        let owners = of_config(&opts.config);
        let kept = saved.read().unwrap_or_else(|why| {
            warn!("{why}; the jobs in it are not scheduled");
            empty_map()
        });
        let journal = if lasting { Journal::open(&opts.cachedir.join("schedule.journal")) } else { Journal::none() };
        let table = Mutex::new(Table::new(owners, kept, journal));
        Arc::new(Self { table, saved, pillar, grains, changed: Notify::new() })
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The entries from one place or from all, as Salt shows them.
    pub(crate) fn list(&self, from: From) -> Value {
        let mut table = self.table();
        self.take_pillar(&mut table);
        table.list(from, &now())
    }

    /// One entry with what is known of it; times are in this format.
    pub(crate) fn status(&self, name: &str, format: &str) -> Value {
        let mut table = self.table();
        self.take_pillar(&mut table);
        table.status(name, format, &now())
    }

    /// What `_schedule.conf` has.
    ///
    /// # Errors
    /// A sentence.
    pub(crate) fn saved(&self) -> Result<Value, String> {
        self.saved.read()
    }

    /// Changes the entries, and writes them to `_schedule.conf` with `persist`. Returns all entries. What the job of a
    /// master adds or changes (`asker` is its fingerprint) has that master's rights from then on.
    ///
    /// # Errors
    /// A sentence: what cannot be scheduled, or cannot be written.
    pub(crate) fn change(&self, change: Change, persist: bool, asker: Option<&str>) -> Result<Value, String> {
        let list = {
            let mut table = self.table();
            self.take_pillar(&mut table);
            let now = now();
            match change {
                Change::ReplaceSaved(mut schedule) => {
                    table::check(&schedule)?;
                    whose::note_master(&mut schedule, &self.saved.read().unwrap_or_else(|_| empty_map()), asker);
                    self.saved.write(&schedule)?;
                    return Ok(table.list(From::All, &now));
                }
                Change::Save => self.saved.write(&table.to_save())?,
                change => {
                    table.change(change, asker)?;
                    table.arm(&now, &|name| self.named(name));
                    if persist {
                        self.saved.write(&table.to_save())?;
                    }
                }
            }
            table.list(From::All, &now)
        };
        self.changed.notify_one();
        Ok(list)
    }

    /// Says which jobs an earlier process started and did not end. `is_kept` says whether the return of a job is there.
    pub(crate) fn tell_cut_off(&self, is_kept: impl Fn(&str) -> bool) {
        self.table().tell_cut_off(&is_kept);
    }

    /// Takes the entries that the owner's files have now.
    ///
    /// # Errors
    /// A sentence; then those before stay.
    pub(crate) fn reload(&self, config: &Config) -> Result<(), String> {
        self.table().take_owners(of_config(config))?;
        self.changed.notify_one();
        Ok(())
    }

    /// Takes the entries that the pillar has now.
    fn take_pillar(&self, table: &mut Table) {
        let pillar = self.pillar.now();
        table.take_pillar(pillar.get("schedule"));
    }

    /// A name of `when`, as `whens` in the pillar or the grains say.
    fn named(&self, name: &str) -> Option<String> {
        let (pillar, grains) = (self.pillar.now(), self.grains.now());
        [&pillar, &grains].into_iter().find_map(|data| data.get("whens")?.get_text(name).map(str::to_owned))
    }
}

/// The entries in the owner's files.
fn of_config(config: &Config) -> Value {
    config.value(settings::SCHEDULE.row.name).cloned().unwrap_or_else(empty_map)
}

/// The time now. The time since the start of the machine goes on while it is suspended.
fn now() -> Now {
    let up = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let up = Duration::new(up.tv_sec.unsigned_abs(), u32::try_from(up.tv_nsec).unwrap_or(0));
    Now { wall: Timestamp::now(), zone: TimeZone::system(), up }
}
