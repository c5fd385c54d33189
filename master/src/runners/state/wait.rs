//! `salt.wait_for_event`: waits until events have named all of a list.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use brine_protocol::target::fnmatch;
use brine_protocol::value::{Value, ValueExt as _, list, map};
use tokio::time::Instant;

use super::result::StateResult;
use super::table::{Actor, Done, StateCall};
use crate::access::{Allowed, Principal};
use crate::bus::{BusEvent, Next};

/// Salt's default.
const TIMEOUT: Duration = Duration::from_secs(300);
/// The longest wait.
const TIMEOUT_MAX_SECONDS: f64 = 604_800.0;

/// Which events the caller of an orchestration may learn of.
enum Sight {
    All,
    /// Those of these minions, and the caller's own.
    Some {
        minions: BTreeSet<String>,
        name: String,
    },
}

impl Sight {
    async fn of(actor: &Actor) -> Self {
        let parts = &actor.runners.parts;
        if actor.by.sees_all_events() || parts.live.load().events_for_all {
            return Self::All;
        }
        let targets = match actor.by.reach() {
            Allowed::Everywhere => vec!["*".to_owned()],
            Allowed::On(targets) => targets,
        };
        let mut minions = BTreeSet::new();
        for target in targets {
            minions.extend(parts.dispatcher.targets.permitted(target).await.iter().map(ToString::to_string));
        }
        Self::Some { minions, name: actor.by.name().to_owned() }
    }

    fn sees(&self, event: &BusEvent) -> bool {
        match (self, &event.by) {
            (Self::All, _) => true,
            (Self::Some { minions, .. }, Principal::Minion(id)) => minions.contains(id.as_str()),
            (Self::Some { name, .. }, by @ Principal::User(_)) => by.name() == name,
            (
                Self::Some { .. },
                Principal::Master | Principal::Root { .. } | Principal::Reactor(_) | Principal::Engine(_),
            ) => false,
        }
    }
}

/// `salt.wait_for_event`
pub(super) async fn event(actor: Arc<Actor>, call: StateCall) -> Done {
    let arguments = &call.arguments;
    let name = arguments.get("name").cloned().unwrap_or(Value::Nil);
    let tag = name.python_str();
    if call.test {
        let comment = format!("Orchestration would wait for event '{tag}'");
        return Ok(StateResult::new(name, None, comment).to_value());
    }
    let mut result = StateResult::new(name, Some(false), "");
    let Some(mut open) = arguments.get_list("id_list").map(<[Value]>::to_vec) else {
        result.comment = "id_list must be a list".to_owned();
        return Ok(result.to_value());
    };
    if arguments.get("node").is_some_and(|node| node.text() != Some("master")) {
        result.comment = "node must be master: no minion's bus is here".to_owned();
        return Ok(result.to_value());
    }
    let event_id = arguments.get("event_id").map_or_else(|| "id".to_owned(), |id| id.python_str());
    let timeout = match arguments.get("timeout").filter(|timeout| !timeout.is_nil()) {
        None => TIMEOUT,
        Some(given) => {
            let seconds = given.as_f64().or_else(|| given.text()?.trim().parse().ok());
            match seconds.filter(|seconds| (0.0..=TIMEOUT_MAX_SECONDS).contains(seconds)) {
                Some(seconds) => Duration::from_secs_f64(seconds),
                None => {
                    result.comment = format!("timeout must be a number of seconds up to {TIMEOUT_MAX_SECONDS}");
                    return Ok(result.to_value());
                }
            }
        }
    };
    let events = actor.runners.parts.bus.subscribe().ok_or("the event bus has as many subscribers as it may")?;
    let sight = Sight::of(&actor).await;
    let began = Instant::now();
    let mut seen = Vec::new();
    while !open.is_empty() {
        match tokio::time::timeout_at(began + timeout, events.next()).await {
            Err(_) => {
                result.comment = "Timeout value reached.".to_owned();
                break;
            }
            Ok(None) => return Err("the master is stopping".to_owned()),
            Ok(Some(Next::Event(event))) if fnmatch(&tag, &event.event.tag) && sight.sees(&event) => {
                take(&event.event.data, &event_id, &mut open, &mut seen);
            }
            Ok(Some(_)) => {}
        }
    }
    if !seen.is_empty() {
        result.changes = map([("minions_seen", list(seen))]);
    }
    if open.is_empty() {
        result.result = Some(true);
        result.comment = format!("All events seen in {} seconds.", began.elapsed().as_secs_f64());
    }
    Ok(result.to_value())
}

/// Takes what an event names from what is waited for.
fn take(data: &Value, event_id: &str, open: &mut Vec<Value>, seen: &mut Vec<Value>) {
    let inner = || data.get("data").and_then(|inner| inner.get(event_id));
    let Some(value) = data.get(event_id).filter(|value| !value.is_nil()).or_else(inner) else { return };
    let named = value.list().unwrap_or(std::slice::from_ref(value));
    let (found, left) = std::mem::take(open).into_iter().partition(|wanted| named.contains(wanted));
    *open = left;
    let found: Vec<Value> = found;
    seen.extend(found);
}

#[cfg(test)]
mod tests {
    use brine_protocol::config::yaml;

    use super::*;

    #[test]
    fn events_name_what_is_waited_for() {
        let mut open: Vec<Value> = ["a", "b", "c", "d"].map(Value::from).into();
        let mut seen = Vec::new();
        let mut say = |text: &str| take(&yaml::load(text).unwrap(), "id", &mut open, &mut seen);
        say("{id: a}");
        say("{id: x}");
        say("{other: b}");
        say("{data: {id: [b, c]}}");
        say("{id: null, data: {id: a}}");
        say("[]");
        assert_eq!((open, seen), (vec![Value::from("d")], ["a", "b", "c"].map(Value::from).to_vec()));
    }
}
