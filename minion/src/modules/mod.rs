//! Modules from the master's file server: `salt://_modules/NAME.wasm`, fetched by hash, verified and switched in whole.
//!
//! Modules are fetched at start, when `saltutil.sync_modules` asks for it, and when a job names a module that is not here. A module that
//! fails is reported, and the last good version stays.
//!
//! - `fetch.rs`: one module from the master; `partial.rs`: the part of a module that an interrupted fetch left
//! - `sync.rs`: fetches and removes all modules of an environment; `held_event.rs`: the event that tells the master of a held module

mod fetch;
mod held_event;
mod partial;
mod sync;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use brine_protocol::ids::Saltenv;
use brine_sandbox::{Lanes, ModuleName, OneEach, Sandbox};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tracing::{debug, warn};

use crate::config::ModuleOpts;
use crate::events::Events;
use crate::fileclient::FileClient;
use crate::joined::joined;
use crate::lines::Lines;
use partial::Partials;

/// The folder on the file server.
const FOLDER: &str = "_modules";
const SUFFIX: &str = ".wasm";
/// A module that the master does not have is not asked for again within this time, so that a loop of jobs does not become a loop of
/// requests.
const ABSENT_FOR: Duration = Duration::from_secs(30);
const MAX_ABSENT: usize = 1024;
/// The longest time that a job waits for an unknown module.
const ENSURE_TIMEOUT: Duration = Duration::from_secs(50);

/// Small modules that are fetched at once, beside one large module. This also bounds the requests to the master.
const SMALL_FETCHES: usize = 3;
/// Upper bound on the fetches that are under way or wait. A fetch goes on without the job that asked for it, so the bound on jobs is not
/// enough while the master is slow.
const MAX_FETCHES: usize = 32;
const TOO_MANY: &str = "many fetches of modules wait for the master already; try again later";

/// Fetches modules.
pub struct Modules {
    client: Option<FileClient>,
    sandbox: OnceLock<Weak<Sandbox>>,
    /// Not set without a master.
    events: OnceLock<Arc<Events>>,
    saltenv: Saltenv,
    autoload: bool,
    clean: bool,
    /// One fetch of a module at a time. A second one waits for the first and then looks again.
    fetching: OneEach,
    /// Lets modules of different names be fetched at once.
    lanes: Lanes,
    /// One sync at a time.
    syncing: tokio::sync::Mutex<()>,
    partials: Partials,
    places: Arc<Semaphore>,
    /// The time of the last question to the master and why it gave no module, by the module's name.
    absent: Mutex<HashMap<String, (Instant, Option<String>)>>,
    /// What the log has about modules that are not taken.
    lines: Lines,
}

impl Modules {
    /// With a file server, or without one for `salt-call --local`. `dir` is the folder of fetched modules.
    pub fn new(client: Option<FileClient>, opts: &ModuleOpts, dir: &Path) -> Arc<Self> {
        let max = client.as_ref().map_or(0, FileClient::max_file);
        Arc::new(Self {
            client,
            sandbox: OnceLock::new(),
            events: OnceLock::new(),
            saltenv: opts.saltenv.clone(),
            autoload: opts.autoload,
            clean: opts.clean,
            fetching: OneEach::default(),
            lanes: Lanes::new(SMALL_FETCHES),
            syncing: tokio::sync::Mutex::new(()),
            partials: Partials::new(dir, max),
            places: Arc::new(Semaphore::new(MAX_FETCHES)),
            absent: Mutex::new(HashMap::new()),
            lines: Lines::about("modules that are not taken"),
        })
    }

    /// Sets the sandbox that installs the modules. Called once.
    pub fn attach(&self, sandbox: &Arc<Sandbox>) {
        let _ = self.sandbox.set(Arc::downgrade(sandbox));
    }

    /// Sets the events that tell the master of held modules. Called once, if there is a master.
    pub fn attach_events(&self, events: Arc<Events>) {
        let _ = self.events.set(events);
    }

    fn sandbox(&self) -> Result<Arc<Sandbox>, String> {
        self.sandbox.get().and_then(Weak::upgrade).ok_or_else(|| "the sandbox is not running".to_owned())
    }

    /// Waits for a module of this host that is not ready yet. Fetches a module that is not here, if the master has it.
    ///
    /// # Errors
    /// A sentence that can follow "... is not available." and says why the module could not be fetched. That the master does not have it
    /// is no error.
    pub async fn ensure(self: &Arc<Self>, module: &str) -> Result<(), String> {
        let sandbox = self.sandbox()?;
        sandbox.settle(module).await;
        if sandbox.describe(module).is_some() || !self.autoload || self.client.is_none() {
            return Ok(());
        }
        let Ok(name) = module.parse::<ModuleName>() else { return Ok(()) };
        if let Some(why) = self.recall_failure(module) {
            return why.map_or(Ok(()), Err);
        }
        // The job itself waits for a place, so the bound on jobs bounds this queue.
        let place = tokio::time::timeout(ENSURE_TIMEOUT, Arc::clone(&self.places).acquire_owned()).await;
        let Ok(Ok(place)) = place else { return Err(format!("It was not looked for at the master: {TOO_MANY}.")) };
        let this = Arc::clone(self);
        // The task goes on when its job is ended, so that no fetch stops halfway.
        let fetch = tokio::spawn(async move {
            let _place = place;
            this.fetch_missing(&name).await
        });
        match tokio::time::timeout(ENSURE_TIMEOUT, joined(fetch)).await {
            Ok(Some(result)) => result,
            Ok(None) => Err("Fetching it from the master failed.".to_owned()),
            Err(_) => Err(format!("Fetching it from the master takes longer than {ENSURE_TIMEOUT:?}; try again.")),
        }
    }

    async fn fetch_missing(&self, name: &ModuleName) -> Result<(), String> {
        let _alone = self.fetching.enter(name).await;
        let sandbox = self.sandbox()?;
        if sandbox.describe(name.as_str()).is_some() {
            return Ok(());
        }
        if let Some(why) = self.recall_failure(name.as_str()) {
            return why.map_or(Ok(()), Err);
        }
        let held_before = Self::held_version(&sandbox, name);
        let asked = Instant::now();
        let fetched = self.fetch_alone(&sandbox, name, &self.saltenv).await;
        self.notify_if_held(&sandbox, name, held_before).await;
        let result = match fetched {
            Ok(Some(_)) => return Ok(()),
            Ok(None) => {
                debug!("the master has no module {name} in {}", self.saltenv);
                Ok(())
            }
            Err(e) => {
                if self.lines.may() {
                    warn!("the module {name} could not be had: {e}");
                }
                Err(format!("The master's module {name} could not be had: {e}."))
            }
        };
        let mut absent = self.absent();
        if absent.len() >= MAX_ABSENT {
            absent.retain(|_, (at, _)| at.elapsed() < ABSENT_FOR);
        }
        if absent.len() < MAX_ABSENT {
            absent.insert(name.to_string(), (asked, result.clone().err()));
        }
        result
    }

    /// The last failure to fetch a module: the outer none if there is none, the inner none if the master does not have the module.
    fn recall_failure(&self, module: &str) -> Option<Option<String>> {
        self.absent().get(module).filter(|(at, _)| at.elapsed() < ABSENT_FOR).map(|(_, why)| why.clone())
    }

    fn absent(&self) -> std::sync::MutexGuard<'_, HashMap<String, (Instant, Option<String>)>> {
        self.absent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
