//! The command `salt-run`.

use std::process::ExitCode;

use brine_cli::commands::salt_run;
use brine_cli::finish;

fn main() -> ExitCode {
    finish(salt_run::run(std::env::args_os()))
}
