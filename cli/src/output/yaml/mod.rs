//! `yaml`: block style as PyYAML writes it through libyaml, at 80 columns, with sorted keys.
//!
//! [`Emitter`] keeps libyaml's state under its names, because line breaks depend on it (`whitespace`: the last output
//! was space; `indention`: the present line has only indentation so far).

mod text;

use base64::Engine as _;
use brine_protocol::pyrepr;
use brine_protocol::value::Value;

use super::{Indent, Style};
use text::{Facts, escaped, is_break, is_printable, reads_as_other};

/// Text is broken after this many columns.
const WIDTH: usize = 80;
/// A key with more bytes is written with `?`.
const SIMPLE_KEY_MAX: usize = 128;

pub(super) fn render(value: &Value, style: &Style) -> String {
    let (flow, step) = match style.indent {
        Indent::Columns(columns) if columns < 0 => (true, 0),
        Indent::Columns(columns) => (false, usize::try_from(columns).unwrap_or(0)),
        Indent::Unset | Indent::Null | Indent::Pretty => (false, 2),
    };
    let step = if (2..=9).contains(&step) { step } else { 2 };
    let mut emitter = Emitter {
        out: String::new(),
        column: 0,
        step,
        flow,
        indent: None,
        flow_level: 0,
        whitespace: true,
        indention: true,
        visible: style.visible,
    };
    emitter.node(value, Place::Root);
    emitter.out
}

/// The place of a node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Root,
    Item,
    SimpleKey,
    /// A mapping's value, or a key that is not simple.
    Mapping,
}

struct Emitter {
    out: String,
    column: usize,
    step: usize,
    flow: bool,
    indent: Option<usize>,
    flow_level: usize,
    whitespace: bool,
    indention: bool,
    visible: bool,
}

/// A prepared scalar.
struct Scalar {
    text: String,
    /// Whether the plain text is read back as the same value.
    plain: bool,
    binary: bool,
}

impl Emitter {
    fn node(&mut self, value: &Value, place: Place) {
        match value {
            Value::Array(items) => self.sequence(items, place),
            Value::Map(entries) => self.mapping(entries, place),
            _ => {
                let scalar = scalar(value);
                self.scalar(&scalar, place == Place::SimpleKey);
            }
        }
    }

