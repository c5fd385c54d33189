//! `grains`

use super::call::{Call, Row};
use super::{Answer, filter};
use crate::data::{CallError, plain, text, traverse};
use crate::value::{Dict, Key, Value};

const DELIMITER: &str = ":";

pub(super) const ROWS: &[Row] = &[
    Row::new("get", "key default? delimiter? ordered?", get),
    Row::new("fetch", "key default? delimiter? ordered?", get).python("get"),
    Row::new("has_value", "key", has_value),
    Row::new("items", "sanitize?", items),
    Row::new("item", "* **", item),
    Row::new("ls", "", ls),
    Row::new("filter_by", "lookup_dict grain? merge? default? base?", filter_by),
    Row::new("equals", "key value", equals),
];

fn get(call: &Call<'_>) -> Answer {
    let mut grains = Value::Dict(call.surroundings.grains.clone());
    if !matches!(call.get("ordered"), None | Some(Value::Bool(true))) {
        grains = plain(&grains, &call.surroundings.budget)?;
    }
    let delimiter = call.text("delimiter", DELIMITER);
    let found = traverse(&grains, &call.need("key"), &delimiter)?;
    Ok(found.unwrap_or_else(|| call.get("default").cloned().unwrap_or_else(|| "".into())))
}

fn has_value(call: &Call<'_>) -> Answer {
    let grains = Value::Dict(call.surroundings.grains.clone());
    Ok(traverse(&grains, &call.need("key"), DELIMITER)?.is_some().into())
}

/// `salt.utils.data.is_true`
pub(super) fn is_true(value: &Value) -> bool {
    match value {
        Value::Str(text) => match text.trim().parse::<f64>() {
            Ok(number) => number > 0.0,
            Err(_) => text.to_lowercase() == "true",
        },
        Value::Int(n) => *n > 0,
        Value::Float(n) => *n > 0.0,
        other => other.truthy(),
    }
}

/// Hides what would say which machine it is.
fn sanitize(dict: &Dict) -> Result<(), CallError> {
    for (name, hidden) in [
        ("domain", "DOMAINNAME"),
        ("fqdn", "MINION.DOMAINNAME"),
        ("id", "MINION.DOMAINNAME"),
        ("host", "MINION"),
        ("localhost", "MINION"),
        ("nodename", "MINION"),
    ] {
        if dict.get(name).is_some() {
            dict.set(name, hidden.into());
        }
    }
    if let Some(serial) = dict.get("serialnumber") {
        let Value::Str(serial) = serial else {
            return Err(CallError::python(format!("object of type '{}' has no len()", serial.type_name())));
        };
        let count = serial.chars().count();
        let kept = count * 3 / 4;
        let hidden: String = serial.chars().take(kept).chain(std::iter::repeat_n('X', count - kept)).collect();
        dict.set("serialnumber", hidden.into());
    }
    Ok(())
}

fn items(call: &Call<'_>) -> Answer {
    let entries = call.surroundings.grains.borrow().clone();
    call.surroundings.budget.take_values(entries.len() * 2)?;
    let made = Dict::from_entries(entries, false);
    if call.get("sanitize").is_some_and(is_true) {
        sanitize(&made)?;
    }
    Ok(made.into())
}

fn item(call: &Call<'_>) -> Answer {
    let option = |name: &str| call.stars.iter().find(|(known, _)| &**known == name).map(|(_, value)| value.clone());
    let default = option("default").unwrap_or_else(|| "".into());
    let delimiter = match option("delimiter") {
        Some(Value::Str(text)) => text,
        _ => DELIMITER.into(),
    };
    let grains = Value::Dict(call.surroundings.grains.clone());
    let made = Dict::default();
    for arg in &call.star {
        let found = traverse(&grains, arg, &delimiter)?.unwrap_or_else(|| default.clone());
        let key = Key::new(arg.clone()).map_err(|why| CallError::python(why.to_string()))?;
        made.borrow_mut().insert(key, found);
    }
    if option("sanitize").is_some_and(|value| is_true(&value)) {
        sanitize(&made)?;
    }
    Ok(made.into())
}

fn ls(call: &Call<'_>) -> Answer {
    let mut names: Vec<String> = Vec::new();
    for key in call.surroundings.grains.borrow().keys() {
        let Some(name) = key.as_str() else {
            let kind = key.value().type_name();
            return Err(CallError::python(format!("'<' not supported between instances of '{kind}' and 'str'")));
        };
        names.push(name.to_owned());
    }
    names.sort_unstable();
    Ok(Value::list(names.into_iter().map(Value::from)))
}

fn filter_by(call: &Call<'_>) -> Answer {
    let grain = call.get("grain").cloned().unwrap_or_else(|| "os_family".into());
    filter::filter_by(call, &grain, &Value::Dict(call.surroundings.grains.clone()))
}

fn equals(call: &Call<'_>) -> Answer {
    let grains = Value::Dict(call.surroundings.grains.clone());
    let found = traverse(&grains, &call.need("key"), DELIMITER)?.unwrap_or_else(|| "".into());
    Ok((text(&call.need("value"))? == text(&found)?).into())
}
