//! Jinja's filters on text and numbers.

use super::super::error::{JinjaError, Res};
use super::super::interp::{Interp, Passed, check};
use super::super::object::{Undefined, cast};
use super::super::{format, methods, number, ops};
use crate::value::Value;

pub(super) const NAMES: [&str; 24] = [
    "upper",
    "lower",
    "title",
    "capitalize",
    "trim",
    "replace",
    "indent",
    "string",
    "int",
    "float",
    "abs",
    "round",
    "format",
    "center",
    "truncate",
    "wordcount",
    "default",
    "d",
    "escape",
    "e",
    "safe",
    "striptags",
    "urlencode",
    "forceescape",
];

/// As Jinja's `do_truncate`, which first looks at its arguments.
fn truncate(interp: &mut Interp, value: &Value, passed: &Passed) -> Res<String> {
    let end = passed.get(2, "end").unwrap_or_else(|| Value::str("..."));
    let end = interp.text(&end)?;
    let of_end = end.chars().count();
    let number = |at, name, default: usize, least: usize| {
        let value = passed.get(at, name).filter(|value| name == "length" || !matches!(value, Value::None));
        let Some(value) = value else { return Ok(default) };
        let Some(n) = ops::integer(&value) else {
            let kind = value.type_name();
            return Err(JinjaError::python(format!("'>=' not supported between instances of '{kind}' and 'int'")));
        };
        match usize::try_from(n).ok().filter(|n| *n >= least) {
            Some(n) => Ok(n),
            None => Err(JinjaError::python(format!("expected {name} >= {least}, got {n}"))),
        }
    };
    let length = number(0, "length", 255, of_end)?;
    let leeway = number(3, "leeway", 5, 0)?;
    check(value)?;
    let Value::Str(text) = value else {
        return Err(JinjaError::python(format!("object of type '{}' has no len()", value.type_name())));
    };
    if text.chars().count() <= length.saturating_add(leeway) {
        return Ok(text.to_string());
    }
    let cut: String = text.chars().take(length - of_end).collect();
    let whole = passed.get(1, "killwords").is_some_and(|value| value.truthy());
    let cut = if whole { &cut[..] } else { cut.rsplit_once(' ').map_or(&cut[..], |(before, _)| before) };
    Ok(format!("{cut}{end}"))
}

