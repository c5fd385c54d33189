//! Changes one entry in the text of a configuration file and leaves every other line as it is.
//!
//! It knows maps in block style, as owners write them. What it makes is read again and compared by who calls it, so that a file in
//! another style is refused and never damaged.

use super::value::flow;
use brine_protocol::value::{Value, ValueExt as _};
use brine_sandbox::yaml_text;

/// Columns by which a level is indented where the file does not show its own.
const STEP: usize = 2;

/// The text with the value at this path changed, and as few lines as can be. None if it cannot be placed.
pub(super) fn change(text: &str, path: &[String], old: Option<&Value>, new: &Value) -> Option<String> {
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
pub(super) fn remove(text: &str, path: &[String]) -> Option<String> {
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
        let start = lines.iter().position(|line| line.trim_end() == "---").map_or(0, |at| at + 1);
        let content = |at: &usize| is_content(&lines[*at]);
        let end = (start..lines.len()).rev().find(content).map_or(start, |at| at + 1);
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
    line.trim_start().starts_with("- ")
}

/// The comment at the end of a line, or the line if it is one.
fn comment_of(line: &str) -> Option<&str> {
    let (mut quote, mut escaped, mut before) = (None, false, ' ');
    for (at, c) in line.char_indices() {
        match quote {
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

/// The key of a line, and what comes after it.
fn key_of(line: &str) -> Option<(String, &str)> {
    let line = line.trim();
    let (key, rest) = match line.bytes().next()? {
        quote @ (b'"' | b'\'') => {
            let end = line[1..].find(char::from(quote))? + 1;
            let rest = line[end + 1..].strip_prefix(':')?;
            (line[1..end].to_owned(), rest)
        }
        _ => {
            let (key, rest) = line.split_once(": ").or_else(|| Some((line.strip_suffix(':')?, "")))?;
            (key.to_owned(), rest)
        }
    };
    Some((key, rest.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_protocol::config::yaml;

    fn path(text: &str) -> Vec<String> {
        text.split('/').map(str::to_owned).collect()
    }

    const FILE: &str = "\
# the host's minion
master: m.example   # where

sandbox:
  # what we let in
  limits: {memory: 64MiB}
  modules:
    # for the load
    cmd:
      process:   # only this
        - /usr/bin/uptime
    \"disk\": {grains: true}

  # after all
user: root
";

    #[test]
    fn an_entry_is_set_and_all_other_lines_stay() {
        let value = yaml::load("{process: [/a]}").unwrap();
        for (at, expect) in [
            ("sandbox/modules/disk", FILE.replace("\"disk\": {grains: true}", "disk: {process: [/a]}")),
            (
                "sandbox/modules/cmd",
                FILE.replace(
                    "    cmd:\n      process:   # only this\n        - /usr/bin/uptime\n",
                    "      # only this\n    cmd: {process: [/a]}\n",
                ),
            ),
            ("sandbox/modules/new", FILE.replace("{grains: true}\n", "{grains: true}\n    new: {process: [/a]}\n")),
            (
                "sandbox/masters/aa:bb/modules/cmd",
                FILE.replace(
                    "{grains: true}\n",
                    "{grains: true}\n  masters:\n    \"aa:bb\":\n      modules:\n        cmd: {process: [/a]}\n",
                ),
            ),
            ("other/x", format!("{FILE}other:\n  x: {{process: [/a]}}\n")),
        ] {
            assert_eq!(set(FILE, &path(at), &value).as_deref(), Some(expect.as_str()), "{at}");
        }
        assert_eq!(set("", &path("a/b"), &value).as_deref(), Some("a:\n  b: {process: [/a]}\n"));
        let inner = "a:\n  b:\n    # why\n    c: 1\n";
        assert_eq!(set(inner, &path("a/b"), &value).as_deref(), Some("a:\n    # why\n  b: {process: [/a]}\n"));
    }

    #[test]
    fn an_entry_is_removed_with_maps_that_would_be_empty() {
        for (at, expect) in [
            ("sandbox/modules/disk", FILE.replace("    \"disk\": {grains: true}\n", "")),
            ("user", FILE.replace("user: root\n", "")),
        ] {
            assert_eq!(remove(FILE, &path(at)).as_deref(), Some(expect.as_str()), "{at}");
        }
        assert_eq!(
            remove("x: 1\na:\n  b:\n    # why\n    c: 1\n", &path("a/b/c")).as_deref(),
            Some("x: 1\n    # why\n")
        );
        // Comments of the lines around it stay, and the one on its own line goes with it.
        assert_eq!(
            remove("x: 1\na:   # all\n  # of b\n  b: # more\n    c: 1   # this\n", &path("a/b/c")).as_deref(),
            Some("x: 1\n# all\n  # of b\n  # more\n")
        );
        assert_eq!(remove(FILE, &path("sandbox/nothing")), None);
    }

    /// Changes the value at a path, and checks that it is read as what was meant.
    fn changed(text: &str, at: &str, new: &str) -> String {
        let (old, new) = (yaml::load(text).unwrap(), yaml::load(new).unwrap());
        let path = path(at);
        let text = change(text, &path, super::super::value::at(&old, &path), &new).unwrap();
        let mut expect = old;
        super::super::value::put(&mut expect, &path, Some(new)).unwrap();
        assert!(super::super::value::same(&yaml::load(&text).unwrap(), &expect), "{text}");
        text
    }

    #[test]
    fn as_few_lines_as_can_be_are_changed() {
        for (from, new, to) in [
            // A list keeps its style and its comments.
            (
                "a:\n  m:\n    process:   # p\n      - /x   # first\n      # before\n      - /y\n\n    grains: true\n",
                "{process: [/x, /y, /z], grains: true}",
                "a:\n  m:\n    process:   # p\n      - /x   # first\n      # before\n      - /y\n      - /z\n\n    grains: true\n",
            ),
            ("a:\n  m:\n    process:\n    - /x\n    - /y\n", "{process: [/y]}", "a:\n  m:\n    process:\n    - /y\n"),
            ("a:\n  m:\n    process: [/x]   # p\n", "{process: [/x, /y]}", "a:\n  m:\n    process: [/x, /y]   # p\n"),
            (
                "a:\n  m: {process: [\"/x # y\"]}   # it's\n",
                "{process: [\"/x # y\", /y]}",
                "a:\n  m: {process: [\"/x # y\", /y]}   # it's\n",
            ),
            (
                "a:\n  m:\n    # c\n    changes:\n      /etc/x: ro   # look\n",
                "{changes: {/etc/x: rw, /etc/y: ro}, grains: true}",
                "a:\n  m:\n    # c\n    changes:\n      /etc/x: rw   # look\n      /etc/y: ro\n    grains: true\n",
            ),
            (
                "a:\n  m:\n    grains: true\n    process:\n      - /x\n",
                "{grains: true}",
                "a:\n  m:\n    grains: true\n",
            ),
        ] {
            assert_eq!(changed(from, "a/m", new), to);
        }
    }

    #[test]
    fn a_map_in_flow_style_is_not_entered() {
        let value = Value::from(true);
        assert_eq!(set("sandbox: {modules: {}}\n", &path("sandbox/modules/x"), &value), None);
    }
}
