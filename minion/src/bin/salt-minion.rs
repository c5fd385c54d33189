//! `salt-minion`.

fn main() {
    std::process::exit(brine_minion::daemon::main(std::env::args_os()));
}
