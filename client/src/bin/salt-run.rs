//! The command `salt-run`.

use std::process::ExitCode;

use brine_client::cli::{finish, salt_run};

fn main() -> ExitCode {
    finish(salt_run::run(std::env::args_os()))
}
