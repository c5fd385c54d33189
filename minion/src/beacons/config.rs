//! What the configuration says of one beacon: a list of dicts, as in Salt, or a dict.

use std::time::Duration;

use brine_protocol::value::{Value, ValueExt, map};

use super::ENABLED;

/// Upper bound on the bytes of a name. It is a part of tags.
const MAX_NAME: usize = 128;
/// The longest time between two looks.
const MAX_INTERVAL: Duration = Duration::from_secs(366 * 24 * 3600);

/// One beacon.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Beacon {
    pub(super) name: String,
    /// The module that looks: `beacon_module`, or that of the name.
    pub(super) module: String,
    /// What is said of it, for the module to judge.
    pub(super) said: Value,
    /// The same without what concerns the minion, and with the name: what the module is given for a look.
    pub(super) given: Value,
    /// The time between two looks; none to look as often as all do.
    pub(super) interval: Option<Duration>,
    /// Whether it does not look while states run.
    pub(super) pauses: bool,
    /// Whether it looks once.
    pub(super) once: bool,
}

/// Reads what is said of one. None if it is turned off.
///
/// # Errors
/// One line, when it cannot be a beacon.
pub(super) fn read(name: &str, said: &Value) -> Result<Option<Beacon>, String> {
    let is_name = !name.is_empty() && name.len() <= MAX_NAME && !name.contains(['/', '\\']);
    if !is_name || name.starts_with('.') || name.contains(char::is_control) {
        return Err(format!("its name is to be one word of at most {MAX_NAME} bytes, without slashes"));
    }
    let find = |key: &str| match said {
        // The last one counts.
        Value::Array(items) => items.iter().rev().find_map(|item| item.get(key)),
        other => other.get(key),
    };
    if find(ENABLED).is_some_and(|enabled| !enabled.truthy()) {
        return Ok(None);
    }
    if !matches!(said, Value::Array(_) | Value::Map(_)) {
        return Err("Configuration for beacon must be a list.".to_owned());
    }
    let is = |key: &str| find(key).is_some_and(ValueExt::truthy);
    let module = match find("beacon_module").filter(|module| module.truthy()) {
        None => name.to_owned(),
        Some(module) => match module.text() {
            Some(module) => module.to_owned(),
            None => return Err(format!("beacon_module is to be text, not {}", module.python_repr())),
        },
    };
    Ok(Some(Beacon {
        interval: find("interval").map(interval).transpose()?.flatten(),
        pauses: is("disable_during_state_run"),
        once: is("run_once"),
        given: given(name, said),
        said: said.clone(),
        name: name.to_owned(),
        module,
    }))
}

/// 0 is none, as in Salt.
fn interval(said: &Value) -> Result<Option<Duration>, String> {
    let number = match said {
        Value::Nil | Value::Boolean(false) => return Ok(None),
        Value::String(text) => text.as_str().and_then(|text| text.trim().parse().ok()),
        other => other.as_f64(),
    };
    let wrong = || Err(format!("interval is to be a number of seconds, 0 to a year, not {}", said.python_repr()));
    match number {
        Some(0.0) => Ok(None),
        Some(seconds) if seconds > 0.0 => match Duration::try_from_secs_f64(seconds) {
            Ok(interval) if interval <= MAX_INTERVAL => Ok(Some(interval)),
            _ => wrong(),
        },
        _ => wrong(),
    }
}

/// What the module is given: without the keys of the minion.
fn given(name: &str, said: &Value) -> Value {
    const OURS: [&str; 3] = [ENABLED, "interval", "disable_during_state_run"];
    let own = map([("_beacon_name", name)]);
    match said {
        Value::Array(items) => {
            let mut items = items.clone();
            for item in &mut items {
                OURS.iter().for_each(|key| drop(item.remove(key)));
            }
            items.retain(|item| item.entries().is_none_or(|entries| !entries.is_empty()));
            items.push(own);
            Value::Array(items)
        }
        // The older form. Modules read one.
        other => {
            let mut item = other.clone();
            OURS.iter().for_each(|key| drop(item.remove(key)));
            Value::Array(vec![item, own])
        }
    }
}

#[cfg(test)]
mod tests {
    use brine_protocol::config::yaml;

    use super::*;

    fn said(text: &str) -> Value {
        yaml::load(text).unwrap()
    }

    #[test]
    fn a_beacon_is_a_list_of_dicts() {
        let text = "[{percent: 5%}, {interval: 5}, {disable_during_state_run: true}, {enabled: true}, {run_once: true}, \
                    {beacon_module: memusage}]";
        let read = read("watch", &said(text)).unwrap().unwrap();
        assert_eq!((read.name.as_str(), read.module.as_str()), ("watch", "memusage"));
        assert_eq!((read.interval, read.pauses, read.once), (Some(Duration::from_secs(5)), true, true));
        let given = "[{percent: 5%}, {run_once: true}, {beacon_module: memusage}, {_beacon_name: watch}]";
        assert_eq!(read.given, super::tests::said(given));
        assert_eq!(super::read("m", &said("[{percent: 5%}, {enabled: false}]")), Ok(None));
        let older = super::read("m", &said("{percent: 5%, interval: 2.5}")).unwrap().unwrap();
        assert_eq!(older.interval, Some(Duration::from_millis(2500)));
        assert_eq!(older.given, said("[{percent: 5%}, {_beacon_name: m}]"));
    }

    #[test]
    fn what_is_none_is_refused() {
        for odd in ["", "../load", "a/b", ".x", "a\\b", "a\nb", &"x".repeat(129)] {
            assert!(read(odd, &said("[]")).unwrap_err().contains("its name is to be"), "{odd:?}");
        }
        for text in ["true", "5", "text", "null"] {
            assert_eq!(read("m", &said(text)).unwrap_err(), "Configuration for beacon must be a list.", "{text}");
        }
        for (text, ok) in [
            ("0", true),
            ("null", true),
            ("1", true),
            ("31536000", true),
            ("'5'", true),
            ("-1", false),
            ("-0.5", false),
            ("1e300", false),
            (".nan", false),
            (".inf", false),
            ("soon", false),
            ("[1]", false),
            ("40000000", false),
        ] {
            let read = read("m", &said(&format!("[{{interval: {text}}}]")));
            assert_eq!(read.is_ok(), ok, "{text}: {read:?}");
            if let Err(why) = read {
                assert!(why.starts_with("interval is to be a number of seconds, 0 to a year, not "), "{why}");
            }
        }
        assert!(read("m", &said("[{beacon_module: 5}]")).is_err());
    }
}
