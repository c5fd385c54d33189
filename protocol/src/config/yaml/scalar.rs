//! Plain scalars of YAML 1.1: the type and the value of a text.

use base64::Engine as _;

use super::Tag;
use crate::value::Value;

/// Returns the type of a plain scalar: YAML 1.1's implicit types, by PyYAML's regular expressions.
pub(super) fn resolve(text: &str) -> Tag {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Tag::Null,
        "<<" => Tag::Merge,
        "=" => Tag::Value,
        _ if is_bool(text).is_some() => Tag::Bool,
        _ if !text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.')) => Tag::Str,
        _ if is_int(text) => Tag::Int,
        _ if is_float(text) => Tag::Float,
        // Timestamps stay text, as in Salt.
        _ => Tag::Str,
    }
}

fn is_bool(text: &str) -> Option<bool> {
    match text {
        "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => Some(true),
        "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => Some(false),
        _ => None,
    }
}

fn unsigned(text: &str) -> &str {
    text.strip_prefix(['-', '+']).unwrap_or(text)
}

fn all(text: &str, allowed: impl Fn(u8) -> bool) -> bool {
    text.bytes().all(|b| allowed(b) || b == b'_')
}

fn some(text: &str, allowed: impl Fn(u8) -> bool) -> bool {
    !text.is_empty() && all(text, allowed)
}

/// Matches `(:[0-5]?[0-9])+`: the further parts of a number in base 60.
fn sixties<'a>(mut parts: impl Iterator<Item = &'a str>) -> bool {
    let ok = |part: &str| match part.as_bytes() {
        [d] => d.is_ascii_digit(),
        [t, d] => (b'0'..=b'5').contains(t) && d.is_ascii_digit(),
        _ => false,
    };
    parts.next().is_some_and(ok) && parts.all(ok)
}

fn is_int(text: &str) -> bool {
    let text = unsigned(text);
    if let Some(digits) = text.strip_prefix("0b") {
        return some(digits, |b| matches!(b, b'0' | b'1'));
    }
    if let Some(digits) = text.strip_prefix("0x") {
        return some(digits, |b| b.is_ascii_hexdigit());
    }
    if let Some(digits) = text.strip_prefix('0') {
        return digits.is_empty() || all(digits, |b| (b'0'..=b'7').contains(&b));
    }
    let mut parts = text.split(':');
    let first = parts.next().unwrap_or_default();
    if !first.starts_with(|c: char| c.is_ascii_digit()) || !all(first, |b| b.is_ascii_digit()) {
        return false;
    }
    first.len() == text.len() || sixties(parts)
}

fn is_float(text: &str) -> bool {
    if matches!(text, ".nan" | ".NaN" | ".NAN") || matches!(unsigned(text), ".inf" | ".Inf" | ".INF") {
        return true;
    }
    let exponent = |e: &str| {
        let digits = e.strip_prefix(['e', 'E']).and_then(|e| e.strip_prefix(['-', '+']));
        e.is_empty() || digits.is_some_and(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit()))
    };
    let split_exponent = |t: &'_ str| t.find(['e', 'E']).unwrap_or(t.len());
    // A fraction without an integer part has no sign and begins with a digit.
    if let Some(fraction) = text.strip_prefix('.') {
        let (digits, e) = fraction.split_at(split_exponent(fraction));
        return digits.starts_with(|c: char| c.is_ascii_digit()) && all(digits, |b| b.is_ascii_digit()) && exponent(e);
    }
    let Some((whole, fraction)) = unsigned(text).split_once('.') else { return false };
    let mut parts = whole.split(':');
    let first = parts.next().unwrap_or_default();
    if !first.starts_with(|c: char| c.is_ascii_digit()) || !all(first, |b| b.is_ascii_digit()) {
        return false;
    }
    if first.len() < whole.len() {
        return sixties(parts) && all(fraction, |b| b.is_ascii_digit());
    }
    let (digits, e) = fraction.split_at(split_exponent(fraction));
    all(digits, |b| b.is_ascii_digit()) && exponent(e)
}

/// Returns the value of a scalar with this tag, or an error message.
pub(super) fn construct(text: &str, tag: Tag) -> Result<Value, String> {
    match tag {
        Tag::Null => Ok(Value::Nil),
        Tag::Bool => is_bool(text)
            .or_else(|| is_bool(&text.to_lowercase()))
            .map(Value::from)
            .ok_or_else(|| format!("{text:?} is not a boolean")),
        Tag::Int => int(text).ok_or_else(|| format!("{text:?} is not a whole number")),
        Tag::Float => float(text).map(Value::F64).ok_or_else(|| format!("{text:?} is not a number")),
        Tag::Str => Ok(Value::from(text)),
        Tag::Binary => binary(text),
        Tag::Merge | Tag::Value => Err(format!("could not determine a constructor for {text:?}")),
        Tag::Seq | Tag::Map | Tag::Set | Tag::Pairs => Err("expected a list or map, but found a scalar".to_owned()),
    }
}

/// Parses an integer. Salt reads a number that begins with 0 as decimal, unless it has a sign. Numbers beyond 64 bits
/// become text, as on the wire (§2).
fn int(text: &str) -> Option<Value> {
    let decimal_zeros = text != "0" && text.starts_with('0') && !text.starts_with("0b") && !text.starts_with("0x");
    let stripped = if decimal_zeros { text.trim_start_matches('0') } else { text };
    let stripped = if decimal_zeros && stripped.is_empty() { "0" } else { stripped };
    let clean = stripped.replace('_', "");
    let negative = clean.starts_with('-');
    let digits = unsigned(&clean);
    let (digits, radix) = match (digits.strip_prefix("0b"), digits.strip_prefix("0x")) {
        (Some(digits), _) => (digits, 2),
        (_, Some(digits)) => (digits, 16),
        _ if digits == "0" => (digits, 10),
        _ if digits.starts_with('0') => (digits, 8),
        _ => (digits, 10),
    };
    if digits.contains(':') {
        let mut total = 0_i128;
        for part in digits.split(':') {
            total = total.checked_mul(60)?.checked_add(part.parse::<u64>().ok()?.into())?;
        }
        return Some(integer(if negative { -total } else { total }));
    }
    // Rust's parser would accept a second sign.
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    match i128::from_str_radix(digits, radix) {
        Ok(n) => Some(integer(if negative { -n } else { n })),
        Err(_) => Some(Value::from(clean.strip_prefix('+').unwrap_or(&clean))),
    }
}

pub(super) fn integer(n: i128) -> Value {
    match (u64::try_from(n), i64::try_from(n)) {
        (Ok(n), _) => Value::from(n),
        (_, Ok(n)) => Value::from(n),
        _ => Value::from(n.to_string()),
    }
}

fn float(text: &str) -> Option<f64> {
    let clean = text.replace('_', "").to_lowercase();
    let sign = if clean.starts_with('-') { -1.0 } else { 1.0 };
    let digits = unsigned(&clean);
    match digits {
        ".inf" => return Some(sign * f64::INFINITY),
        ".nan" => return Some(f64::NAN),
        _ => {}
    }
    let mut total = 0.0;
    for part in digits.split(':') {
        if !part.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
            return None;
        }
        total = total * 60.0 + part.parse::<f64>().ok()?;
    }
    Some(sign * total)
}

fn binary(text: &str) -> Result<Value, String> {
    // Python's decoder skips characters outside the alphabet, and Salt adds missing padding.
    let kept: String = text.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '/')).collect();
    base64::engine::general_purpose::STANDARD_NO_PAD
        .decode(kept)
        .map(Value::Binary)
        .map_err(|_| "failed to decode base64 data".to_owned())
}
