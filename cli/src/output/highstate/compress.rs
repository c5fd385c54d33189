//! `state_compress_ids`: states of one id, SLS file and result as one block, with their number behind the id.

use std::collections::HashMap;

use brine_protocol::pyrepr;
use brine_protocol::value::{Value, ValueExt};

/// In the place of the name of a block of several states.
const MARK: &str = "state_compressed_";
const CHANGES: &str = "compressed changes";

/// The number of states in a block, by its key: `module_|-id (3)_|-state_compressed_…_|-function`.
pub(super) fn count(tag: &str) -> usize {
    let parts: Vec<&str> = tag.split("_|-").collect();
    let [_, id, name, _] = parts[..] else { return 1 };
    let number = id.strip_suffix(')').and_then(|id| id.rsplit_once('(')).map(|(_, number)| number);
    number.filter(|_| name.starts_with(MARK)).and_then(|number| number.parse().ok()).unwrap_or(1)
}

/// The number of changes in a block of several states.
pub(super) fn changes(changes: &Value) -> usize {
    changes.get(CHANGES).and_then(ValueExt::entries).map_or(0, <[_]>::len).max(1)
}

/// The returns with one block for the states that go together. None if any return is not one of states: then nothing is
/// changed.
pub(super) fn compressed(hosts: &[(Value, Value)]) -> Option<Vec<(Value, Value)>> {
    hosts.iter().map(|(host, states)| Some((host.clone(), Value::Map(of_host(states.entries()?)?)))).collect()
}

fn of_host(states: &[(Value, Value)]) -> Option<Vec<(Value, Value)>> {
    let group = |tag: &Value, info: &Value| {
        let text = |key: &str| info.get(key).map(pyrepr::str);
        let module = tag.text()?.split("_|-").next().unwrap_or_default();
        Some([module.to_owned(), text("__id__")?, text("__sls__")?, text("result")?])
    };
    let groups = states.iter().map(|(tag, info)| group(tag, info)).collect::<Option<Vec<_>>>()?;
    let mut counts: HashMap<&[String; 4], usize> = HashMap::new();
    for group in &groups {
        *counts.entry(group).or_default() += 1;
    }
    let mut out: Vec<(Value, Value)> = Vec::new();
    for ((tag, info), group) in states.iter().zip(&groups) {
        let count = counts.get(group).copied().unwrap_or(1);
        let [_, id, sls, result] = group;
        let mut tag = tag.text()?.to_owned();
        if count > 1 {
            let mut parts: Vec<String> = tag.split("_|-").map(str::to_owned).collect();
            *parts.get_mut(2)? = format!("{MARK}{sls}_{id}_{result}");
            *parts.get_mut(1)? = format!("{id} ({count})");
            tag = parts.join("_|-");
        }
        match out.iter_mut().find(|(known, _)| known.text() == Some(&tag)) {
            Some((_, first)) if count > 1 => add(first, info)?,
            Some((_, other)) => *other = info.clone(),
            None => out.push((tag.into(), info.clone())),
        }
    }
    Some(out)
}

/// Adds a state to a block: the lowest number, the earliest start, the sum of the durations, the changes by name.
fn add(block: &mut Value, info: &Value) -> Option<()> {
    let number = |value: &Value| value.get("__run_num__").and_then(Value::as_f64);
    if number(info)? < number(block)? {
        block.insert("__run_num__", info.get("__run_num__")?.clone());
    }
    let duration = match (info.get("duration")?, block.get("duration")?) {
        (Value::Integer(a), Value::Integer(b)) => Value::from(a.as_i64()?.checked_add(b.as_i64()?)?),
        (a, b) => Value::from(((a.as_f64()? + b.as_f64()?) * 1000.0).round() / 1000.0),
    };
    block.insert("duration", duration);
    if info.get("start_time")?.text()? < block.get("start_time")?.text()? {
        block.insert("start_time", info.get("start_time")?.clone());
    }
    let Some(more) = info.get("changes").filter(|changes| changes.truthy()) else { return Some(()) };
    let named = |of: &Value, changes: &Value| Some((of.get("name")?.clone(), changes.clone()));
    let mut all: Vec<(Value, Value)> = match block.get("changes").filter(|changes| changes.truthy()) {
        None => Vec::new(),
        Some(before) => match before.get(CHANGES).and_then(ValueExt::entries).filter(|all| !all.is_empty()) {
            Some(all) => all.to_vec(),
            None => vec![named(block, before)?],
        },
    };
    let (name, more) = named(info, more)?;
    match all.iter_mut().find(|(known, _)| *known == name) {
        Some((_, changes)) => *changes = more,
        None => all.push((name, more)),
    }
    block.insert("changes", Value::Map(vec![(CHANGES.into(), Value::Map(all))]));
    Some(())
}
