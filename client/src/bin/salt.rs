//! The command `salt`.

use std::process::ExitCode;

use brine_client::cli::{finish, salt};

fn main() -> ExitCode {
    finish(salt::run(std::env::args_os()))
}
