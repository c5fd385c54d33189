//! `pprint`: the Python literal broken at 80 columns, as Python's `pprint.pformat` does it.

use std::cmp::Ordering;

use brine_protocol::pyrepr;
use brine_protocol::value::Value;

use super::{Indent, Style};

/// Columns of a line.
const WIDTH: i64 = 80;

pub(super) fn render(value: &Value, style: &Style) -> String {
    let text = match style.indent {
        Indent::Columns(columns) if columns >= 0 => {
            formatted(value, usize::try_from(columns).unwrap_or(1), style.tuples)
        }
        _ => formatted(value, 1, style.tuples),
    };
    // Characters to display by number occur only within literals, where Python reads the escapes as the same
    // characters.
    style.pass(&text).into_owned()
}

/// `pprint.pformat(value, indent=indent)`.
pub(super) fn format(value: &Value, indent: usize) -> String {
    formatted(value, indent, false)
}

/// As [`format`]; the lists of the outermost dict may be tuples.
fn formatted(value: &Value, indent: usize, tuples: bool) -> String {
    let value = sort_maps(value.clone());
    let mut printer = Printer { per_level: indent, tuples, out: String::new() };
    printer.value(&value, 0, 0, 0);
    printer.out
}

struct Printer {
    per_level: usize,
    /// Whether the lists at the first level are tuples.
    tuples: bool,
    out: String,
}

impl Printer {
    fn value(&mut self, value: &Value, indent: usize, allowance: usize, level: usize) {
        let tuple = self.tuples && level == 1;
        let text = match value {
            Value::Array(items) if tuple => pyrepr::tuple(items),
            value if self.tuples && level == 0 => pyrepr::repr_of_tuples(value),
            value => pyrepr::repr(value),
        };
        if columns(&text) <= WIDTH - signed(indent + allowance) {
            self.out.push_str(&text);
            return;
        }
        match value {
            Value::Map(entries) => {
                self.open('{');
                let inner = indent + self.per_level;
                for (at, (key, item)) in entries.iter().enumerate() {
                    self.separate(at, inner);
                    let key = pyrepr::repr(key);
                    self.out.push_str(&key);
                    self.out.push_str(": ");
                    let last = at + 1 == entries.len();
                    let column = inner + key.chars().count() + 2;
                    self.value(item, column, if last { allowance + 1 } else { 1 }, level + 1);
                }
                self.out.push('}');
            }
            Value::Array(items) => {
                self.open(if tuple { '(' } else { '[' });
                let inner = indent + self.per_level;
                for (at, item) in items.iter().enumerate() {
                    self.separate(at, inner);
                    let last = at + 1 == items.len();
                    self.value(item, inner, if last { allowance + 1 } else { 1 }, level + 1);
                }
                self.out.push_str(match (tuple, items.len()) {
                    (true, 1) => ",)",
                    (true, _) => ")",
                    (false, _) => "]",
                });
            }
            Value::String(string) if string.is_str() && !string.as_bytes().is_empty() => {
                let chunks = text_chunks(string.as_str().unwrap_or_default(), indent, allowance, level == 0);
                self.chunks(&chunks, indent, level == 0 && chunks.len() > 1);
            }
            Value::Binary(data) if data.len() > 4 => {
                let top = usize::from(level == 0);
                let chunks = byte_chunks(data, WIDTH - signed(indent + top), signed(allowance + top));
                self.chunks(&chunks, indent, level == 0);
            }
            _ => self.out.push_str(&text),
        }
    }

    fn open(&mut self, bracket: char) {
        self.out.push(bracket);
        self.out.extend(std::iter::repeat_n(' ', self.per_level.saturating_sub(1)));
    }

    fn separate(&mut self, at: usize, indent: usize) {
        if at > 0 {
            self.out.push_str(",\n");
            self.out.extend(std::iter::repeat_n(' ', indent));
        }
    }

    fn chunks(&mut self, chunks: &[String], indent: usize, parentheses: bool) {
        if parentheses {
            self.out.push('(');
        }
        let indent = indent + usize::from(parentheses);
        for (at, chunk) in chunks.iter().enumerate() {
            if at > 0 {
                self.out.push('\n');
                self.out.extend(std::iter::repeat_n(' ', indent));
            }
            self.out.push_str(chunk);
        }
        if parentheses {
            self.out.push(')');
        }
    }
}

