//! The beacon `ps`: which processes run, and which do not.

use std::collections::BTreeSet;

use brine_guest::beacons::{self, Reading};
use brine_guest::{Data, Value};

use crate::{Module, exports};

impl exports::beacons::Guest for Module {
    fn validate(config: Data) -> (bool, String) {
        beacons::judge("ps", &config, |config| match config.get("processes") {
            Some(Value::Dict(_)) => Ok(()),
            Some(_) => Err("Processes for ps beacon must be a dictionary.".into()),
            None => Err("Configuration for ps beacon requires processes.".into()),
        })
    }

    fn beacon(config: Data, _: Option<Vec<u8>>) -> Result<Reading, String> {
        let config = beacons::merged("ps", &config)?;
        let table = beacons::table("processes")?;
        Ok(Reading::events(look(&config, &table.split('\0').collect())))
    }
}

fn look(config: &Value, running: &BTreeSet<&str>) -> Vec<Value> {
    let Some(Value::Dict(wanted)) = config.get("processes") else { return Vec::new() };
    let event = |(process, state): &(Value, Value)| {
        let runs = running.contains(process.to_text().as_str());
        let told = match (state.text(), runs) {
            (Some("running"), true) => "Running".into(),
            (Some("stopped"), false) => "Stopped".into(),
            (Some("running" | "stopped"), _) | (_, true) => return None,
            (_, false) => Value::Bool(false),
        };
        Some(Value::Dict(vec![(process.clone(), told)]))
    };
    wanted.iter().filter_map(event).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_run_or_do_not() {
        let wanted =
            [("cron", "running"), ("sshd", "stopped"), ("mysql", "stopped"), ("ntpd", "running"), ("x", "what")];
        let wanted = Value::dict(wanted.map(|(process, state)| (process, state.into())));
        let config = Value::dict([("processes", wanted)]);
        let one = |process: &'static str, told: Value| Value::dict([(process, told)]);
        let expected = [one("cron", "Running".into()), one("mysql", "Stopped".into()), one("x", Value::Bool(false))];
        assert_eq!(look(&config, &BTreeSet::from(["cron", "sshd"])), expected);
    }
}
