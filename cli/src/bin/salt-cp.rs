//! The command `salt-cp`.

use std::process::ExitCode;

use brine_cli::commands::salt_cp;
use brine_cli::finish;

fn main() -> ExitCode {
    finish(salt_cp::run(std::env::args_os()))
}