/// Long text as adjacent literals below each other, broken after spaces and line ends.
fn text_chunks(text: &str, indent: usize, allowance: usize, top: bool) -> Vec<String> {
    let extra = usize::from(top);
    let width = WIDTH - signed(indent + extra);
    let last_width = width - signed(allowance + extra);
    let lines = lines_with_ends(text);
    let mut chunks = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let last_line = at + 1 == lines.len();
        let whole = pyrepr::quoted(line);
        if columns(&whole) <= if last_line { last_width } else { width } {
            chunks.push(whole);
            continue;
        }
        let words = words_with_spaces(line);
        let mut current = String::new();
        for (at, word) in words.iter().enumerate() {
            let limit = if last_line && at + 1 == words.len() { last_width } else { width };
            let candidate = format!("{current}{word}");
            if columns(&pyrepr::quoted(&candidate)) > limit {
                if !current.is_empty() {
                    chunks.push(pyrepr::quoted(&current));
                }
                current = (*word).to_owned();
            } else {
                current = candidate;
            }
        }
        if !current.is_empty() {
            chunks.push(pyrepr::quoted(&current));
        }
    }
    chunks
}

fn byte_chunks(data: &[u8], width: i64, allowance: i64) -> Vec<String> {
    let mut chunks = Vec::new();
    let mut current: Vec<u8> = Vec::new();
    let last = data.len() / 4 * 4;
    for (at, part) in data.chunks(4).enumerate() {
        let width = if at * 4 == last { width - allowance } else { width };
        let mut candidate = current.clone();
        candidate.extend_from_slice(part);
        if columns(&pyrepr::bytes(&candidate)) > width {
            if !current.is_empty() {
                chunks.push(pyrepr::bytes(&current));
            }
            current = part.to_vec();
        } else {
            current = candidate;
        }
    }
    if !current.is_empty() {
        chunks.push(pyrepr::bytes(&current));
    }
    chunks
}

/// Python's `text.splitlines(True)`.
fn lines_with_ends(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut start = 0;
    let mut at = 0;
    for line in pyrepr::split_lines(text) {
        at += line.len();
        let end = &text[at..];
        at += if end.starts_with("\r\n") { 2 } else { end.chars().next().map_or(0, char::len_utf8) };
        out.push(&text[start..at]);
        start = at;
    }
    out
}

/// Python's `re.findall(r'\S*\s*', line)` without the empty match at the end.
fn words_with_spaces(line: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut rest = line;
    while !rest.is_empty() {
        let word = rest.find(pyrepr::is_space).unwrap_or(rest.len());
        let spaces = rest[word..].find(|c| !pyrepr::is_space(c)).unwrap_or(rest.len() - word);
        let (part, after) = rest.split_at(word + spaces);
        out.push(part);
        rest = after;
    }
    out
}

/// Sorts every map as pprint does: by key if keys are comparable, else by the names of their types.
fn sort_maps(value: Value) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.into_iter().map(sort_maps).collect()),
        Value::Map(entries) => {
            let mut entries: Vec<_> = entries.into_iter().map(|(key, item)| (key, sort_maps(item))).collect();
            entries.sort_by(|(a, _), (b, _)| key_order(a, b));
            Value::Map(entries)
        }
        other => other,
    }
}

fn key_order(a: &Value, b: &Value) -> Ordering {
    fn rank(key: &Value) -> u8 {
        match key {
            Value::Nil => 0,
            Value::Boolean(_) | Value::Integer(_) | Value::F32(_) | Value::F64(_) => 1,
            Value::Binary(_) => 2,
            Value::String(_) => 3,
            Value::Array(_) | Value::Map(_) | Value::Ext(..) => 4,
        }
    }
    fn number(key: &Value) -> f64 {
        key.as_bool().map_or_else(|| key.as_f64().unwrap_or_default(), |flag| f64::from(u8::from(flag)))
    }
    rank(a).cmp(&rank(b)).then_with(|| match (a, b) {
        (Value::String(a), Value::String(b)) => a.as_bytes().cmp(b.as_bytes()),
        (Value::Binary(a), Value::Binary(b)) => a.cmp(b),
        _ => number(a).total_cmp(&number(b)),
    })
}

fn columns(text: &str) -> i64 {
    signed(text.chars().count())
}

fn signed(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
