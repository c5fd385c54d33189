//! Interoperation with Python Salt: its master with Brine minions, its minions with a Brine master, its clients on a
//! Brine master's host, and its matchers, modules and runners beside ours. `BRINE_PYTHON` names the interpreter, so one
//! run tests one release line.

mod api_clients;
mod batches;
mod beacons;
mod grains;
mod helpers;
mod http;
mod networks;
mod orchestrate;
mod outputters;
mod packages;
mod python_clients;
mod python_master;
mod python_minion;
mod reactor;
mod runners;
mod schedule;
mod services;
mod standard_modules;
mod states;
mod targets;

use std::time::Duration;

use brine_kit::process::{Output, run_with};
use brine_tests::salt::{Master, python};

/// Runs Python's commands on this master's host, `at_a_time` at once. Each call is a list of words that begins with the
/// command's name. All calls run in one interpreter, whose start takes most of the time of a call.
fn pythons(master: &Master, calls: &[Vec<String>], at_a_time: usize) -> Vec<Output> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/interop/python/commands.py");
    let (calls, at_a_time) = (serde_json::to_string(calls).expect("lists of texts"), at_a_time.to_string());
    let args = ["-W", "ignore", script, &master.conf(), &calls, &at_a_time];
    let output = run_with(&python(), &args, &[("PYTHONDONTWRITEBYTECODE", "1")]).exits(0);
    let last = output.stdout.lines().last().unwrap_or_default();
    let all: Vec<(String, i32, String)> =
        serde_json::from_str(last).unwrap_or_else(|e| panic!("no list ({e}): {output:?}"));
    let output = |(stdout, code, stderr)| Output { stdout, stderr, code, elapsed: Duration::ZERO };
    all.into_iter().map(output).collect()
}
