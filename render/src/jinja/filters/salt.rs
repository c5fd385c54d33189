//! Salt's filters.

use super::super::error::{JinjaError, Res};
use super::super::interp::{Interp, Passed, check, hashed};
use super::super::methods::list::sort_by;
use super::super::{methods, number, ops, regex};
use super::text_arg;
use crate::value::{Set, Value};

pub(super) const NAMES: [&str; 24] = [
    "regex_replace",
    "regex_match",
    "regex_search",
    "regex_escape",
    "traverse",
    "to_bool",
    "quote",
    "skip",
    "union",
    "intersect",
    "difference",
    "symmetric_difference",
    "avg",
    "is_list",
    "is_iter",
    "sorted_ignorecase",
    "flatten",
    "path_join",
    "to_num",
    "str_to_num",
    "is_hex",
    "method_call",
    "contains_whitespace",
    "substring_in_list",
];

pub(super) fn apply(interp: &mut Interp, name: &str, value: &Value, passed: &Passed) -> Res<Value> {
    if !matches!(name, "to_bool" | "is_list" | "is_iter") {
        check(value)?;
    }
    match name {
        "regex_replace" | "regex_match" | "regex_search" => {
            let pattern = passed.need(0, "rgx", name)?;
            let first = usize::from(name == "regex_replace") + 1;
            let flag = |at, name| passed.get(at, name).is_some_and(|v| v.truthy());
            let (ignore, multiline) = (flag(first, "ignorecase"), flag(first + 1, "multiline"));
            let regex = regex::compile(text_arg(&pattern)?, ignore, multiline, name == "regex_match")?;
            let text = text_arg(value)?;
            interp.take_steps(text.len())?;
            if name != "regex_replace" {
                return regex::groups(&regex, text);
            }
            let replacement = passed.need(1, "val", name)?;
            let replacement = interp.text(&replacement)?;
            regex::replace(&regex, text, &replacement, |bytes| interp.charge(bytes)).map(Value::from)
        }
        "regex_escape" => Ok(crate::regex::escape(text_arg(value)?).into()),
        "traverse" => traverse(interp, value, passed),
        "to_bool" => Ok(Value::Bool(match value {
            Value::Str(text) => matches!(text.to_lowercase().as_str(), "yes" | "1" | "true"),
            Value::Bool(b) => *b,
            Value::Int(n) => *n > 0,
            Value::List(_) | Value::Dict(_) | Value::Set(_) => value.truthy(),
            _ => false,
        })),
        "quote" if !value.truthy() => Ok("''".into()),
        "quote" => {
            let text = text_arg(value)?;
            let safe = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
            Ok(match text {
                "" => "''".into(),
                text if text.chars().all(safe) => text.into(),
                text => format!("'{}'", text.replace('\'', "'\"'\"'")).into(),
            })
        }
        "skip" => Ok("".into()),
        "is_list" => Ok(matches!(value, Value::List(_)).into()),
        "is_iter" => {
            let is = matches!(value, Value::List(_) | Value::Tuple(_) | Value::Dict(_) | Value::Set(_));
            Ok(is.into())
        }
        "union" | "intersect" | "difference" | "symmetric_difference" => sets(interp, name, value, passed),
        // As Salt, what can be a key is made a number, without a look at what is in it.
        "avg" if !matches!(value, Value::List(_) | Value::Set(_) | Value::Dict(_) | Value::Object(_)) => {
            let number = match value {
                Value::Str(text) => text.trim().parse().map_err(|_| {
                    JinjaError::python(format!("could not convert string to float: {}", value.short_repr()))
                })?,
                Value::Float(n) => *n,
                _ => ops::integer(value).map(|n| n as f64).ok_or_else(|| {
                    let kind = value.type_name();
                    JinjaError::python(format!("float() argument must be a string or a real number, not '{kind}'"))
                })?,
            };
            Ok(number.into())
        }
        "avg" => {
            let items = ops::iterate(interp, value)?;
            let mut total = Value::Int(0);
            for item in &items {
                total = ops::binary(interp, super::super::ast::Operator::Add, &total, item)?;
            }
            let count = Value::from(items.len() as u64);
            let mean = ops::binary(interp, super::super::ast::Operator::Div, &total, &count)?;
            Ok(mean)
        }
        "sorted_ignorecase" => {
            let items = ops::iterate(interp, value)?;
            let keys =
                items.iter().map(|item| text_arg(item).map(|t| t.to_lowercase().into())).collect::<Res<Vec<_>>>()?;
            Ok(Value::list(sort_by(interp, &items, &keys, false)?))
        }
        "flatten" => {
            let levels = passed.get(0, "levels").as_ref().and_then(ops::integer);
            let nulls = passed.get(1, "preserve_nulls").is_some_and(|v| v.truthy());
            let mut out = Vec::new();
            flatten(interp, value, levels, nulls, &mut out, 0)?;
            Ok(Value::list(out))
        }
        "path_join" => {
            let mut out = text_arg(value)?.to_owned();
            for part in &passed.positional {
                let part = text_arg(part)?.trim_start_matches('/');
                if !out.ends_with('/') {
                    out.push('/');
                }
                out.push_str(part);
            }
            interp.charge(out.len())?;
            Ok(out.into())
        }
        "to_num" | "str_to_num" => match value {
            Value::Str(text) => Ok(to_number(text)),
            Value::Float(n) => Ok(Value::Int(n.trunc() as i128)),
            _ => ops::integer(value).map(Value::Int).ok_or_else(|| {
                let name = value.type_name();
                JinjaError::python(format!(
                    "int() argument must be a string, a bytes-like object or a real number, not '{name}'"
                ))
            }),
        },
        "is_hex" => Ok(value.as_str().is_some_and(|text| number::parse_int(text, 16).is_some()).into()),
        "method_call" => {
            let method = passed.need(0, "f_name", name)?;
            let Some(method) = methods::find(value, text_arg(&method)?) else { return Ok(Value::None) };
            let rest = Passed { positional: passed.positional[1..].to_vec(), keyword: passed.keyword.clone() };
            methods::call(interp, value, method, rest)
        }
        "contains_whitespace" => Ok(text_arg(value)?.contains(char::is_whitespace).into()),
        "substring_in_list" => {
            let list = passed.need(0, "lst", name)?;
            let text = text_arg(value)?.to_owned();
            let items = ops::iterate(interp, &list)?;
            Ok(items.iter().any(|item| item.as_str().is_some_and(|item| item.contains(&text))).into())
        }
        other => Err(JinjaError::python(format!("the filter {other} is not there"))),
    }
}

