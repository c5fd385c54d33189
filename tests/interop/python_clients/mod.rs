//! Python's clients on the host of a Brine master: LocalClient, RunnerClient, WheelClient, the commands and salt-api.
//! The minions are Brine's. Checks of Python callers are in Python: `tests/interop/python/*.py`.

mod access;
mod commands;
mod local;
mod master;
mod postgres;
mod texts;

use brine_kit::process::{Output, run_with};
use brine_tests::salt::{Master, Minion, line, python};

/// The folder of the returner through which Python's programs read the master's job store.
const RETURNERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../client/python");

/// Runs a script with the master's configuration file, the returner's folder and further arguments.
fn script(master: &Master, name: &str, more: &[&str]) -> Output {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/interop/python");
    let conf = master.path("conf/master").display().to_string();
    let path = format!("{folder}/{name}.py");
    let mut args = vec![path.as_str(), &conf, RETURNERS];
    args.extend(more);
    let output = run_with(&python(), &args, &[("PYTHONDONTWRITEBYTECODE", "1")]);
    eprintln!("{}", output.stdout);
    output.exits(0)
}

/// Starts a Brine master with the settings that Python's clients of this line need.
fn start(config: &str) -> Master {
    // 3006 expects a length before each frame of the bus, later lines do not. A subscriber sends nothing, so the master
    // needs a setting.
    let framing = if line() == 3006 { "prefixed" } else { "bare" };
    Master::start(&format!("event_publisher_framing: {framing}\ntimeout: 15\n{config}"))
}

/// Starts two minions with one grain each.
pub(super) fn minions(master: &Master) -> [Minion; 2] {
    [("one", "web"), ("two", "db")]
        .map(|(id, role)| master.minion_kind(brine_tests::salt::Kind::Brine, id, &format!("grains: {{role: {role}}}")))
}
