//! The beacon `swapusage`: how much of the swap is used.
#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "swapusage",
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

impl exports::beacons::Guest for Module {
    fn validate(config: Data) -> (bool, String) {
        beacons::judge("swapusage", &config, |config| match config.get("percent") {
            Some(_) => Ok(()),
            None => Err("Configuration for swapusage beacon requires percent.".into()),
        })
    }

    fn beacon(config: Data, _: Option<Vec<u8>>) -> Result<Reading, String> {
        let config = beacons::merged("swapusage", &config)?;
        // A kernel that cannot swap has no such table. `meminfo` says the same, but not twice the same: most looks would be in vain.
        look(&config, &beacons::table("swaps").unwrap_or_default())
    }
}

/// `swaps` has a line for each file or partition: name, kind, size and used part in KiB, priority.
fn look(config: &Value, swaps: &str) -> Result<Reading, String> {
    let column = |line: &str, from_end: usize| line.split_whitespace().rev().nth(from_end)?.parse::<f64>().ok();
    let sum = |from_end| swaps.lines().skip(1).filter_map(|line| column(line, from_end)).sum::<f64>();
    let (used, total) = (sum(1), sum(2));
    let used = beacons::part(used, total);
    let most = beacons::percent(config.get("percent").ok_or("percent is missing")?)?;
    let event = (used >= most).then(|| Value::dict([("swapusage", Value::Float(used))]));
    Ok(Reading::events(event.into_iter().collect()))
}

export!(Module);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_reaches_the_bound_is_told() {
        let table = "Filename\t\t\tType\t\tSize\t\tUsed\t\tPriority\n/dev/vda2 partition\t300\t\t100\t\t-2\n/a\\040b file 100 0 -3\n";
        let event = |percent: &'static str| look(&Value::dict([("percent", percent.into())]), table).unwrap().events;
        assert_eq!(event("25%"), [Data::from(Value::dict([("swapusage", Value::Float(25.0))]))]);
        assert!(event("25.1").is_empty());
        assert_eq!(look(&Value::dict([("percent", "1%".into())]), "").unwrap().events, []);
    }
}
