//! The beacon `memusage`: how much memory is used.
#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "memusage",
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
        beacons::judge("memusage", &config, |config| match config.get("percent") {
            Some(_) => Ok(()),
            None => Err("Configuration for memusage beacon requires percent.".into()),
        })
    }

    fn beacon(config: Data, _: Option<Vec<u8>>) -> Result<Reading, String> {
        let config = beacons::merged("memusage", &config)?;
        look(&config, &beacons::table("meminfo")?)
    }
}

fn look(config: &Value, meminfo: &str) -> Result<Reading, String> {
    let bytes = |entry: &str| beacons::memory(meminfo, entry);
    let Some(total) = bytes("MemTotal") else { return Err("the kernel does not say how much memory there is".into()) };
    // Older kernels do not estimate what could be had.
    let available = bytes("MemAvailable").or_else(|| bytes("MemFree")).unwrap_or_default();
    let used = beacons::part(total - available, total);
    let most = beacons::percent(config.get("percent").ok_or("percent is missing")?)?;
    let event = (used >= most).then(|| Value::dict([("memusage", Value::Float(used))]));
    Ok(Reading::events(event.into_iter().collect()))
}

export!(Module);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_reaches_the_bound_is_told() {
        let table = "MemTotal: 400 kB\nMemFree: 1 kB\nMemAvailable: 300 kB\n";
        let event = |percent: &'static str| look(&Value::dict([("percent", percent.into())]), table).unwrap().events;
        assert_eq!(event("25%"), [Data::from(Value::dict([("memusage", Value::Float(25.0))]))]);
        assert!(event("25.1").is_empty());
    }
}
