//! `event.send`: fires an event on the master's bus.

use brine_protocol::ids::EventTag;
use brine_protocol::value::{Value, empty_map};

use super::function::{Function, Outcome, Run, functions};

/// First parts of tags that the master, its tools or its clients act on. A user with this runner must not imitate them.
const RESERVED: [&str; 6] = ["salt", "key", "minion", "resource", "syndic", "brine"];

/// The functions of this module.
pub(super) const FUNCTIONS: &[Function] = functions! {
    /// Fires an event on the master's bus.
    "event.send(tag, data=None)" => |run| async move { send(&run) },
};

/// Fires `tag` with `data`, a map.
fn send(run: &Run) -> Outcome {
    let tag = run.find_text("tag").ok_or_else(|| run.wrong("tag must be text"))?;
    EventTag::try_from(tag.as_str()).map_err(|e| e.to_string())?;
    if tag.starts_with('/') || RESERVED.contains(&tag.split('/').next().unwrap_or_default()) {
        return Err(format!("{tag:?} is not sent: tags that begin with {} are Salt's own", RESERVED.join(", ")).into());
    }
    let data = match run.get("data") {
        None => empty_map(),
        Some(data @ Value::Map(_)) => data.clone(),
        Some(_) => return Err(run.wrong("data must be a dict, such as '{version: 1}'")),
    };
    // The caller may be a minion (`peer_run`), whose events never count as the master's.
    run.parts.bus.fire_by(run.job.by.clone(), tag, data);
    Ok(Value::from(true))
}