fn traverse(interp: &mut Interp, value: &Value, passed: &Passed) -> Res<Value> {
    let key = passed.need(0, "key", "traverse_dict_and_list")?;
    let default = passed.get(1, "default").unwrap_or_default();
    let delimiter = passed.get(2, "delimiter").unwrap_or_else(|| ":".into());
    let keys = match &key {
        Value::Str(text) => text.split(text_arg(&delimiter)?).map(Value::from).collect(),
        Value::Int(_) => vec![key],
        other => ops::iterate(interp, other)?,
    };
    let mut at = value.clone();
    for key in keys {
        let next = match &at {
            Value::List(list) => {
                let index = match &key {
                    Value::Str(text) => number::parse_int(text, 10),
                    other => ops::integer(other),
                };
                let list = list.borrow();
                match index {
                    Some(index) => ops::place(index, list.len()).map(|place| list[place].clone()),
                    None => list.iter().find_map(|item| match (item, hashed(key.clone())) {
                        (Value::Dict(dict), Ok(key)) => dict.borrow().get(&key).cloned(),
                        _ => None,
                    }),
                }
            }
            Value::Dict(dict) => {
                let dict = dict.borrow();
                let found = dict.get(&hashed(key.clone())?).cloned();
                found.or_else(|| {
                    let number = key.as_str().and_then(|text| number::parse_int(text, 10))?;
                    hashed(Value::Int(number)).ok().and_then(|key| dict.get(&key).cloned())
                })
            }
            _ => None,
        };
        match next {
            Some(next) => at = next,
            None => return Ok(default),
        }
    }
    Ok(at)
}

fn sets(interp: &mut Interp, name: &str, left: &Value, passed: &Passed) -> Res<Value> {
    let right = passed.need(0, "lst2", name)?;
    let hashable = |value: &Value| matches!(value, Value::Str(_) | Value::Tuple(_));
    let (a, b) = (ops::iterate(interp, left)?, ops::iterate(interp, &right)?);
    interp.charge_values(a.len() + b.len())?;
    let (la, lb) = (Value::list(a.iter().cloned()), Value::list(b.iter().cloned()));
    let mut chosen = Vec::new();
    for item in &a {
        let shared = name != "union" && ops::contains(interp, &lb, item)?;
        if name == "union" || shared == (name == "intersect") {
            chosen.push(item.clone());
        }
    }
    if matches!(name, "union" | "symmetric_difference") {
        for item in &b {
            if name == "union" || !ops::contains(interp, &la, item)? {
                chosen.push(item.clone());
            }
        }
    }
    let mut kept: Vec<Value> = Vec::new();
    for item in chosen {
        let known = Value::list(kept.iter().cloned());
        if !ops::contains(interp, &known, &item)? {
            kept.push(item);
        }
    }
    if hashable(left) && hashable(&right) {
        let set: Set = ops::set_of(kept)?;
        return Ok(Value::Set(set));
    }
    Ok(Value::list(kept))
}

fn flatten(
    interp: &mut Interp,
    value: &Value,
    levels: Option<i128>,
    nulls: bool,
    out: &mut Vec<Value>,
    depth: usize,
) -> Res<()> {
    if depth > 60 {
        return Err(JinjaError::python("Reference cycle detected. Check input list."));
    }
    for item in ops::iterate(interp, value)? {
        interp.charge_values(1)?;
        let is_null = matches!(item, Value::None) || matches!(item.as_str(), Some("None" | "null"));
        if is_null && !nulls {
            continue;
        }
        let inner = matches!(item, Value::List(_) | Value::Tuple(_) | Value::Dict(_) | Value::Set(_));
        if inner && levels.is_none_or(|levels| levels >= 1) {
            flatten(interp, &item, levels.map(|levels| levels - 1), nulls, out, depth + 1)?;
        } else {
            out.push(item);
        }
    }
    Ok(())
}

/// The number that a text says, or the text.
pub(super) fn to_number(text: &str) -> Value {
    let number = number::parse_int(text, 10).map(Value::Int);
    number.or_else(|| number::parse_float(text).map(Value::Float)).unwrap_or_else(|| text.into())
}
