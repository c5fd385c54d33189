//! The command `salt-key`.

use std::process::ExitCode;

use brine_client::cli::{finish, salt_key};

fn main() -> ExitCode {
    finish(salt_key::run(std::env::args_os()))
}
