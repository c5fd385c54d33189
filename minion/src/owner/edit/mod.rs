//! Changes one entry in the text of a configuration file and leaves every other line as it is.
//!
//! It knows maps in block style, as owners write them, and writes a map in flow style anew on its line. What it makes is read again and
//! compared by who calls it, so that a file in another style is refused and never damaged.

use super::value::{at, flow};
use brine_protocol::value::{Value, ValueExt as _};
use brine_sandbox::yaml_text;

/// What some editors write at the beginning of a file: the mark of UTF-8.
const MARK: char = '\u{feff}';
/// Columns by which a level is indented where the file does not show its own.
const STEP: usize = 2;

/// The text with an entry of the map `old` made what it is in `new`, and as few lines changed as can be. None if it cannot be placed.
pub(super) fn edit(text: &str, path: &[String], old: &Value, new: &Value) -> Option<String> {
    let has_mark = text.starts_with(MARK);
    let (text, ending) = unix(text)?;
    let edited = match at(new, path) {
        Some(value) => change(&text, path, at(old, path), value),
        None => remove(&text, path),
    };
    let edited = edited.or_else(|| in_flow(&text, path, new))?;
    let edited = if ending == "\n" { edited } else { edited.replace('\n', ending) };
    Some(if has_mark { format!("{MARK}{edited}") } else { edited })
}

/// The text with the line ends of Unix, and the line end that it has. None if it has several.
fn unix(text: &str) -> Option<(String, &'static str)> {
    let all = text.matches('\n').count();
    let text = text.strip_prefix(MARK).unwrap_or(text);
    match text.matches("\r\n").count() {
        0 if !text.contains('\r') => Some((text.to_owned(), "\n")),
        many if many == all && many == text.matches('\r').count() => Some((text.replace("\r\n", "\n"), "\r\n")),
        _ => None,
    }
}

/// Writes the innermost map in flow style that the path goes through anew.
fn in_flow(text: &str, path: &[String], new: &Value) -> Option<String> {
    let inside = (1..path.len()).rev().find_map(|depth| {
        let (lines, line, _) = find(text, &path[..depth])?;
        key_of(&lines[line])?.1.starts_with('{').then_some(depth)
    });
    let path = &path[..inside?];
    match at(new, path) {
        Some(value) => set(text, path, value),
        None => remove(text, path),
    }
}

/// The text with the value at this path changed.
fn change(text: &str, path: &[String], old: Option<&Value>, new: &Value) -> Option<String> {
    let inner = match (old, new) {
        (Some(Value::Map(old)), Value::Map(new)) => each(text, path, old, new),
        (Some(Value::Array(old)), Value::Array(new)) => items(text, path, old, new),
        _ => None,
    };
    inner.or_else(|| set(text, path, new))
}

/// Changes the entries of a map in block style, one by one.
fn each(text: &str, path: &[String], old: &[(Value, Value)], new: &[(Value, Value)]) -> Option<String> {
    let at = |key: &Value| Some([path, &[key.text()?.to_owned()]].concat());
    let of = |all: &[(Value, Value)], key: &Value| all.iter().position(|(known, _)| known == key);
    let (lines, key, block) = find(text, path)?;
    let within = block.within(&lines, key)?;
    within.at_indent(&lines).next()?;
    let mut text = text.to_owned();
    for (key, value) in new {
        let before = of(old, key).map(|at| &old[at].1);
        if before != Some(value) {
            text = change(&text, &at(key)?, before, value)?;
        }
    }
    for (key, _) in old.iter().filter(|(key, _)| of(new, key).is_none()) {
        text = remove(&text, &at(key)?)?;
    }
    Some(text)
}

