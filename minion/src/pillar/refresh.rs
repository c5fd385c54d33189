//! The minion asks for its pillar at start, after each connection and when a job wants it. It sends its grains along: the master
//! compiles the pillar from them (PROTOCOL §6.4) and keeps them for targets. Brine's master keeps the summary of the modules
//! beside them, which is sent again when it has changed.

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use brine_protocol::value::{Value, ValueExt, empty_map, map};
use brine_sandbox::Sandbox;
use tracing::{debug, warn};

use super::own::OwnPillar;
use super::store::{PillarStore, Taken};
use super::told::Told;
use super::wanted::Wanted;
use crate::config::MinionOpts;
use crate::connection::{ChannelError, Masters};
use crate::grains::{FromModules, GrainsStore};

/// How often the minion looks whether its modules have changed since it told its master.
const LOOK_INTERVAL: Duration = Duration::from_secs(10);

/// Why there is no new pillar.
#[derive(Debug, thiserror::Error)]
pub enum PillarError {
    /// This host compiles its pillar itself, and cannot.
    #[error("this host's own pillar cannot be compiled: {0}")]
    Own(String),
    /// The master did not send one.
    #[error("the master gave no pillar: {0}")]
    Channel(#[from] ChannelError),
    /// The master sent something else.
    #[error("the master's pillar is no dict")]
    NoDict,
}

/// Refreshes the grains and the pillar.
pub struct Refresh {
    opts: Arc<MinionOpts>,
    masters: Masters,
    /// Compiles the pillar where there is no master.
    own: Option<OwnPillar>,
    grains: Arc<GrainsStore>,
    pillar: Arc<PillarStore>,
    /// One job at a time, because each request makes the master compile a pillar.
    turn: tokio::sync::Mutex<()>,
    sandbox: OnceLock<Weak<Sandbox>>,
    told: Arc<Told>,
}

impl Refresh {
    /// Makes the refresher; it asks the preferred of these masters, or `own` where there is none.
    pub(crate) fn new(
        opts: Arc<MinionOpts>,
        masters: Masters,
        own: Option<OwnPillar>,
        grains: Arc<GrainsStore>,
        pillar: Arc<PillarStore>,
    ) -> Arc<Self> {
        let (turn, sandbox, told) = (tokio::sync::Mutex::default(), OnceLock::new(), Arc::default());
        Arc::new(Self { opts, masters, own, grains, pillar, turn, sandbox, told })
    }

    /// Sets the sandbox whose modules the master is told of. Called once.
    pub fn attach(&self, sandbox: &Arc<Sandbox>) {
        let _ = self.sandbox.set(Arc::downgrade(sandbox));
    }

    /// Tells the master when the modules have changed, for as long as it is polled. A connection tells it by itself.
    pub async fn tell_changes(&self) {
        // What there was when it was no news.
        let mut known = None;
        loop {
            tokio::time::sleep(LOOK_INTERVAL).await;
            let now = self.sandbox.get().and_then(Weak::upgrade).and_then(|sandbox| sandbox.summary_basis());
            if now.is_none() || now == known {
                continue;
            }
            if self.summary().is_some_and(|now| self.told.is_news(&now)) {
                let _one_at_a_time = self.turn.lock().await;
                self.pillar_or_log().await;
            } else if self.told.has_told() {
                known = now;
            }
        }
    }

    /// Returns the summary of the modules. None while some of them are not ready.
    fn summary(&self) -> Option<Value> {
        self.sandbox.get()?.upgrade()?.summary()
    }

    /// Keeps what the master is told of the modules, for the next start. Called once, by the daemon.
    pub(crate) fn keep_summary(&self) {
        self.told.keep_in(&self.opts.cachedir);
    }

    /// Tells the master when the grains have changed, for as long as it is polled: they are collected every
    /// `grains_refresh_every`.
    pub async fn grains_now_and_then(&self) {
        let Some(every) = self.opts.collecting.refresh_every else { return };
        loop {
            tokio::time::sleep(every).await;
            let _one_at_a_time = self.turn.lock().await;
            let before = self.grains.now();
            self.grains().await;
            if self.grains.now() != before {
                self.pillar_or_log().await;
            }
        }
    }

    /// Collects the grains again, those of modules included.
    pub async fn grains(&self) {
        self.blocking(|grains| grains.refresh()).await;
        self.grains_of_modules().await;
    }

    /// Collects the grains of modules at the first connection; an earlier run may have kept them.
    pub async fn grains_at_start(&self) {
        if !self.grains.is_from_cache() {
            self.grains_of_modules().await;
        }
    }

