//! `json`: what Python's `json.dumps(value, default=repr, ensure_ascii=False)` prints.

use brine_protocol::pyrepr;
use brine_protocol::value::Value;

use super::{Indent, Style};

pub(super) fn render(value: &Value, style: &Style) -> String {
    let (indent, sort_keys) = match style.indent {
        Indent::Unset => (Some(4), false),
        Indent::Null => (None, false),
        Indent::Pretty => (Some(4), true),
        Indent::Columns(columns) => (usize::try_from(columns).ok(), false),
    };
    let mut writer = Writer { indent, sort_keys, visible: style.visible, out: String::new() };
    match writer.value(value, 0) {
        Ok(()) => writer.out,
        Err(NotAKey) => "{}".to_owned(),
    }
}

/// A map key that Python's json refuses (bytes, or keys that cannot be sorted). Salt then prints an empty object.
struct NotAKey;

/// Whether Python cannot have such a key, so that Salt defines no output for it. It is printed as text, like other
/// values without a JSON form.
fn is_unhashable(key: &Value) -> bool {
    matches!(key, Value::Array(_) | Value::Map(_))
}

struct Writer {
    indent: Option<usize>,
    sort_keys: bool,
    visible: bool,
    out: String,
}

impl Writer {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), NotAKey> {
        match value {
            Value::Nil | Value::Boolean(_) | Value::Integer(_) | Value::F32(_) | Value::F64(_) => {
                let text = scalar(value);
                self.out.push_str(&text);
            }
            Value::String(text) => match text.as_str() {
                Some(text) => self.string(text),
                None => self.string(&pyrepr::bytes(text.as_bytes())),
            },
            Value::Binary(data) => self.string(&pyrepr::bytes(data)),
            Value::Ext(_, data) => self.string(&String::from_utf8_lossy(data)),
            Value::Array(items) => {
                self.out.push('[');
                for (at, item) in items.iter().enumerate() {
                    self.separate(at, depth + 1);
                    self.value(item, depth + 1)?;
                }
                self.close(items.is_empty(), depth, ']');
            }
            Value::Map(entries) => {
                let entries = if self.sort_keys {
                    match pyrepr::sorted(entries) {
                        Some(sorted) => sorted,
                        None if entries.iter().any(|(key, _)| is_unhashable(key)) => entries.iter().collect(),
                        None => return Err(NotAKey),
                    }
                } else {
                    entries.iter().collect::<Vec<_>>()
                };
                self.out.push('{');
                for (at, (key, item)) in entries.iter().enumerate() {
                    self.separate(at, depth + 1);
                    match key {
                        Value::String(text) => match text.as_str() {
                            Some(text) => self.string(text),
                            None => return Err(NotAKey),
                        },
                        Value::Array(_) | Value::Map(_) => self.string(&pyrepr::repr(key)),
                        Value::Binary(_) | Value::Ext(..) => return Err(NotAKey),
                        _ => self.string(&scalar(key)),
                    }
                    self.out.push_str(": ");
                    self.value(item, depth + 1)?;
                }
                self.close(entries.is_empty(), depth, '}');
            }
        }
        Ok(())
    }

    fn separate(&mut self, at: usize, depth: usize) {
        if at > 0 {
            self.out.push_str(if self.indent.is_some() { "," } else { ", " });
        }
        self.break_line(depth);
    }

    fn close(&mut self, empty: bool, depth: usize, bracket: char) {
        if !empty {
            self.break_line(depth);
        }
        self.out.push(bracket);
    }

    fn break_line(&mut self, depth: usize) {
        if let Some(indent) = self.indent {
            self.out.push('\n');
            self.out.extend(std::iter::repeat_n(' ', indent * depth));
        }
    }

    fn string(&mut self, text: &str) {
        self.out.push('"');
        for (c, active) in brine_protocol::text::marked(text) {
            match c {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                '\x08' => self.out.push_str("\\b"),
                '\x0c' => self.out.push_str("\\f"),
                '\0'..='\x1f' => brine_protocol::text::push_json(c, &mut self.out),
                _ if self.visible && active => brine_protocol::text::push_json(c, &mut self.out),
                _ => self.out.push(c),
            }
        }
        self.out.push('"');
    }
}

fn scalar(value: &Value) -> String {
    match value {
        Value::Nil => "null".to_owned(),
        Value::Boolean(flag) => flag.to_string(),
        Value::F64(number) if !number.is_finite() => special(*number),
        Value::F32(number) if !number.is_finite() => special(f64::from(*number)),
        _ => pyrepr::repr(value),
    }
}

fn special(number: f64) -> String {
    if number.is_nan() {
        "NaN"
    } else if number > 0.0 {
        "Infinity"
    } else {
        "-Infinity"
    }
    .to_owned()
}
