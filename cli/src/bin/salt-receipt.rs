//! The command `salt-receipt`.

use std::process::ExitCode;

use brine_cli::commands::salt_receipt;
use brine_cli::finish;

fn main() -> ExitCode {
    finish(salt_receipt::run(std::env::args_os()))
}
