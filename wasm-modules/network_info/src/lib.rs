//! The beacon `network_info`: counters of network interfaces.
#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "network-info",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/beacon-types@1.0.0": brine_guest::host::beacon_types,
        "brine:host/kernel@1.0.0": brine_guest::host::kernel,
    },
    generate_all,
});

use brine_guest::beacons::{self, Reading};
use brine_guest::{Data, Value};

struct Module;

/// Names of counters, and their places in a line of the kernel's.
const COUNTERS: [(&str, usize); 8] = [
    ("bytes_sent", 8),
    ("bytes_recv", 0),
    ("packets_sent", 9),
    ("packets_recv", 1),
    ("errin", 2),
    ("errout", 10),
    ("dropin", 3),
    ("dropout", 11),
];

impl exports::beacons::Guest for Module {
    fn validate(config: Data) -> (bool, String) {
        beacons::judge("network_info", &config, judge)
    }

    fn beacon(config: Data, _: Option<Vec<u8>>) -> Result<Reading, String> {
        let config = beacons::merged("network_info", &config)?;
        Ok(Reading::events(look(&config, &beacons::table("net/dev")?)?))
    }
}

/// Salt's words for what is wrong.
fn judge(config: &Value) -> Result<(), String> {
    let Some(Value::Dict(interfaces)) = config.get("interfaces") else { return Ok(()) };
    for (_, wanted) in interfaces {
        let Value::Dict(wanted) = wanted else {
            return Err("Configuration for network_info beacon must be a list of dictionaries.".into());
        };
        let known =
            |key: &Value| key.text().is_some_and(|key| key == "type" || COUNTERS.iter().any(|(k, _)| *k == key));
        if !wanted.iter().any(|(key, _)| known(key)) {
            return Err("Invalid configuration item in Beacon configuration.".into());
        }
    }
    Ok(())
}

/// The counters of an interface.
fn counters(table: &str, interface: &str) -> Option<Vec<i64>> {
    // A name may have a colon, for an alias; the last one ends it.
    let line = table.lines().filter_map(|line| line.rsplit_once(':')).find(|(name, _)| name.trim() == interface);
    Some(line?.1.split_whitespace().filter_map(|word| word.parse().ok()).collect())
}

fn look(config: &Value, table: &str) -> Result<Vec<Value>, String> {
    let Some(Value::Dict(interfaces)) = config.get("interfaces") else { return Ok(Vec::new()) };
    let mut events = Vec::new();
    for (interface, wanted) in interfaces {
        let Some(counters) = counters(table, &interface.to_text()) else { continue };
        let counter = |place: usize| counters.get(place).copied().unwrap_or_default();
        let greater = wanted.get("type").and_then(Value::text) == Some("greater");
        let mut told = false;
        for (name, place) in COUNTERS {
            let Some(bound) = wanted.get(name) else { continue };
            let bound = beacons::float(bound)? as i64;
            told |= if greater { counter(place) > bound } else { counter(place) == bound };
        }
        if told {
            let all = Value::dict(COUNTERS.map(|(name, place)| (name, counter(place).into())));
            events.push(Value::dict([("interface", interface.clone()), ("network_info", all)]));
        }
    }
    Ok(events)
}

export!(Module);

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "Inter-|   Receive                                                |  Transmit\n \
        face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n    \
        lo:  100 2 3 4 0 0 0 0 500 6 7 8 0 0 0 0\n";

    fn config(entries: &[(&'static str, Value)]) -> Value {
        Value::dict([("interfaces", Value::dict([("lo", Value::dict(entries.iter().cloned()))]))])
    }

    #[test]
    fn a_counter_that_is_as_configured_is_told() {
        let events = look(&config(&[("type", "greater".into()), ("bytes_recv", Value::Int(99))]), TABLE).unwrap();
        let info = events[0].get("network_info").unwrap();
        for (name, value) in [("bytes_sent", 500), ("bytes_recv", 100), ("errin", 3), ("dropout", 8)] {
            assert_eq!(info.get(name), Some(&Value::Int(value)), "{name}");
        }
        for (wanted, count) in [("equal", 1), ("greater", 0)] {
            let config = config(&[("type", wanted.into()), ("packets_recv", "2".into())]);
            assert_eq!(look(&config, TABLE).unwrap().len(), count);
        }
        let other = Value::dict([("interfaces", Value::dict([("eth9", Value::dict([("errin", Value::Int(0))]))]))]);
        assert!(look(&other, TABLE).unwrap().is_empty());
    }

    #[test]
    fn configurations_are_judged_in_salts_words() {
        assert_eq!(judge(&config(&[("errin", Value::Int(1))])), Ok(()));
        let why = "Invalid configuration item in Beacon configuration.";
        assert_eq!(judge(&config(&[("what", Value::Int(1))])).unwrap_err(), why);
        let odd = Value::dict([("interfaces", Value::dict([("lo", Value::Int(1))]))]);
        let why = "Configuration for network_info beacon must be a list of dictionaries.";
        assert_eq!(judge(&odd).unwrap_err(), why);
    }
}
