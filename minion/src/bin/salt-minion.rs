//! The program `salt-minion`.

fn main() {
    std::process::exit(brine_daemon::run::<brine_minion::MinionDaemon>());
}