pub(super) fn apply(interp: &mut Interp, name: &str, value: &Value, passed: &Passed) -> Res<Value> {
    match name {
        "default" | "d" => {
            passed.at_most(&["default_value", "boolean"], "do_default")?;
            let boolean = passed.get(1, "boolean").is_some_and(|v| v.truthy());
            let missing = cast::<Undefined>(value).is_some() || boolean && !value.truthy();
            let default = || passed.get(0, "default_value").unwrap_or_else(|| Value::str(""));
            return Ok(if missing { default() } else { value.clone() });
        }
        "safe" => return Ok(value.clone()),
        "int" => return int(value, passed),
        "float" => {
            check(value)?;
            return Ok(Value::Float(
                match value {
                    Value::Str(text) => number::parse_float(text),
                    Value::Float(n) => Some(*n),
                    other => ops::integer(other).map(|n| n as f64),
                }
                .unwrap_or_else(|| match passed.get(0, "default") {
                    Some(Value::Float(n)) => n,
                    Some(other) => ops::integer(&other).unwrap_or_default() as f64,
                    None => 0.0,
                }),
            ));
        }
        "abs" => {
            return match value {
                Value::Float(n) => Ok(n.abs().into()),
                _ => match ops::integer(value) {
                    Some(n) if n < 0 => ops::negate(&Value::Int(n), true),
                    Some(n) => Ok(n.into()),
                    None => Err(JinjaError::python(format!("bad operand type for abs(): '{}'", value.type_name()))),
                },
            };
        }
        "round" => return round(value, passed),
        _ => {}
    }
    if name == "indent" && !matches!(value, Value::Str(_)) {
        check(value)?;
        return Err(JinjaError::python(match value {
            // Jinja adds a line end, which a list takes for items
            Value::List(_) => "'list' object has no attribute 'splitlines'".to_owned(),
            Value::Tuple(_) => "can only concatenate tuple (not \"str\") to tuple".to_owned(),
            other => format!("unsupported operand type(s) for +=: '{}' and 'str'", other.type_name()),
        }));
    }
    if name == "urlencode" && matches!(value, Value::Dict(_) | Value::List(_) | Value::Tuple(_)) {
        return query(interp, value).map(Value::from);
    }
    let text = interp.text(value)?;
    let number = |at, name| passed.get(at, name).as_ref().and_then(ops::integer);
    let made: String = match name {
        "upper" => text.to_uppercase(),
        "lower" => text.to_lowercase(),
        "title" => {
            let mut out = String::new();
            let mut inside = false;
            for c in text.chars() {
                if inside {
                    out.extend(c.to_lowercase())
                } else {
                    out.extend(c.to_uppercase())
                }
                inside = !(c.is_whitespace() || "-({[<".contains(c));
            }
            out
        }
        "capitalize" => methods::text::capitalize(&text),
        "trim" => match passed.get(0, "chars") {
            Some(Value::Str(chars)) => text.trim_matches(|c| chars.contains(c)).to_owned(),
            None | Some(Value::None) => text.trim().to_owned(),
            _ => return Err(JinjaError::python("strip arg must be None or str")),
        },
        "string" => return Ok(Value::Str(text)),
        "replace" => {
            let (old, new) = (passed.need(0, "old", "do_replace")?, passed.need(1, "new", "do_replace")?);
            let (old, new) = (interp.text(&old)?, interp.text(&new)?);
            let count = number(2, "count").unwrap_or(-1);
            return methods::text::replace(interp, &text, &old, &new, count).map(Value::from);
        }
        "indent" => return indent(interp, &text, passed),
        "format" => {
            let values = match passed.keyword.is_empty() {
                true => Value::tuple(passed.positional.iter().cloned()),
                false => Value::dict(passed.keyword.iter().map(|(n, v)| ((&**n).into(), v.clone()))),
            };
            format::percent(interp, &text, &values)?
        }
        "center" => {
            let width = passed.get(0, "width").unwrap_or(Value::Int(80));
            let passed = Passed { positional: vec![width], keyword: Vec::new() };
            return methods::call(interp, &Value::Str(text), "center", passed);
        }
        "truncate" => return truncate(interp, value, passed).map(Value::from),
        "wordcount" => {
            let words = text.split(|c: char| c != '_' && !c.is_alphanumeric()).filter(|w| !w.is_empty()).count();
            return Ok(Value::from(words as u64));
        }
        "urlencode" => quoted(&text, "/"),
        "striptags" => {
            let mut out = String::new();
            let mut inside = false;
            for c in text.chars() {
                match c {
                    '<' => inside = true,
                    '>' if inside => inside = false,
                    c if !inside => out.push(c),
                    _ => {}
                }
            }
            out.split_whitespace().collect::<Vec<_>>().join(" ")
        }
        _ => escaped(&text),
    };
    interp.charge(made.len())?;
    Ok(made.into())
}

/// Percent signs for all but letters, digits and these signs.
fn quoted(text: &str, safe: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"_.-~".contains(&b) || safe.as_bytes().contains(&b);
    let code = |b: u8| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") };
    text.bytes().map(code).collect()
}

