//! Python's `str()` and `repr()` of a value, which Salt prints in some places (`--out=raw`, numbers, keys).

use std::fmt::Write as _;

use rmpv::Value;

/// What `str(value)` prints in Python.
pub fn str(value: &Value) -> String {
    match value {
        Value::String(text) => match text.as_str() {
            Some(text) => text.to_owned(),
            None => bytes(text.as_bytes()),
        },
        _ => repr(value),
    }
}

/// What `repr(value)` prints in Python.
pub fn repr(value: &Value) -> String {
    let mut out = String::new();
    write(&mut out, value);
    out
}

/// Python's `str` of an entry; with `tuples`, the entry is printed as if lists were tuples.
pub fn str_or_tuple(value: &Value, tuples: bool) -> String {
    match value {
        Value::Array(items) if tuples => tuple(items),
        value => str(value),
    }
}

/// Python's `repr` of a dict whose lists are tuples.
pub fn repr_of_tuples(value: &Value) -> String {
    let Value::Map(entries) = value else { return repr(value) };
    let entry = |(key, item): &(Value, Value)| match item {
        Value::Array(items) => format!("{}: {}", repr(key), tuple(items)),
        item => format!("{}: {}", repr(key), repr(item)),
    };
    format!("{{{}}}", entries.iter().map(entry).collect::<Vec<_>>().join(", "))
}

/// Python's `repr` of a tuple.
pub fn tuple(items: &[Value]) -> String {
    match items {
        [one] => format!("({},)", repr(one)),
        items => format!("({})", items.iter().map(repr).collect::<Vec<_>>().join(", ")),
    }
}

fn write(out: &mut String, value: &Value) {
    match value {
        Value::Nil => out.push_str("None"),
        Value::Boolean(true) => out.push_str("True"),
        Value::Boolean(false) => out.push_str("False"),
        Value::Integer(number) => write!(out, "{number}").expect("a String can be written to"),
        Value::F32(number) => out.push_str(&float(f64::from(*number))),
        Value::F64(number) => out.push_str(&float(*number)),
        Value::String(text) => match text.as_str() {
            Some(text) => out.push_str(&quoted(text)),
            None => out.push_str(&bytes(text.as_bytes())),
        },
        Value::Binary(data) => out.push_str(&bytes(data)),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push_str(", ");
                }
                write(out, item);
            }
            out.push(']');
        }
        Value::Map(entries) => {
            out.push('{');
            for (at, (key, item)) in entries.iter().enumerate() {
                if at > 0 {
                    out.push_str(", ");
                }
                write(out, key);
                out.push_str(": ");
                write(out, item);
            }
            out.push('}');
        }
        Value::Ext(_, data) => match std::str::from_utf8(data) {
            Ok(text) => out.push_str(&quoted(text)),
            Err(_) => out.push_str(&bytes(data)),
        },
    }
}

/// Python's `repr` of a float: the shortest digits, with an exponent below 1e-4 and from 1e16.
pub fn float(number: f64) -> String {
    if number.is_nan() {
        return "nan".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let mut short = format!("{number:e}");
    // of two shortest forms at equal distance, Python takes the even one, which exact rounding yields
    let precision = short.bytes().filter(u8::is_ascii_digit).count();
    let precision = precision - short.rsplit('e').next().map_or(0, |e| e.bytes().filter(u8::is_ascii_digit).count());
    let exact = format!("{number:.*e}", precision - 1);
    if exact.parse() == Ok(number) {
        short = exact;
    }
    let (digits, exponent) = short.split_once('e').expect("{:e} always has an exponent");
    let exponent: i32 = exponent.parse().expect("the exponent of a float is a small number");
    if number != 0.0 && !(-4..16).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.abs());
    }
    let places = usize::try_from(-exponent).map_or(0, |below| below);
    let plain = format!("{number:.*}", (places + precision - 1).saturating_sub(usize::try_from(exponent).unwrap_or(0)));
    if plain.contains('.') { plain } else { plain + ".0" }
}

/// Python's `repr` of text.
pub fn quoted(text: &str) -> String {
    brine_text::quoted(text, is_printable)
}

/// Python's `repr` of bytes.
pub fn bytes(data: &[u8]) -> String {
    let quote = if data.contains(&b'\'') && !data.contains(&b'"') { '"' } else { '\'' };
    let mut out = String::with_capacity(data.len() + 3);
    out.push('b');
    out.push(quote);
    for &byte in data {
        match byte {
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            _ if char::from(byte) == quote => {
                out.push('\\');
                out.push(quote);
            }
            0x20..=0x7e => out.push(char::from(byte)),
            _ => write!(out, "\\x{byte:02x}").expect("a String can be written to"),
        }
    }
    out.push(quote);
    out
}

/// Python's `str.isprintable` for one character.
pub fn is_printable(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_control();
    }
    // char::escape_debug recognises unassigned, private, format and separator characters, but also escapes combining
    // marks, which Python prints; after another character in a string, it does not escape them
    let mut buffer = [0u8; 5];
    buffer[0] = b'a';
    let len = c.encode_utf8(&mut buffer[1..]).len() + 1;
    let text = std::str::from_utf8(&buffer[..len]).expect("two encoded characters");
    text.escape_debug().count() == 2
}

/// Python's `str.isspace` for one character; `str.rstrip()` removes such characters.
pub fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}

/// Python's `str.splitlines()`.
pub fn split_lines(text: &str) -> impl Iterator<Item = &str> {
    let is_end = |c: char| {
        matches!(c, '\n' | '\r' | '\x0b' | '\x0c' | '\x1c' | '\x1d' | '\x1e' | '\u{85}' | '\u{2028}' | '\u{2029}')
    };
    let mut rest = Some(text).filter(|text| !text.is_empty());
    std::iter::from_fn(move || {
        let text = rest?;
        let Some(at) = text.find(is_end) else {
            rest = None;
            return Some(text);
        };
        let end = &text[at..];
        let len = if end.starts_with("\r\n") { 2 } else { end.chars().next().map_or(1, char::len_utf8) };
        rest = Some(&end[len..]).filter(|text| !text.is_empty());
        Some(&text[..at])
    })
}

/// A map's entries in the order of Python's `sorted(map)`; `None` if Python raises a TypeError because the keys cannot
/// be compared.
pub fn sorted(entries: &[(Value, Value)]) -> Option<Vec<&(Value, Value)>> {
    let mut out: Vec<_> = entries.iter().collect();
    if entries.len() < 2 {
        return Some(out);
    }
    if entries.iter().all(|(key, _)| matches!(key, Value::String(_))) {
        out.sort_by(|(a, _), (b, _)| text(a).cmp(text(b)));
    } else if entries.iter().all(|(key, _)| matches!(key, Value::Binary(_))) {
        out.sort_by(|(a, _), (b, _)| text(a).cmp(text(b)));
    } else if entries.iter().all(|(key, _)| number(key).is_some()) {
        out.sort_by(|(a, _), (b, _)| number(a).partial_cmp(&number(b)).unwrap_or(std::cmp::Ordering::Equal));
    } else {
        return None;
    }
    Some(out)
}

fn text(key: &Value) -> &[u8] {
    match key {
        Value::String(text) => text.as_bytes(),
        Value::Binary(data) => data,
        _ => &[],
    }
}

/// The number of a key. Integers beyond 2^53 may compare equal; they keep their order of arrival.
fn number(key: &Value) -> Option<f64> {
    match key {
        Value::Boolean(flag) => Some(f64::from(u8::from(*flag))),
        Value::Integer(_) | Value::F32(_) | Value::F64(_) => key.as_f64(),
        _ => None,
    }
}
