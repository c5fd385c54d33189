//! The methods of Python's types.

pub(super) mod dict;
mod functions;
pub(super) mod list;
pub(super) mod text;

use super::error::{JinjaError, Res};
use super::interp::{Interp, Passed, loop_method};
use super::object::{Cycler, Functions, Loop, cast};
use crate::value::Value;

const LOOP: [&str; 2] = ["cycle", "changed"];
const CYCLER: [&str; 2] = ["next", "reset"];

/// The name of a method that a value has.
pub(super) fn find(value: &Value, name: &str) -> Option<&'static str> {
    let names: &[&'static str] = match value {
        Value::Str(_) => &text::NAMES,
        Value::List(_) => &list::NAMES,
        Value::Tuple(_) => &["count", "index"],
        Value::Dict(_) => &dict::NAMES,
        Value::Set(_) => &list::SET_NAMES,
        Value::Object(_) if cast::<Loop>(value).is_some() => &LOOP,
        Value::Object(_) if cast::<Cycler>(value).is_some() => &CYCLER,
        Value::Object(_) if cast::<Functions>(value).is_some_and(|of| of.module.is_none()) => &functions::NAMES,
        _ => return None,
    };
    names.iter().find(|known| **known == name).copied()
}

pub(super) fn call(interp: &mut Interp, receiver: &Value, name: &'static str, passed: Passed) -> Res<Value> {
    match receiver {
        Value::Str(text) => text::call(interp, text, name, &passed),
        Value::List(list) => list::call(interp, list, name, &passed),
        Value::Tuple(items) => list::call(interp, &items.to_vec().into(), name, &passed),
        Value::Dict(dict) => dict::call(interp, dict, name, passed),
        Value::Set(set) => list::call_set(interp, set, name, &passed),
        _ if cast::<Loop>(receiver).is_some() => loop_method(receiver, name, passed),
        _ if cast::<Functions>(receiver).is_some() => functions::call(interp, name, &passed),
        _ => match cast::<Cycler>(receiver) {
            Some(cycler) => {
                let at = if name == "reset" { cycler.items.len() - 1 } else { cycler.at.get() };
                cycler.at.set((at + 1) % cycler.items.len());
                Ok(if name == "reset" { Value::None } else { cycler.items[at].clone() })
            }
            None => Err(JinjaError::python(format!("no method {name}"))),
        },
    }
}
