//! `txt`: `minion: line` for every line of a return. `newline_values_only`: the values without their minions. `raw`:
//! the Python literal.

use brine_protocol::pyrepr;
use brine_protocol::value::Value;

use super::{Style, pprint};

pub(super) fn txt(value: &Value, style: &Style) -> String {
    let mut out = String::new();
    match value {
        Value::Map(entries) => {
            for (key, item) in entries {
                let key = pyrepr::str(key);
                let key = style.pass(&key);
                match item {
                    Value::String(text) if text.is_str() => {
                        for line in pyrepr::split_lines(text.as_str().unwrap_or_default()) {
                            push_line(&mut out, &key, &style.pass(line));
                        }
                    }
                    Value::Binary(data) => {
                        // Python splits the bytes and prints each piece as a literal
                        for line in split_byte_lines(data) {
                            push_line(&mut out, &key, &pyrepr::bytes(line));
                        }
                    }
                    _ => push_line(&mut out, &key, &style.pass(&pyrepr::str_or_tuple(item, style.tuples))),
                }
            }
        }
        Value::String(text) if text.is_str() => {
            out.push_str(&style.pass(text.as_str().unwrap_or_default()));
            out.push('\n');
        }
        _ => out.push_str(&style.pass(&pprint::format(value, 1))),
    }
    out
}

fn push_line(out: &mut String, key: &str, line: &str) {
    for part in [key, ": ", line, "\n"] {
        out.push_str(part);
    }
}

/// Python's `bytes.splitlines()`, which recognises fewer line ends than that of text.
fn split_byte_lines(data: &[u8]) -> Vec<&[u8]> {
    let mut lines = Vec::new();
    let mut rest = data;
    while !rest.is_empty() {
        let at = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(rest.len());
        lines.push(&rest[..at]);
        let skip = if rest[at..].starts_with(b"\r\n") { 2 } else { 1 };
        rest = rest.get(at + skip..).unwrap_or_default();
    }
    lines
}

pub(super) fn raw(value: &Value, style: &Style) -> String {
    match value {
        Value::String(text) if text.is_str() => style.pass(text.as_str().unwrap_or_default()).into_owned(),
        _ if style.tuples => style.pass(&pyrepr::repr_of_tuples(value)).into_owned(),
        _ => style.pass(&pyrepr::repr(value)).into_owned(),
    }
}

/// `None` for a value that is neither a map nor a list. A list is what a runner returned, which Salt shows as nested.
pub(super) fn values(value: &Value, style: &Style) -> Option<String> {
    fn items(value: &Value) -> &[Value] {
        match value {
            Value::Array(items) => items,
            item => std::slice::from_ref(item),
        }
    }
    let values: Vec<&Value> = match value {
        Value::Map(entries) => entries.iter().flat_map(|(_, value)| items(value)).collect(),
        Value::Array(values) => values.iter().collect(),
        _ => return None,
    };
    let lines: Vec<String> = values.into_iter().map(|item| style.pass(&pyrepr::str(item)).into_owned()).collect();
    Some(lines.join("\n"))
}