/// Adds and takes away lines of a list in block style.
fn items(text: &str, path: &[String], old: &[Value], new: &[Value]) -> Option<String> {
    let (mut lines, key, block) = find(text, path)?;
    if !key_of(&lines[key]).is_some_and(|(_, rest)| rest.is_empty() || rest.starts_with('#')) {
        return None;
    }
    let end = block.end_of(&lines, key);
    let places: Vec<usize> = (key + 1..end).filter(|at| is_content(&lines[*at])).collect();
    let column = indent(&lines[*places.first()?]);
    let item = |line: &str| {
        let item = line[column.min(indent(line))..].strip_prefix("- ").filter(|_| indent(line) == column)?;
        brine_protocol::config::yaml::load(item).ok()
    };
    let said: Option<Vec<Value>> = places.iter().map(|at| item(&lines[*at])).collect();
    if said.as_deref() != Some(old) {
        return None;
    }
    let more = new.iter().filter(|item| !old.contains(item));
    let more: Vec<String> = more.map(|item| format!("{}- {}", " ".repeat(column), flow(item))).collect();
    lines.splice(end..end, more);
    for (at, _) in places.iter().zip(old).rev().filter(|(_, item)| !new.contains(item)) {
        lines.remove(*at);
    }
    Some(joined(&lines))
}

/// The lines, the line of the last key of a path, and the map that it is in.
fn find(text: &str, path: &[String]) -> Option<(Vec<String>, usize, Block)> {
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut block = Block::root(&lines);
    let (last, way) = path.split_last()?;
    for key in way {
        block = block.within(&lines, block.find(&lines, key)?)?;
    }
    let at = block.find(&lines, last)?;
    Some((lines, at, block))
}

/// The text with the entry at this path set to a value, on one line. None if it cannot be placed.
fn set(text: &str, path: &[String], value: &Value) -> Option<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut block = Block::root(&lines);
    for (nth, key) in path.iter().enumerate() {
        let last = nth + 1 == path.len();
        match block.find(&lines, key) {
            Some(at) if last => {
                let end = block.end_of(&lines, at);
                let mut entry = format!("{}{}: {}", " ".repeat(block.indent), yaml_text(key), flow(value));
                let mut kept = Vec::new();
                for (nth, line) in lines[at..end].iter().enumerate() {
                    match comment_of(line) {
                        Some(comment) if nth == 0 => entry.push_str(&format!("   {comment}")),
                        Some(_) if is_comment(line) => kept.push(line.clone()),
                        Some(comment) => kept.push(format!("{}{comment}", " ".repeat(indent(line)))),
                        None => {}
                    }
                }
                lines.splice(at..end, kept.into_iter().chain([entry]));
                return Some(joined(&lines));
            }
            Some(at) => block = block.within(&lines, at)?,
            None => {
                let mut new = Vec::new();
                for (depth, key) in path[nth..].iter().enumerate() {
                    let indent = " ".repeat(block.indent + depth * STEP);
                    let is_last = nth + depth + 1 == path.len();
                    let value = if is_last { format!(" {}", flow(value)) } else { String::new() };
                    new.push(format!("{indent}{}:{value}", yaml_text(key)));
                }
                lines.splice(block.end..block.end, new);
                return Some(joined(&lines));
            }
        }
    }
    None
}

/// The text without the entry at this path, and without the maps that would be empty then. None if it is not there.
fn remove(text: &str, path: &[String]) -> Option<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut block = Block::root(&lines);
    // The outermost line that goes: of a map in which nothing else is.
    let mut from: Option<(usize, usize)> = None;
    // The line of the entry itself.
    let mut own = None;
    for (nth, key) in path.iter().enumerate() {
        let at = block.find(&lines, key)?;
        let end = block.end_of(&lines, at);
        if block.keys(&lines) > 1 || from.is_none() {
            from = Some((at, end));
        }
        own = Some(at);
        if nth + 1 < path.len() {
            block = block.within(&lines, at)?;
        }
    }
    let ((at, end), own) = (from?, own?);
    // A comment at the end of a line that says more than this entry is not about it alone.
    let kept = lines[at..end].iter().enumerate().filter_map(|(nth, line)| match comment_of(line) {
        Some(_) if is_comment(line) => Some(line.clone()),
        Some(comment) if at + nth < own => Some(format!("{}{comment}", " ".repeat(indent(line)))),
        _ => None,
    });
    let kept: Vec<String> = kept.collect();
    lines.splice(at..end, kept);
    Some(joined(&lines))
}

fn joined(lines: &[String]) -> String {
    let mut text = lines.join("\n");
    text.push('\n');
    text
}

/// A map in block style: its lines, without those of comments after it.
#[derive(Debug, Clone, Copy)]
struct Block {
    start: usize,
    end: usize,
    indent: usize,
}

