//! `pillar`: from the pillar that the template sees. What would have to be compiled anew is left to the host.

use super::call::{Call, Row};
use super::{Answer, Level, filter};
use crate::data::merge::{How, update};
use crate::data::{CallError, deep_copy, mask, plain, text, traverse};
use crate::value::{Dict, Key, Value};

/// What makes `pillar.items` and the like compile another pillar.
const ANEW: &[&str] = &["pillar", "pillar_enc", "pillarenv", "saltenv"];
const ELSEWHERE: &[&str] = &["pillarenv", "saltenv"];

pub(super) const ROWS: &[Row] = &[
    Row::new("get", "key default? merge? merge_nested_lists? delimiter? pillarenv? saltenv? unmask?", get)
        .host_if(ELSEWHERE),
    Row::new("fetch", "key default? merge? merge_nested_lists? delimiter? pillarenv? saltenv? unmask?", get)
        .python("get")
        .host_if(ELSEWHERE),
    Row::new("items", "* pillar? pillar_enc? pillarenv? saltenv? unmask?", items).host_if(ANEW),
    Row::new("data", "* pillar? pillar_enc? pillarenv? saltenv? unmask?", items).host_if(ANEW),
    Row::new("item", "* default? delimiter? pillarenv? saltenv? unmask?", item).host_if(ELSEWHERE),
    Row::new("raw", "key? unmask?", raw),
    Row::new("keys", "key delimiter? unmask?", keys),
    Row::new("ls", "* pillar? pillar_enc? pillarenv? saltenv? unmask?", ls).host_if(ANEW),
    Row::new("obfuscate", "* pillar? pillar_enc? pillarenv? saltenv? unmask?", obfuscate).host_if(ANEW),
    Row::new("filter_by", "lookup_dict pillar merge? default? base?", filter_by),
];

fn pillar(call: &Call<'_>) -> Value {
    Value::Dict(call.surroundings.pillar.clone())
}

/// Shows a value or masks it.
fn shown(call: &Call<'_>, value: &Value, masked: bool) -> Answer {
    let masked = call.given("unmask").map_or(masked, |unmask| !unmask.truthy());
    let budget = &call.surroundings.budget;
    match masked {
        true => mask(value, budget),
        false if call.surroundings.is_remote => plain(value, budget),
        false => Ok(value.clone()),
    }
}

fn get(call: &Call<'_>) -> Answer {
    let surroundings = call.surroundings;
    let (data, key, delimiter) = (pillar(call), call.need("key"), call.text("delimiter", ":"));
    let default = call.get("default");
    let found = traverse(&data, &key, &delimiter)?;
    if call.flag("merge", false) {
        let merge_lists = match call.given("merge_nested_lists") {
            Some(given) => given.truthy(),
            None => surroundings.is_set("pillar_merge_lists"),
        };
        let budget = &surroundings.budget;
        match (default, &found) {
            (Some(default @ Value::Dict(_)), Some(Value::Dict(_)) | None) => {
                let merged = deep_copy(default, budget)?;
                let more = found.unwrap_or_else(|| Value::dict([]));
                let more = if surroundings.is_remote { plain(&more, budget)? } else { more };
                update(&merged, &more, How { recursive: true, merge_lists, strict: false }, budget)?;
                return shown(call, &merged, surroundings.masked);
            }
            (Some(default @ Value::List(_)), Some(Value::List(_)) | None) => {
                let merged = deep_copy(default, budget)?;
                if let (Value::List(merged), Some(Value::List(more))) = (&merged, &found) {
                    budget.take_steps(merged.borrow().len().saturating_mul(more.borrow().len()))?;
                    let own = merged.borrow().clone();
                    let new = more.borrow().iter().filter(|item| !own.contains(item)).cloned().collect::<Vec<_>>();
                    merged.borrow_mut().extend(new);
                }
                return shown(call, &merged, surroundings.masked);
            }
            _ => surroundings.say(Level::Error, "pillar.get: the default and the value cannot be merged"),
        }
    }
    match (found, default) {
        (Some(found), _) => shown(call, &found, surroundings.masked),
        // as in Salt, a default is not copied
        (None, Some(default)) if !surroundings.masked || call.flag("unmask", false) => Ok(default.clone()),
        (None, Some(default)) => shown(call, default, surroundings.masked),
        (None, None) if surroundings.is_set("pillar_raise_on_missing") => {
            let message = Value::from(format!("Pillar key not found: {}", text(&key)?));
            Err(CallError::python(message.short_repr()))
        }
        (None, None) => Ok("".into()),
    }
}

