//! `defaults` and `slsutil`: merging and small helpers.

use super::Answer;
use super::call::{Call, Row};
use crate::data::merge::{How, merge, update};
use crate::data::{CallError, deep_copy};
use crate::serializers::Serializer;
use crate::value::{Key, Value};

pub(super) const DEFAULTS: &[Row] = &[
    Row::new("merge", "dest src merge_lists? in_place? convert_none?", defaults_merge),
    Row::new("deepcopy", "source", |call| deep_copy(&call.need("source"), &call.surroundings.budget)),
    Row::new("update", "dest defaults merge_lists? in_place? convert_none?", defaults_update),
];

pub(super) const SLSUTIL: &[Row] = &[
    Row::new("update", "dest upd recursive_update? merge_lists?", slsutil_update),
    Row::new("merge", "obj_a obj_b strategy? renderer? merge_lists?", slsutil_merge),
    Row::new("merge_all", "lst strategy? renderer? merge_lists?", merge_all),
    Row::new("boolstr", "value true? false?", boolstr),
    Row::new("serialize", "serializer obj **", serialize),
    Row::new("deserialize", "serializer stream_or_string **", deserialize),
    Row::new("banner", super::banner::PARAMETERS, super::banner::banner),
];

fn lists(call: &Call<'_>, default: bool) -> How {
    How { recursive: true, merge_lists: call.flag("merge_lists", default), strict: false }
}

fn defaults_merge(call: &Call<'_>) -> Answer {
    let budget = &call.surroundings.budget;
    let (mut dest, mut src) = (call.need("dest"), call.need("src"));
    let (in_place, convert) = (call.flag("in_place", true), call.flag("convert_none", true));
    if matches!(src, Value::None) && convert {
        src = Value::dict([]);
    }
    if matches!(dest, Value::None) && convert {
        if in_place {
            return Err(CallError::python("Can't perform in-place merge into NoneType"));
        }
        dest = Value::dict([]);
    }
    if !in_place {
        dest = deep_copy(&dest, budget)?;
    }
    update(&dest, &src, lists(call, false), budget)
}

fn defaults_update(call: &Call<'_>) -> Answer {
    let budget = &call.surroundings.budget;
    let (mut dest, mut defaults) = (call.need("dest"), call.need("defaults"));
    let convert = call.flag("convert_none", true);
    if call.flag("in_place", true) {
        if matches!(dest, Value::None) {
            return Err(CallError::python("Can't perform in-place update into NoneType"));
        }
    } else {
        if matches!(dest, Value::None) && convert {
            dest = Value::dict([]);
        }
        dest = deep_copy(&dest, budget)?;
    }
    if matches!(defaults, Value::None) && convert {
        defaults = Value::dict([]);
    }
    let Value::Dict(nodes) = &dest else {
        return Err(CallError::python(format!("'{}' object has no attribute 'items'", dest.type_name())));
    };
    let entries: Vec<(Key, Value)> = nodes.borrow().iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    for (key, mut own) in entries {
        let copied = deep_copy(&defaults, budget)?;
        if matches!(own, Value::None) && convert {
            own = Value::dict([]);
        }
        let merged = update(&copied, &own, lists(call, true), budget)?;
        nodes.borrow_mut().insert(key, merged);
    }
    Ok(dest)
}

fn slsutil_update(call: &Call<'_>) -> Answer {
    let how = How { recursive: call.flag("recursive_update", true), ..lists(call, false) };
    update(&call.need("dest"), &call.need("upd"), how, &call.surroundings.budget)
}

/// The strategy of a call: `smart` is `aggregate` for the renderer that marks what is to be aggregated.
fn strategy(call: &Call<'_>) -> std::rc::Rc<str> {
    let strategy = call.text("strategy", "smart");
    let renderer = call.text("renderer", "yaml");
    let marks = renderer.rsplit('|').next() == Some("yamlex") || renderer.starts_with("yamlex_");
    if &*strategy == "smart" && marks { "aggregate".into() } else { strategy }
}

fn slsutil_merge(call: &Call<'_>) -> Answer {
    let (a, b) = (call.need("obj_a"), call.need("obj_b"));
    merge(&a, &b, &strategy(call), call.flag("merge_lists", false), &call.surroundings.budget)
}

fn merge_all(call: &Call<'_>) -> Answer {
    let items = match call.need("lst") {
        Value::List(list) => list.borrow().clone(),
        Value::Tuple(items) => items.to_vec(),
        other => return Err(CallError::python(format!("'{}' object is not iterable", other.type_name()))),
    };
    let mut made = Value::dict([]);
    for item in &items {
        made = merge(&made, item, &strategy(call), call.flag("merge_lists", false), &call.surroundings.budget)?;
    }
    Ok(made)
}

fn boolstr(call: &Call<'_>) -> Answer {
    let is = call.need("value").truthy();
    let (name, default) = if is { ("true", "true") } else { ("false", "false") };
    Ok(call.get(name).cloned().unwrap_or_else(|| default.into()))
}

fn serialize(call: &Call<'_>) -> Answer {
    let (name, obj) = (call.text("serializer", ""), call.need("obj"));
    let mut serializer = Serializer::named(&name).ok_or_else(|| unknown(&name))?;
    for (option, value) in &call.stars {
        serializer.set(option, value).map_err(CallError::python)?;
    }
    serializer.text(&obj).map(Value::from).map_err(CallError::python)
}

fn unknown(serializer: &str) -> CallError {
    CallError::refused(format!("Serializer '{serializer}' not found. There are configparser, json and yaml."))
}

/// Options of Python's loaders are errors, as there are none for what is loaded here.
fn deserialize(call: &Call<'_>) -> Answer {
    let (serializer, given) = (call.text("serializer", ""), call.need("stream_or_string"));
    if let Some((name, _)) = call.stars.first() {
        return Err(CallError::python(format!("{name} is no option of the serializer {serializer} here")));
    }
    let text = match &given {
        Value::Bytes(bytes) => std::str::from_utf8(bytes).map_err(|error| CallError::python(error.to_string()))?,
        other => other
            .as_str()
            .ok_or_else(|| CallError::python(format!("'{}' object has no attribute 'read'", other.type_name())))?,
    };
    let reader = Serializer::named(&serializer).ok_or_else(|| unknown(&serializer))?;
    reader.value(text).map_err(CallError::python)
}
