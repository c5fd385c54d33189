//! Fills the mine at start and every `mine_interval`, if the configuration or the pillar has `mine_functions`. It runs
//! `mine.update` in the sandbox like any job.

use std::sync::Arc;
use std::time::Duration;

use brine_protocol::config::settings;
use brine_protocol::job::FunCall;
use brine_protocol::value::{Value, ValueExt, map};
use tokio::sync::watch;

use crate::config::MinionOpts;
use crate::connection::Masters;
use crate::jobs::{Jobs, Source, local_job};
use crate::pillar::PillarStore;

const CONFIGURED: &str = settings::MINE_FUNCTIONS.row.name;
const UPDATE: &str = "mine.update";

/// Fills the mine.
pub(crate) struct Mine {
    pub(crate) opts: Arc<MinionOpts>,
    pub(crate) masters: Masters,
    pub(crate) pillar: Arc<PillarStore>,
    pub(crate) jobs: Arc<Jobs>,
    /// True when the pillar and the modules are here.
    pub(crate) ready: watch::Receiver<bool>,
}

impl Mine {
    /// Fills the mine until the minion ends; returns at once if the mine is disabled.
    pub(crate) async fn run(mut self) {
        let Some(interval) = self.opts.mine_interval else { return };
        if self.ready.wait_for(|ready| *ready).await.is_err() {
            return;
        }
        loop {
            self.update().await;
            tokio::time::sleep(interval.max(Duration::from_secs(1))).await;
        }
    }

    async fn update(&self) {
        let some = |value: Option<&Value>| value.is_some_and(ValueExt::truthy);
        if !some(self.opts.config.value(CONFIGURED)) && !some(self.pillar.now().get(CONFIGURED)) {
            return;
        }
        let Ok(channel) = self.masters.preferred() else { return };
        let master = Arc::clone(&channel.signed_in().await.master);
        // `test: True` in the configuration is for jobs that somebody asks for.
        let real = map([("__kwarg__", Value::from(true)), ("test", Value::from(false))]);
        let update = FunCall { fun: UPDATE.to_owned(), arg: vec![real] };
        let job = local_job(&self.opts.user, update, Vec::new());
        if let Some(task) = self.jobs.submit(Source::Mine(master), job) {
            let _ = task.await;
        }
    }
}
