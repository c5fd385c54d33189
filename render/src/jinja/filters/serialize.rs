//! YAML, JSON, Python.

use std::collections::HashSet;

use super::super::error::{JinjaError, Res};
use super::super::interp::{Interp, Passed};
use super::super::json;
use super::super::object::{Module, Undefined, cast};
use super::pformat;
use crate::value::{MAX_DEPTH, Value};
use crate::yaml::{self, DumpOptions};

pub(super) const NAMES: [&str; 12] = [
    "yaml",
    "json",
    "tojson",
    "python",
    "load_yaml",
    "load_json",
    "load_text",
    "dict_to_sls_yaml_params",
    "yaml_dquote",
    "yaml_squote",
    "yaml_encode",
    "pprint",
];

/// The messages of all that is undefined in a value. What is shared is looked at once.
fn undefined_in(value: &Value, found: &mut Vec<String>, seen: &mut HashSet<usize>, depth: usize) {
    if depth > MAX_DEPTH || found.len() > 20 {
        return;
    }
    if matches!(value, Value::List(_) | Value::Tuple(_) | Value::Dict(_))
        && !value.address().is_some_and(|at| seen.insert(at))
    {
        return;
    }
    if let Some(undefined) = cast::<Undefined>(value) {
        found.push(undefined.message.clone());
    }
    match value {
        Value::List(list) => list.borrow().iter().for_each(|item| undefined_in(item, found, seen, depth + 1)),
        Value::Tuple(items) => items.iter().for_each(|item| undefined_in(item, found, seen, depth + 1)),
        Value::Dict(dict) => dict.borrow().values().for_each(|item| undefined_in(item, found, seen, depth + 1)),
        _ => {}
    }
}

pub(super) fn apply(interp: &mut Interp, name: &str, value: &Value, passed: &Passed) -> Res<Value> {
    if !name.starts_with("yaml_") && name != "pprint" {
        let mut missing = Vec::new();
        undefined_in(value, &mut missing, &mut HashSet::new(), 0);
        if !missing.is_empty() {
            return Ok(Undefined::value(missing.join("\n")));
        }
    }
    match name {
        "yaml" => to_yaml(interp, value, passed.get(0, "flow_style").unwrap_or(true.into()).truthy()),
        "dict_to_sls_yaml_params" => {
            let Value::Dict(dict) = value else {
                let message = format!("'{}' object has no attribute 'items'", value.type_name());
                return Err(JinjaError::python(message));
            };
            let list =
                dict.borrow().iter().map(|(key, item)| Value::dict([(key.clone(), item.clone())])).collect::<Vec<_>>();
            to_yaml(interp, &Value::list(list), passed.get(0, "flow_style").is_some_and(|v| v.truthy()))
        }
        "json" => {
            let indent = indent(passed.get(1, "indent").as_ref());
            to_json(interp, value, passed.get(0, "sort_keys").unwrap_or(true.into()).truthy(), false, indent)
                .map(Value::from)
        }
        "tojson" => {
            let sorted = passed.named("sort_keys").is_some_and(Value::truthy);
            let text = to_json(interp, value, sorted, true, indent(passed.get(0, "indent").as_ref()))?;
            let text = text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026");
            Ok(text.replace('\'', "\\u0027").into())
        }
        "python" | "pprint" => interp.written(|out| pformat::write(value, out)).map(Value::from),
        "load_text" => match cast::<Module>(value) {
            Some(module) => Ok(module.body.as_str().into()),
            None => Ok(value.clone()),
        },
        "load_yaml" => {
            let text = match value {
                Value::Str(_) | Value::Object(_) => interp.text(value)?,
                _ => return Err(JinjaError::python("a string or stream input is required")),
            };
            interp.charge(text.len() * 8)?;
            yaml::load(&text, &yaml::Limits::default())
                .map_err(|why| JinjaError::template(format!("Encountered error loading yaml: {why}")))
        }
        "load_json" => {
            let text = interp.text(value)?;
            interp.charge(text.len() * 8)?;
            let is_text = matches!(value, Value::Str(_) | Value::Object(_));
            let loaded = if is_text { json::parse(&text) } else { Err(()) };
            loaded.map_err(|()| JinjaError::template(format!("Unable to load json from {text}")))
        }
        "yaml_encode" if matches!(value, Value::List(_) | Value::Dict(_) | Value::Tuple(_) | Value::Set(_)) => {
            let name = value.type_name();
            let message = format!("yaml_encode() only works with YAML scalar data; failed for <class '{name}'>");
            Err(JinjaError::python(message))
        }
        "yaml_encode" if !matches!(value, Value::Str(_)) => {
            let text = dump(interp, value, &DumpOptions::default())?;
            Ok(text.trim_end_matches('\n').trim_end_matches("\n...").into())
        }
        _ => {
            let text = interp.text(value)?;
            let quoted =
                if name == "yaml_squote" { super::quoted::single(&text) } else { super::quoted::double(&text) };
            interp.charge(quoted.len())?;
            interp.take_steps(quoted.len())?;
            Ok(quoted.into())
        }
    }
}

fn indent(value: Option<&Value>) -> Option<usize> {
    match value {
        Some(Value::Int(n)) => usize::try_from((*n).clamp(0, 64)).ok(),
        _ => None,
    }
}

fn dump(interp: &mut Interp, value: &Value, options: &DumpOptions) -> Res<String> {
    let text = yaml::dump(value, options).map_err(|why| JinjaError::limit(why.to_string()))?;
    interp.charge(text.len())?;
    interp.take_steps(text.len())?;
    Ok(text)
}

fn to_yaml(interp: &mut Interp, value: &Value, flow: bool) -> Res<Value> {
    let options = DumpOptions { default_flow_style: Some(flow), ..DumpOptions::default() };
    let text = dump(interp, value, &options)?;
    let text = text.trim();
    Ok(text.strip_suffix("\n...").unwrap_or(text).into())
}

fn to_json(interp: &mut Interp, value: &Value, sort_keys: bool, ascii: bool, indent: Option<usize>) -> Res<String> {
    let mut why = None;
    let text = interp.written(|out| {
        let indent = indent.map(|width| " ".repeat(width));
        let format = json::Format::new(sort_keys, ascii, indent.as_deref());
        json::write(value, &format, out, 0).map_err(|message| {
            why = Some(message);
            std::fmt::Error
        })
    });
    match why.filter(|message| !message.is_empty()) {
        Some(message) => Err(JinjaError::python(message)),
        None => text,
    }
}
