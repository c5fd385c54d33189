//! `str`

use super::super::error::{JinjaError, Res};
use super::super::interp::{Interp, Passed, check};
use super::super::{format, ops};
use crate::value::Value;

pub(super) const NAMES: [&str; 43] = [
    "split",
    "rsplit",
    "splitlines",
    "join",
    "strip",
    "lstrip",
    "rstrip",
    "partition",
    "rpartition",
    "replace",
    "startswith",
    "endswith",
    "format",
    "title",
    "capitalize",
    "upper",
    "lower",
    "swapcase",
    "casefold",
    "zfill",
    "center",
    "ljust",
    "rjust",
    "find",
    "rfind",
    "index",
    "rindex",
    "count",
    "isdigit",
    "isalpha",
    "isalnum",
    "isupper",
    "islower",
    "isspace",
    "isnumeric",
    "encode",
    "removeprefix",
    "removesuffix",
    "expandtabs",
    "istitle",
    "isdecimal",
    "isascii",
    "isidentifier",
];

fn string(value: &Value) -> Res<&str> {
    check(value)?;
    value.as_str().ok_or_else(|| JinjaError::python(format!("must be str, not {}", value.type_name())))
}

pub(super) fn title(text: &str) -> String {
    let mut inside = false;
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if inside {
            out.extend(c.to_lowercase())
        } else {
            out.extend(c.to_uppercase())
        }
        inside = c.is_alphabetic();
    }
    out
}

pub(in crate::jinja) fn capitalize(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_uppercase().collect::<String>()).unwrap_or_default();
    first + &chars.as_str().to_lowercase()
}

fn split(interp: &mut Interp, text: &str, passed: &Passed, reverse: bool) -> Res<Value> {
    let limit = passed.get(1, "maxsplit").as_ref().and_then(ops::integer).unwrap_or(-1);
    let limit = usize::try_from(limit).unwrap_or(usize::MAX - 1);
    let mut parts: Vec<&str> = match passed.get(0, "sep").unwrap_or_default() {
        Value::None => {
            let mut parts = Vec::new();
            let mut rest = if reverse { text.trim_end() } else { text.trim_start() };
            while !rest.is_empty() {
                let end = if reverse { rest.rfind(char::is_whitespace) } else { rest.find(char::is_whitespace) };
                let Some(end) = end.filter(|_| parts.len() < limit) else {
                    parts.push(rest);
                    break;
                };
                let width = rest[end..].chars().next().map_or(1, char::len_utf8);
                if reverse {
                    parts.push(&rest[end + width..]);
                    rest = rest[..end].trim_end();
                } else {
                    parts.push(&rest[..end]);
                    rest = rest[end..].trim_start();
                }
            }
            parts
        }
        separator => {
            let separator = string(&separator)?;
            if separator.is_empty() {
                return Err(JinjaError::python("empty separator"));
            }
            match reverse {
                true => text.rsplitn(limit.saturating_add(1), separator).collect(),
                false => text.splitn(limit.saturating_add(1), separator).collect(),
            }
        }
    };
    if reverse {
        parts.reverse();
    }
    interp.charge_values(parts.len())?;
    interp.charge(text.len() + parts.len() * 16)?;
    Ok(Value::list(parts.into_iter().map(Value::from)))
}

fn strip(text: &str, passed: &Passed, left: bool, right: bool) -> Res<Value> {
    let chars = passed.get(0, "chars").unwrap_or_default();
    let chars = if matches!(chars, Value::None) { None } else { Some(string(&chars)?.to_owned()) };
    let is =
        |c: char| chars.as_ref().map_or(c.is_whitespace() || ('\x1c'..='\x1f').contains(&c), |chars| chars.contains(c));
    let text = if left { text.trim_start_matches(is) } else { text };
    Ok(Value::str(if right { text.trim_end_matches(is) } else { text }))
}

