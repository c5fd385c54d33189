//! The program `salt-master`.

fn main() {
    std::process::exit(brine_daemon::run::<brine_master::MasterDaemon>());
}
