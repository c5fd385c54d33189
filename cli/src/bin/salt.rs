//! The command `salt`.

use std::process::ExitCode;

use brine_cli::commands::salt;
use brine_cli::finish;

fn main() -> ExitCode {
    finish(salt::run(std::env::args_os()))
}
