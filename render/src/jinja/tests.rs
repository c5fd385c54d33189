//! `value is test`

use super::ast::Comparison;
use super::error::{JinjaError, Res};
use super::interp::{Interp, Passed, check};
use super::object::{Builtin, Function, Functions, Iter, Macro, Method, Undefined, cast};
use super::{filters, ops, regex};
use crate::value::Value;

const NAMES: [&str; 43] = [
    "odd",
    "even",
    "divisibleby",
    "defined",
    "undefined",
    "filter",
    "test",
    "none",
    "boolean",
    "false",
    "true",
    "integer",
    "float",
    "lower",
    "upper",
    "string",
    "mapping",
    "number",
    "sequence",
    "iterable",
    "callable",
    "sameas",
    "escaped",
    "in",
    "==",
    "eq",
    "equalto",
    "!=",
    "ne",
    ">",
    "gt",
    "greaterthan",
    "ge",
    ">=",
    "<",
    "lt",
    "lessthan",
    "<=",
    "le",
    "match",
    "list",
    "dict",
    "set",
];

pub(super) fn exists(name: &str) -> bool {
    NAMES[..41].contains(&name)
}

pub(super) fn apply(interp: &mut Interp, name: &str, value: &Value, passed: &Passed) -> Res<bool> {
    let other =
        || {
            passed.positional.first().cloned().ok_or_else(|| {
                JinjaError::python(format!("test_{name}() missing 1 required positional argument: 'other'"))
            })
        };
    let comparison = match name {
        "==" | "eq" | "equalto" => Some(Comparison::Eq),
        "!=" | "ne" => Some(Comparison::Ne),
        ">" | "gt" | "greaterthan" => Some(Comparison::Gt),
        ">=" | "ge" => Some(Comparison::Ge),
        "<" | "lt" | "lessthan" => Some(Comparison::Lt),
        "<=" | "le" => Some(Comparison::Le),
        "in" => Some(Comparison::In),
        _ => None,
    };
    if let Some(comparison) = comparison {
        return ops::compare(interp, comparison, value, &other()?);
    }
    let is_undefined = cast::<Undefined>(value).is_some();
    Ok(match name {
        "defined" => !is_undefined,
        "undefined" => is_undefined,
        "none" => matches!(value, Value::None),
        "boolean" => matches!(value, Value::Bool(_)),
        "true" => matches!(value, Value::Bool(true)),
        "false" => matches!(value, Value::Bool(false)),
        "integer" => matches!(value, Value::Int(_)),
        "float" => matches!(value, Value::Float(_)),
        "number" => matches!(value, Value::Int(_) | Value::Float(_) | Value::Bool(_)),
        "string" => matches!(value, Value::Str(_)),
        "mapping" => matches!(value, Value::Dict(_)),
        "list" => matches!(value, Value::List(_)),
        "escaped" => false,
        "sequence" => {
            let range = cast::<Iter>(value).is_some_and(|iter| matches!(iter.kind, super::object::IterKind::Range(..)));
            matches!(value, Value::Str(_) | Value::List(_) | Value::Tuple(_) | Value::Dict(_) | Value::Bytes(_))
                || range
        }
        "iterable" => {
            check(value)?;
            let plain =
                matches!(value, Value::Str(_) | Value::List(_) | Value::Tuple(_) | Value::Dict(_) | Value::Set(_));
            // Python takes all that has `__getitem__` for it.
            let by_item = cast::<Functions>(value).is_some_and(|functions| functions.module.is_none());
            plain || by_item || cast::<Iter>(value).is_some()
        }
        "callable" => {
            cast::<Macro>(value).is_some()
                || cast::<Method>(value).is_some()
                || cast::<Builtin>(value).is_some()
                || cast::<Function>(value).is_some()
                || is_undefined
        }
        "sameas" => {
            let other = other()?;
            match (value, &other) {
                (Value::None, Value::None) => true,
                (Value::Bool(a), Value::Bool(b)) => a == b,
                (Value::Int(a), Value::Int(b)) => a == b,
                (Value::Str(a), Value::Str(b)) => a == b,
                _ => value.is_same(&other),
            }
        }
        "odd" | "even" | "divisibleby" => {
            let by = if name == "divisibleby" { other()? } else { Value::Int(2) };
            let rest = ops::binary(interp, super::ast::Operator::Mod, value, &by)?;
            ops::equal(interp, &rest, &Value::Int(i128::from(name == "odd")))?
        }
        "lower" => {
            interp.text(value).map(|t| t.chars().any(char::is_lowercase) && !t.chars().any(char::is_uppercase))?
        }
        "upper" => {
            interp.text(value).map(|t| t.chars().any(char::is_uppercase) && !t.chars().any(char::is_lowercase))?
        }
        "filter" => value.as_str().is_some_and(filters::exists),
        "test" => value.as_str().is_some_and(exists),
        "match" => {
            let flag = |at, name| passed.get(at, name).is_some_and(|v| v.truthy());
            let pattern = passed.need(0, "rgx", "test_match")?;
            let pattern = interp.text(&pattern)?;
            let text = filters::text_arg(value)?;
            let regex = regex::compile(&pattern, flag(1, "ignorecase"), flag(2, "multiline"), true)?;
            !matches!(regex::groups(&regex, text)?, Value::None)
        }
        other => return Err(JinjaError::template(format!("No test named '{other}' found."))),
    })
}