fn items(call: &Call<'_>) -> Answer {
    if !call.star.is_empty() {
        return item(call);
    }
    let surroundings = call.surroundings;
    let hides = surroundings.opts.get("pillar_mask_output").is_none_or(|value| value.truthy());
    shown(call, &pillar(call), surroundings.masked && hides)
}

fn item(call: &Call<'_>) -> Answer {
    let default = call.given("default").cloned().unwrap_or_else(|| "".into());
    let (data, delimiter) = (pillar(call), call.text("delimiter", ":"));
    let made = Dict::default();
    for arg in &call.star {
        let found = traverse(&data, arg, &delimiter)?.unwrap_or_else(|| default.clone());
        let key = Key::new(arg.clone()).map_err(|why| CallError::python(why.to_string()))?;
        made.borrow_mut().insert(key, found);
    }
    shown(call, &made.into(), call.surroundings.masked)
}

fn raw(call: &Call<'_>) -> Answer {
    let value = match call.get("key").filter(|key| key.truthy()) {
        Some(key) => {
            let key = Key::new(key.clone()).map_err(|why| CallError::python(why.to_string()))?;
            call.surroundings.pillar.borrow().get(&key).cloned().unwrap_or_else(|| Value::dict([]))
        }
        None => pillar(call),
    };
    shown(call, &value, false)
}

fn keys(call: &Call<'_>) -> Answer {
    let key = call.need("key");
    match traverse(&pillar(call), &key, &call.text("delimiter", ":"))? {
        Some(Value::Dict(dict)) => Ok(Value::list(dict.borrow().keys().map(|key| key.value().clone()))),
        Some(_) => Err(CallError::python(format!("Pillar value in key {} is not a dict", text(&key)?))),
        None => {
            let message = Value::from(format!("Pillar key not found: {}", text(&key)?));
            Err(CallError::python(message.short_repr()))
        }
    }
}

fn ls(call: &Call<'_>) -> Answer {
    match items(call)? {
        Value::Dict(dict) => Ok(Value::list(dict.borrow().keys().map(|key| key.value().clone()))),
        other => Ok(other),
    }
}

/// In place of each value, its type.
fn obfuscate(call: &Call<'_>) -> Answer {
    let mut left = 1 << 20;
    obfuscated(&items(call)?, 0, &mut left)
}

fn obfuscated(value: &Value, depth: usize, left: &mut usize) -> Answer {
    *left = left.checked_sub(1).ok_or_else(|| CallError::python("too many values"))?;
    if depth > crate::value::MAX_DEPTH {
        return Err(CallError::python("maximum recursion depth exceeded"));
    }
    Ok(match value {
        Value::Dict(dict) => {
            let made = Dict::from_entries(Default::default(), dict.is_ordered());
            for (key, item) in dict.borrow().iter() {
                made.borrow_mut().insert(key.clone(), obfuscated(item, depth + 1, left)?);
            }
            made.into()
        }
        Value::List(list) => {
            let items =
                list.borrow().iter().map(|item| obfuscated(item, depth + 1, left)).collect::<Result<Vec<_>, _>>()?;
            Value::list(items)
        }
        other => format!("<{}>", other.type_name()).into(),
    })
}

fn filter_by(call: &Call<'_>) -> Answer {
    let data = match call.surroundings.is_remote {
        true => plain(&pillar(call), &call.surroundings.budget)?,
        false => pillar(call),
    };
    filter::filter_by(call, &call.need("pillar"), &data)
}
