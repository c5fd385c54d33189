//! A hostile native executor, which does what an escaped guest could do. This program plays both sides. With an
//! executor's command line it raises the walls of the shipped executor, by the same options, and then attacks.
//! Otherwise it is the test, with a real sandbox whose executor is this program.
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
