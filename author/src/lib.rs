//! `salt-module`: the tool for authors and auditors of modules.
//!
//! - `cli.rs`      the command line
//! - `new.rs`, `build.rs` create and build a module · `lang/` the languages
//! - `wit.rs`      a module's WIT and the host's · `tool.rs` build programs
//! - `inspect.rs`, `diff.rs` a module's description and imports (`asks.rs`), read in the compiler's cage (`cage.rs`)
//! - `run.rs`      one call of a function, with the options of `grants.rs`
//! - `replay/`     calls again from their recordings
//! - `docs.rs`     writes doc comments into a component
//! - `file.rs`     a module's file and the files beside it: bounded reads, atomic writes
//! - `keys.rs`     secret keys, public keys, passwords · `sign.rs`, `verify.rs`, `signatures.rs`
//!
//! Invariants: an audited module is hostile, so outside the compiler's cage this program parses nothing but a
//! component's outermost sections. Files are written atomically, and a secret key is never overwritten.

#![warn(clippy::print_stdout, clippy::print_stderr)]

/// Prints a line for people. A module's texts are escaped, so that they cannot control the terminal.
macro_rules! say {
    ($($what:tt)*) => { brine_cli::print::stdout(&format!($($what)*)) };
}

mod asks;
mod build;
mod cage;
mod cli;
mod diff;
mod docs;
mod failure;
mod file;
mod grants;
mod inspect;
mod keys;
mod lang;
mod new;
mod replay;
mod run;
mod sign;
mod signatures;
mod tool;
mod verify;
mod wit;

use std::ffi::OsString;
use std::process::ExitCode;

use brine_cli::{commandline, print};
use clap::{CommandFactory as _, Parser};

use cli::{Command, Options};
use failure::Failure;

/// Runs the program.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    commandline::complete_or_document(&Options::command(), &[]);
    let options = match Options::try_parse_from(args) {
        Ok(options) => options,
        Err(error) => {
            return if commandline::explain(&error) { ExitCode::from(failure::USAGE) } else { ExitCode::SUCCESS };
        }
    };
    match run(options.command) {
        Ok(code) => code,
        Err(failure) => {
            print::stderr(&format!("salt-module: {failure}"));
            ExitCode::from(failure.code)
        }
    }
}

fn run(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::New(options) => new::run(&options)?,
        Command::Build(options) => build::run(&options)?,
        Command::Inspect(options) => return inspect::run(&options),
        Command::Diff(options) => return diff::run(&options),
        Command::Run(options) => return run::run(&options),
        Command::Replay(options) => return replay::run(&options),
        Command::Test(options) => return replay::test(&options),
        Command::Docs(options) => docs::run(&options)?,
        Command::Keygen(options) => keys::generate(&options)?,
        Command::Sign(options) => sign::run(&options)?,
        Command::Verify(options) => verify::run(&options)?,
    }
    Ok(ExitCode::SUCCESS)
}