    fn sequence(&mut self, items: &[Value], place: Place) {
        let outer = self.indent;
        if self.flow || self.flow_level > 0 || items.is_empty() {
            self.indicator("[", true, true, false);
            self.increase_indent(true, false);
            self.flow_level += 1;
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    self.indicator(",", false, false, false);
                }
                self.break_long_flow();
                self.node(item, Place::Item);
            }
            self.flow_level -= 1;
            self.indent = outer;
            self.indicator("]", false, false, false);
            return;
        }
        let indentless = matches!(place, Place::Mapping) && !self.indention;
        self.increase_indent(false, indentless);
        for item in items {
            self.write_indent();
            self.indicator("-", true, false, true);
            self.node(item, Place::Item);
        }
        self.indent = outer;
    }

    fn mapping(&mut self, entries: &[(Value, Value)], _place: Place) {
        let outer = self.indent;
        let entries = pyrepr::sorted(entries).unwrap_or_else(|| entries.iter().collect());
        if self.flow || self.flow_level > 0 || entries.is_empty() {
            self.indicator("{", true, true, false);
            self.increase_indent(true, false);
            self.flow_level += 1;
            for (at, (key, item)) in entries.iter().enumerate() {
                if at > 0 {
                    self.indicator(",", false, false, false);
                }
                self.break_long_flow();
                self.pair(key, item, false, Self::break_long_flow);
            }
            self.flow_level -= 1;
            self.indent = outer;
            self.indicator("}", false, false, false);
            return;
        }
        self.increase_indent(false, false);
        for (key, item) in entries {
            self.write_indent();
            self.pair(key, item, true, Self::write_indent);
        }
        self.indent = outer;
    }

    /// Writes an entry of a mapping; `separate` stands before the colon of a key that needs a question mark.
    fn pair(&mut self, key: &Value, item: &Value, is_indention: bool, separate: fn(&mut Self)) {
        if is_simple_key(key) {
            self.node(key, Place::SimpleKey);
            self.indicator(":", false, false, false);
        } else {
            self.indicator("?", true, false, is_indention);
            self.node(key, Place::Mapping);
            separate(self);
            self.indicator(":", true, false, is_indention);
        }
        self.node(item, Place::Mapping);
    }

    fn scalar(&mut self, scalar: &Scalar, simple_key: bool) {
        let outer = self.indent;
        let facts = Facts::gather(&scalar.text, self.visible);
        let in_flow = self.flow_level > 0;
        if scalar.binary {
            self.indicator("!!binary", true, false, false);
        }
        self.increase_indent(true, false);
        let plain_allowed = if in_flow { facts.flow_plain } else { facts.block_plain };
        let double = (simple_key && facts.multiline) || !facts.single_quoted;
        if scalar.binary {
            if !facts.block || in_flow || simple_key {
                self.double_quoted(&scalar.text, !simple_key);
            } else {
                self.literal(&scalar.text);
            }
        } else if plain_allowed
            && scalar.plain
            && !(simple_key && facts.multiline)
            && !(scalar.text.is_empty() && (in_flow || simple_key))
        {
            self.plain(&scalar.text, !simple_key);
        } else if double {
            self.double_quoted(&scalar.text, !simple_key);
        } else {
            self.single_quoted(&scalar.text, !simple_key);
        }
        self.indent = outer;
    }

    fn increase_indent(&mut self, flow: bool, indentless: bool) {
        self.indent = Some(match self.indent {
            None if flow => self.step,
            None => 0,
            Some(indent) if indentless => indent,
            Some(indent) => indent + self.step,
        });
    }

    fn break_long_flow(&mut self) {
        if self.column > WIDTH {
            self.write_indent();
        }
    }

    fn put(&mut self, c: char) {
        self.out.push(c);
        self.column += 1;
    }

    fn put_break(&mut self) {
        self.out.push('\n');
        self.column = 0;
    }

    /// Writes a line break that belongs to the text.
    fn write_break(&mut self, c: char) {
        self.out.push(c);
        self.column = 0;
    }

    fn write_indent(&mut self) {
        let indent = self.indent.unwrap_or(0);
        if !self.indention || self.column > indent || (self.column == indent && !self.whitespace) {
            self.put_break();
        }
        while self.column < indent {
            self.put(' ');
        }
        self.whitespace = true;
        self.indention = true;
    }

    fn indicator(&mut self, text: &str, need_whitespace: bool, is_whitespace: bool, is_indention: bool) {
        if need_whitespace && !self.whitespace {
            self.put(' ');
        }
        text.chars().for_each(|c| self.put(c));
        self.whitespace = is_whitespace;
        self.indention = self.indention && is_indention;
    }

    fn plain(&mut self, text: &str, allow_breaks: bool) {
        if !self.whitespace && (!text.is_empty() || self.flow_level > 0) {
            self.put(' ');
        }
        let mut spaces = false;
        let mut chars = text.chars().peekable();
        // plain text never has line breaks: Facts forbids it
        while let Some(c) = chars.next() {
            if c == ' ' {
                if allow_breaks && !spaces && self.column > WIDTH && chars.peek() != Some(&' ') {
                    self.write_indent();
                } else {
                    self.put(c);
                }
                spaces = true;
            } else {
                self.put(c);
                self.indention = false;
                spaces = false;
            }
        }
        self.whitespace = false;
        self.indention = false;
    }

    fn single_quoted(&mut self, text: &str, allow_breaks: bool) {
        self.indicator("'", true, false, false);
        let mut spaces = false;
        let mut breaks = false;
        let last = text.len().saturating_sub(1);
        let mut chars = text.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            if c == ' ' {
                let next_is_space = chars.peek().is_some_and(|(_, next)| *next == ' ');
                if allow_breaks && !spaces && self.column > WIDTH && at != 0 && at != last && !next_is_space {
                    self.write_indent();
                } else {
                    self.put(c);
                }
                spaces = true;
            } else if is_break(c) {
                if !breaks && c == '\n' {
                    self.put_break();
                }
                self.write_break(c);
                self.indention = true;
                breaks = true;
            } else {
                if breaks {
                    self.write_indent();
                }
                if c == '\'' {
                    self.put('\'');
                }
                self.put(c);
                self.indention = false;
                spaces = false;
                breaks = false;
            }
        }
        if breaks {
            self.write_indent();
        }
        self.indicator("'", false, false, false);
        self.whitespace = false;
        self.indention = false;
    }

    fn double_quoted(&mut self, text: &str, allow_breaks: bool) {
        self.indicator("\"", true, false, false);
        let mut spaces = false;
        let last = text.len().saturating_sub(1);
        let mut chars = text.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            if !is_printable(c)
                || is_break(c)
                || c == '"'
                || c == '\\'
                || (self.visible && brine_protocol::text::is_active(c))
            {
                escaped(c).chars().for_each(|c| self.put(c));
                spaces = false;
            } else if c == ' ' {
                if allow_breaks && !spaces && self.column > WIDTH && at != 0 && at != last {
                    self.write_indent();
                    if chars.peek().is_some_and(|(_, next)| *next == ' ') {
                        self.put('\\');
                    }
                } else {
                    self.put(c);
                }
                spaces = true;
            } else {
                self.put(c);
                spaces = false;
            }
        }
        self.indicator("\"", false, false, false);
        self.whitespace = false;
        self.indention = false;
    }

    /// Writes base64, which has no leading spaces and ends with one newline, so it needs no hints.
    fn literal(&mut self, text: &str) {
        self.indicator("|", true, false, false);
        self.put_break();
        self.indention = true;
        self.whitespace = true;
        let mut breaks = true;
        for c in text.chars() {
            if c == '\n' {
                self.write_break(c);
                self.indention = true;
                breaks = true;
            } else {
                if breaks {
                    self.write_indent();
                }
                self.put(c);
                self.indention = false;
                breaks = false;
            }
        }
    }
}

