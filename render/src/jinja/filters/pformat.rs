//! `pprint.pformat`, as the filters `python` and `pprint` call it: dicts sorted, and lines of 80 characters at most where values can be
//! broken.

use std::fmt::{self, Write};

use crate::value::{Entries, Value};

/// Characters of a line.
const WIDTH: usize = 80;
/// From here on a value is written on one line: it may hold itself.
const DEEP: usize = 64;

/// Writes a value.
///
/// # Errors
/// The output takes no more.
pub(super) fn write(value: &Value, out: &mut dyn Write) -> fmt::Result {
    Format { out }.value(value, At { indent: 0, allowance: 0, level: 0 })
}

struct Format<'a> {
    out: &'a mut dyn Write,
}

/// Where a value stands: the column, the characters that follow it on its line, and the values around it.
#[derive(Clone, Copy)]
struct At {
    indent: usize,
    allowance: usize,
    level: usize,
}

impl Format<'_> {
    fn value(&mut self, value: &Value, at: At) -> fmt::Result {
        let inside = At { level: at.level + 1, ..at };
        let room = WIDTH.saturating_sub(at.indent + at.allowance);
        if at.level >= DEEP || fits(value, room) {
            return one_line(value, self.out, at.level);
        }
        match value {
            Value::Dict(dict) if !dict.is_ordered() => {
                self.out.write_char('{')?;
                self.dict(sorted(&dict.borrow()), At { indent: at.indent + 1, allowance: at.allowance + 1, ..inside })?;
                self.out.write_char('}')
            }
            Value::List(list) => {
                let items = list.borrow().clone();
                self.items(&items, ["[", "]"], inside)
            }
            Value::Tuple(items) => self.items(items, ["(", if items.len() == 1 { ",)" } else { ")" }], inside),
            Value::Str(text) => self.text(text, inside),
            other => other.write_repr(self.out),
        }
    }

    fn dict(&mut self, entries: Vec<(Value, Value)>, at: At) -> fmt::Result {
        let last = entries.len().saturating_sub(1);
        for (index, (key, value)) in entries.into_iter().enumerate() {
            if index > 0 {
                write!(self.out, ",\n{:1$}", "", at.indent)?;
            }
            let mut name = String::new();
            one_line(&key, &mut name, at.level)?;
            write!(self.out, "{name}: ")?;
            let indent = at.indent + name.chars().count() + 2;
            self.value(&value, At { indent, allowance: if index == last { at.allowance } else { 1 }, ..at })?;
        }
        Ok(())
    }

    fn items(&mut self, items: &[Value], [open, close]: [&str; 2], at: At) -> fmt::Result {
        self.out.write_str(open)?;
        let indent = at.indent + 1;
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                write!(self.out, ",\n{:indent$}", "")?;
            }
            let allowance = if index + 1 == items.len() { at.allowance + close.len() } else { 1 };
            self.value(item, At { indent, allowance, ..at })?;
        }
        self.out.write_str(close)
    }

    /// A text as literals that stand below each other, broken at line ends and behind spaces.
    fn text(&mut self, text: &str, at: At) -> fmt::Result {
        let alone = at.level == 1;
        let (indent, allowance) = (at.indent + usize::from(alone), at.allowance + usize::from(alone));
        let width = WIDTH.saturating_sub(indent);
        let mut chunks = Vec::new();
        let mut lines = text.split_inclusive('\n').peekable();
        while let Some(line) = lines.next() {
            let end = if lines.peek().is_none() { allowance } else { 0 };
            let whole = literal(line)?;
            if whole.chars().count() <= width.saturating_sub(end) {
                chunks.push(whole);
                continue;
            }
            let mut parts = words(line).into_iter().peekable();
            let mut current = String::new();
            while let Some(part) = parts.next() {
                let end = if parts.peek().is_none() { end } else { 0 };
                let longer = format!("{current}{part}");
                if literal(&longer)?.chars().count() <= width.saturating_sub(end) {
                    current = longer;
                    continue;
                }
                if !current.is_empty() {
                    chunks.push(literal(&current)?);
                }
                current = part.to_owned();
            }
            if !current.is_empty() {
                chunks.push(literal(&current)?);
            }
        }
        if chunks.len() == 1 {
            return self.out.write_str(&literal(text)?);
        }
        let [open, close] = if alone { ["(", ")"] } else { ["", ""] };
        write!(self.out, "{open}{}{close}", chunks.join(&format!("\n{:indent$}", "")))
    }
}

