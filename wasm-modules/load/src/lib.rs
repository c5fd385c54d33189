//! The beacon `load`: events when an average of running processes leaves its bounds.
#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "load",
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

/// Keys of the averages, in the kernel's order.
const AVERAGES: [&str; 3] = ["1m", "5m", "15m"];

impl exports::beacons::Guest for Module {
    fn validate(config: Data) -> (bool, String) {
        beacons::judge("load", &config, judge)
    }

    fn beacon(config: Data, state: Option<Vec<u8>>) -> Result<Reading, String> {
        let config = beacons::merged("load", &config)?;
        look(&config, averages(&beacons::table("load-averages")?)?, beacons::kept(state)?)
    }
}

/// Salt's words for what is wrong.
fn judge(config: &Value) -> Result<(), String> {
    for option in ["emitatstartup", "onchangeonly"] {
        if config.get(option).is_some_and(|value| !matches!(value, Value::Bool(_))) {
            return Err(format!("Configuration for load beacon option {option} must be a boolean."));
        }
    }
    let Some(bounds) = config.get("averages") else {
        return Err("Averages configuration is required for load beacon.".into());
    };
    if !AVERAGES.iter().any(|key| bounds.get(key).is_some()) {
        return Err("Averages configuration for load beacon must contain 1m, 5m or 15m items.".into());
    }
    for key in AVERAGES {
        match bounds.get(key) {
            Some(Value::List(two)) if two.len() == 2 => {}
            Some(Value::List(_)) => {
                let why = "Configuration for load beacon: 1m, 5m and 15m items must be a list of two items.";
                return Err(why.into());
            }
            _ => {
                let why = "Averages configuration for load beacon: 1m, 5m and 15m items must be a list of two items.";
                return Err(why.into());
            }
        }
    }
    Ok(())
}

fn averages(table: &str) -> Result<[f64; 3], String> {
    let mut words = table.split_whitespace().map(str::parse);
    match [words.next(), words.next(), words.next()] {
        [Some(Ok(one)), Some(Ok(five)), Some(Ok(fifteen))] => Ok([one, five, fifteen]),
        _ => Err("the kernel's averages have another form".into()),
    }
}

/// Compares averages with their bounds, with `onchangeonly` those of the last look too.
fn look(config: &Value, now: [f64; 3], last: Option<Value>) -> Result<Reading, String> {
    let dict = |values: [f64; 3]| Value::dict(AVERAGES.into_iter().zip(values.map(Value::Float)));
    let on_change = config.get("onchangeonly").is_some_and(Value::truthy);
    let first = last.is_none();
    let last = last.unwrap_or_else(|| dict(now));
    let at_start = config.get("emitatstartup").is_none_or(Value::truthy);
    let mut out = false;
    if !(on_change && first && !at_start) {
        for (key, value) in AVERAGES.into_iter().zip(now) {
            let Some(bounds) = config.get("averages").and_then(|bounds| bounds.get(key)) else { continue };
            let Value::List(bounds) = bounds else { continue };
            let bound = |at: usize| bounds.get(at).map_or(Err("a bound is missing".into()), beacons::float);
            let (least, most) = (bound(0)?, bound(1)?);
            out |= match on_change {
                false => value < least || value > most,
                true => {
                    let before = last.get(key).map_or(Ok(value), beacons::float)?;
                    (value > most && before < most) || (value < least && before > least)
                }
            };
        }
    }
    let events = if out { vec![dict(now)] } else { Vec::new() };
    Ok(if on_change { Reading::keeping(events, dict(now)) } else { Reading::events(events) })
}

export!(Module);

#[cfg(test)]
mod tests {
    use super::*;

    fn config(more: &[(&'static str, bool)]) -> Value {
        let bounds = |least: f64, most: f64| Value::List(vec![least.into(), most.into()]);
        let averages = Value::dict([("1m", bounds(0.5, 2.0)), ("5m", bounds(0.0, 1.5)), ("15m", bounds(0.1, 1.0))]);
        let more = more.iter().map(|(key, value)| (*key, Value::Bool(*value)));
        Value::dict([("averages", averages)].into_iter().chain(more))
    }

    fn count(config: &Value, now: [f64; 3], last: Option<Value>) -> (usize, Option<Value>) {
        let reading = look(config, now, last).unwrap();
        (reading.events.len(), beacons::kept(reading.state).unwrap())
    }

    #[test]
    fn an_average_outside_its_bounds_is_told() {
        let within = [1.0, 1.0, 0.5];
        assert_eq!(count(&config(&[]), within, None).0, 0);
        assert_eq!(count(&config(&[]), [2.1, 1.0, 0.5], None).0, 1);
        assert_eq!(count(&config(&[]), [0.4, 1.0, 0.5], None).0, 1);
        let on_change = config(&[("onchangeonly", true)]);
        let (events, last) = count(&on_change, within, None);
        assert_eq!(events, 0);
        let (events, last) = count(&on_change, [2.1, 1.0, 0.5], last);
        assert_eq!(events, 1);
        let (events, last) = count(&on_change, [2.2, 1.0, 0.5], last);
        assert_eq!(events, 0);
        assert_eq!(count(&on_change, [0.1, 1.0, 0.5], last).0, 1);
    }

    #[test]
    fn configurations_are_judged_in_salts_words() {
        assert_eq!(judge(&config(&[])), Ok(()));
        assert_eq!(judge(&Value::dict([])).unwrap_err(), "Averages configuration is required for load beacon.");
        let odd = Value::dict([("emitatstartup", Value::Int(1))]);
        let why = "Configuration for load beacon option emitatstartup must be a boolean.";
        assert_eq!(judge(&odd).unwrap_err(), why);
        let one = Value::dict([("averages", Value::dict([("1m", Value::List(vec![Value::Int(1)]))]))]);
        let why = "Configuration for load beacon: 1m, 5m and 15m items must be a list of two items.";
        assert_eq!(judge(&one).unwrap_err(), why);
        assert_eq!(averages("0.52 0.58 0.59\n"), Ok([0.52, 0.58, 0.59]));
        assert!(averages("x").is_err());
    }
}
