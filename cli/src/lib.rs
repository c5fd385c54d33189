//! The command lines of Brine's programs.
//!
//! * [`commandline`]: parsing with the shared options, the Saltfile, completion, manual pages
//! * [`output`]: the outputters · [`mod@print`]: writes to stdout and stderr, through outputters or as text
//! * [`logging`]: log lines to stderr, a file or syslog
//! * [`commands`]: `salt`, `salt-cp`, `salt-key`, `salt-receipt` and `salt-run`; their binaries only call these
//!
//! The daemons, `salt-call` and `salt-module` use everything except [`commands`].

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod commandline;
pub mod commands;
mod failure;
pub mod logging;
pub mod output;
pub mod print;

pub use failure::{Failure, Outcome, finish};
