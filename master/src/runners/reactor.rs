//! `reactor.*`: the reactions of a running master. As in Salt, runners and reactor speak by events.

use std::time::Duration;

use brine_protocol::value::{Value, ValueExt as _, map};
use tokio::time::Instant;

use super::function::{Failure, Function, Outcome, Run, functions};
use crate::access::Principal;
use crate::bus::Next;

/// The longest wait for the reactor, as in Salt.
const WAIT: Duration = Duration::from_secs(30);

/// The functions of this module.
pub(super) const FUNCTIONS: &[Function] = functions! {
    /// Lists the reactions.
    "reactor.list(saltenv='base', test=None)" => |run| async move {
        ask(&run, "list", map::<&str, Value>([]), "list-results", "reactors").await
    },
    /// Adds a reaction to events whose tag matches a glob: SLS files, until the master ends. With from_minions it reacts to events of minions too.
    "reactor.add(event, reactors, saltenv='base', test=None, from_minions=False)" => add,
    /// Removes the reaction with this glob, until the master ends.
    "reactor.delete(event, saltenv='base', test=None)" => |run| async move {
        may_change(&run)?;
        ask(&run, "delete", map([("event", run.value("event"))]), "delete-complete", "result").await
    },
    /// Tells whether this master reacts to events.
    "reactor.is_leader()" => |run| async move {
        ask(&run, "is_leader", map::<&str, Value>([]), "leader/value", "result").await
    },
    /// Sets whether this master reacts to events.
    "reactor.set_leader(value=True)" => |run| async move {
        may_change(&run)?;
        let data = map([("id", Value::from(run.parts.opts.id.as_str())), ("value", run.is("value").into())]);
        ask(&run, "set_leader", data, "leader/value", "result").await
    },
};

/// Reactions have the rights of the reactor, so a user with this runner must not bring his own.
fn may_change(run: &Run) -> Result<(), Failure> {
    match &run.job.by {
        Principal::Master | Principal::Root { .. } | Principal::Reactor(_) => Ok(()),
        by => Err(format!("only root of this host changes what the reactor does, and {by} is not").into()),
    }
}

async fn add(run: Run) -> Outcome {
    may_change(&run)?;
    let reactors = match run.value("reactors") {
        one if one.text().is_some() => Value::Array(vec![one]),
        other => other,
    };
    let mut data = map([("event", run.value("event")), ("reactors", reactors)]);
    if run.is("from_minions") {
        data.insert("from_minions", true);
    }
    ask(&run, "add", data, "add-complete", "result").await
}

/// Asks the reactor by an event, and returns a field of its answer.
async fn ask(run: &Run, what: &str, data: Value, answer: &str, field: &str) -> Outcome {
    if !run.parts.live.load().has_reactor {
        return Err("salt.exceptions.CommandExecutionError: Reactor system is not running.".into());
    }
    let events = run.parts.bus.subscribe().ok_or("the event bus has as many subscribers as it may")?;
    // Not below the tag of the run, where salt-run would print it.
    run.parts.bus.fire(format!("salt/reactors/manage/{what}"), data);
    let (until, answer) = (Instant::now() + WAIT, format!("salt/reactors/manage/{answer}"));
    loop {
        match tokio::time::timeout_at(until, events.next()).await {
            Ok(Some(Next::Event(event))) if event.event.tag == answer && !event.by.is_foreign() => {
                return Ok(event.event.data.get(field).cloned().unwrap_or(Value::Nil));
            }
            Ok(Some(_)) => {}
            Ok(None) => return Err("the master is stopping".into()),
            Err(_) => return Err("the reactor does not answer".into()),
        }
    }
}
