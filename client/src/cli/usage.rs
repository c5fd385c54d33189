//! Command lines: parsing, and what is said about wrong ones, in the words and with the exit code of Salt's commands.

use std::ffi::OsString;
use std::io::Read as _;

use brine_protocol::{commandline, exit};
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

use super::Failure;

/// The most that is read of stdin.
const MAX_STDIN: u64 = 4 << 20;

/// Parses the arguments (the program's name first).
///
/// # Errors
/// Help, version and the versions report as code 0 with everything printed, a wrong call as code 64.
pub fn parse<T: Parser>(args: impl IntoIterator<Item = OsString>) -> Result<T, Failure> {
    let matches = commandline::read(T::command(), args);
    let parsed = matches.and_then(|(mut matches, _)| T::from_arg_matches_mut(&mut matches));
    parsed.map_err(|error| match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            super::print::stdout(error.render().to_string().trim_end());
            Failure { message: None, code: exit::OK }
        }
        _ => wrong::<T>(&commandline::words(&error)),
    })
}

/// As [`parse`]; where `wants` says so of what was parsed, the lines of stdin are further arguments (`--args-stdin`).
///
/// # Errors
/// As [`parse`], and when stdin cannot be read.
pub fn parse_with_stdin<T: Parser>(
    args: impl IntoIterator<Item = OsString>,
    wants: impl Fn(&T) -> bool,
) -> Result<T, Failure> {
    let mut args: Vec<OsString> = args.into_iter().collect();
    let parsed = parse::<T>(args.clone())?;
    if !wants(&parsed) {
        return Ok(parsed);
    }
    let failed = |why: &str| wrong::<T>(&format!("--args-stdin: {why}"));
    let mut text = String::new();
    let read = std::io::stdin().take(MAX_STDIN + 1).read_to_string(&mut text);
    let length = read.map_err(|error| failed(&error.to_string()))?;
    if length as u64 > MAX_STDIN {
        return Err(failed("more than 4 MiB"));
    }
    args.extend(text.lines().map(|line| OsString::from(line.trim_end_matches('\r'))));
    parse(args)
}

/// A wrong call: the usage line and what is wrong, exit code 64.
pub fn wrong<T: CommandFactory>(what: &str) -> Failure {
    Failure::new(exit::USAGE, commandline::wrong(T::command(), what))
}
