//! What a state module prepares: `mod_init` before its first state, and `mod_aggregate`, which merges chunks.

use brine_guest::Data;
use brine_guest::host::{log, states};
use brine_render::{Dict, Value};

use crate::arguments::text;
use crate::wire;

/// What of a chunk its module cannot change: by these, its result is found.
const PINNED: [&str; 6] = ["state", "fun", "name", "__id__", "__sls__", "__env__"];

/// Calls `mod_init`; whether that was enough for the run.
pub(crate) fn init(low: &Dict, test: bool) -> Value {
    match ask(low, "mod_init", [("low", low.clone().into())], test) {
        Some(enough) => enough.truthy().into(),
        None => true.into(),
    }
}

/// Calls `mod_aggregate`: the chunk as it is to run. The others of its module are changed in place.
pub(crate) fn aggregate(low: &Dict, chunks: &[Dict], running: &Dict, test: bool) -> Dict {
    let is_open = |chunk: &&Dict| running.get(&tag(chunk)).is_none();
    let open: Vec<&Dict> = chunks.iter().filter(is_open).collect();
    let given = Value::list(open.iter().map(|chunk| Value::Dict((*chunk).clone())));
    let merged = ask(low, "mod_aggregate", [("low", low.clone().into()), ("chunks", given)], test);
    let Some(Value::List(merged)) = merged else { return low.clone() };
    let merged = merged.borrow();
    let mut merged = merged.iter().map(|chunk| if let Value::Dict(chunk) = chunk { Some(chunk) } else { None });
    let own = match merged.next().flatten() {
        Some(own) => taken(low, own),
        None => return low.clone(),
    };
    for (chunk, merged) in open.into_iter().zip(merged) {
        if let Some(merged) = merged.filter(|_| tag(chunk) != tag(low)) {
            let new = taken(chunk, merged);
            *chunk.borrow_mut() = std::mem::take(&mut *new.borrow_mut());
        }
    }
    own
}

/// A chunk as its module returned it, with what it cannot change.
fn taken(chunk: &Dict, returned: &Dict) -> Dict {
    let new: Dict = returned.borrow().iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    for name in PINNED {
        match chunk.get(name) {
            Some(value) => new.set(name, value),
            None => new.borrow_mut().retain(|key, _| key.as_str() != Some(name)),
        }
    }
    new
}

fn tag(low: &Dict) -> String {
    let of = |name: &str| low.get(name).map(|value| text(&value)).unwrap_or_default();
    format!("{}_|-{}_|-{}_|-{}", of("state"), of("__id__"), of("name"), of("fun"))
}

/// Calls a function of the chunk's module. None if it failed, which is logged.
fn ask<const N: usize>(low: &Dict, function: &str, arguments: [(&str, Value); N], test: bool) -> Option<Value> {
    let name = format!("{}.{function}", low.get("state").map(|state| text(&state)).unwrap_or_default());
    let arguments = wire::data(&Value::dict(arguments.map(|(key, value)| (key.into(), value))));
    let answer = arguments.and_then(|arguments: Data| states::ask(&name, &arguments, test));
    match answer.and_then(|answer| wire::value(&answer)) {
        Ok(value) => Some(value),
        Err(why) => {
            log::write(log::Level::Error, &format!("{name} failed: {why}"));
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_cannot_give_a_chunk_another_name() {
        let chunk = |entries: &[(&str, &str)]| -> Dict {
            entries.iter().map(|(name, value)| ((*name).into(), Value::from(*value))).collect()
        };
        let own = chunk(&[("state", "pkg"), ("fun", "installed"), ("name", "vim"), ("__id__", "a")]);
        let new =
            taken(&own, &chunk(&[("state", "cmd"), ("fun", "run"), ("name", "x"), ("__sls__", "y"), ("pkgs", "z")]));
        assert_eq!(tag(&new), tag(&own));
        assert_eq!((new.get("pkgs"), new.get("__sls__")), (Some("z".into()), None));
    }
}
