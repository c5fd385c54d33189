//! The operators' commands. Each module is one command: its table of options, which determines parsing and `--help`,
//! and its work. [`options`] and [`target`] are shared.

mod candidates;
pub mod options;
pub mod salt;
pub mod salt_cp;
pub mod salt_key;
pub mod salt_receipt;
pub mod salt_run;
pub mod target;

use brine_client::ClientError;
use brine_protocol::exit;

use crate::Failure;
use crate::print::stderr;

/// Runs a command's future. One thread is enough: it waits for one socket or two.
fn block_on<T>(future: impl Future<Output = T>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(exit::SOFTWARE, format!("cannot start: {error}")))?;
    let out = runtime.block_on(future);
    // unfinished work (a socket that is closing) is not waited for
    runtime.shutdown_background();
    Ok(out)
}

/// Prints advice beyond an error's own text to stderr, in the form of Salt's log lines.
fn print_hint(error: &ClientError) {
    if let Some(hint) = error.hint() {
        stderr(&format!("[ERROR   ] {hint}"));
    }
}
