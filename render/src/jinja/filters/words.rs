//! Filters on words, and those that would ask a host.

use brine_patterns::fnmatch;

use super::super::error::{JinjaError, Res};
use super::super::interp::{Interp, Passed, check};
use super::super::object::{Undefined, cast};
use super::super::{number, ops, regex};
use crate::value::Value;

pub(super) const NAMES: [&str; 5] =
    ["to_camelcase", "to_snake_case", "check_whitelist_blacklist", "filesizeformat", "xmlattr"];

/// Filters that Salt has and that are not here, with why.
pub(super) const ABSENT: [(&str, &str); 12] = [
    ("dns_check", "templates ask no network"),
    ("http_query", "templates ask no network"),
    ("file_hashsum", "templates read no files of the host"),
    ("is_bin_file", "templates read no files of the host"),
    ("is_empty", "templates read no files of the host"),
    ("is_text_file", "templates read no files of the host"),
    ("list_files", "templates read no files of the host"),
    ("which", "templates read no files of the host"),
    ("get_uid", "templates read no users of the host"),
    ("json_query", "JMESPath is not there"),
    ("urlize", "links are not made"),
    ("xml", "XML is not written"),
];

pub(super) fn apply(interp: &mut Interp, name: &str, value: &Value, passed: &Passed) -> Res<Value> {
    check(value)?;
    match name {
        "to_camelcase" => {
            let upper = passed.get(0, "uppercamel").is_some_and(|v| v.truthy());
            let text = super::text_arg(value)?;
            interp.charge(text.len())?;
            let words = text.split('_').enumerate();
            let word = |(at, word): (usize, &str)| match at {
                0 if !upper => word.to_owned(),
                _ => super::super::methods::text::capitalize(word),
            };
            Ok(words.map(word).collect::<String>().into())
        }
        "to_snake_case" => {
            let chars: Vec<char> = super::text_arg(value)?.chars().collect();
            let Some(first) = chars.first() else { return Err(JinjaError::python("string index out of range")) };
            interp.charge(chars.len() * 6)?;
            let mut out: String = first.to_lowercase().collect();
            for (at, c) in chars.iter().enumerate().skip(1) {
                let next_is_lower = chars.get(at + 1).is_some_and(|next| next.is_lowercase());
                if c.is_uppercase() && (chars[at - 1].is_lowercase() || next_is_lower) {
                    out.push('_');
                }
                out.extend(c.to_lowercase());
            }
            Ok(out.into())
        }
        "filesizeformat" => {
            let size = match value {
                Value::Float(n) => *n,
                Value::Str(text) => number::parse_float(text).ok_or_else(|| {
                    JinjaError::python(format!("could not convert string to float: {}", value.short_repr()))
                })?,
                other => ops::integer(other).map(|n| n as f64).ok_or_else(|| {
                    let name = other.type_name();
                    JinjaError::python(format!("float() argument must be a string or a real number, not '{name}'"))
                })?,
            };
            let binary = passed.get(0, "binary").is_some_and(|v| v.truthy());
            Ok(size_text(size, binary).into())
        }
        "xmlattr" => {
            let Value::Dict(dict) = value else {
                let name = value.type_name();
                return Err(JinjaError::python(format!("'{name}' object has no attribute 'items'")));
            };
            let space = passed.get(0, "autospace").is_none_or(|v| v.truthy());
            let mut parts = Vec::new();
            for (key, item) in dict.borrow().clone() {
                if matches!(item, Value::None) || cast::<Undefined>(&item).is_some() {
                    continue;
                }
                let (name, text) = (interp.text(key.value())?, interp.text(&item)?);
                if name.contains(|c: char| c.is_whitespace() || "/>=".contains(c)) {
                    let shown = key.value().short_repr();
                    return Err(JinjaError::python(format!("Invalid character in attribute name: {shown}")));
                }
                parts.push(format!("{}=\"{}\"", super::text::escaped(&name), super::text::escaped(&text)));
            }
            let joined = parts.join(" ");
            Ok(if space && !joined.is_empty() { format!(" {joined}") } else { joined }.into())
        }
        _ => {
            let text = super::text_arg(value)?.to_owned();
            let white = listed(interp, passed.get(0, "whitelist"), &text)?;
            let black = listed(interp, passed.get(1, "blacklist"), &text)?;
            Ok(match (white, black) {
                (None, None) => true,
                (None, Some(black)) => !black,
                (Some(white), None) => white,
                (Some(white), Some(black)) => white && !black,
            }
            .into())
        }
    }
}

/// Whether a glob or an expression of a list fits; none if there is no list.
fn listed(interp: &mut Interp, list: Option<Value>, text: &str) -> Res<Option<bool>> {
    let patterns = match list {
        Some(list) if !list.truthy() => return Ok(None),
        None => return Ok(None),
        Some(Value::Str(pattern)) => vec![Value::Str(pattern)],
        Some(list) => ops::iterate(interp, &list)?,
    };
    for pattern in &patterns {
        let Some(pattern) = pattern.as_str() else { continue };
        interp.take_steps(text.len() + pattern.len())?;
        let whole = || match regex::compile(&format!("(?:{pattern})\\Z"), false, false, true) {
            Ok(regex) => regex.find(text).is_ok_and(|found| found.is_some()),
            Err(_) => false,
        };
        if fnmatch(pattern, text) || whole() {
            return Ok(Some(true));
        }
    }
    Ok(Some(false))
}

fn size_text(size: f64, binary: bool) -> String {
    let base = if binary { 1024.0 } else { 1000.0 };
    if size == 1.0 {
        return "1 Byte".to_owned();
    }
    if size < base {
        return format!("{} Bytes", size as i64);
    }
    let mut unit = base * base;
    for (at, letter) in ["k", "M", "G", "T", "P", "E", "Z", "Y"].into_iter().enumerate() {
        if size < unit || at == 7 {
            let letter = if binary { letter.to_uppercase() + "i" } else { letter.to_owned() };
            return format!("{:.1} {letter}B", base * size / unit);
        }
        unit *= base;
    }
    String::new()
}
