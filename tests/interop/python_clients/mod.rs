//! Python's clients on the host of a Brine master: LocalClient, RunnerClient, WheelClient, its commands and salt-api. The minions are
//! Brine's. What is checked is in Python where Python is the caller: `tests/interop/python/*.py`.

mod access;
mod commands;
mod local;
mod master;
mod postgres;
mod texts;

use brine_tests::process::{Output, run_with};
use brine_tests::salt::{Master, Minion, line, python};

/// The folder of the returner by which Python's programs read the master's job store.
const RETURNERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../client/python");

/// Runs one of the scripts with the master's configuration file, the returner's folder and more arguments.
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

/// A Brine master as Python's clients of this line need it.
fn start(config: &str) -> Master {
    // 3006 reads the bus with a length before each frame, the others without: a subscriber says nothing, so it has to be told.
    let framing = if line() == 3006 { "prefixed" } else { "bare" };
    Master::start(&format!("event_publisher_framing: {framing}\ntimeout: 15\n{config}"))
}

/// Two minions, with a grain each.
fn minions(master: &Master) -> [Minion; 2] {
    [("one", "web"), ("two", "db")]
        .map(|(id, role)| master.minion_kind(brine_tests::salt::Kind::Brine, id, &format!("grains: {{role: {role}}}")))
}
