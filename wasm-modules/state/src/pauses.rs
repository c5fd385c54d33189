//! Pauses of a run (`state.pause`, `state.resume`, `state.soft_kill`): a dict by ids, in which `__all__` stands for each,
//! kept by the host under the job's id.

use brine_guest::host::{jobs, states};
use brine_guest::{Data, Value};

/// Milliseconds between two looks at a pause.
pub(crate) const LOOK: u64 = 500;
/// The entry that counts for every id.
const ALL: &str = "__all__";

/// What is said of a run at a state.
pub(crate) enum Word {
    Go,
    Wait,
    Kill,
}

/// What is said of a run before the state with this id, where it waits for so many milliseconds.
pub(crate) fn at(jid: &str, id: &str, waited: u64) -> Word {
    let Some(pauses) = is_jid(jid).then(|| of(jid)).flatten() else { return Word::Go };
    let Some(pause) = pauses.get(id).or_else(|| pauses.get(ALL)) else { return Word::Go };
    if let Some(Value::Int(seconds)) = pause.get("duration")
        && waited > u64::try_from(*seconds).unwrap_or(0).saturating_mul(1_000)
    {
        return Word::Go;
    }
    if pause.get("kill").is_some() { Word::Kill } else { Word::Wait }
}

/// Whether a job has an id by which others could name it: a call on this host has none.
fn is_jid(jid: &str) -> bool {
    jid.len() >= 20 && jid.bytes().all(|c| c.is_ascii_digit() || c == b'_')
}

fn name(jid: &str) -> Result<String, String> {
    if is_jid(jid) && jid.len() <= 30 {
        return Ok(format!("pauses/{jid}"));
    }
    Err(format!("{jid:?} is no job's id"))
}

fn of(jid: &str) -> Option<Value> {
    states::recall(&name(jid).ok()?)?.value().ok().filter(|pauses| matches!(pauses, Value::Dict(_)))
}

/// Sets a key of an id's entry.
fn set(jid: &str, id: Option<&str>, key: Option<(&str, Value)>) -> Result<(), String> {
    let mut pauses = of(jid).unwrap_or_else(|| Value::dict([]));
    let id = id.unwrap_or(ALL);
    if let Value::Dict(pauses) = &mut pauses {
        let place = match pauses.iter().position(|(known, _)| known.to_text() == id) {
            Some(place) => place,
            None => {
                pauses.push((id.into(), Value::dict([])));
                pauses.len() - 1
            }
        };
        if let (Value::Dict(entry), Some((key, value))) = (&mut pauses[place].1, key) {
            entry.retain(|(known, _)| known.to_text() != key);
            entry.push((key.into(), value));
        }
    }
    states::remember(&name(jid)?, Some(&pauses.into()))
}

pub(crate) fn pause(jid: &str, id: Option<&str>, duration: Option<&Data>) -> Result<(), String> {
    let seconds = match duration.map(Data::value).transpose()?.filter(Value::truthy) {
        None => None,
        Some(Value::Int(seconds)) => Some(seconds),
        Some(other) => {
            let text = other.to_text();
            let parsed = text.parse().map_err(|_| format!("the duration {text:?} is no number of seconds"));
            Some(parsed?)
        }
    };
    set(jid, id, seconds.map(|seconds: i64| ("duration", Value::Int(seconds))))
}

pub(crate) fn kill(jid: &str, id: Option<&str>) -> Result<(), String> {
    set(jid, id, Some(("kill", Value::Bool(true))))
}

pub(crate) fn resume(jid: &str, id: Option<&str>) -> Result<(), String> {
    // A run that is not paused need not go on, and may have ended.
    let name = name(jid)?;
    let Some(pauses) = of(jid) else { return Ok(()) };
    let left = match (pauses, id) {
        (Value::Dict(mut pauses), Some(id)) if id != ALL => {
            pauses.retain(|(known, _)| known.to_text() != id);
            pauses
        }
        _ => Vec::new(),
    };
    states::remember(&name, Some(&Value::Dict(left).into()))
}

/// The pauses of the jobs that run states, or of the named ones among them.
pub(crate) fn all(named: Option<&Data>) -> Result<Data, String> {
    let named = named.map(Data::value).transpose()?;
    let is_named = |jid: &str| match &named {
        None | Some(Value::None) => true,
        Some(Value::List(jids)) => jids.iter().any(|named| named.to_text() == jid),
        Some(named) => named.to_text() == jid,
    };
    let running = jobs::running().value()?;
    let jids = match &running {
        Value::List(jobs) => jobs.iter().filter_map(|job| job.get("jid").map(Value::to_text)).collect(),
        _ => Vec::new(),
    };
    let pauses = jids.into_iter().filter(|jid| is_named(jid)).filter_map(|jid| Some((jid.clone(), of(&jid)?)));
    Ok(Value::Dict(pauses.map(|(jid, pauses)| (jid.into(), pauses)).collect()).into())
}
