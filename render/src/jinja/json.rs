//! JSON as Python's module reads and writes it.

use std::cmp::Ordering;
use std::fmt::{self, Write};

use crate::value::{Dict, Key, MAX_DEPTH, Value, python_float};

/// Parses a text. The error has no details: Salt says none.
pub(super) fn parse(text: &str) -> Result<Value, ()> {
    let mut reader = Reader { text, at: 0 };
    let value = reader.value(0)?;
    reader.space();
    if reader.at == text.len() { Ok(value) } else { Err(()) }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
    }

    fn take(&mut self, text: &str) -> bool {
        self.space();
        let is = self.rest().starts_with(text);
        self.at += if is { text.len() } else { 0 };
        is
    }

    fn value(&mut self, depth: usize) -> Result<Value, ()> {
        if depth > MAX_DEPTH {
            return Err(());
        }
        for (word, value) in [("null", Value::None), ("true", true.into()), ("false", false.into())] {
            if self.take(word) {
                return Ok(value);
            }
        }
        for (word, value) in [("NaN", f64::NAN), ("Infinity", f64::INFINITY), ("-Infinity", f64::NEG_INFINITY)] {
            if self.take(word) {
                return Ok(value.into());
            }
        }
        if self.take("[") {
            let mut items = Vec::new();
            while !self.take("]") {
                if !items.is_empty() && !self.take(",") {
                    return Err(());
                }
                items.push(self.value(depth + 1)?);
            }
            return Ok(Value::list(items));
        }
        if self.take("{") {
            let dict = Dict::default();
            let mut first = true;
            while !self.take("}") {
                if !first && !self.take(",") {
                    return Err(());
                }
                first = false;
                if !self.take("\"") {
                    return Err(());
                }
                let key = Key::from(self.string()?);
                if !self.take(":") {
                    return Err(());
                }
                let value = self.value(depth + 1)?;
                dict.borrow_mut().insert(key, value);
            }
            return Ok(dict.into());
        }
        if self.take("\"") {
            return self.string().map(Value::from);
        }
        self.number()
    }

    fn number(&mut self) -> Result<Value, ()> {
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_ascii_digit() && !"+-.eE".contains(c)).unwrap_or(rest.len());
        let text = rest[..end].to_owned();
        self.at += end;
        let digits = text.trim_start_matches('-');
        if !digits.starts_with(|c: char| c.is_ascii_digit())
            || digits.len() > 1 && digits.starts_with("0") && !digits.starts_with("0.") && !digits.starts_with("0e")
        {
            return Err(());
        }
        match text.contains(['.', 'e', 'E']) {
            true => text.parse().map(Value::Float).map_err(|_| ()),
            false => text.parse().map(Value::Int).map_err(|_| ()),
        }
    }

    fn string(&mut self) -> Result<String, ()> {
        let mut out = String::new();
        loop {
            let c = self.rest().chars().next().ok_or(())?;
            self.at += c.len_utf8();
            match c {
                '"' => return Ok(out),
                '\\' => {
                    let c = self.rest().chars().next().ok_or(())?;
                    self.at += c.len_utf8();
                    out.push(match c {
                        'n' => '\n',
                        't' => '\t',
                        'r' => '\r',
                        'b' => '\x08',
                        'f' => '\x0c',
                        'u' => self.unicode()?,
                        '"' | '\\' | '/' => c,
                        _ => return Err(()),
                    });
                }
                c if c < ' ' => return Err(()),
                c => out.push(c),
            }
        }
    }

    fn unit(&mut self) -> Result<u32, ()> {
        let digits = self.rest().get(..4).ok_or(())?;
        let unit = u32::from_str_radix(digits, 16).map_err(|_| ())?;
        self.at += 4;
        Ok(unit)
    }

    fn unicode(&mut self) -> Result<char, ()> {
        let first = self.unit()?;
        if (0xd800..0xdc00).contains(&first) && self.rest().starts_with("\\u") {
            self.at += 2;
            let second = self.unit()?;
            return char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second.wrapping_sub(0xdc00) & 0x3ff))
                .ok_or(());
        }
        char::from_u32(first).ok_or(())
    }
}

/// How to write.
pub(crate) struct Format<'a> {
    pub(crate) sort_keys: bool,
    pub(crate) ascii: bool,
    /// What stands before a value once a level; none for one line.
    pub(crate) indent: Option<&'a str>,
    /// Between values.
    pub(crate) comma: &'a str,
    /// Between a key and its value.
    pub(crate) colon: &'a str,
}

impl<'a> Format<'a> {
    /// Python's default separators.
    pub(crate) fn new(sort_keys: bool, ascii: bool, indent: Option<&'a str>) -> Self {
        Self { sort_keys, ascii, indent, comma: if indent.is_some() { "," } else { ", " }, colon: ": " }
    }
}

