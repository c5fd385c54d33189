//! What every use of `salt-call` needs: the configuration, threads, and a way to fail.

use brine_protocol::exit;

use super::flags::Flags;
use crate::cli;
use crate::config::MinionOpts;

/// One thread for `salt-call`, one for the work that it waits for.
const WORKER_THREADS: usize = 2;

/// The exit code and the message of a failure.
#[derive(Debug)]
pub(super) struct Failure {
    pub(super) code: i32,
    pub(super) message: String,
}

impl Failure {
    pub(super) fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

/// Loads the minion's configuration; the command line overrides it.
pub(super) fn load_conf(flags: &Flags) -> Result<MinionOpts, Failure> {
    MinionOpts::load_with(&cli::conf_dir(flags.config_dir.as_deref()), flags.id.as_deref(), &flags.overrides())
        .map_err(|e| Failure::new(e.exit_code(), format!("salt-call: {e}")))
}

pub(super) fn start_threads() -> Result<tokio::runtime::Runtime, Failure> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKER_THREADS)
        .enable_all()
        .build()
        .map_err(|e| Failure::new(exit::SOFTWARE, format!("salt-call: no threads: {e}")))
}
