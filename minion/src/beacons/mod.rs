//! Beacons: modules that look at this host now and then, and the events that they make of what they see.
//!
//! Which ones there are is said by the configuration, by the pillar, and by `beacons.add` and its relatives until the
//! minion ends. Each look is a call of its own in the sandbox, with the grants of the module's `beacons`; what it saw is
//! fired as `salt/beacon/<id>/<name>/…`, as Salt's minion does.
//!
//! - `config.rs` what is said of one beacon · `run.rs` when each of them looks · `look.rs` one look, and its events
//! - `edit.rs`   changes, and the file that keeps them · `lines.rs` how much they write to the log

mod config;
mod edit;
mod lines;
mod look;
mod run;

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Instant;

use brine_protocol::config::settings;
use brine_protocol::text::Turn;
use brine_protocol::value::{Value, ValueExt, empty_map};
use brine_sandbox::Sandbox;
use tokio::sync::watch;

use crate::config::MinionOpts;
use crate::pillar::PillarStore;
use lines::Lines;
pub(crate) use run::Runner;

/// The key of the configuration and of the pillar.
const BEACONS: &str = settings::BEACONS.row.name;
/// The key that turns all beacons, or one of them, on or off.
const ENABLED: &str = "enabled";

/// The beacons of this minion.
pub(crate) struct Beacons {
    opts: Arc<MinionOpts>,
    pillar: Arc<PillarStore>,
    /// Those of the configuration, as they were changed since.
    own: Mutex<Value>,
    /// Told of each change of `own`.
    changes: watch::Sender<()>,
    sandbox: OnceLock<Weak<Sandbox>>,
    /// The names of those that run; told of each change.
    names: watch::Sender<BTreeSet<String>>,
    /// The looks under way: by the jid of each the function that is called, and the beacon.
    looks: Mutex<HashMap<String, (String, String)>>,
    /// What each has written to the log.
    lines: Lines,
    /// Whether they run in this process.
    runs: AtomicBool,
    /// What was said last of each beacon, so that it is said once.
    said: Mutex<HashMap<String, String>>,
}

impl Beacons {
    /// The beacons of the configuration.
    pub(crate) fn new(opts: Arc<MinionOpts>, pillar: Arc<PillarStore>) -> Arc<Self> {
        let own = match opts.config.value(BEACONS) {
            Some(own @ Value::Map(_)) => own.clone(),
            Some(other) if other.truthy() => {
                tracing::error!("the setting beacons is to be a mapping of names, not {}", other.python_repr());
                empty_map()
            }
            _ => empty_map(),
        };
        let changes = watch::Sender::new(());
        let (runs, said) = (AtomicBool::new(false), Mutex::default());
        Arc::new(Self {
            opts,
            pillar,
            own: Mutex::new(own),
            changes,
            sandbox: OnceLock::new(),
            names: watch::Sender::default(),
            looks: Mutex::default(),
            lines: Lines::default(),
            runs,
            said,
        })
    }

    /// Sets the sandbox that has the modules. Called once, after it has started.
    pub(crate) fn attach(&self, sandbox: &Arc<Sandbox>) {
        let _ = self.sandbox.set(Arc::downgrade(sandbox));
    }

    fn sandbox(&self) -> Option<Arc<Sandbox>> {
        self.sandbox.get().and_then(Weak::upgrade)
    }

    /// The names of the beacons that run.
    pub(crate) fn names(&self) -> watch::Receiver<BTreeSet<String>> {
        self.names.subscribe()
    }

    /// The beacon whose look this call is. None for every other call.
    pub(crate) fn looking(&self, jid: &str, chain: &[String]) -> Option<String> {
        let looks = self.looks.lock().unwrap_or_else(PoisonError::into_inner);
        let (fun, name) = looks.get(jid)?;
        (*chain == [fun.as_str()]).then(|| name.clone())
    }

