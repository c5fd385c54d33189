//! A hostile native executor: what a guest that has escaped its engine could do. This program is both sides. Started with an
//! executor's command line it raises the walls that the shipped executor raises, by the same options, and then attacks; started
//! otherwise it is the test, with a real sandbox whose executor is this very program.
#![allow(clippy::unwrap_used, reason = "it is test code")]
#![allow(clippy::disallowed_methods, reason = "the test starts programs that may start nothing")]

mod attacker;
mod attacks;
mod floods;
mod minion;

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.first().map(String::as_str) {
        Some("--max-running") => attacker::main(&args),
        _ => minion::main(&args),
    }
}
