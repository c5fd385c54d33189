//! The program `salt-api`.

fn main() {
    std::process::exit(brine_daemon::run::<brine_api::ApiDaemon>());
}
