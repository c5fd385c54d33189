//! The mine is filled at start and every `mine_interval`, where functions for it are configured (`mine_functions` in the
//! configuration or the pillar): by `mine.update`, which runs in the sandbox as any job does.

use std::sync::Arc;
use std::time::Duration;

use brine_protocol::config::settings;
use brine_protocol::ids::Jid;
use brine_protocol::job::FunCall;
use brine_protocol::value::{Value, ValueExt};
use tokio::sync::Notify;
use tracing::{debug, warn};

use crate::config::MinionOpts;
use crate::connection::Channel;
use crate::facts::PillarStore;
use crate::jobs::{Origin, Runner};

const CONFIGURED: &str = settings::MINE_FUNCTIONS.row.name;
const UPDATE: &str = "mine.update";

/// Fills the mine.
pub(crate) struct Mine {
    pub(crate) opts: Arc<MinionOpts>,
    pub(crate) channel: Arc<Channel>,
    pub(crate) pillar: Arc<PillarStore>,
    pub(crate) runner: Runner,
    /// The pillar and the modules are here.
    pub(crate) ready: Arc<Notify>,
}

impl Mine {
    /// Goes on for ever, if the mine is enabled.
    pub(crate) async fn run(self) {
        let Some(interval) = self.opts.mine_interval else { return };
        self.ready.notified().await;
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
        let live = self.channel.signed_in().await;
        let jid = Jid::now();
        let from =
            Origin { jid: jid.as_str(), user: &self.opts.user, master: Some(&live.master), ends: None, end: None };
        let outcome = self.runner.call(&from, &FunCall { fun: UPDATE.to_owned(), arg: Vec::new() }).await;
        match outcome.success {
            true => debug!("the mine is filled"),
            false => warn!("the mine could not be filled: {}", outcome.value.text().unwrap_or_default()),
        }
    }
}
