//! The beacon `inotify`: what happens to files and directories. The minion watches; this says what, and makes events of it.
//!
//! - [`config`] what is watched, as the owner wrote it; `names.rs` the names of what happens
#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "inotify",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/beacon-types@1.0.0": brine_guest::host::beacon_types,
        "brine:host/watches@1.0.0": brine_guest::host::watches,
    },
    generate_all,
});

mod config;
mod names;

use brine_guest::beacons::{self, Reading};
use brine_guest::host::watches::{self, Event, Watch};
use brine_guest::{Data, Value};

use config::Files;

struct Module;

impl exports::beacons::Guest for Module {
    fn validate(config: Data) -> (bool, String) {
        beacons::judge("inotify", &config, config::judge)
    }

    fn beacon(config: Data, state: Option<Vec<u8>>) -> Result<Reading, String> {
        look(&config, state, watches::take)
    }

    fn watch(config: Data, state: Option<Vec<u8>>, most_ms: u32) -> Result<Reading, String> {
        look(&config, state, |paths, last| watches::wait(paths, last, most_ms))
    }
}

/// One look; `take` gets what happened after a number.
fn look(
    config: &Data,
    state: Option<Vec<u8>>,
    take: impl FnOnce(&[Watch], u64) -> Result<Vec<Event>, String>,
) -> Result<Reading, String> {
    let config = beacons::merged("inotify", config)?;
    let files = Files::read(&config)?;
    let last = match beacons::kept(state)? {
        Some(Value::Int(number)) => u64::try_from(number).unwrap_or_default(),
        _ => 0,
    };
    let happened = take(&files.watches(), last)?;
    let last = happened.last().map_or(last, |event| event.number);
    let coalesces = matches!(config.get("coalesce"), Some(Value::Bool(true)));
    Ok(Reading::keeping(told(&files, &happened, coalesces), last.into()))
}

/// The events, without those that are excluded. `coalesces`: the same in one look is told once.
fn told(files: &Files, happened: &[Event], coalesces: bool) -> Vec<Value> {
    let mut told: Vec<(&Event, Value)> = Vec::new();
    for event in happened {
        let path = match &event.name {
            Some(name) => format!("{}/{name}", event.path.trim_end_matches('/')),
            None => event.path.clone(),
        };
        if files.exclude(event, &path) {
            continue;
        }
        let same = |(other, _): &(&Event, Value)| {
            (&other.path, &other.name, other.mask, other.cookie) == (&event.path, &event.name, event.mask, event.cookie)
        };
        if coalesces && told.iter().any(same) {
            continue;
        }
        let change = names::of_event(event.mask);
        let value =
            Value::dict([("tag", event.path.as_str().into()), ("path", path.into()), ("change", change.into())]);
        told.push((event, value));
    }
    told.into_iter().map(|(_, value)| value).collect()
}

export!(Module);

#[cfg(test)]
mod tests {
    use super::*;

    fn event(path: &str, name: Option<&str>, mask: u32) -> Event {
        let name = name.map(str::to_owned);
        Event { number: 1, watch: "/d".into(), path: path.into(), name, mask, cookie: 0 }
    }

    fn value(tag: &str, path: &str, change: &str) -> Value {
        Value::dict([("tag", tag.into()), ("path", path.into()), ("change", change.into())])
    }

    fn files(exclude: Vec<Value>) -> Files {
        let said = Value::dict([("mask", Value::List(Vec::new())), ("exclude", Value::List(exclude))]);
        Files::read(&Value::dict([("files", Value::dict([("/d", said)]))])).unwrap()
    }

    #[test]
    fn events_have_salts_fields() {
        let happened = [
            event("/d", Some("f"), 0x100),
            event("/d/s", Some("n"), 0x4000_0200),
            event("/d", None, 0x8000),
            event("", None, 0x4000),
            event("/d", Some("f"), 0x100),
        ];
        let all = told(&files(Vec::new()), &happened, false);
        assert_eq!(
            all[..4],
            [
                value("/d", "/d/f", "IN_CREATE"),
                value("/d/s", "/d/s/n", "IN_DELETE|IN_ISDIR"),
                value("/d", "/d", "IN_IGNORED"),
                value("", "", "IN_Q_OVERFLOW"),
            ]
        );
        assert_eq!(all.len(), 5);
        assert_eq!(told(&files(Vec::new()), &happened, true).len(), 4);
    }

    #[test]
    fn what_is_excluded_is_not_told() {
        let regex = |said: &str| Value::dict([(said, Value::dict([("regex", true.into())]))]);
        let files = files(vec!["/d/tmp".into(), "/d/*.swp".into(), regex("^/d/cache[0-9]$"), regex("~$"), regex("(")]);
        let is_told = |path: &str, name: &str| !told(&files, &[event(path, Some(name), 2)], false).is_empty();
        for (path, name) in [("/d", "tmp"), ("/d/tmp/a", "b"), ("/d", "x.swp"), ("/d", "x~"), ("/d/cache1/y", "z")] {
            assert!(!is_told(path, name), "{path}/{name}");
        }
        for (path, name) in [("/d", "x"), ("/d/cache10", "y"), ("/d/a", "tmp")] {
            assert!(is_told(path, name), "{path}/{name}");
        }
        // What was lost is told whatever is excluded.
        assert_eq!(told(&files, &[event("", None, 0x4000)], false).len(), 1);
    }
}
