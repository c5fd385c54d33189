//! The command `salt-cp`.

use std::process::ExitCode;

use brine_client::cli::{finish, salt_cp};

fn main() -> ExitCode {
    finish(salt_cp::run(std::env::args_os()))
}
