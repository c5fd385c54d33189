//! Python's `repr` of values.

use std::fmt::{self, Write};

use super::{DateTime, Key, MAX_DEPTH, Value};

/// Upper bound on a `repr` in a message.
const SHORT: usize = 1000;

/// Writes Python's `repr`. What contains itself is `[...]`, as there; what is too deep also.
pub(crate) fn write(value: &Value, out: &mut dyn Write) -> fmt::Result {
    write_in(value, out, &mut Vec::new())
}

fn write_in(value: &Value, out: &mut dyn Write, around: &mut Vec<usize>) -> fmt::Result {
    match value {
        Value::None => out.write_str("None"),
        Value::Bool(true) => out.write_str("True"),
        Value::Bool(false) => out.write_str("False"),
        Value::Int(n) => write!(out, "{n}"),
        Value::Float(n) => out.write_str(&float(*n)),
        Value::Str(text) => write_text(text, out),
        Value::Bytes(data) => write_bytes(data, out),
        Value::Date(d) => write!(out, "datetime.date({}, {}, {})", d.year, d.month, d.day),
        Value::DateTime(t) => write_time(t, out),
        Value::Object(object) => object.write_repr(out),
        Value::List(list) => inside(value, out, around, "[...]", |out, around| {
            out.write_char('[')?;
            write_items(&list.borrow(), out, around)?;
            out.write_char(']')
        }),
        Value::Tuple(items) => inside(value, out, around, "(...)", |out, around| {
            out.write_char('(')?;
            write_items(items, out, around)?;
            out.write_str(if items.len() == 1 { ",)" } else { ")" })
        }),
        Value::Dict(dict) if dict.is_ordered() => inside(value, out, around, "...", |out, around| {
            let entries = dict.borrow();
            if entries.is_empty() {
                return out.write_str("OrderedDict()");
            }
            out.write_str("OrderedDict([")?;
            for (at, (key, item)) in entries.iter().enumerate() {
                out.write_str(if at > 0 { ", (" } else { "(" })?;
                write_in(key.value(), out, around)?;
                out.write_str(", ")?;
                write_in(item, out, around)?;
                out.write_char(')')?;
            }
            out.write_str("])")
        }),
        Value::Dict(dict) => inside(value, out, around, "{...}", |out, around| {
            out.write_char('{')?;
            for (at, (key, item)) in dict.borrow().iter().enumerate() {
                if at > 0 {
                    out.write_str(", ")?;
                }
                write_in(key.value(), out, around)?;
                out.write_str(": ")?;
                write_in(item, out, around)?;
            }
            out.write_char('}')
        }),
        Value::Set(set) => {
            let set = set.borrow();
            if set.is_empty() {
                return out.write_str("set()");
            }
            for (at, key) in set.iter().map(Key::value).enumerate() {
                out.write_str(if at > 0 { ", " } else { "{" })?;
                write_in(key, out, around)?;
            }
            out.write_char('}')
        }
    }
}

/// Writes what is inside a container, unless the container is inside itself.
fn inside(
    value: &Value,
    out: &mut dyn Write,
    around: &mut Vec<usize>,
    again: &str,
    content: impl FnOnce(&mut dyn Write, &mut Vec<usize>) -> fmt::Result,
) -> fmt::Result {
    // an empty tuple has no address, and contains nothing
    let address = value.address().unwrap_or_default();
    if around.len() > MAX_DEPTH || address != 0 && around.contains(&address) {
        return out.write_str(again);
    }
    around.push(address);
    let done = content(out, around);
    around.pop();
    done
}

fn write_items(items: &[Value], out: &mut dyn Write, around: &mut Vec<usize>) -> fmt::Result {
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.write_str(", ")?;
        }
        write_in(item, out, around)?;
    }
    Ok(())
}

