//! The command lines of Brine's programs.
//!
//! * [`commandline`]: parsing with the options that all programs share, the Saltfile, completion, manual pages
//! * [`output`]: the outputters · [`print`]: what goes to stdout and stderr, by outputters and as text
//! * [`logging`]: log lines, to stderr, a file or syslog
//! * [`commands`]: `salt`, `salt-cp`, `salt-key` and `salt-run`; their binaries only call these
//!
//! The daemons, `salt-call` and `salt-module` use all of this but [`commands`].

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod commandline;
pub mod commands;
mod failure;
pub mod logging;
pub mod output;
pub mod print;

pub use failure::{Failure, Outcome, finish};
