//! The reasons for which the host ends a guest at a request.

use std::sync::Arc;

use brine_sandbox_wire::Limits;

/// Why the host ended a guest at a request.
#[derive(Debug, thiserror::Error)]
pub enum HostFailure {
    /// The broker refused the request.
    #[error("{what} was refused: {error}")]
    Denied {
        /// The function, as in `grains.items`.
        what: &'static str,
        /// The broker's reason.
        error: String,
    },
    /// In plan mode, the guest came to something that it would change.
    #[error("in test mode it {0}")]
    Planned(String),
    /// The request failed.
    #[error("{what} failed: {error}")]
    Failed {
        /// The function, as in `grains.items`.
        what: &'static str,
        /// The cause.
        error: String,
    },
    /// The broker's answer exceeds [`Limits::host_bytes`].
    #[error("{what} has an answer of more than its limit of {}", size(*limit))]
    LargeAnswer {
        /// The function, as in `grains.items`.
        what: &'static str,
        /// In bytes.
        limit: u64,
    },
    /// The guest has too many open files or sockets.
    #[error("its limit of {0} open files is used up")]
    TooManyOpen(usize),
    /// All guests together have too many open files.
    #[error("no more files can be open: other jobs of modules with the same grants have as many as there may be")]
    NoFilesLeft,
    /// The guest exceeded [`Limits::written`].
    #[error("its limit of {} written to files is used up{}", size(*limit), raised(module, "written", &bytes(more(*limit, Limits::default().written))))]
    TooMuchWritten {
        /// In bytes.
        limit: u64,
        /// The module's name.
        module: Arc<str>,
    },
    /// The guest exceeded [`Limits::new_files`].
    #[error("its limit of {limit} new files is used up{}", raised(module, "new_files", &more(*limit, Limits::default().new_files).to_string()))]
    TooManyFiles {
        /// The number of files.
        limit: u64,
        /// The module's name.
        module: Arc<str>,
    },
    /// The minion has no more memory for the guest.
    #[error("{0}")]
    NoMemory(String),
    /// The replayed call cannot go on: it asks something else, or the recording has no answer.
    #[error("the recording has no answer")]
    Replayed,
    /// The guest exceeded [`Limits::host_calls`].
    #[error("its limit of {0} calls to the host is used up")]
    TooManyCalls(u32),
}

/// Returns a higher limit to suggest to the owner.
fn more(limit: u64, default: u64) -> u64 {
    if limit == 0 { default } else { limit.saturating_mul(2) }
}

/// Formats bytes as in the configuration: `8MiB`, `100KiB`, `10`.
fn bytes(bytes: u64) -> String {
    let text = size(bytes);
    text.strip_suffix(" bytes").map_or_else(|| text.replace(' ', ""), str::to_owned)
}

/// Returns the end of a message that says how the owner raises a limit.
fn raised(module: &str, limit: &str, to: &str) -> String {
    format!(
        "; the owner of this host raises it in the entry of {module} under sandbox: modules: in the minion's configuration, as in \
         {module}: {{limits: {{{limit}: {to}}}}}"
    )
}

/// Formats bytes for people: `64 MiB`, `100 KiB`, `1000 bytes`.
#[must_use]
pub fn size(bytes: u64) -> String {
    match bytes {
        _ if bytes > 0 && bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ if bytes > 0 && bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        _ => format!("{bytes} bytes"),
    }
}
