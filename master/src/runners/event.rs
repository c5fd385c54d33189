//! `event.send`: an event on the master's bus.

use brine_protocol::ids::EventTag;
use brine_protocol::value::{Value, ValueExt, empty_map};

use super::{Call, Outcome};
use crate::bus::Origin;
use crate::master::Master;

/// First words of tags that the master, its tools or its clients act on. Who may send events may not speak for them.
const RESERVED: [&str; 6] = ["salt", "key", "minion", "resource", "syndic", "brine"];

/// Fires `tag` with `data`, a map.
pub(super) fn send(master: &Master, call: &Call) -> Outcome {
    let tag = call.get(0, "tag").and_then(ValueExt::text).ok_or("Passed invalid arguments to event.send: no tag")?;
    EventTag::try_from(tag).map_err(|e| e.to_string())?;
    if tag.starts_with('/') || RESERVED.contains(&tag.split('/').next().unwrap_or_default()) {
        return Err(format!("{tag:?} is not sent: tags that begin with {} are Salt's own", RESERVED.join(", ")));
    }
    let data = match call.get(1, "data") {
        None => empty_map(),
        Some(data @ Value::Map(_)) => data.clone(),
        Some(_) => return Err("Passed invalid arguments to event.send: data must be a map".to_owned()),
    };
    master.bus.fire_from(tag, data, Origin::Master);
    Ok(Value::from(true))
}