fn scalar(value: &Value) -> Scalar {
    let known = |text: &str| Scalar { text: text.to_owned(), plain: true, binary: false };
    match value {
        Value::Nil => known("null"),
        Value::Boolean(flag) => known(if *flag { "true" } else { "false" }),
        Value::Integer(_) => known(&pyrepr::repr(value)),
        Value::F32(number) => known(&float(f64::from(*number))),
        Value::F64(number) => known(&float(*number)),
        Value::String(text) if text.is_str() => own_text(text.as_str().unwrap_or_default()),
        Value::String(text) => binary(text.as_bytes()),
        Value::Binary(data) => binary(data),
        Value::Ext(_, data) => match std::str::from_utf8(data) {
            Ok(text) => own_text(text),
            Err(_) => binary(data),
        },
        // only as a key, which Python cannot have
        Value::Array(_) | Value::Map(_) => own_text(&pyrepr::repr(value)),
    }
}

fn own_text(text: &str) -> Scalar {
    Scalar { text: text.to_owned(), plain: !reads_as_other(text), binary: false }
}

/// Bytes as Python's `base64.encodebytes` writes them: lines of 76 characters, each with a line end.
fn binary(data: &[u8]) -> Scalar {
    let encoded = base64::engine::general_purpose::STANDARD.encode(data);
    let mut text = String::with_capacity(encoded.len() + encoded.len() / 76 + 1);
    let mut rest = encoded.as_str();
    while !rest.is_empty() {
        let (line, after) = rest.split_at(rest.len().min(76));
        text.push_str(line);
        text.push('\n');
        rest = after;
    }
    Scalar { text, plain: false, binary: true }
}

fn float(number: f64) -> String {
    if number.is_nan() {
        return ".nan".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    let text = pyrepr::float(number);
    // YAML 1.1 requires a point in a float
    if text.contains('.') { text } else { text.replacen('e', ".0e", 1) }
}

fn is_simple_key(key: &Value) -> bool {
    match key {
        Value::Array(items) => items.is_empty(),
        Value::Map(entries) => entries.is_empty(),
        _ => {
            let scalar = scalar(key);
            let tag = if scalar.binary { "!!binary".len() } else { 0 };
            scalar.text.len() + tag <= SIMPLE_KEY_MAX && !scalar.text.contains(is_break)
        }
    }
}
