//! The command `salt-key`.

use std::process::ExitCode;

use brine_cli::commands::salt_key;
use brine_cli::finish;

fn main() -> ExitCode {
    finish(salt_key::run(std::env::args_os()))
}
