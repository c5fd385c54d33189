//! The set-up of `salt-call`: the configuration and the threads.

use brine_cli::Failure;
use brine_protocol::exit;

use super::flags::Flags;
use crate::cli;
use crate::config::MinionOpts;

/// Threads of the runtime: one for `salt-call` and one for the work that it waits for.
const WORKER_THREADS: usize = 2;

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