/// `urlencode` of a dict or of pairs: a query.
fn query(interp: &mut Interp, value: &Value) -> Res<String> {
    let pairs: Vec<(Value, Value)> = match value {
        Value::Dict(dict) => dict.borrow().iter().map(|(key, value)| (key.value().clone(), value.clone())).collect(),
        pairs => {
            let mut found = Vec::new();
            for pair in ops::iterate(interp, pairs)? {
                match ops::iterate(interp, &pair)?.as_slice() {
                    [key, value] => found.push((key.clone(), value.clone())),
                    other => {
                        let count = other.len();
                        let least = if count < 2 { "not enough" } else { "too many" };
                        let tail = if count < 2 { format!(", got {count}") } else { String::new() };
                        return Err(JinjaError::python(format!("{least} values to unpack (expected 2{tail})")));
                    }
                }
            }
            found
        }
    };
    let mut out = String::new();
    for (key, value) in pairs {
        let (key, value) = (interp.text(&key)?, interp.text(&value)?);
        interp.charge((key.len() + value.len()) * 3 + 2)?;
        let part = |text: &str| quoted(text, "").replace("%20", "+");
        out.push_str(if out.is_empty() { "" } else { "&" });
        out.push_str(&format!("{}={}", part(&key), part(&value)));
    }
    Ok(out)
}

fn int(value: &Value, passed: &Passed) -> Res<Value> {
    check(value)?;
    let default = passed.get(0, "default").unwrap_or(Value::Int(0));
    let base = passed.get(1, "base").as_ref().and_then(ops::integer).and_then(|b| u32::try_from(b).ok()).unwrap_or(10);
    Ok(match value {
        Value::Str(text) => match number::parse_int(text, base) {
            Some(n) => Value::Int(n),
            None => number::parse_float(text).filter(|n| n.is_finite()).map_or(default, |n| Value::Int(n as i128)),
        },
        Value::Float(n) if n.is_finite() => Value::Int(n.trunc() as i128),
        other => ops::integer(other).map_or(default, Value::Int),
    })
}

fn round(value: &Value, passed: &Passed) -> Res<Value> {
    let precision = passed.get(0, "precision").as_ref().and_then(ops::integer).unwrap_or(0).clamp(-300, 300) as i32;
    let method = passed.get(1, "method").unwrap_or_else(|| Value::str("common"));
    let n = match value {
        Value::Float(n) => *n,
        other => match ops::integer(other) {
            Some(n) if method.as_str() == Some("common") && precision >= 0 => return Ok(Value::Int(n)),
            Some(n) => n as f64,
            None => {
                let name = other.type_name();
                return Err(JinjaError::python(format!("type {name} doesn't define __round__ method")));
            }
        },
    };
    let scale = 10f64.powi(precision);
    Ok(Value::Float(match method.as_str() {
        Some("ceil") => (n * scale).ceil() / scale,
        Some("floor") => (n * scale).floor() / scale,
        Some("common") if precision >= 0 => format!("{n:.*}", precision as usize).parse().unwrap_or(n),
        Some("common") => (n * scale).round_ties_even() / scale,
        _ => return Err(JinjaError::template("method must be common, ceil or floor")),
    }))
}

fn indent(interp: &mut Interp, text: &str, passed: &Passed) -> Res<Value> {
    let indention = match passed.get(0, "width") {
        Some(Value::Str(text)) => text.to_string(),
        other => {
            let width = other.as_ref().and_then(ops::integer).unwrap_or(4);
            let width = usize::try_from(width.max(0)).unwrap_or(usize::MAX);
            interp.charge(width)?;
            " ".repeat(width)
        }
    };
    let flag = |at, name| passed.get(at, name).is_some_and(|v| v.truthy());
    let (first, blank) = (flag(1, "first"), flag(2, "blank"));
    let text = format!("{text}\n");
    let lines: Vec<&str> = text.lines().collect();
    interp.charge(text.len() + indention.len().saturating_mul(lines.len() + 1))?;
    let mut out = String::new();
    for (at, line) in lines.iter().enumerate() {
        if at > 0 {
            out.push('\n');
        }
        if at == 0 && first || at > 0 && (blank || !line.is_empty()) {
            out.push_str(&indention);
        }
        out.push_str(line);
    }
    Ok(out.into())
}

/// Text for HTML.
pub(super) fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('\'', "&#39;").replace('"', "&#34;")
}
