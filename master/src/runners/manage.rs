//! `manage.*`: who answers a `test.ping` now.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use brine_protocol::value::{Value, ValueExt, map};

use super::{Call, Outcome};
use crate::bus::Next;
use crate::keys::KeyState;
use crate::master::Master;

/// How long minions have to answer, unless the caller says.
const TIMEOUT: Duration = Duration::from_secs(5);
const TIMEOUT_MAX_SECONDS: f64 = 300.0;

/// `{"up": […], "down": […]}` of all accepted minions.
pub(super) async fn status(master: &Arc<Master>, call: &Call) -> Outcome {
    let timeout = match call.named("timeout").and_then(Value::as_f64) {
        Some(seconds) => Duration::from_secs_f64(seconds.clamp(0.0, TIMEOUT_MAX_SECONDS)),
        None => TIMEOUT,
    };
    let ids = master.keys.list(KeyState::Accepted).map_err(|e| e.to_string())?;
    if ids.is_empty() {
        return Ok(map([("up", Value::Array(Vec::new())), ("down", Value::Array(Vec::new()))]));
    }
    let events = master.bus.subscribe().ok_or("the event bus has as many subscribers as it may")?;
    let published = crate::publish::own_job(master, "test.ping").await.map_err(|e| e.to_string())?;
    let prefix = format!("salt/job/{}/ret/", published.jid);
    let mut waiting: HashSet<String> = published.minions.iter().map(ToString::to_string).collect();
    let collect = async {
        while !waiting.is_empty() {
            match events.next().await {
                Some(Next::Event(event)) => {
                    if let Some(id) = event.event.tag.strip_prefix(&prefix) {
                        waiting.remove(id);
                    }
                }
                Some(Next::Lost(_)) => {}
                None => return,
            }
        }
    };
    let _ = tokio::time::timeout(timeout, collect).await;
    let (down, up): (Vec<_>, Vec<_>) = ids.iter().partition(|id| waiting.contains(id.as_str()));
    let list = |ids: Vec<_>| Value::Array(ids.into_iter().map(Value::from).collect());
    let mut shown = map([("up", list(up))]);
    shown.insert("down", list(down));
    Ok(shown)
}
