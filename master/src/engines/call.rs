//! One call of an engine: its arguments, and what its answer means.

use std::sync::Arc;

use brine_protocol::ids::Jid;
use brine_protocol::value::{Value, ValueExt as _, list, map, to_json};
use brine_sandbox::JobContext;

use super::broker::user;
use super::config::Entry;
use super::modules::said;
use super::shared::InUse;
use crate::access::Principal;
use crate::bus::BusEvent;

/// The function that a module of this kind exports.
const FUNCTION: &str = "engine";
/// Upper bound on the bytes that an engine hands from one call to the next.
const MAX_STATE: usize = 64 << 10;
/// Upper bound on the characters of what an engine says of a failure.
const MAX_WHY: usize = 1_000;

/// What became of a call.
#[derive(Debug, PartialEq)]
pub(super) struct Answer {
    /// The events that were handled, from the first on.
    pub(super) handled: usize,
    /// Why the others were not.
    pub(super) error: Option<String>,
    pub(super) state: Option<Vec<u8>>,
}

/// Calls an engine with these events.
///
/// # Errors
/// One line: there is no such module, the call failed, or its answer cannot be used.
pub(super) async fn call(
    in_use: &InUse,
    id: &str,
    entry: &Entry,
    events: &[Arc<BusEvent>],
    state: Option<&[u8]>,
) -> Result<Answer, String> {
    let (sandbox, name) = (&in_use.sandbox, entry.module.as_str());
    let fun = format!("{name}.{FUNCTION}");
    let job = JobContext {
        jid: Jid::now().to_string(),
        function: fun.clone(),
        user: user(&entry.name),
        minion_id: id.to_owned(),
        ..JobContext::default()
    };
    let mut kwargs = Vec::new();
    if let Some(module) = sandbox.describe(name) {
        let function = module.info.function(FUNCTION);
        let function =
            function.ok_or_else(|| format!("the module {name} is no engine: it has no function {FUNCTION}"))?;
        for param in &function.params {
            let as_json = &*param.ty == "string";
            let shown = |value: Value| if as_json { Value::from(to_json(&value).to_string()) } else { value };
            let value = match &*param.name {
                "config" => shown(entry.config.clone()),
                "events" => shown(list(events.iter().map(|event| shown_event(event)))),
                "state" => state.map_or(Value::Nil, |state| Value::Binary(state.to_owned())),
                _ => continue,
            };
            kwargs.push((param.name.to_string(), value));
        }
    } else if let Some(why) = in_use.refused.get(&entry.module) {
        return Err(short(why));
    }
    // Without a module that was refused, the outcome says that there is none.
    let outcome = sandbox.run(job, &fun, Vec::new(), kwargs).await;
    match outcome.success {
        true => answer(&outcome.value, events.len()),
        false => Err(short(&outcome.value.python_str())),
    }
}

fn short(text: &str) -> String {
    brine_protocol::text::short(&said(text), MAX_WHY)
}

fn shown_event(event: &BusEvent) -> Value {
    map([
        ("tag", Value::from(event.event.tag.as_str())),
        ("data", event.event.data.clone()),
        ("source", source(&event.by).into()),
    ])
}

fn source(by: &Principal) -> String {
    match by {
        Principal::Master => "master".to_owned(),
        Principal::Root { .. } => "root".to_owned(),
        Principal::User(_) => format!("user {}", by.name()),
        Principal::Minion(id) => format!("minion {id}"),
        Principal::Reactor(_) => "reactor".to_owned(),
        Principal::Engine(name) => format!("engine {name}"),
    }
}

/// Reads what an engine returned for so many events.
fn answer(value: &Value, events: usize) -> Result<Answer, String> {
    if value.entries().is_none() {
        return Err("an engine returns handled, error and state".to_owned());
    }
    let handled = value.get_u64("handled").and_then(|handled| usize::try_from(handled).ok());
    let handled = handled.ok_or("an engine's answer says how many events were handled")?;
    if handled > events {
        return Err(format!("it says that it handled {handled} of {events} events"));
    }
    let error = match value.get("error") {
        None | Some(Value::Nil) => None,
        Some(error) => Some(short(&error.python_str())),
    };
    let state = match value.get("state") {
        None | Some(Value::Nil) => None,
        Some(state) => Some(state.bytes().ok_or("an engine's state is bytes")?.to_owned()),
    };
    if state.as_ref().is_some_and(|state| state.len() > MAX_STATE) {
        return Err(format!("its state has more than {MAX_STATE} bytes"));
    }
    Ok(Answer { handled, error, state })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_checked() {
        let value = map([("handled", Value::from(2)), ("error", "busy".into()), ("state", Value::Binary(vec![7]))]);
        let expected = Answer { handled: 2, error: Some("busy".into()), state: Some(vec![7]) };
        assert_eq!(answer(&value, 3), Ok(expected));
        assert!(answer(&value, 1).unwrap_err().contains("2 of 1"));
        let state = |bytes: usize| map([("handled", Value::from(0)), ("state", Value::Binary(vec![0; bytes]))]);
        assert!(answer(&state(MAX_STATE), 0).is_ok());
        assert!(answer(&state(MAX_STATE + 1), 0).unwrap_err().contains("more than 65536"));
        for odd in [Value::Nil, Value::from(5), map([("handled", "x")]), map([("handled", -1)])] {
            assert!(answer(&odd, 5).is_err(), "{odd:?}");
        }
        let loud = map([("handled", Value::from(0)), ("error", "x\n".repeat(100_000).into())]);
        let why = answer(&loud, 0).unwrap().error.unwrap();
        assert!(why.chars().count() < 4 * MAX_WHY && !why.contains('\n'));
    }
}
