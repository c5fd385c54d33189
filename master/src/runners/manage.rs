//! `manage.*`: minions that respond, connected minions, and versions of minions.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use brine_protocol::ids::MinionId;
use brine_protocol::keys::KeyState;
use brine_protocol::value::{Value, ValueExt, empty_map, map};

use super::Parts;
use super::ask::{self, Question, TIMEOUT_MAX_SECONDS};
use super::function::{Failure, Function, Outcome, Run, functions};

/// The functions of this module.
pub(super) const FUNCTIONS: &[Function] = functions! {
    /// Lists the minions that are connected; no job is sent to them.
    "manage.alived(subset=None, show_ip=False)" => there,
    /// Lists the minions that are connected; no job is sent to them.
    "manage.allowed(subset=None, show_ip=False)" => there,
    /// Asks minions, and lists those that do not answer; with removekeys=True their keys are deleted.
    "manage.down(removekeys=False, tgt='*', tgt_type='glob', timeout=None, gather_job_timeout=None)" => down,
    /// Lists the minions that are connected; no job is sent to them.
    "manage.joined(subset=None, show_ip=False)" => there,
    /// Lists the accepted minions that are not connected; no job is sent to them.
    "manage.list_not_state(subset=None, show_ip=False)" => not_there,
    /// Lists the minions that are connected; no job is sent to them.
    "manage.list_state(subset=None, show_ip=False)" => there,
    /// Lists the accepted minions that are not connected; no job is sent to them.
    "manage.not_alived(subset=None, show_ip=False)" => not_there,
    /// Lists the accepted minions that are not connected; no job is sent to them.
    "manage.not_allowed(subset=None, show_ip=False)" => not_there,
    /// Lists the accepted minions that are not connected; no job is sent to them.
    "manage.not_joined(subset=None, show_ip=False)" => not_there,
    /// Lists the accepted minions that are not connected; no job is sent to them.
    "manage.not_present(subset=None, show_ip=False)" => not_there,
    /// Lists the accepted minions that are not connected; no job is sent to them.
    "manage.not_reaped(subset=None, show_ip=False)" => not_there,
    /// Lists the minions that are connected; no job is sent to them.
    "manage.present(subset=None, show_ip=False)" => there,
    /// Lists the minions that are connected; no job is sent to them.
    "manage.reaped(subset=None, show_ip=False)" => there,
    /// Asks minions, and lists who answers (up) and who does not (down).
    "manage.status(output=True, tgt='*', tgt_type='glob', timeout=None, gather_job_timeout=None)"
        => |run| async move { status(&run).await.map(|(up, down)| map([("up", list(up)), ("down", list(down))])) },
    /// Asks minions, and lists those that answer.
    "manage.up(tgt='*', tgt_type='glob', timeout=None, gather_job_timeout=None)"
        => |run| async move { status(&run).await.map(|(up, _)| list(up)) },
    /// Asks all minions for their version, and sorts them by how it compares to the master's.
    "manage.versions()" => versions,
};

/// Returns the minions that return from a `test.ping`, and the others.
async fn status(run: &Run) -> Result<(Vec<String>, Vec<String>), Failure> {
    let question = Question {
        tgt: run.value("tgt"),
        tgt_type: run.text("tgt_type"),
        timeout: run.seconds("timeout", TIMEOUT_MAX_SECONDS)?,
        gather: run.seconds("gather_job_timeout", TIMEOUT_MAX_SECONDS)?,
        ..Question::all("test.ping")
    };
    let answers = ask::minions(&run.parts, question).await?;
    Ok(answers.minions.iter().cloned().partition(|id| answers.returns.contains_key(id)))
}

async fn down(run: Run) -> Outcome {
    let (_, down) = status(&run).await?;
    if run.is("removekeys") {
        for id in &down {
            let Ok(id) = MinionId::try_from(id.as_str()) else { continue };
            if run.parts.keys.remove(KeyState::Accepted, &id).map_err(|e| e.to_string())? {
                run.parts.key_removal.removed(&id);
            }
        }
    }
    Ok(list(down))
}

fn list(ids: Vec<String>) -> Value {
    Value::Array(ids.into_iter().map(Value::from).collect())
}

