//! The program `salt-sandbox`.

fn main() -> std::process::ExitCode {
    brine_cli::finish(brine_owner::run(std::env::args_os()))
}
