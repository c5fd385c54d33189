//! The operators' commands. Each module here is one command: its table of options, from which parsing and `--help` come,
//! and what it does. What commands share: [`options`] and [`target`].

mod candidates;
pub mod options;
pub mod salt;
pub mod salt_cp;
pub mod salt_key;
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
    // what still runs (a socket closing) is not worth waiting for
    runtime.shutdown_background();
    Ok(out)
}

/// Tells on stderr what helps beyond an error's own words, in the form of Salt's log lines.
fn print_hint(error: &ClientError) {
    if let Some(hint) = error.hint() {
        stderr(&format!("[ERROR   ] {hint}"));
    }
}
