//! `nested`, Salt's default: one entry a line, children indented by four.

use std::borrow::Cow;
use std::collections::BTreeMap;

use brine_protocol::pyrepr;
use brine_protocol::value::Value;

use super::Style;
use super::color::Palette;

pub(super) fn render(value: &Value, style: &Style) -> String {
    let mut writer = Writer { style, palette: Palette::new(style.color), out: String::new() };
    writer.value(value, style.nested_indent, "");
    // every line has an end, while Salt joins the lines
    writer.out.pop();
    writer.out
}

struct Writer<'a> {
    style: &'a Style,
    palette: Palette,
    out: String,
}

impl Writer<'_> {
    fn line(&mut self, indent: usize, color: &str, prefix: &str, text: &str, suffix: &str) {
        self.out.extend(std::iter::repeat_n(' ', indent));
        for part in [color, prefix, &self.style.pass(text), self.palette.end, suffix, "\n"] {
            self.out.push_str(part);
        }
    }

    /// The given colour, or red for a failure.
    fn ok_or_red(&self, ok: &'static str) -> &'static str {
        if self.style.retcode == 0 { ok } else { self.palette.red }
    }

    fn value(&mut self, value: &Value, indent: usize, prefix: &str) {
        match value {
            Value::Nil | Value::Boolean(_) | Value::Integer(_) | Value::F32(_) | Value::F64(_) => {
                self.line(indent, self.palette.light_yellow, prefix, &pyrepr::repr(value), "");
            }
            // bytes that are not text get no line, as in Salt
            Value::String(_) | Value::Binary(_) | Value::Ext(..) => {
                if let Some(text) = text_of(value) {
                    self.text(text, indent, prefix);
                }
            }
            Value::Array(items) => self.list(items, indent),
            Value::Map(entries) => self.map(entries, indent, prefix),
        }
    }

    fn text(&mut self, text: &str, indent: usize, prefix: &str) {
        for (at, line) in pyrepr::split_lines(text).enumerate() {
            let line = if self.style.strip_colors { strip_escapes(line) } else { Cow::Borrowed(line) };
            let blank = "  ";
            let prefix = if at == 0 { prefix } else { &blank[..prefix.len()] };
            self.line(indent, self.palette.green, prefix, &line, "");
        }
    }

    fn list(&mut self, items: &[Value], indent: usize) {
        let color = self.ok_or_red(self.palette.green);
        for item in items {
            if matches!(item, Value::Array(_) | Value::Map(_)) {
                self.line(indent, color, "", "|_", "");
                self.value(item, indent + 2, "");
            } else {
                self.value(item, indent, "- ");
            }
        }
    }

    fn map(&mut self, entries: &[(Value, Value)], indent: usize, prefix: &str) {
        let color = self.ok_or_red(self.palette.cyan);
        if indent > 0 {
            self.line(indent, color, "", "----------", "");
        }
        match pyrepr::sorted(entries) {
            Some(entries) => {
                for (key, item) in entries {
                    self.entry(&pyrepr::str(key), item, indent, prefix, color);
                }
            }
            None => {
                // Python first converts the keys to text; of equal keys, the last stays
                let by_text: BTreeMap<String, &Value> =
                    entries.iter().map(|(key, item)| (pyrepr::str(key), item)).collect();
                for (key, item) in by_text {
                    self.entry(&key, item, indent, prefix, color);
                }
            }
        }
    }

    fn entry(&mut self, key: &str, item: &Value, indent: usize, prefix: &str, color: &str) {
        self.line(indent, color, prefix, key, ":");
        self.value(item, indent + 4, "");
    }
}

/// The text of a value that Salt displays as text: text, bytes that are UTF-8, and datetimes (ext 78).
fn text_of(value: &Value) -> Option<&str> {
    match value {
        Value::String(text) => text.as_str(),
        Value::Binary(data) | Value::Ext(_, data) => std::str::from_utf8(data).ok(),
        _ => None,
    }
}

/// Removes escapes from returned text, as Salt does.
pub(super) fn strip_escapes(text: &str) -> Cow<'_, str> {
    if text.contains('\x1b') { Cow::Owned(text.replace('\x1b', "?")) } else { Cow::Borrowed(text) }
}
