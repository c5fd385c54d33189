//! The wheel: the key folders for callers that do not edit them themselves, the configuration, who is connected.

use std::sync::Arc;

use brine_protocol::ids::MinionId;
use brine_protocol::keys::fingerprint;
use brine_protocol::target::fnmatch;
use brine_protocol::value::{Value, ValueExt, empty_map, map};

use super::{Call, Outcome};
use crate::keys::{KeyError, KeyState};
use crate::master::Master;

const FUNCTIONS: [&str; 10] = [
    "config.values",
    "key.list_all",
    "key.list",
    "key.name_match",
    "key.accept",
    "key.reject",
    "key.delete",
    "key.finger",
    "key.key_str",
    "minions.connected",
];

pub(super) async fn run(master: &Arc<Master>, fun: &str, call: &Call) -> Outcome {
    match fun {
        "config.values" => Ok(master.live.load().shown.clone()),
        "minions.connected" => super::connected::alived(master, true).await,
        "key.list_all" => list_all(master),
        "key.list" => list(master, call),
        "key.accept" => move_keys(
            master,
            call,
            "accepted",
            KeyState::Accepted,
            &[KeyState::Pending, KeyState::Rejected, KeyState::Denied],
        ),
        "key.reject" => move_keys(
            master,
            call,
            "rejected",
            KeyState::Rejected,
            &[KeyState::Pending, KeyState::Accepted, KeyState::Denied],
        ),
        "key.delete" => delete(master, call),
        "key.name_match" => each(master, call, None),
        "key.finger" => each(master, call, Some(fingerprint)),
        "key.key_str" => each(master, call, Some(str::to_owned)),
        _ => Err(format!("'{fun}' is not available. Wheel functions of this master: {}", FUNCTIONS.join(", "))),
    }
}

fn list_all(master: &Master) -> Outcome {
    let mut shown = map([("local", Value::Array(vec!["master.pem".into(), "master.pub".into()]))]);
    for state in KeyState::ALL {
        shown.insert(state.dir(), ids(&master.keys.list(state).map_err(text)?));
    }
    Ok(shown)
}

fn list(master: &Master, call: &Call) -> Outcome {
    let which = call.get(0, "match").map(ValueExt::python_str).unwrap_or_default();
    let state = match which.as_str() {
        "acc" | "accepted" => KeyState::Accepted,
        "pre" | "un" | "unaccepted" => KeyState::Pending,
        "rej" | "rejected" => KeyState::Rejected,
        "den" | "denied" => KeyState::Denied,
        _ => return Err("Passed invalid arguments to key.list: accepted, pre, rejected or denied".to_owned()),
    };
    Ok(map([(state.dir(), ids(&master.keys.list(state).map_err(text)?))]))
}

/// As in Salt, rejected and denied keys move only with `include_rejected`, `include_denied`, `include_accepted`.
fn move_keys(master: &Master, call: &Call, act: &str, to: KeyState, from: &[KeyState]) -> Outcome {
    let pattern = pattern(call)?;
    let included = |name: &str| call.named(name).is_some_and(ValueExt::truthy);
    let mut moved = Vec::new();
    for &state in from {
        let wanted = match state {
            KeyState::Pending => true,
            KeyState::Accepted => included("include_accepted"),
            KeyState::Rejected => included("include_rejected"),
            KeyState::Denied => included("include_denied"),
        };
        if !wanted {
            continue;
        }
        for id in matching(master, state, &pattern)? {
            if master.keys.move_to(state, to, &id).map_err(text)? {
                if state == KeyState::Accepted {
                    super::key_deleted(master, &id);
                }
                let data = map([("result", Value::from(true)), ("act", Value::from(act)), ("id", Value::from(&id))]);
                master.bus.fire("salt/key", data);
                moved.push(id);
            }
        }
    }
    Ok(if moved.is_empty() { empty_map() } else { map([(to.dir(), ids(&moved))]) })
}

fn delete(master: &Master, call: &Call) -> Outcome {
    let pattern = pattern(call)?;
    for state in KeyState::ALL {
        for id in matching(master, state, &pattern)? {
            if master.keys.remove(state, &id).map_err(text)? {
                super::key_deleted(master, &id);
            }
        }
    }
    Ok(empty_map())
}

/// The matching ids of each state, or what `of` makes of each one's key.
fn each(master: &Master, call: &Call, of: Option<fn(&str) -> String>) -> Outcome {
    let pattern = pattern(call)?;
    let mut shown = empty_map();
    for state in KeyState::ALL {
        let matching = matching(master, state, &pattern)?;
        if matching.is_empty() {
            continue;
        }
        let Some(of) = of else {
            shown.insert(state.dir(), ids(&matching));
            continue;
        };
        let mut keys = empty_map();
        for id in &matching {
            // One that has gone since it was listed is left out.
            if let Some(key) = master.keys.find(state, id).map_err(text)? {
                keys.insert(id.as_str(), of(&key.pem));
            }
        }
        shown.insert(state.dir(), keys);
    }
    Ok(shown)
}

fn pattern(call: &Call) -> Result<String, String> {
    let given = call.get(0, "match").and_then(ValueExt::text).filter(|pattern| !pattern.is_empty());
    given.map(str::to_owned).ok_or_else(|| "Passed invalid arguments: no match, a glob of minion ids".to_owned())
}

fn matching(master: &Master, state: KeyState, pattern: &str) -> Result<Vec<MinionId>, String> {
    let ids = master.keys.list(state).map_err(text)?;
    Ok(ids.iter().filter(|id| fnmatch(pattern, id.as_str())).cloned().collect())
}

fn ids(ids: &[MinionId]) -> Value {
    Value::Array(ids.iter().map(Value::from).collect())
}

#[expect(clippy::needless_pass_by_value, reason = "the form map_err takes")]
fn text(error: KeyError) -> String {
    error.to_string()
}
