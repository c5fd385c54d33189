//! Configurations and answers of beacons.
//!
//! A configuration is a list of dicts. Most beacons see it as one dict, in which the last of equal keys counts.

use crate::Data;
pub use crate::host::beacon_types::Reading;
use crate::host::kernel;
use crate::value::Value;

/// What a configuration that can be used is told.
const VALID: &str = "Valid beacon configuration";

/// The answer of `validate`.
pub type Verdict = (bool, String);

/// A configuration that can be used.
pub fn valid() -> Verdict {
    (true, VALID.into())
}

/// One that cannot, and why.
pub fn invalid(why: impl Into<String>) -> Verdict {
    (false, why.into())
}

/// The items of a configuration.
///
/// # Errors
/// Salt's words, when it is no list. `beacon` is the module's name.
pub fn items(beacon: &str, config: &Data) -> Result<Vec<Value>, String> {
    match config.value()? {
        Value::List(items) => Ok(items),
        _ => Err(format!("Configuration for {beacon} beacon must be a list.")),
    }
}

/// The configuration as one dict.
///
/// # Errors
/// As [`items`].
pub fn merged(beacon: &str, config: &Data) -> Result<Value, String> {
    let mut all: Vec<(Value, Value)> = Vec::new();
    for item in items(beacon, config)? {
        let Value::Dict(entries) = item else { continue };
        for (key, value) in entries {
            match all.iter_mut().find(|(known, _)| *known == key) {
                Some((_, known)) => *known = value,
                None => all.push((key, value)),
            }
        }
    }
    Ok(Value::Dict(all))
}

/// Judges a configuration as one dict.
pub fn judge(beacon: &str, config: &Data, judge: impl FnOnce(&Value) -> Result<(), String>) -> Verdict {
    match merged(beacon, config).and_then(|config| judge(&config)) {
        Ok(()) => valid(),
        Err(why) => invalid(why),
    }
}

/// The name of the beacon: that of the module, unless the owner gave it another.
pub fn name(config: &Value) -> Option<&str> {
    config.get("_beacon_name").and_then(Value::text)
}

/// Whether a key of an item is the minion's, and no setting of the beacon.
pub fn is_hidden(key: &str) -> bool {
    key.starts_with('_') || matches!(key, "beacon_module" | "run_once")
}

impl Reading {
    /// Events, and nothing for the next look.
    pub fn events(events: Vec<Value>) -> Self {
        Self { events: events.into_iter().map(Data::from).collect(), state: None }
    }

    /// Events, and a value for the next look.
    pub fn keeping(events: Vec<Value>, state: Value) -> Self {
        Self { state: Some(Data::from(state).msgpack), ..Self::events(events) }
    }
}

/// What the last look kept; none at the first.
///
/// # Errors
/// When it is no value.
pub fn kept(state: Option<Vec<u8>>) -> Result<Option<Value>, String> {
    state.map(|state| Value::decode(&state)).transpose()
}

/// A number: of a number, or of text as Python's `float` reads it.
///
/// # Errors
/// Python's words.
pub fn float(value: &Value) -> Result<f64, String> {
    match value {
        Value::Int(number) => Ok(*number as f64),
        Value::Big(number) => Ok(*number as f64),
        Value::Float(number) => Ok(*number),
        Value::Bool(truth) => Ok(f64::from(u8::from(*truth))),
        Value::Text(text) => {
            let read = text.trim().replace('_', "").parse();
            read.map_err(|_| format!("could not convert string to float: '{text}'"))
        }
        other => Err(format!("float() argument must be a string or a real number, not {}", other.kind())),
    }
}

/// A part of a hundred: `63`, `63%`.
///
/// # Errors
/// As [`float`].
pub fn percent(value: &Value) -> Result<f64, String> {
    match value {
        Value::Text(text) => float(&Value::Text(text.replace('%', ""))),
        other => float(other),
    }
}

/// The part of a hundred that `used` is of `whole`, with one digit after the point; 0 of nothing.
pub fn part(used: f64, whole: f64) -> f64 {
    let part = if whole == 0.0 { 0.0 } else { used / whole * 100.0 };
    // The nearest decimal, as Python's `round` finds it.
    format!("{part:.1}").parse().unwrap_or(part)
}

/// A table of the kernel as text.
///
/// # Errors
/// Why it cannot be read.
pub fn table(name: &str) -> Result<String, String> {
    Ok(String::from_utf8_lossy(&kernel::read(name)?).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_is_a_list_of_dicts() {
        let item = |key: &'static str, value: i64| Value::dict([(key, Value::Int(value))]);
        let config = Data::from(vec![item("a", 1), item("b", 2), Value::from("odd"), item("a", 3)]);
        assert_eq!(merged("x", &config).unwrap(), Value::dict([("a", Value::Int(3)), ("b", Value::Int(2))]));
        let config = Data::from(item("a", 1));
        assert_eq!(merged("x", &config).unwrap_err(), "Configuration for x beacon must be a list.");
        assert_eq!(judge("x", &Data::from(vec![item("a", 1)]), |_| Ok(())), valid());
        assert!(!judge("x", &Data::from(vec![item("a", 1)]), |_| Err("no".into())).0);
    }

    #[test]
    fn numbers_are_pythons() {
        assert_eq!(percent(&"63%".into()), Ok(63.0));
        assert_eq!(percent(&Value::Int(5)), Ok(5.0));
        assert_eq!(percent(&" 7.5 % ".into()), Ok(7.5));
        assert_eq!(percent(&"much".into()).unwrap_err(), "could not convert string to float: 'much'");
        assert!(percent(&Value::None).is_err());
        assert_eq!(part(1.0, 3.0), 33.3);
        assert_eq!(part(1.0, 0.0), 0.0);
        assert_eq!(part(2.25, 100.0), 2.2);
    }
}
