//! The module `status`: what the kernel counts, the beacon that tells it, and states that judge it. The functions and their
//! documentation are in `wit/world.wit`.
//!
//! - [`functions`] the functions by name · [`tables`] from a table of the kernel to a value
//! - [`processes`] the processes · [`states`] the states
#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "status",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/state-types@1.0.0": brine_guest::host::state_types,
        "brine:host/beacon-types@1.0.0": brine_guest::host::beacon_types,
        "brine:host/kernel@1.0.0": brine_guest::host::kernel,
    },
    generate_all,
});

mod functions;
mod processes;
mod states;
mod tables;

use brine_guest::Value;
use brine_guest::beacons::{self, Reading, table};
use wasi::clocks::wall_clock;

struct Module;

impl Guest for Module {
    fn loadavg() -> Result<Data, String> {
        Ok(functions::call("loadavg")?.into())
    }

    fn cpustats() -> Result<Data, String> {
        Ok(functions::call("cpustats")?.into())
    }

    fn meminfo() -> Result<Data, String> {
        Ok(functions::call("meminfo")?.into())
    }

    fn vmstats() -> Result<Data, String> {
        Ok(functions::call("vmstats")?.into())
    }

    fn cpuinfo() -> Result<Data, String> {
        Ok(functions::call("cpuinfo")?.into())
    }

    fn diskstats() -> Result<Data, String> {
        Ok(functions::call("diskstats")?.into())
    }

    fn netstats() -> Result<Data, String> {
        Ok(functions::call("netstats")?.into())
    }

    fn netdev() -> Result<Data, String> {
        Ok(functions::call("netdev")?.into())
    }

    fn version() -> Result<Data, String> {
        Ok(functions::call("version")?.into())
    }

    fn uptime() -> Result<Data, String> {
        Ok(functions::call("uptime")?.into())
    }

    fn time() -> Result<Data, String> {
        Ok(functions::call("time")?.into())
    }

    fn nproc() -> Result<u64, String> {
        Ok(tables::nproc(&table("cpuinfo")?))
    }

    fn pid(sig: String) -> Result<String, String> {
        processes::pid(&sig)
    }

    fn procs() -> Result<Data, String> {
        Ok(processes::procs()?.into())
    }
}

impl exports::beacons::Guest for Module {
    fn validate(config: Data) -> (bool, String) {
        match beacons::items("status", &config) {
            Ok(_) => beacons::valid(),
            Err(why) => beacons::invalid(why),
        }
    }

    fn beacon(config: Data, _: Option<Vec<u8>>) -> Result<Reading, String> {
        let now = wall_clock::now();
        let tag = tables::iso(now.seconds, Some(now.nanoseconds / 1000));
        let told = look(&beacons::items("status", &config)?, functions::call)?;
        Ok(Reading::events(vec![Value::dict([("tag", tag.into()), ("data", told)])]))
    }
}

/// What is told if the configuration names nothing.
const USUAL: [&str; 5] = ["loadavg", "cpustats", "meminfo", "vmstats", "time"];

/// The parts of each function's answer that are configured.
fn look(items: &[Value], call: impl Fn(&str) -> Result<Value, String>) -> Result<Value, String> {
    let wanted = |item: &Value| match item {
        Value::Dict(entries) => entries.clone(),
        _ => Vec::new(),
    };
    let mut wanted: Vec<(Value, Value)> = items.iter().flat_map(wanted).collect();
    wanted.retain(|(name, _)| !name.text().is_some_and(beacons::is_hidden));
    if wanted.is_empty() {
        wanted = USUAL.map(|name| (name.into(), "all".into())).into();
    }
    let mut told: Vec<(Value, Value)> = Vec::new();
    for (name, parts) in wanted {
        let all = call(&name.to_text())?;
        let parts = if let Value::List(parts) = parts { parts } else { vec![parts] };
        let mut some = Value::Dict(Vec::new());
        for part in parts {
            let key = part.to_text();
            if key == "all" {
                some = all.clone();
                continue;
            }
            match (all.get(&key), &mut some) {
                (Some(value), Value::Dict(some)) => some.push((part, value.clone())),
                _ => {
                    // Salt's words, with Python's for what is missing.
                    let key = if part.text().is_some() { format!("'{key}'") } else { key };
                    some = format!("Status beacon is incorrectly configured: {key}").into();
                    break;
                }
            }
        }
        told.retain(|(known, _)| *known != name);
        told.push((name, some));
    }
    Ok(Value::Dict(told))
}

export!(Module);

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str) -> Result<Value, String> {
        match name {
            "time" => Ok("now".into()),
            _ => Ok(Value::dict([("1-min", Value::Float(0.5)), ("5-min", Value::Float(0.25))])),
        }
    }

    #[test]
    fn parts_are_told_as_configured() {
        let items = |parts: Vec<Value>| [Value::dict([("loadavg", Value::List(parts))])];
        let told = |items: &[Value]| look(items, call).unwrap().get("loadavg").cloned().unwrap();
        assert_eq!(told(&items(vec!["1-min".into()])), Value::dict([("1-min", Value::Float(0.5))]));
        assert_eq!(told(&items(vec!["all".into()])), call("loadavg").unwrap());
        assert_eq!(told(&items(vec!["x".into()])), "Status beacon is incorrectly configured: 'x'".into());
        let Value::Dict(usual) = look(&[Value::dict([("_beacon_name", "status".into())])], call).unwrap() else {
            panic!()
        };
        let names: Vec<String> = usual.iter().map(|(name, _)| name.to_text()).collect();
        assert_eq!(names, USUAL);
    }
}
