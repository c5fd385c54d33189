//! What salt-master and salt-minion have in common as processes on a host. Knows nothing of what either does.
//!
//! - [`mod@run`]: start-up, signals and end, for every daemon
//! - [`args`]: their options, which are the same · [`reload`]: what a changed configuration means to a running one
//! - [`user`]: becoming another user · [`folders`]: the folders they work in, with owner and mode · [`trust`]: which users may write what they read
//! - [`pidfile`], [`background`], [`signals`], [`limits`]: the process · [`service`]: what systemd is told
//! - [`connections`]: how they find that a peer vanished
//! - [`profile`]: where the time goes, for SIGUSR2

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
pub mod trust;
pub mod user;

pub use run::run;

/// The process cannot become what it was asked to be: one line, and the code to end with.
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
