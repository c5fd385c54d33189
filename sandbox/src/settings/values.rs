//! Checks single values of the configuration. An error names the value's path.

use std::ops::RangeInclusive;

use brine_capabilities::forms::{is_user, why_not_absolute};
use brine_capabilities::{MAX_NAME, Names};
use rmpv::Value;

use super::{Result, error};
use crate::ModuleName;

/// Upper bound on the names in one grant. Each is compared with every request of a guest.
const MAX_NAMES: usize = 1_000;

/// Returns the entries of a map with text keys. Nil is an empty map.
pub(super) fn entries<'a>(path: &str, value: &'a Value) -> Result<Vec<(&'a str, &'a Value)>> {
    match value {
        Value::Nil => Ok(Vec::new()),
        Value::Map(entries) => entries
            .iter()
            .map(|(key, value)| match key.as_str() {
                Some(key) => Ok((key, value)),
                None => error(path, format!("the key {key} is not text")),
            })
            .collect(),
        other => error(path, format!("a dict is expected, not {other}")),
    }
}

/// Returns text that is not empty and has one line.
pub(super) fn text<'a>(path: &str, value: &'a Value) -> Result<&'a str> {
    match value.as_str() {
        Some("") => error(path, "it is empty"),
        Some(text) if text.contains(char::is_control) => error(path, "it has control characters"),
        Some(text) if text.len() > MAX_NAME => error(path, format!("it has more than {MAX_NAME} bytes")),
        Some(text) => Ok(text),
        None => error(path, format!("text is expected, not {value}")),
    }
}

/// Returns a list of texts, each checked.
pub(super) fn list(path: &str, value: &Value, check: impl Fn(&str, &str) -> Result<()>) -> Result<Vec<String>> {
    let Value::Array(items) = value else { return error(path, format!("a list is expected, not {value}")) };
    if items.len() > MAX_NAMES {
        return error(path, format!("it has more than {MAX_NAMES} items"));
    }
    let read = |item| {
        let text = text(path, item)?;
        check(path, text)?;
        Ok(text.to_owned())
    };
    items.iter().map(read).collect()
}

/// Parses `any` or a list.
pub(super) fn names(path: &str, value: &Value, check: impl Fn(&str, &str) -> Result<()>) -> Result<Names> {
    match value {
        Value::Array(_) => list(path, value, check).map(Names::Only),
        _ if value.as_str() == Some("any") => Ok(Names::Any),
        _ => error(path, format!("any or a list is expected, not {value}")),
    }
}

pub(super) fn name(path: &str, text: &str) -> Result<ModuleName> {
    text.parse().or_else(|bad: crate::BadName| error(path, bad.to_string()))
}

/// Checks that a path is in its only valid spelling: absolute, without `.`, `..`, doubled or trailing slashes.
pub(super) fn absolute(path: &str, text: &str) -> Result<()> {
    match why_not_absolute(text) {
        None => Ok(()),
        Some(why) => error(path, format!("{text:?} {why}")),
    }
}

/// Parses a user or group: a name or a number.
pub(super) fn user(path: &str, value: &Value) -> Result<String> {
    if let Some(number) = value.as_u64() {
        return match u32::try_from(number) {
            Ok(uid) if uid < u32::MAX => Ok(uid.to_string()),
            _ => error(path, format!("{number} is no user's number")),
        };
    }
    let text = text(path, value)?;
    if is_user(text) { Ok(text.to_owned()) } else { error(path, format!("{text:?} cannot be a user's name")) }
}

pub(super) fn flag(path: &str, value: &Value) -> Result<bool> {
    match value.as_bool() {
        Some(flag) => Ok(flag),
        None => error(path, format!("true or false is expected, not {value}")),
    }
}

pub(super) fn count(path: &str, value: &Value, range: RangeInclusive<usize>) -> Result<usize> {
    match value.as_u64().and_then(|n| usize::try_from(n).ok()) {
        Some(n) if range.contains(&n) => Ok(n),
        _ => error(path, format!("a number from {} to {} is expected, not {value}", range.start(), range.end())),
    }
}

/// Parses a number with a unit. Without a unit, `units[0]` applies.
fn quantity(value: &Value, units: &[(&str, f64)]) -> Option<f64> {
    if let Some(number) = value.as_f64() {
        return Some(number * units[0].1);
    }
    let text = value.as_str()?.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim();
    let (_, factor) = units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit))?;
    Some(number.parse::<f64>().ok()? * factor)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "checked by the range"
)]
pub(super) fn size(path: &str, value: &Value, range: RangeInclusive<u64>) -> Result<u64> {
    const UNITS: [(&str, f64); 10] = [
        ("", 1.0),
        ("B", 1.0),
        ("K", 1024.0),
        ("KB", 1e3),
        ("KiB", 1024.0),
        ("M", 1048576.0),
        ("MB", 1e6),
        ("MiB", 1048576.0),
        ("G", 1073741824.0),
        ("GiB", 1073741824.0),
    ];
    match quantity(value, &UNITS) {
        Some(bytes) if bytes >= *range.start() as f64 && bytes <= *range.end() as f64 => Ok(bytes as u64),
        Some(_) => error(path, format!("{value} is not between {} and {} bytes", range.start(), range.end())),
        None => error(path, format!("a size as in 64MiB is expected, not {value}")),
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked by the range")]
pub(super) fn milliseconds(path: &str, value: &Value) -> Result<u64> {
    const UNITS: [(&str, f64); 5] = [("", 1e3), ("s", 1e3), ("ms", 1.0), ("m", 60e3), ("h", 3600e3)];
    const DAY: f64 = 24.0 * 3600e3;
    match quantity(value, &UNITS) {
        Some(ms) if (10.0..=DAY).contains(&ms) => Ok(ms as u64),
        Some(_) => error(path, format!("{value} is not between 10ms and 24h")),
        None => error(path, format!("a time as in 60s is expected, not {value}")),
    }
}