impl Block {
    fn root(lines: &[String]) -> Self {
        let is_start = |line: &String| line.strip_prefix("---").is_some_and(|rest| !is_content(rest));
        let start = lines.iter().position(is_start).map_or(0, |at| at + 1);
        let content = |at: &usize| is_content(&lines[*at]);
        // After this, a document has nothing.
        let over = lines.iter().position(|line| line.trim_end() == "...").unwrap_or(lines.len());
        let end = (start..over.max(start)).rev().find(content).map_or(start, |at| at + 1);
        Self { start, end: end.max(start), indent: 0 }
    }

    /// The line of a key of this map.
    fn find(&self, lines: &[String], key: &str) -> Option<usize> {
        self.at_indent(lines).find(|at| key_of(&lines[*at]).is_some_and(|(found, _)| found == key))
    }

    fn keys(&self, lines: &[String]) -> usize {
        self.at_indent(lines).count()
    }

    fn at_indent(&self, lines: &[String]) -> impl Iterator<Item = usize> {
        let here = |at: &usize| indent(&lines[*at]) == self.indent && !is_item(&lines[*at]);
        (self.start..self.end).filter(move |at| is_content(&lines[*at]) && here(at))
    }

    /// The line after the entry that begins at this line.
    fn end_of(&self, lines: &[String], at: usize) -> usize {
        // Items of a list may be no deeper than its key.
        let next = |line: &String| is_content(line) && indent(line) <= self.indent && !is_item(line);
        let next = (at + 1..self.end).find(|at| next(&lines[*at]));
        let end = next.unwrap_or(self.end);
        // Comments and blank lines before the next entry are about that.
        (at..end).rev().find(|last| is_content(&lines[*last])).map_or(at + 1, |last| last + 1)
    }

    /// The map that is the value of the key in this line. None if it is not in block style.
    fn within(&self, lines: &[String], at: usize) -> Option<Self> {
        let (_, rest) = key_of(&lines[at])?;
        if !rest.is_empty() && !rest.starts_with('#') {
            return None;
        }
        let end = self.end_of(lines, at);
        let first = (at + 1..end).find(|line| is_content(&lines[*line]));
        let deeper = first.map_or(self.indent + STEP, |first| indent(&lines[first]));
        (deeper > self.indent).then_some(Self { start: at + 1, end, indent: deeper })
    }
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with('#')
}

fn is_item(line: &str) -> bool {
    line.trim_start().strip_prefix('-').is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']))
}

/// The comment at the end of a line, or the line if it is one.
fn comment_of(line: &str) -> Option<&str> {
    let (mut quote, mut escaped, mut before) = (None, false, ' ');
    let mut all = line.char_indices().peekable();
    while let Some((at, c)) = all.next() {
        match quote {
            // Two of them are one in the text.
            Some('\'') if c == '\'' && all.peek().is_some_and(|(_, next)| *next == '\'') => drop(all.next()),
            Some('"') if escaped => escaped = false,
            Some('"') if c == '\\' => escaped = true,
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if c == '#' && before.is_whitespace() => return Some(&line[at..]),
            None if matches!(c, '"' | '\'') && (before.is_whitespace() || matches!(before, '[' | '{' | ',')) => {
                quote = Some(c);
            }
            None => {}
        }
        before = c;
    }
    None
}

fn is_content(line: &str) -> bool {
    !line.trim().is_empty() && !is_comment(line)
}

/// The key of a line, and what comes after it. None for a key in quotes that has more to it than its text.
fn key_of(line: &str) -> Option<(String, &str)> {
    let line = line.trim();
    let (key, rest) = match line.bytes().next()? {
        quote @ (b'"' | b'\'') => {
            let end = line[1..].find(char::from(quote))? + 1;
            let rest = line[end + 1..].trim_start().strip_prefix(':')?;
            (line[1..end].to_owned(), rest)
        }
        _ => {
            let is_end = |at: &usize| line[*at + 1..].is_empty() || line[*at + 1..].starts_with([' ', '\t']);
            let end = line.match_indices(':').map(|(at, _)| at).find(is_end)?;
            (line[..end].trim_end().to_owned(), &line[end + 1..])
        }
    };
    Some((key, rest.trim()))
}

#[cfg(test)]
mod tests;
