//! The common part of salt-master and salt-minion as processes on a host. It knows nothing of their work.
//!
//! - [`mod@run`]: start-up, signals and end of every daemon
//! - [`args`]: the common options · [`reload`]: applies a changed configuration to a running daemon
//! - [`user`]: becoming another user · [`folders`]: the daemon's folders with owner and mode · [`trust`]: checks which
//!   users may write the configuration
//! - [`pidfile`], [`background`], [`signals`], [`limits`]: the process · [`service`]: messages to systemd
//! - [`connections`]: keepalive and heartbeat, which detect a vanished peer
//! - [`profile`]: the profile for SIGUSR2 · `trim.rs`: gives back the memory of what is over

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod args;
pub mod background;
pub mod connections;
pub mod folders;
pub mod limits;
pub mod pidfile;
pub mod profile;
pub mod reload;
pub mod run;
pub mod service;
pub mod signals;
mod trim;
pub mod trust;
pub mod user;

pub use run::run;

/// Why the process cannot start or continue: one line, and the exit code.
#[derive(Debug, thiserror::Error)]
#[error("{why}")]
pub struct ProcessError {
    why: String,
    code: i32,
}

impl ProcessError {
    /// With this line and exit code.
    pub fn new(code: i32, why: impl Into<String>) -> Self {
        Self { why: why.into(), code }
    }

    /// The process's exit code.
    pub const fn exit_code(&self) -> i32 {
        self.code
    }
}