fn affix(text: &str, passed: &Passed, name: &str) -> Res<Value> {
    let wanted = passed.need(0, "prefix", name)?;
    let is = |part: &Value| {
        let part = string(part)?;
        Ok(if name == "startswith" { text.starts_with(part) } else { text.ends_with(part) })
    };
    match &wanted {
        Value::Tuple(all) => {
            for part in all.iter() {
                if is(part)? {
                    return Ok(true.into());
                }
            }
            Ok(false.into())
        }
        Value::Str(_) => is(&wanted).map(Value::Bool),
        other => {
            check(other)?;
            let kind = other.type_name();
            Err(JinjaError::python(format!("{name} first arg must be str or a tuple of str, not {kind}")))
        }
    }
}

fn justify(interp: &mut Interp, text: &str, passed: &Passed, name: &str) -> Res<Value> {
    let width = ops::integer(&passed.need(0, "width", name)?).and_then(|n| usize::try_from(n.max(0)).ok()).unwrap_or(0);
    let fill = passed.get(1, "fillchar").and_then(|f| f.as_str().and_then(|f| f.chars().next())).unwrap_or(' ');
    let missing = width.saturating_sub(text.chars().count());
    interp.charge(missing.saturating_mul(fill.len_utf8()).saturating_add(text.len()))?;
    let fill = |count: usize| fill.to_string().repeat(count);
    Ok(Value::from(match name {
        "ljust" => format!("{text}{}", fill(missing)),
        "rjust" => format!("{}{text}", fill(missing)),
        _ => {
            let left = missing / 2 + (missing & width & 1);
            format!("{}{text}{}", fill(left), fill(missing - left))
        }
    }))
}

