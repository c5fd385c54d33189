//! The beacon `log`: lines that come into a file and match an expression of Python's.
//!
//! - [`place`] where in the file the last look ended, also when the file was rotated since
#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "log",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/beacon-types@1.0.0": brine_guest::host::beacon_types,
        "brine:host/changes@1.0.0": brine_guest::host::changes,
    },
    generate_all,
});

mod place;

use brine_guest::beacons::{self, Reading};
use brine_guest::{Data, Value};
use brine_render::regex::{Flags, Regex};

use place::{File, Place};

struct Module;

/// Upper bound on the steps of one search that goes back.
const STEPS: usize = 100_000;
/// Events of one look; further lines wait for the next one.
const MAX_EVENTS: usize = 400;
/// Upper bound on the bytes of a line in an event.
const MAX_LINE: usize = 4096;

impl exports::beacons::Guest for Module {
    fn validate(config: Data) -> (bool, String) {
        beacons::judge("log", &config, |config| match config.get("file") {
            Some(_) => Ok(()),
            None => Err("Configuration for log beacon must contain file option.".into()),
        })
    }

    fn beacon(config: Data, state: Option<Vec<u8>>) -> Result<Reading, String> {
        let config = beacons::merged("log", &config)?;
        let path = config.get("file").ok_or("file not defined in config")?.to_text();
        let file = File::of(&path)?;
        let last = beacons::kept(state)?.as_ref().and_then(Place::read);
        let Some(last) = last else {
            return Ok(Reading::keeping(Vec::new(), file.end().value()));
        };
        let (text, mut place) = file.since(&last)?;
        let mut events = Vec::new();
        let expressions = expressions(&config, &mut events);
        let mut rest = text.as_slice();
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            if events.len() >= MAX_EVENTS {
                break;
            }
            let line = String::from_utf8_lossy(&rest[..end]);
            look(line.trim_end_matches('\r'), &expressions, &mut events);
            rest = &rest[end + 1..];
            place.offset += end as u64 + 1;
        }
        if text.len() == place::MOST && rest.len() == text.len() {
            // No line is so long: what comes next is one.
            place.offset += text.len() as u64;
        }
        Ok(Reading::keeping(events, place.value()))
    }
}

fn event(tag: &str, matched: &str, raw: &str, error: &str) -> Value {
    Value::dict([("tag", tag.into()), ("match", matched.into()), ("raw", raw.into()), ("error", error.into())])
}

/// The expressions by their tags. One that is none is an event.
fn expressions(config: &Value, events: &mut Vec<Value>) -> Vec<(String, Regex)> {
    let Some(Value::Dict(tags)) = config.get("tags") else { return Vec::new() };
    let mut all = Vec::new();
    for (tag, said) in tags {
        let Some(expression) = said.get("regex").filter(|expression| expression.truthy()) else { continue };
        let tag = tag.to_text();
        match Regex::at_start(&expression.to_text(), Flags::default(), STEPS) {
            Ok(expression) => all.push((tag, expression)),
            Err(_) => events.push(event(&tag, "no", "", "bad regex")),
        }
    }
    all
}

fn look(line: &str, expressions: &[(String, Regex)], events: &mut Vec<Value>) {
    for (tag, expression) in expressions {
        let raw = || match line.char_indices().nth(MAX_LINE) {
            Some((end, _)) => &line[..end],
            None => line,
        };
        match expression.find(line) {
            Ok(Some(_)) => events.push(event(tag, "yes", raw(), "")),
            Ok(None) => {}
            Err(_) => events.push(event(tag, "no", "", "bad match")),
        }
    }
}

export!(Module);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_matched_from_their_start() {
        let tag = |expression: &'static str| Value::dict([("regex", expression.into())]);
        let tags =
            Value::dict([("bye", tag(".*good-bye.*")), ("start", tag("kernel")), ("odd", tag("(")), ("none", tag(""))]);
        let mut events = Vec::new();
        let expressions = expressions(&Value::dict([("tags", tags)]), &mut events);
        assert_eq!(events, [event("odd", "no", "", "bad regex")]);
        events.clear();
        for line in ["a good-bye to you", "kernel: x", "the kernel"] {
            look(line, &expressions, &mut events);
        }
        assert_eq!(events, [event("bye", "yes", "a good-bye to you", ""), event("start", "yes", "kernel: x", "")]);
    }
}