fn write_time(t: &DateTime, out: &mut dyn Write) -> fmt::Result {
    let d = t.date;
    write!(out, "datetime.datetime({}, {}, {}, {}, {}", d.year, d.month, d.day, t.hour, t.minute)?;
    if t.second > 0 || t.microsecond > 0 {
        write!(out, ", {}", t.second)?;
    }
    if t.microsecond > 0 {
        write!(out, ", {}", t.microsecond)?;
    }
    match t.offset_minutes {
        Some(0) => out.write_str(", tzinfo=datetime.timezone.utc")?,
        Some(offset) if offset < 0 => {
            let seconds = 86_400 + i32::from(offset) * 60;
            write!(out, ", tzinfo=datetime.timezone(datetime.timedelta(days=-1, seconds={seconds}))")?;
        }
        Some(offset) => {
            let seconds = i32::from(offset) * 60;
            write!(out, ", tzinfo=datetime.timezone(datetime.timedelta(seconds={seconds}))")?;
        }
        None => {}
    }
    out.write_char(')')
}

fn write_text(text: &str, out: &mut dyn Write) -> fmt::Result {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.write_char(quote)?;
    for c in text.chars() {
        match c {
            '\\' => out.write_str("\\\\")?,
            '\n' => out.write_str("\\n")?,
            '\r' => out.write_str("\\r")?,
            '\t' => out.write_str("\\t")?,
            _ if c == quote => write!(out, "\\{c}")?,
            _ if is_printable(c) => out.write_char(c)?,
            _ => match u32::from(c) {
                n @ 0..=0xff => write!(out, "\\x{n:02x}")?,
                n @ 0x100..=0xffff => write!(out, "\\u{n:04x}")?,
                n => write!(out, "\\U{n:08x}")?,
            },
        }
    }
    out.write_char(quote)
}

fn write_bytes(data: &[u8], out: &mut dyn Write) -> fmt::Result {
    let quote = if data.contains(&b'\'') && !data.contains(&b'"') { '"' } else { '\'' };
    write!(out, "b{quote}")?;
    for &byte in data {
        match byte {
            b'\\' => out.write_str("\\\\")?,
            b'\n' => out.write_str("\\n")?,
            b'\r' => out.write_str("\\r")?,
            b'\t' => out.write_str("\\t")?,
            _ if char::from(byte) == quote => write!(out, "\\{quote}")?,
            0x20..=0x7e => out.write_char(char::from(byte))?,
            _ => write!(out, "\\x{byte:02x}")?,
        }
    }
    out.write_char(quote)
}

/// Python's `str.isprintable` for one character.
pub(crate) fn is_printable(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_control();
    }
    // char::escape_debug knows unassigned, private, format and separator characters, but also escapes combining marks,
    // which Python prints; after another character in a string, it does not escape them
    let mut buffer = [b'a'; 5];
    let len = c.encode_utf8(&mut buffer[1..]).len() + 1;
    std::str::from_utf8(&buffer[..len]).is_ok_and(|text| text.escape_debug().count() == 2)
}

/// Python's `repr` of a float: the shortest digits, with an exponent below 1e-4 and from 1e16.
pub(crate) fn float(number: f64) -> String {
    if number.is_nan() {
        return "nan".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let mut short = format!("{number:e}");
    let digits = |text: &str| text.split('e').next().map_or(1, |m| m.bytes().filter(u8::is_ascii_digit).count());
    let precision = digits(&short);
    // of two shortest forms at equal distance, Python takes the even one, which exact rounding yields
    let exact = format!("{number:.*e}", precision - 1);
    if exact.parse() == Ok(number) {
        short = exact;
    }
    let (mantissa, exponent) = short.split_once('e').unwrap_or((&short, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if number != 0.0 && !(-4..16).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.abs());
    }
    let places = usize::try_from(-exponent).unwrap_or(0);
    let plain = format!("{number:.*}", (places + precision - 1).saturating_sub(usize::try_from(exponent).unwrap_or(0)));
    if plain.contains('.') { plain } else { plain + ".0" }
}

/// Text for a message: what does not fit is cut.
#[derive(Default)]
pub(crate) struct Short(String);

impl Short {
    pub(crate) fn into_text(self) -> String {
        self.0
    }
}

impl Write for Short {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = SHORT.saturating_sub(self.0.len());
        if text.len() <= room {
            self.0.push_str(text);
            return Ok(());
        }
        self.0.push_str(&text[..text.floor_char_boundary(room)]);
        self.0.push_str("...");
        Err(fmt::Error)
    }
}
