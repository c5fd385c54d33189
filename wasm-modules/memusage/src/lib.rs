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
        look(&config, &beacons::table("memory-used")?)
    }
}

fn look(config: &Value, used: &str) -> Result<Reading, String> {
    let used: f64 = used.parse().map_err(|_| format!("the part of the memory that is used is no number: {used}"))?;
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
        let event = |percent: &'static str| look(&Value::dict([("percent", percent.into())]), "25.0").unwrap().events;
        assert_eq!(event("25%"), [Data::from(Value::dict([("memusage", Value::Float(25.0))]))]);
        assert!(event("25.1").is_empty());
        assert!(look(&Value::dict([("percent", "1%".into())]), "much").is_err());
    }
}
