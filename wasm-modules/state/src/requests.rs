//! Runs that were requested (`state.request`): a dict by name of what to run and what a dry run came to, kept by the host.

use brine_guest::Data;
use brine_guest::host::states;
use brine_render::{Dict, Value};

use crate::arguments::text;
use crate::wire;

/// The name under which the host keeps them.
const NAME: &str = "requests";

fn all() -> Dict {
    states::recall(NAME).and_then(|requests| wire::dict(&requests).ok()).unwrap_or_default()
}

fn keep(requests: Dict) -> Result<(), String> {
    states::remember(NAME, Some(&wire::data(&requests.into())?))
}

/// Adds a request with what its dry run returned.
pub(crate) fn add(mods: Option<&Data>, kwargs: &Data, ran: &Data) -> Result<(), String> {
    let kwargs = wire::dict(kwargs)?;
    kwargs.set("test", true.into());
    let name = kwargs.get("name").map_or_else(|| "default".to_owned(), |name| text(&name));
    let mods = mods.map(wire::value).transpose()?.unwrap_or_default();
    let request = [("test_run", wire::value(ran)?), ("mods", mods), ("kwargs", kwargs.into())];
    let requests = all();
    requests.set(&name, Value::dict(request.map(|(key, value)| (key.into(), value))));
    keep(requests)
}

pub(crate) fn check(name: Option<&str>) -> Result<Data, String> {
    let requests = all();
    match name {
        None => wire::data(&requests.into()),
        Some(name) => wire::data(&requests.get(name).ok_or_else(|| format!("there is no request {name:?}"))?),
    }
}

/// Forgets all requests, or one; whether there was one.
pub(crate) fn clear(name: Option<&str>) -> Result<bool, String> {
    let Some(name) = name else {
        states::remember(NAME, None)?;
        return Ok(true);
    };
    let requests = all();
    if requests.borrow().is_empty() {
        return Ok(true);
    }
    if requests.get(name).is_none() {
        return Ok(false);
    }
    requests.borrow_mut().retain(|key, _| key.as_str() != Some(name));
    keep(requests).map(|()| true)
}

/// The SLS files and keywords of a request, with these keywords beside its own; None if there is no such request.
pub(crate) fn take(name: &str, more: &Data) -> Result<Option<(Option<Data>, Data)>, String> {
    let Some(Value::Dict(request)) = all().get(name) else { return Ok(None) };
    let (Some(mods), Some(Value::Dict(kwargs))) = (request.get("mods"), request.get("kwargs")) else { return Ok(None) };
    for (key, value) in wire::dict(more)?.borrow().iter() {
        kwargs.set(key.as_str().unwrap_or_default(), value.clone());
    }
    kwargs.borrow_mut().retain(|key, _| !matches!(key.as_str(), Some("test" | "name")));
    let mods = if mods.truthy() { Some(wire::data(&mods)?) } else { None };
    Ok(Some((mods, wire::data(&kwargs.into())?)))
}