pub(crate) fn write(value: &Value, format: &Format, out: &mut dyn Write, depth: usize) -> Result<(), String> {
    if depth > MAX_DEPTH {
        return Err("Circular reference detected".to_owned());
    }
    let full = |_: fmt::Error| String::new();
    let line = |out: &mut dyn Write, depth: usize, comma: bool| {
        out.write_str(if comma { format.comma } else { "" }).map_err(full)?;
        let Some(indent) = format.indent else { return Ok(()) };
        out.write_char('\n').map_err(full)?;
        (0..depth).try_for_each(|_| out.write_str(indent).map_err(full))
    };
    let list = |items: &[Value], out: &mut dyn Write| {
        if items.is_empty() {
            return out.write_str("[]").map_err(full);
        }
        out.write_char('[').map_err(full)?;
        for (at, item) in items.iter().enumerate() {
            line(out, depth + 1, at > 0)?;
            write(item, format, out, depth + 1)?;
        }
        line(out, depth, false)?;
        out.write_char(']').map_err(full)
    };
    match value {
        Value::None => out.write_str("null").map_err(full),
        Value::Bool(b) => write!(out, "{b}").map_err(full),
        Value::Int(n) => write!(out, "{n}").map_err(full),
        Value::Float(n) => out.write_str(&float(*n)).map_err(full),
        Value::Str(text) => write_text(text, format.ascii, out).map_err(full),
        Value::List(items) => list(&items.borrow(), out),
        Value::Tuple(items) => list(items, out),
        Value::Dict(dict) => {
            let mut entries: Vec<(String, Value)> = Vec::new();
            for (key, item) in in_order(dict, format.sort_keys)? {
                let key = match key.value() {
                    Value::Str(text) => text.to_string(),
                    Value::None => "null".to_owned(),
                    Value::Bool(b) => b.to_string(),
                    Value::Int(n) => n.to_string(),
                    Value::Float(n) => float(*n),
                    other => {
                        return Err(format!("keys must be str, int, float, bool or None, not {}", other.type_name()));
                    }
                };
                entries.push((key, item));
            }
            if entries.is_empty() {
                return out.write_str("{}").map_err(full);
            }
            out.write_char('{').map_err(full)?;
            for (at, (key, item)) in entries.iter().enumerate() {
                line(out, depth + 1, at > 0)?;
                write_text(key, format.ascii, out).map_err(full)?;
                out.write_str(format.colon).map_err(full)?;
                write(item, format, out, depth + 1)?;
            }
            line(out, depth, false)?;
            out.write_char('}').map_err(full)
        }
        other => Err(format!("Object of type {} is not JSON serializable", other.type_name())),
    }
}

/// The entries of a dict, sorted as Python sorts keys: numbers by their size, and not together with texts.
fn in_order(dict: &Dict, sorted: bool) -> Result<Vec<(Key, Value)>, String> {
    let mut entries: Vec<_> = dict.borrow().iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    if sorted {
        let mut trouble = None;
        entries.sort_by(|(a, _), (b, _)| match (a.value(), b.value()) {
            (Value::Str(a), Value::Str(b)) => a.cmp(b),
            (a, b) => number(a).zip(number(b)).map_or_else(
                || {
                    let (a, b) = (a.type_name(), b.type_name());
                    trouble = Some(format!("'<' not supported between instances of '{a}' and '{b}'"));
                    Ordering::Equal
                },
                |(a, b)| a.total_cmp(&b),
            ),
        });
        if let Some(trouble) = trouble {
            return Err(trouble);
        }
    }
    Ok(entries)
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Bool(b) => Some(f64::from(u8::from(*b))),
        Value::Int(n) => Some(*n as f64),
        Value::Float(n) => Some(*n),
        _ => None,
    }
}

fn float(n: f64) -> String {
    match n {
        n if n.is_nan() => "NaN".to_owned(),
        f64::INFINITY => "Infinity".to_owned(),
        f64::NEG_INFINITY => "-Infinity".to_owned(),
        n => python_float(n),
    }
}

fn write_text(text: &str, ascii: bool, out: &mut dyn Write) -> fmt::Result {
    out.write_char('"')?;
    for c in text.chars() {
        match c {
            '"' => out.write_str("\\\"")?,
            '\\' => out.write_str("\\\\")?,
            '\n' => out.write_str("\\n")?,
            '\r' => out.write_str("\\r")?,
            '\t' => out.write_str("\\t")?,
            '\x08' => out.write_str("\\b")?,
            '\x0c' => out.write_str("\\f")?,
            ' '..='~' => out.write_char(c)?,
            c if !ascii && c > ' ' => out.write_char(c)?,
            c => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(out, "\\u{unit:04x}")?;
                }
            }
        }
    }
    out.write_char('"')
}
