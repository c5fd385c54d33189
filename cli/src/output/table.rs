//! `table`: lists of rows as a table, with the keys of dicts as headings.

use brine_protocol::pyrepr;
use brine_protocol::value::Value;

use super::Style;
use super::color::Palette;

/// Cells longer than this are broken at a space.
const WIDTH: usize = 50;
const PREFIX: &str = "| ";
const DELIMITER: &str = " | ";
const SUFFIX: &str = " |";

/// `None` if Python's outputter fails: for rows that are not rows, cells that are not text, keys that cannot be sorted.
pub(super) fn render(value: &Value, style: &Style) -> Option<String> {
    let mut table = Table { style, palette: Palette::new(style.color), lines: Vec::new() };
    table.display(value, style.nested_indent)?;
    Some(table.lines.join("\n"))
}

struct Table<'a> {
    style: &'a Style,
    palette: Palette,
    lines: Vec<String>,
}

impl Table<'_> {
    fn line(&mut self, indent: usize, color: &str, text: &str, suffix: &str) {
        let text = self.style.pass(text);
        self.lines.push(format!("{}{color}{text}{}{suffix}", " ".repeat(indent), self.palette.end));
    }

    fn display(&mut self, value: &Value, indent: usize) -> Option<()> {
        match value {
            Value::Map(entries) => {
                for (key, item) in pyrepr::sorted(entries)? {
                    self.line(indent, self.palette.dark_gray, &text(key)?, ":");
                    self.line(indent, self.palette.dark_gray, "----------", "");
                    match item {
                        Value::Array(rows) => self.rows(rows, indent + 4)?,
                        _ => self.display(item, indent + 4)?,
                    }
                }
            }
            Value::Array(rows) => self.rows(rows, indent + 4)?,
            // Other values are not shown.
            _ => {
                text(value)?;
            }
        }
        Some(())
    }

    fn rows(&mut self, rows: &[Value], indent: usize) -> Option<()> {
        let Some(first) = rows.first() else { return Some(()) };
        if rows.iter().any(|row| kind(row) != kind(first)) {
            return Some(());
        }
        let mut cells: Vec<Vec<String>> = Vec::with_capacity(rows.len() + 1);
        match first {
            Value::Map(entries) if !entries.is_empty() => {
                let labels = pyrepr::sorted(entries)?;
                cells.push(labels.into_iter().map(|(key, _)| Some(title(&text(key)?))).collect::<Option<_>>()?);
            }
            _ => {}
        }
        for row in rows {
            cells.push(match row {
                Value::Map(entries) => {
                    pyrepr::sorted(entries)?.into_iter().map(|(_, item)| text(item)).collect::<Option<_>>()?
                }
                // The cells of a list must be text.
                Value::Array(items) => items.iter().map(own_text).collect::<Option<_>>()?,
                row => vec![own_text(row)?],
            });
        }
        self.prepared(&cells, indent)
    }

    /// Rows of cells, each cell with its lines.
    fn prepared(&mut self, cells: &[Vec<String>], indent: usize) -> Option<()> {
        // before columns are counted
        let shown = |cell: &String| self.style.pass(cell).into_owned();
        let cells: Vec<Vec<String>> = cells.iter().map(|row| row.iter().map(shown).collect()).collect();
        let mut rows: Vec<Vec<Vec<String>>> = Vec::with_capacity(cells.len());
        for row in cells {
            let broken: Vec<Vec<String>> =
                row.iter().map(|cell| wrapped(cell).split('\n').map(str::to_owned).collect()).collect();
            // As Python's map(): lines beyond the shortest cell are left out.
            let height = broken.iter().map(Vec::len).min()?;
            rows.push((0..height).map(|at| broken.iter().map(|cell| cell[at].clone()).collect()).collect());
        }
        let columns = rows.iter().flatten().map(Vec::len).min()?;
        let width = |at: usize| rows.iter().flatten().map(|row| row[at].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let inner = widths.iter().sum::<usize>() + DELIMITER.len() * columns.saturating_sub(1);
        let rule = "-".repeat(PREFIX.len() + SUFFIX.len() + inner);
        self.line(indent, self.palette.light_gray, &rule, "");
        for row in rows {
            for line in row {
                let cells: Vec<String> = line.iter().zip(&widths).map(|(cell, width)| centered(cell, *width)).collect();
                let line = format!("{PREFIX}{}{SUFFIX}", cells.join(DELIMITER));
                self.line(indent, self.palette.white, &line, "");
            }
            self.line(indent, self.palette.light_gray, &rule, "");
        }
        Some(())
    }
}

/// The kind of a Python value, by which rows are distinguished.
fn kind(value: &Value) -> u8 {
    match value {
        Value::Nil => 0,
        Value::Boolean(_) => 1,
        Value::Integer(_) => 2,
        Value::F32(_) | Value::F64(_) => 3,
        // Bytes have been converted to text before.
        Value::String(_) | Value::Binary(_) | Value::Ext(..) => 4,
        Value::Array(_) => 5,
        Value::Map(_) => 6,
    }
}

/// `str(value)` with bytes decoded; `None` for bytes that are not text.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(_) | Value::Binary(_) | Value::Ext(..) => own_text(value),
        _ => Some(pyrepr::str(value)),
    }
}

/// Text, or bytes that are text.
fn own_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => text.as_str().map(str::to_owned),
        Value::Binary(data) | Value::Ext(_, data) => std::str::from_utf8(data).ok().map(str::to_owned),
        _ => None,
    }
}

/// Joins words and starts a new line when a line gets too long.
fn wrapped(text: &str) -> String {
    let mut words = text.split(' ');
    let mut out = words.next().unwrap_or_default().to_owned();
    for word in words {
        let columns = |text: &str| text.chars().count();
        let line = out.rsplit('\n').next().unwrap_or_default();
        let is_long = columns(line) + columns(word.split('\n').next().unwrap_or_default()) >= WIDTH;
        out.push(if is_long { '\n' } else { ' ' });
        out.push_str(word);
    }
    out
}

/// Python's `str.center`.
fn centered(text: &str, width: usize) -> String {
    let margin = width.saturating_sub(text.chars().count());
    let left = margin / 2 + (margin & width & 1);
    format!("{}{text}{}", " ".repeat(left), " ".repeat(margin - left))
}

/// A key as a heading: Python's `key.replace("_", " ").title()`.
fn title(key: &str) -> String {
    let mut out = String::with_capacity(key.len());
    let mut in_word = false;
    for c in key.chars().map(|c| if c == '_' { ' ' } else { c }) {
        if in_word {
            out.extend(c.to_lowercase());
        } else {
            let mut upper = c.to_uppercase();
            out.extend(upper.next());
            out.extend(upper.flat_map(char::to_lowercase));
        }
        in_word = c.is_lowercase() || c.is_uppercase();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings() {
        for (key, expect) in
            [("last_move", "Last Move"), ("it's", "It'S"), ("ŽLUŤ 2x", "Žluť 2X"), ("straße", "Straße"), ("ßx", "Ssx")]
        {
            assert_eq!(title(key), expect);
        }
    }

    #[test]
    fn cells_are_centered_as_pythons() {
        for (text, width, expect) in [("a", 4, " a  "), ("a", 5, "  a  "), ("ab", 5, "  ab "), ("abc", 2, "abc")] {
            assert_eq!(centered(text, width), expect);
        }
    }
}
