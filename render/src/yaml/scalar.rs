//! The text of scalars as values: PyYAML's SafeConstructor, with Python's own errors.

use super::error::YamlErrorKind;
use crate::value::Value;

type Result<T> = std::result::Result<T, (YamlErrorKind, String)>;

fn value_error<T>(problem: String) -> Result<T> {
    Err((YamlErrorKind::Value, problem))
}

fn quoted(text: &str) -> String {
    format!("{:?}", Value::str(text))
}

pub(super) fn bool(text: &str) -> Result<Value> {
    match text.to_lowercase().as_str() {
        "yes" | "true" | "on" => Ok(Value::Bool(true)),
        "no" | "false" | "off" => Ok(Value::Bool(false)),
        other => Err((YamlErrorKind::Key, quoted(other))),
    }
}

/// The sign of a number and the rest of it, without `_`.
fn sign(text: &str) -> Result<(bool, String)> {
    let mut text = text.replace('_', "");
    let negative = text.starts_with('-');
    match text.chars().next() {
        None => return Err((YamlErrorKind::Index, "string index out of range".to_owned())),
        Some('+' | '-') => {
            text.remove(0);
        }
        Some(_) => {}
    }
    Ok((negative, text))
}

pub(super) fn int(text: &str) -> Result<Value> {
    let (negative, text) = sign(text)?;
    let number = match text.as_str() {
        "0" => 0,
        _ if text.starts_with("0b") => python_int(&text[2..], 2)?,
        _ if text.starts_with("0x") => python_int(&text[2..], 16)?,
        "" => return Err((YamlErrorKind::Index, "string index out of range".to_owned())),
        _ if text.starts_with('0') => python_int(&text, 8)?,
        _ if text.contains(':') => {
            let mut number: i128 = 0;
            for part in text.split(':') {
                let digit = python_int(part, 10)?;
                number = number.checked_mul(60).and_then(|n| n.checked_add(digit)).ok_or_else(|| too_large(&text))?;
            }
            number
        }
        _ => python_int(&text, 10)?,
    };
    Ok(Value::Int(if negative { -number } else { number }))
}

fn too_large(text: &str) -> (YamlErrorKind, String) {
    let shown: String = text.chars().take(60).collect();
    (YamlErrorKind::Limit, format!("the number {shown} has more than 127 bits"))
}

/// Python's `int(text, base)`, without its `_`.
fn python_int(text: &str, base: u32) -> Result<i128> {
    let bare = text.trim();
    let digits = bare.strip_prefix(['+', '-']).unwrap_or(bare);
    // with its base, a number may have its prefix
    let digits = match base {
        2 => digits.strip_prefix("0b").or_else(|| digits.strip_prefix("0B")),
        8 => digits.strip_prefix("0o").or_else(|| digits.strip_prefix("0O")),
        16 => digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")),
        _ => None,
    }
    .unwrap_or(digits);
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(base)) {
        return value_error(format!("invalid literal for int() with base {base}: {}", quoted(text)));
    }
    let number = i128::from_str_radix(digits, base).map_err(|_| too_large(text))?;
    Ok(if bare.starts_with('-') { -number } else { number })
}

pub(super) fn float(text: &str) -> Result<Value> {
    let (negative, text) = sign(&text.to_lowercase())?;
    let number = match text.as_str() {
        ".inf" => f64::INFINITY,
        // whatever its sign
        ".nan" => return Ok(Value::Float(f64::NAN)),
        _ if text.contains(':') => {
            let (mut base, mut number) = (1.0, 0.0);
            let digits = text.split(':').map(python_float).collect::<Result<Vec<_>>>()?;
            for digit in digits.into_iter().rev() {
                number += digit * base;
                base *= 60.0;
            }
            number
        }
        _ => python_float(&text)?,
    };
    Ok(Value::Float(if negative { -number } else { number }))
}

/// Python's `float(text)`.
fn python_float(text: &str) -> Result<f64> {
    match text.trim().parse() {
        Ok(number) => Ok(number),
        Err(_) => value_error(format!("could not convert string to float: {}", quoted(text))),
    }
}

/// Base64 as Salt takes it: with or without its padding. What is not of its alphabet is passed over.
pub(super) fn binary(text: &str) -> std::result::Result<Vec<u8>, String> {
    if let Some(at) = text.chars().position(|c| !c.is_ascii()) {
        let bad: Vec<char> = text.chars().skip(at).take_while(|c| !c.is_ascii()).collect();
        let which = match bad.as_slice() {
            [c] => {
                let code = u32::from(*c);
                let escape = match code {
                    0..=0xff => format!("\\x{code:02x}"),
                    0x100..=0xffff => format!("\\u{code:04x}"),
                    _ => format!("\\U{code:08x}"),
                };
                format!("character '{escape}' in position {at}")
            }
            many => format!("characters in position {at}-{}", at + many.len() - 1),
        };
        return Err(format!(
            "failed to convert base64 data into ascii: 'ascii' codec can't encode {which}: ordinal not in range(128)"
        ));
    }
    let missing = match text.len() % 4 {
        0 => 0,
        n => 4 - n,
    };
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut place, mut left, mut pads) = (0, 0u8, 0);
    for byte in text.bytes().chain(std::iter::repeat_n(b'=', missing)) {
        let six = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            b'=' => {
                if place >= 2 {
                    pads += 1;
                    if place + pads >= 4 {
                        return Ok(out);
                    }
                }
                continue;
            }
            _ => continue,
        };
        pads = 0;
        match place {
            0 => left = six,
            1 => {
                out.push(left << 2 | six >> 4);
                left = six & 0x0f;
            }
            2 => {
                out.push(left << 4 | six >> 2);
                left = six & 0x03;
            }
            _ => out.push(left << 6 | six),
        }
        place = (place + 1) % 4;
    }
    match place {
        0 => Ok(out),
        1 => Err(format!(
            "failed to decode base64 data: Invalid base64-encoded string: number of data characters ({}) cannot be 1 more \
             than a multiple of 4",
            out.len() / 3 * 4 + 1
        )),
        _ => Err("failed to decode base64 data: Incorrect padding".to_owned()),
    }
}
