//! `event.send`: fires an event on the master's bus.

use brine_protocol::ids::{EventTag, Jid};
use brine_protocol::value::{Value, empty_map};

use super::function::{Function, Outcome, Run, functions};

/// The functions of this module.
pub(super) const FUNCTIONS: &[Function] = functions! {
    /// Fires an event on the master's bus.
    "event.send(tag, data=None)" => |run| async move { send(&run) },
};

/// Fires `tag` with `data`, a map.
fn send(run: &Run) -> Outcome {
    let tag = run.find_text("tag").ok_or_else(|| run.wrong("tag must be text"))?;
    EventTag::try_from(tag.as_str()).map_err(|e| e.to_string())?;
    // A user with this runner must not imitate what the master, its tools or its clients act on.
    let first = tag.split('/').next().unwrap_or_default();
    if tag.starts_with('/') || brine_tags::is_reserved(first) || Jid::try_from(first).is_ok() {
        return Err(format!("{tag:?} is not sent: tags that begin so are Salt's own").into());
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