/// Returns the ids in `subset`; `None` for all.
fn subset(run: &Run) -> Option<BTreeSet<String>> {
    let given = run.get("subset").filter(|subset| subset.truthy())?;
    Some(match given.list() {
        Some(ids) => ids.iter().map(ValueExt::python_str).collect(),
        None => given.python_str().split(',').map(|id| id.trim().to_owned()).collect(),
    })
}

async fn there(run: Run) -> Outcome {
    let subset = subset(&run);
    let (mut there, _) = run.parts.presence.partition().await.map_err(|error| error.to_string())?;
    there.retain(|id| subset.as_ref().is_none_or(|subset| subset.contains(id.as_str())));
    if !run.is("show_ip") {
        return Ok(Value::Array(there.iter().map(Value::from).collect()));
    }
    let addresses = run.parts.presence.addresses(&there).await;
    Ok(map(there.iter().filter_map(|id| Some((id.as_str(), addresses.get(id)?.as_str())))))
}

async fn not_there(run: Run) -> Outcome {
    let subset = subset(&run);
    let (_, mut not) = run.parts.presence.partition().await.map_err(|error| error.to_string())?;
    not.retain(|id| subset.as_ref().is_none_or(|subset| subset.contains(id.as_str())));
    Ok(Value::Array(not.iter().map(Value::from).collect()))
}

/// Returns the connected minions, for the wheel.
pub(super) async fn connected(parts: &Arc<Parts>) -> Outcome {
    let (there, _) = parts.presence.partition().await.map_err(|error| error.to_string())?;
    Ok(Value::Array(there.iter().map(Value::from).collect()))
}

async fn versions(run: Run) -> Outcome {
    let own = env!("CARGO_PKG_VERSION");
    let answers = ask::minions(&run.parts, Question::all("test.version")).await?;
    let mut found: BTreeMap<u8, Vec<(String, Value)>> = BTreeMap::new();
    for id in &answers.minions {
        let version = answers.returns.get(id).filter(|data| data.get_i64("retcode").unwrap_or(0) == 0);
        let version = version.and_then(|data| data.get_text("return"));
        let (place, shown) = match version {
            None => (0, Value::from(false)),
            Some(version) => (
                match compare(version, own) {
                    Ordering::Less => 1,
                    Ordering::Equal => 2,
                    Ordering::Greater => 3,
                },
                Value::from(version),
            ),
        };
        found.entry(place).or_default().push((id.clone(), shown));
    }
    let mut shown = empty_map();
    shown.insert("Master", own);
    for (place, minions) in found {
        let label = ["Minion offline", "Minion requires update", "Up to date", "Minion newer than master"];
        let minions = map(minions.iter().map(|(id, version)| (id.as_str(), version.clone())));
        shown.insert(label[usize::from(place.min(3))], minions);
    }
    Ok(shown)
}

/// Compares versions by their numbers. A suffix (`rc1`, `+12.gabc`) makes a version older or newer, as in Salt.
fn compare(a: &str, b: &str) -> Ordering {
    let numbers = |text: &str| -> Vec<u64> {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let mut numbers: Vec<u64> = text[..end].split('.').map_while(|part| part.parse().ok()).collect();
        while numbers.last() == Some(&0) {
            numbers.pop();
        }
        numbers
    };
    let behind = |text: &str| -> i8 {
        let tail = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        match tail.chars().next() {
            None => 0,
            Some('+') => 1,
            Some(_) => -1,
        }
    };
    numbers(a).cmp(&numbers(b)).then_with(|| behind(a).cmp(&behind(b)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_numbers() {
        for (a, b, how) in [
            ("3008.0", "3008", Ordering::Equal),
            ("3007.9", "3008.0", Ordering::Less),
            ("3008.10", "3008.9", Ordering::Greater),
            ("3008.0rc1", "3008.0", Ordering::Less),
            ("3008.0+12.gabc", "3008.0", Ordering::Greater),
            ("0.1.0", "0.1.0", Ordering::Equal),
        ] {
            assert_eq!(compare(a, b), how, "{a} {b}");
        }
    }
}