    /// Counts a line that a call writes to the log, or a function that it called. None if it is no look of a beacon.
    pub(crate) fn count_line(&self, jid: &str, message: &str) -> Option<(String, Turn)> {
        let looks = self.looks.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, name) = looks.get(jid)?;
        let name = name.clone();
        drop(looks);
        let turn = self.lines.count(&name, message, Instant::now());
        Some((name, turn))
    }

    fn own(&self) -> MutexGuard<'_, Value> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The beacons by name.
    ///
    /// # Errors
    /// Salt's words, when those of the pillar are no mapping.
    pub(crate) fn list(&self, pillar: bool, configuration: bool) -> Result<Value, String> {
        let mut all = empty_map();
        if pillar {
            match self.pillar.now().get(BEACONS) {
                None | Some(Value::Nil) => {}
                Some(Value::Map(of_pillar)) => add(&mut all, of_pillar),
                Some(_) => return Err("Beacons must be of type dict.".to_owned()),
            }
        }
        if configuration && let Value::Map(own) = &*self.own() {
            add(&mut all, own);
        }
        Ok(all)
    }

    /// Whether no beacon runs in this process, which is `salt-call`.
    fn runner_is_missing(&self) -> bool {
        !self.runs.load(Ordering::Relaxed)
    }

    /// Says something of a beacon, unless it was the last that was said of it.
    fn say_once(&self, name: &str, words: String) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.get(name) != Some(&words) {
            tracing::error!("{words}");
            said.insert(name.to_owned(), words);
        }
    }

    /// Forgets what was said of others than these.
    fn forget_said(&self, keep: impl Fn(&str) -> bool) {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).retain(|name, _| keep(name));
    }

    /// Whether the pillar has a beacon of this name, which only the master changes.
    fn is_of_pillar(&self, name: &str) -> bool {
        self.pillar.now().get(BEACONS).is_some_and(|beacons| beacons.has(name))
    }

    /// The modules that are beacons, sorted.
    ///
    /// # Errors
    /// One line, while the modules are not ready.
    pub(crate) async fn available(&self) -> Result<Vec<String>, String> {
        let Some(sandbox) = self.sandbox() else { return Ok(Vec::new()) };
        sandbox.settle_all().await?;
        let names = sandbox.names().into_iter();
        Ok(names.filter(|name| look::ready_module(&sandbox, name).is_ok()).collect())
    }
}

fn add(all: &mut Value, more: &[(Value, Value)]) {
    for (name, config) in more {
        if let Some(name) = name.text() {
            all.insert(name, config.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use brine_protocol::config::{Config, Role};

    use super::*;

    /// The beacons of a minion whose configuration is in this folder and says nothing.
    pub(super) fn beacons(folder: &Path) -> Arc<Beacons> {
        let config = Config::from_yaml("id: m1\n", &folder.join("minion"), Role::Minion).unwrap();
        let opts = MinionOpts::from_config(config, None).unwrap();
        let beacons = Beacons::new(Arc::new(opts), PillarStore::new());
        beacons.runs.store(true, Ordering::Relaxed);
        beacons
    }

    /// Each call has a jid of its own, and the bound is the beacon's.
    #[test]
    fn the_lines_of_all_calls_of_a_beacon_count_together() {
        let folder = tempfile::tempdir().unwrap();
        let beacons = beacons(folder.path());
        let line = "x".repeat(1_000);
        let mut said = 0;
        for call in 0..100 {
            let jid = format!("2026112013474024{call:04}");
            let look = ("flood.beacons.watch".to_owned(), "flood".to_owned());
            beacons.looks.lock().unwrap().insert(jid.clone(), look);
            for _ in 0..60 {
                let (name, turn) = beacons.count_line(&jid, &line).unwrap();
                assert_eq!(name, "flood");
                said += usize::from(turn.say);
            }
            beacons.looks.lock().unwrap().clear();
            assert_eq!(beacons.count_line(&jid, &line), None, "the log of other calls has the bounds of a call alone");
        }
        // The clock is real: a second minute may begin meanwhile.
        assert!(said <= 2 * 59, "{said}");
    }
}
