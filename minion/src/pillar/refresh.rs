//! The minion asks for its pillar at start, after each connection and when a job wants it. It sends its grains along: the master
//! compiles the pillar from them (PROTOCOL §6.4) and keeps them for targets. Brine's master keeps the summary of the modules
//! beside them, which is sent again when it has changed.

use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use brine_protocol::config::settings;
use brine_protocol::msgpack;
use brine_protocol::value::{Value, empty_map, map};
use brine_sandbox::Sandbox;
use tracing::{debug, warn};

use super::store::PillarStore;
use crate::config::MinionOpts;
use crate::connection::{ChannelError, Masters};
use crate::grains::GrainsStore;

/// How often the minion looks whether its modules have changed since it told its master.
const LOOK_INTERVAL: Duration = Duration::from_secs(10);
/// Largest summary of the modules in bytes that is sent; the master refuses larger ones too.
const SUMMARY_BYTES_MAX: usize = 128 << 10;

/// Why there is no new pillar.
#[derive(Debug, thiserror::Error)]
pub enum PillarError {
    /// `salt-call --local`
    #[error("there is no master to ask for the pillar: this runs without one (--local, file_client)")]
    NoMaster,
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
    grains: Arc<GrainsStore>,
    pillar: Arc<PillarStore>,
    /// One job at a time, because each request makes the master compile a pillar.
    turn: tokio::sync::Mutex<()>,
    sandbox: OnceLock<Weak<Sandbox>>,
    /// The summary that the master was told last.
    told: Mutex<Option<Value>>,
}

impl Refresh {
    /// Makes the refresher; it asks the preferred of these masters.
    pub fn new(
        opts: Arc<MinionOpts>,
        masters: Masters,
        grains: Arc<GrainsStore>,
        pillar: Arc<PillarStore>,
    ) -> Arc<Self> {
        let (turn, sandbox, told) = (tokio::sync::Mutex::default(), OnceLock::new(), Mutex::default());
        Arc::new(Self { opts, masters, grains, pillar, turn, sandbox, told })
    }

    /// Sets the sandbox whose modules the master is told of. Called once.
    pub fn attach(&self, sandbox: &Arc<Sandbox>) {
        let _ = self.sandbox.set(Arc::downgrade(sandbox));
    }

    /// Tells the master when the modules have changed, for as long as it is polled. A connection tells it by itself.
    pub async fn tell_changes(&self) {
        loop {
            tokio::time::sleep(LOOK_INTERVAL).await;
            let is_news = self.told().as_ref().is_some_and(|told| self.summary().is_some_and(|now| now != *told));
            if is_news {
                let _one_at_a_time = self.turn.lock().await;
                self.pillar_or_log().await;
            }
        }
    }

    fn summary(&self) -> Option<Value> {
        let summary = self.sandbox.get()?.upgrade()?.summary();
        (msgpack::encode_disk(&summary).len() <= SUMMARY_BYTES_MAX).then_some(summary)
    }

    fn told(&self) -> std::sync::MutexGuard<'_, Option<Value>> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Collects the grains again.
    pub async fn grains(&self) {
        let grains = Arc::clone(&self.grains);
        let _ = tokio::task::spawn_blocking(move || grains.refresh()).await;
    }

    /// Asks for the pillar and keeps it.
    ///
    /// # Errors
    /// When the master sends no pillar.
    pub async fn pillar(&self) -> Result<(), PillarError> {
        let fresh = self.ask().await?;
        self.pillar.replace(fresh);
        Ok(())
    }

    /// As [`Refresh::pillar`]; a failure is logged and the last pillar stays.
    pub async fn pillar_or_log(&self) {
        match self.pillar().await {
            Ok(()) => debug!("the pillar is here"),
            Err(e) => warn!("the last pillar stays: {e}"),
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
        if pillar { self.pillar().await } else { Ok(()) }
    }

    /// Asks for a pillar for one job; the pillar that the minion keeps stays.
    ///
    /// # Errors
    /// When the master sends no pillar.
    pub async fn pillar_for_job(&self) -> Result<Value, PillarError> {
        let _one_at_a_time = self.turn.lock().await;
        self.ask().await
    }

    async fn ask(&self) -> Result<Value, PillarError> {
        let channel = self.masters.preferred().map_err(|_| PillarError::NoMaster)?;
        let written = |name: &str| self.opts.config.value(name).cloned().unwrap_or(Value::Nil);
        let summary = self.summary();
        let load = map([
            ("cmd", Value::from("_pillar")),
            ("id", Value::from(&self.opts.id)),
            ("grains", Value::clone(&self.grains.now())),
            ("saltenv", written(settings::SALTENV.row.name)),
            ("pillarenv", written(settings::PILLARENV.row.name)),
            ("pillar_override", empty_map()),
            ("extra_minion_data", empty_map()),
            ("ver", Value::from("2")),
            ("sandbox", summary.clone().unwrap_or(Value::Nil)),
        ]);
        let answer = channel.request_pillar(load).await?;
        *self.told() = summary;
        if matches!(answer, Value::Map(_)) { Ok(answer) } else { Err(PillarError::NoDict) }
    }
}