fn literal(text: &str) -> Result<String, fmt::Error> {
    let mut out = String::new();
    Value::from(text).write_repr(&mut out)?;
    Ok(out)
}

/// Words with the white space behind them.
fn words(line: &str) -> Vec<&str> {
    let (mut words, mut rest) = (Vec::new(), line);
    while !rest.is_empty() {
        let space = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let next = rest[space..].find(|c: char| !c.is_whitespace()).map_or(rest.len(), |next| space + next);
        let (word, more) = rest.split_at(next);
        words.push(word);
        rest = more;
    }
    words
}

/// Whether the text of a value on one line has at most so many characters. Looks at no more of it than that.
fn fits(value: &Value, room: usize) -> bool {
    struct Room(usize);
    impl Write for Room {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0 = self.0.checked_sub(text.chars().count()).ok_or(fmt::Error)?;
            Ok(())
        }
    }
    one_line(value, &mut Room(room), 0).is_ok()
}

/// The entries by their keys; keys that cannot be compared by the names of their types.
fn sorted(entries: &Entries) -> Vec<(Value, Value)> {
    let mut all: Vec<(Value, Value)> =
        entries.iter().map(|(key, value)| (key.value().clone(), value.clone())).collect();
    all.sort_by(|(a, _), (b, _)| match (a, b) {
        (Value::Str(a), Value::Str(b)) => a.cmp(b),
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        _ => a.type_name().cmp(b.type_name()),
    });
    all
}

/// The `repr` of a value with its dicts sorted.
fn one_line(value: &Value, out: &mut dyn Write, level: usize) -> fmt::Result {
    let list = |items: &[Value], out: &mut dyn Write| {
        for (index, item) in items.iter().enumerate() {
            out.write_str(if index > 0 { ", " } else { "" })?;
            one_line(item, out, level + 1)?;
        }
        Ok(())
    };
    match value {
        _ if level > DEEP => value.write_repr(out),
        Value::Dict(dict) if !dict.is_ordered() => {
            out.write_char('{')?;
            for (index, (key, item)) in sorted(&dict.borrow()).into_iter().enumerate() {
                out.write_str(if index > 0 { ", " } else { "" })?;
                one_line(&key, out, level + 1)?;
                out.write_str(": ")?;
                one_line(&item, out, level + 1)?;
            }
            out.write_char('}')
        }
        Value::List(items) => {
            out.write_char('[')?;
            list(&items.borrow(), out)?;
            out.write_char(']')
        }
        Value::Tuple(items) => {
            out.write_char('(')?;
            list(items, out)?;
            out.write_str(if items.len() == 1 { ",)" } else { ")" })
        }
        other => other.write_repr(out),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::json;
    use super::*;

    /// What CPython 3.11 answers.
    #[test]
    fn values_are_broken_as_pythons_are() {
        for (text, expected) in [
            (r#"{"b": 1, "a": [1, {"z": 1, "y": null}]}"#, "{'a': [1, {'y': None, 'z': 1}], 'b': 1}"),
            (
                r#"{"databases": {"default": {"engine": "django.db.backends.postgresql", "name": "leonardo", "port": 5432}}, "debug": true}"#,
                "{'databases': {'default': {'engine': 'django.db.backends.postgresql',\n                           \
                 'name': 'leonardo',\n                           'port': 5432}},\n 'debug': True}",
            ),
            (
                r#"["aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb", "cccccccc"]"#,
                "['aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',\n 'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb',\n 'cccccccc']",
            ),
            (
                r#""one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen""#,
                "('one two three four five six seven eight nine ten eleven twelve thirteen '\n 'fourteen fifteen')",
            ),
        ] {
            let value = json::parse(text).unwrap();
            let mut out = String::new();
            write(&value, &mut out).unwrap();
            assert_eq!(out, expected);
        }
    }
}
