//! `salt-module`: what authors and auditors of modules work with.
//!
//! - `cli.rs`      the command line
//! - `new.rs`, `build.rs` a module from nothing and into a component · `lang/` what they know of languages
//! - `wit.rs`      a module's WIT and the host's · `tool.rs` programs that build
//! - `inspect.rs`, `diff.rs` what a module is and asks for (`asks.rs`), read in the compiler's cage (`cage.rs`)
//! - `run.rs`      one call of a function, with what `grants.rs` reads
//! - `docs.rs`     doc comments into a component
//! - `file.rs`     a module's file and what lies beside it: read within bounds, written whole
//! - `keys.rs`     secret keys, public keys, passwords · `sign.rs`, `verify.rs`, `signatures.rs`
//!
//! Invariants: what an auditor looks at is hostile: nothing here parses more of a component than its outermost sections
//! outside of the compiler's cage. A file appears whole or not at all, and a secret key is never overwritten.

#![warn(clippy::print_stdout, clippy::print_stderr)]

/// Prints a line for people: what a module says of itself is shown as it is, and drives no terminal.
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
        Command::Docs(options) => docs::run(&options)?,
        Command::Keygen(options) => keys::generate(&options)?,
        Command::Sign(options) => sign::run(&options)?,
        Command::Verify(options) => verify::run(&options)?,
    }
    Ok(ExitCode::SUCCESS)
}