    /// Asks the modules for their grains. With a master, its grants count, so that nothing is asked before the minion is
    /// signed in.
    async fn grains_of_modules(&self) {
        let Some(sandbox) = self.sandbox.get().and_then(Weak::upgrade) else { return };
        let master = match self.masters.preferred() {
            Err(_) => None,
            Ok(channel) => match channel.current_sign_in() {
                None => return,
                Some(live) => Some(Arc::clone(&live.master)),
            },
        };
        let host = self.grains.now();
        let found = FromModules::ask(&sandbox, &self.opts.id, master.as_deref(), &host).await;
        self.blocking(|grains| grains.put_modules(found)).await;
    }

    /// Collects the grains again after modules have changed, and has the master know them if that changed them.
    pub async fn modules_changed(&self) {
        let _one_at_a_time = self.turn.lock().await;
        let before = self.grains.now();
        self.grains_of_modules().await;
        if self.grains.now() != before {
            self.pillar_or_log().await;
        }
    }

    async fn blocking(&self, change: impl FnOnce(&GrainsStore) + Send + 'static) {
        let grains = Arc::clone(&self.grains);
        let _ = tokio::task::spawn_blocking(move || change(&grains)).await;
    }

    /// Asks for the pillar and keeps it.
    ///
    /// # Errors
    /// When the master sends no pillar.
    pub async fn pillar(&self, clean_cache: bool) -> Result<(), PillarError> {
        let fresh = self.ask(Wanted::own(&self.opts.config, clean_cache)).await?;
        match self.pillar.replace(fresh) {
            Taken::Whole => debug!("the pillar is here"),
            Taken::KeptLast(n) => warn!("the master could not make {n} parts of the pillar; the last good one stays"),
            Taken::InPart(n) => warn!("the master could not make {n} parts of the pillar; the rest is taken"),
        }
        Ok(())
    }

    /// As [`Refresh::pillar`]; a failure is logged and the last pillar stays.
    pub async fn pillar_or_log(&self) {
        if let Err(e) = self.pillar(false).await {
            warn!("the last pillar stays: {e}");
        }
    }

    /// Refreshes what a job asked for: grains first, because the master compiles the pillar from them.
    ///
    /// # Errors
    /// When the master sends no pillar.
    pub async fn for_job(&self, grains: bool, pillar: bool) -> Result<(), PillarError> {
        let _one_at_a_time = self.turn.lock().await;
        if grains {
            self.grains().await;
        }
        if pillar { self.pillar(false).await } else { Ok(()) }
    }

    /// Refreshes the pillar for a job; `clean_cache` as in [`Wanted`].
    ///
    /// # Errors
    /// When the master sends no pillar.
    pub async fn pillar_for_jobs(&self, clean_cache: bool) -> Result<(), PillarError> {
        let _one_at_a_time = self.turn.lock().await;
        self.pillar(clean_cache).await
    }

    /// Has the master know grains that a job changed. A failure is logged; without a master there is nobody to tell.
    pub async fn tell_grains(&self) {
        if self.masters.preferred().is_ok() {
            let _one_at_a_time = self.turn.lock().await;
            self.pillar_or_log().await;
        }
    }

    /// Asks for a pillar for one job; the pillar that the minion keeps stays.
    ///
    /// # Errors
    /// When the master sends no pillar.
    pub(crate) async fn pillar_for_job(&self, wanted: Wanted) -> Result<Value, PillarError> {
        let _one_at_a_time = self.turn.lock().await;
        self.ask(wanted).await
    }

    async fn ask(&self, wanted: Wanted) -> Result<Value, PillarError> {
        if let Some(own) = &self.own {
            return own.compile(&self.opts, Value::clone(&self.grains.now()), wanted).await;
        }
        let channel = self.masters.preferred()?;
        let summary = self.told.next(self.summary());
        let mut load = map([
            ("cmd", Value::from("_pillar")),
            ("id", Value::from(&self.opts.id)),
            ("grains", Value::clone(&self.grains.now())),
            ("saltenv", wanted.saltenv),
            ("pillarenv", wanted.pillarenv),
            ("pillar_override", wanted.overrides),
            ("extra_minion_data", empty_map()),
            ("ver", Value::from("2")),
            ("sandbox", summary.clone().unwrap_or(Value::Nil)),
        ]);
        if wanted.clean_cache {
            load.insert("clean_cache", true);
        }
        let answer = channel.request_pillar(load).await?;
        self.told.tell(summary).await;
        if matches!(answer, Value::Map(_)) { Ok(answer) } else { Err(PillarError::NoDict) }
    }
}