pub(super) fn call(interp: &mut Interp, text: &str, name: &'static str, passed: &Passed) -> Res<Value> {
    interp.charge(text.len())?;
    let all = |is: fn(char) -> bool| Ok(Value::Bool(!text.is_empty() && text.chars().all(is)));
    match name {
        "split" => split(interp, text, passed, false),
        "rsplit" => split(interp, text, passed, true),
        "splitlines" => {
            interp.charge_values(text.lines().count())?;
            Ok(Value::list(text.lines().map(Value::from)))
        }
        "join" => {
            let items = ops::iterate(interp, &passed.need(0, "iterable", "join")?)?;
            let mut out = String::new();
            for (at, item) in items.iter().enumerate() {
                check(item)?;
                let Some(item) = item.as_str() else {
                    let kind = item.type_name();
                    return Err(JinjaError::python(format!("sequence item {at}: expected str instance, {kind} found")));
                };
                interp.charge(item.len() + text.len())?;
                out.push_str(if at > 0 { text } else { "" });
                out.push_str(item);
            }
            Ok(out.into())
        }
        "strip" => strip(text, passed, true, true),
        "lstrip" => strip(text, passed, true, false),
        "rstrip" => strip(text, passed, false, true),
        "partition" | "rpartition" => {
            let separator = passed.need(0, "sep", name)?;
            let separator = string(&separator)?;
            let found = if name == "partition" { text.split_once(separator) } else { text.rsplit_once(separator) };
            Ok(match found {
                Some((before, after)) => Value::tuple([before.into(), separator.into(), after.into()]),
                None if name == "partition" => Value::tuple([text.into(), "".into(), "".into()]),
                None => Value::tuple(["".into(), "".into(), text.into()]),
            })
        }
        "replace" => {
            let (old, new) = (passed.need(0, "old", name)?, passed.need(1, "new", name)?);
            let count = passed.get(2, "count").as_ref().and_then(ops::integer).unwrap_or(-1);
            replace(interp, text, string(&old)?, string(&new)?, count).map(Value::from)
        }
        "startswith" | "endswith" => affix(text, passed, name),
        "format" => format::str_format(interp, text, passed).map(Value::from),
        "title" => Ok(title(text).into()),
        "capitalize" => Ok(capitalize(text).into()),
        "upper" => Ok(text.to_uppercase().into()),
        "lower" | "casefold" => Ok(text.to_lowercase().into()),
        "swapcase" => {
            let swap =
                |c: char| if c.is_uppercase() { c.to_lowercase().to_string() } else { c.to_uppercase().to_string() };
            Ok(text.chars().map(swap).collect::<String>().into())
        }
        "zfill" => {
            let width = ops::integer(&passed.need(0, "width", name)?).unwrap_or_default();
            let missing = usize::try_from(width).unwrap_or(0).saturating_sub(text.chars().count());
            interp.charge(missing)?;
            let sign = usize::from(text.starts_with(['-', '+']));
            Ok(format!("{}{}{}", &text[..sign], "0".repeat(missing), &text[sign..]).into())
        }
        "center" | "ljust" | "rjust" => justify(interp, text, passed, name),
        "find" | "rfind" | "index" | "rindex" => {
            let part = passed.need(0, "sub", name)?;
            let part = string(&part)?;
            let at = if name.starts_with('r') { text.rfind(part) } else { text.find(part) };
            match at {
                Some(at) => Ok(Value::from(text[..at].chars().count() as u64)),
                None if name.ends_with("find") => Ok(Value::Int(-1)),
                None => Err(JinjaError::python("substring not found")),
            }
        }
        "count" => {
            let part = passed.need(0, "sub", name)?;
            let part = string(&part)?;
            let count = if part.is_empty() { text.chars().count() + 1 } else { text.matches(part).count() };
            Ok(Value::from(count as u64))
        }
        "isdigit" | "isnumeric" => all(char::is_numeric),
        "isalpha" => all(char::is_alphabetic),
        "isalnum" => all(char::is_alphanumeric),
        "isspace" => all(char::is_whitespace),
        "isupper" => Ok(Value::Bool(text.chars().any(char::is_uppercase) && !text.chars().any(char::is_lowercase))),
        "islower" => Ok(Value::Bool(text.chars().any(char::is_lowercase) && !text.chars().any(char::is_uppercase))),
        "removeprefix" | "removesuffix" => {
            let part = passed.need(0, "prefix", name)?;
            let part = string(&part)?;
            let rest = if name == "removeprefix" { text.strip_prefix(part) } else { text.strip_suffix(part) };
            Ok(rest.unwrap_or(text).into())
        }
        "expandtabs" => {
            let size = passed.get(0, "tabsize").as_ref().and_then(ops::integer).unwrap_or(8);
            expandtabs(interp, text, usize::try_from(size.clamp(0, 1_000)).unwrap_or(0)).map(Value::from)
        }
        "istitle" => Ok(Value::Bool(text.chars().any(char::is_alphabetic) && title(text) == text)),
        "isdecimal" => all(|c| c.is_ascii_digit() || (!c.is_ascii() && c.is_numeric())),
        "isascii" => Ok(Value::Bool(text.is_ascii())),
        "isidentifier" => {
            let is_start = |c: char| c == '_' || c.is_alphabetic();
            let is_rest = |c: char| is_start(c) || c.is_numeric();
            Ok(Value::Bool(text.starts_with(is_start) && text.chars().all(is_rest)))
        }
        _ => Ok(Value::Bytes(text.as_bytes().into())),
    }
}

/// `str.expandtabs`
fn expandtabs(interp: &mut Interp, text: &str, size: usize) -> Res<String> {
    interp.charge(text.matches('\t').count().saturating_mul(size))?;
    let (mut out, mut column) = (String::with_capacity(text.len()), 0);
    for c in text.chars() {
        match c {
            '\t' => {
                let blanks = if size == 0 { 0 } else { size - column % size };
                out.extend(std::iter::repeat_n(' ', blanks));
                column += blanks;
            }
            _ => {
                column = if matches!(c, '\n' | '\r') { 0 } else { column + 1 };
                out.push(c);
            }
        }
    }
    Ok(out)
}

/// `str.replace`
pub(in crate::jinja) fn replace(interp: &mut Interp, text: &str, old: &str, new: &str, count: i128) -> Res<String> {
    let limit = usize::try_from(count).unwrap_or(usize::MAX);
    let found = text.matches(old).count().min(limit);
    interp.charge(found.saturating_mul(new.len()).saturating_add(text.len()))?;
    Ok(text.replacen(old, new, found))
}
