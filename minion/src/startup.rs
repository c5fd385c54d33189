//! The states that run once at the start: `startup_states` with `sls_list` and `top_file`.
//!
//! The SLS files are the master's, so the job has the rights of that master's jobs, as `state.apply` by it would.

use std::sync::Arc;

use brine_protocol::value::Value;
use tokio::sync::watch;
use tracing::{info, warn};

use crate::config::{MinionOpts, StartupStates};
use crate::connection::Masters;
use crate::jobs::{AsJid, Jobs, Reply, Source, own_job};
use crate::returns::ReturnSender;

/// Runs the states of the start.
pub(crate) struct Startup {
    pub(crate) opts: Arc<MinionOpts>,
    pub(crate) masters: Masters,
    pub(crate) jobs: Arc<Jobs>,
    pub(crate) returns: Arc<ReturnSender>,
    /// True when the pillar and the modules are here.
    pub(crate) ready: watch::Receiver<bool>,
}

impl Startup {
    /// Waits for the pillar and runs the states, if any are configured.
    pub(crate) async fn run(mut self) {
        let Some(states) = &self.opts.startup_states else { return };
        let Ok(channel) = self.masters.preferred().map(Arc::clone) else { return };
        if self.ready.wait_for(|ready| *ready).await.is_err() {
            return;
        }
        let (fun, args) = match states {
            StartupStates::Highstate => ("state.highstate", Vec::new()),
            StartupStates::Sls(list) => ("state.sls", vec![list.clone()]),
            StartupStates::Top(file) => ("state.top", vec![Value::from(file.as_str())]),
        };
        let master = Some(Arc::clone(&channel.signed_in().await.master));
        info!("the states of the start: {fun}");
        let job = own_job(&self.opts, fun, args, None, Vec::new());
        let reply = Reply::Master { returns: Arc::clone(&self.returns), as_jid: Some(AsJid::Requested) };
        if self.jobs.submit(Source::Own { master, recorded: true, reply, on_end: None }, job).is_none() {
            warn!("the states of the start did not run");
        }
    }
}
