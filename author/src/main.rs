//! `salt-module`.

use std::process::ExitCode;

fn main() -> ExitCode {
    brine_author::main(std::env::args_os())
}
