//! Why the host ends a guest that asked for something.

use std::sync::Arc;

use brine_sandbox_wire::Limits;

/// Why the host ended a guest that asked for something.
#[derive(Debug, thiserror::Error)]
pub enum HostFailure {
    /// The broker says no.
    #[error("{what} was refused: {error}")]
    Denied {
        /// The function, as in `grains.items`.
        what: &'static str,
        /// The broker's reason.
        error: String,
    },
    /// It went wrong.
    #[error("{what} failed: {error}")]
    Failed {
        /// The function, as in `grains.items`.
        what: &'static str,
        /// What happened.
        error: String,
    },
    /// The broker's answer is over [`Limits::host_bytes`].
    #[error("{what} has an answer of more than its limit of {}", size(*limit))]
    LargeAnswer {
        /// The function, as in `grains.items`.
        what: &'static str,
        /// In bytes.
        limit: u64,
    },
    /// It has too many files or sockets open.
    #[error("its limit of {0} open files is used up")]
    TooManyOpen(usize),
    /// All guests together have.
    #[error("no more files can be open: other jobs of modules with the same grants have as many as there may be")]
    NoFilesLeft,
    /// Over [`Limits::written`].
    #[error("its limit of {} written to files is used up{}", size(*limit), raised(module, "written", &bytes(more(*limit, Limits::default().written))))]
    TooMuchWritten {
        /// In bytes.
        limit: u64,
        /// The module's name.
        module: Arc<str>,
    },
    /// Over [`Limits::new_files`].
    #[error("its limit of {limit} new files is used up{}", raised(module, "new_files", &more(*limit, Limits::default().new_files).to_string()))]
    TooManyFiles {
        /// How many.
        limit: u64,
        /// The module's name.
        module: Arc<str>,
    },
    /// The minion has no more memory for it.
    #[error("{0}")]
    NoMemory(String),
    /// Over [`Limits::host_calls`].
    #[error("its limit of {0} calls to the host is used up")]
    TooManyCalls(u32),
}

/// The limit that an owner is shown who might raise it.
fn more(limit: u64, default: u64) -> u64 {
    if limit == 0 { default } else { limit.saturating_mul(2) }
}

/// As in the configuration: `8MiB`, `100KiB`, `10`
fn bytes(bytes: u64) -> String {
    let text = size(bytes);
    text.strip_suffix(" bytes").map_or_else(|| text.replace(' ', ""), str::to_owned)
}

/// How the owner raises a limit.
fn raised(module: &str, limit: &str, to: &str) -> String {
    format!(
        "; the owner of this host raises it in the entry of {module} under sandbox: modules: in the minion's configuration, as in \
         {module}: {{limits: {{{limit}: {to}}}}}"
    )
}

/// `64 MiB`, `100 KiB`, `1000 bytes`
#[must_use]
pub fn size(bytes: u64) -> String {
    match bytes {
        _ if bytes > 0 && bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ if bytes > 0 && bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        _ => format!("{bytes} bytes"),
    }
}
