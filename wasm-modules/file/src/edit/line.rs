//! `file.line` on a text: one line, by its content and its neighbours.

use brine_render::regex::{Flags, Regex, RegexError};

use super::lines;
use super::pattern::{about, backtracks};

/// A line and where it belongs.
pub(crate) struct Line<'a> {
    pub mode: Mode,
    pub content: &'a str,
    /// Expressions, or parts of lines.
    pub matching: Option<&'a str>,
    pub before: Option<&'a str>,
    pub after: Option<&'a str>,
    pub location: Option<&'a str>,
    /// Whether the line is indented as its neighbour.
    pub indent: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Insert,
    Ensure,
    Delete,
    Replace,
}

impl Mode {
    /// A mode by its name, in small letters.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "insert" => Self::Insert,
            "ensure" => Self::Ensure,
            "delete" => Self::Delete,
            "replace" => Self::Replace,
            _ => return None,
        })
    }
}

impl Line<'_> {
    /// The lines of the new text.
    pub(crate) fn apply(&self, text: &str) -> Result<Vec<String>, String> {
        let text = lines::universal(text);
        let mut body: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
        if body.last().is_some_and(|last| last.ends_with('\n')) {
            body.push(String::new());
        }
        // Without neighbours, the content is what is looked for.
        let matching = self.matching.filter(|text| !text.is_empty());
        let matching = matching.or((self.before.is_none() && self.after.is_none()).then_some(self.content));
        let found = Found {
            matching: first(&body, matching)?,
            before: first(&body, self.before)?,
            after: first(&body, self.after)?,
        };
        if !(body.is_empty() && matches!(self.mode, Mode::Delete | Mode::Replace)) {
            self.change(&mut body, &found)?;
        }
        end_lines(&mut body);
        Ok(body)
    }

    fn change(&self, body: &mut Vec<String>, found: &Found) -> Result<(), String> {
        match self.mode {
            Mode::Delete => {
                if let Some((at, _)) = found.matching {
                    let gone = body[at].clone();
                    body.retain(|line| *line != gone);
                }
            }
            Mode::Replace => {
                if let Some((at, _)) = found.matching {
                    body[at] = self.like(&body[at]);
                }
            }
            Mode::Insert => self.insert(body, found)?,
            Mode::Ensure => self.ensure(body, found)?,
        }
        Ok(())
    }

    fn insert(&self, body: &mut Vec<String>, found: &Found) -> Result<(), String> {
        if self.before.is_none() && self.after.is_none() && self.location.is_none() {
            return Err("On insert either \"location\" or \"before/after\" conditions are required.".into());
        }
        match (self.location.filter(|location| !location.is_empty()), found.before, found.after) {
            (Some("end"), ..) => {
                let line = body.last().map_or_else(|| self.content.to_owned(), |last| self.like(last));
                body.push(line);
            }
            (Some("start"), ..) => {
                let line =
                    body.first().map_or_else(|| format!("{}\n", self.content), |first| ended(first, self.content));
                body.insert(0, line);
            }
            (Some(_), ..) => {}
            (None, Some(before), Some(after)) => {
                only("before", before)?;
                only("after", after)?;
                let line = self.like(&body[before.0]);
                body.insert(before.0, line);
            }
            (None, None, Some(after)) => {
                only("after", after)?;
                if !body.get(after.0 + 1).is_some_and(|next| self.is(next)) {
                    let line = self.like(&body[after.0]);
                    body.insert(after.0 + 1, line);
                }
            }
            (None, Some(before), None) => {
                only("before", before)?;
                // As in Salt, the last line is before the first one.
                let previous = before.0.checked_sub(1).unwrap_or(body.len() - 1);
                if !self.is(&body[previous]) {
                    let line = self.like(&body[before.0]);
                    body.insert(before.0, line);
                }
            }
            (None, None, None) => return Err("Neither before or after was found in file".into()),
        }
        Ok(())
    }

    fn ensure(&self, body: &mut Vec<String>, found: &Found) -> Result<(), String> {
        match (found.before, found.after) {
            (Some(before), Some(after)) => {
                only("after", after)?;
                only("before", before)?;
                if body.iter().any(|line| line.trim_start() == self.content) {
                    return Ok(());
                }
                let line = self.like(&body[after.0]);
                if after.0 + 1 == before.0 {
                    body.insert(before.0, line);
                } else if after.0 + 2 == before.0 {
                    body[after.0 + 1] = line;
                } else {
                    return Err("Found more than one line between boundaries \"before\" and \"after\".".into());
                }
            }
            (Some(before), None) => {
                only("before", before)?;
                if before.0 == 0 || !self.is(&body[before.0 - 1]) {
                    let previous = before.0.checked_sub(1).unwrap_or(body.len() - 1);
                    let line = self.like(&body[previous]);
                    body.insert(before.0, line);
                }
            }
            (None, Some(after)) => {
                only("after", after)?;
                if !body.get(after.0 + 1).is_some_and(|next| self.is(next)) {
                    let line = self.like(&body[after.0]);
                    body.insert(after.0 + 1, line);
                }
            }
            (None, None) => {
                return Err(
                    "Wrong conditions? Unable to ensure line without knowing where to put it before and/or after."
                        .into(),
                );
            }
        }
        Ok(())
    }

    /// Whether a line is the content.
    fn is(&self, line: &str) -> bool {
        line.trim_end_matches(['\r', '\n']) == self.content.trim_end_matches(['\r', '\n'])
    }

    /// The content, indented as a line if that is wanted.
    fn like(&self, line: &str) -> String {
        if !self.indent {
            return self.content.to_owned();
        }
        let indent = &line[..line.len() - line.trim_start_matches([' ', '\t']).len()];
        format!("{indent}{}", self.content.trim_start())
    }
}

/// Of each expression, the first line that it matches, and how many.
struct Found {
    matching: Option<(usize, usize)>,
    before: Option<(usize, usize)>,
    after: Option<(usize, usize)>,
}

fn first(body: &[String], pattern: Option<&str>) -> Result<Option<(usize, usize)>, String> {
    let Some(pattern) = pattern.filter(|pattern| !pattern.is_empty() && !body.is_empty()) else { return Ok(None) };
    let length = body.iter().map(String::len).max().unwrap_or_default();
    let flags = Flags { dot_all: true, ..Flags::default() };
    let regex = Regex::new(pattern, flags, backtracks(length)).map_err(|error| about(error, pattern))?;
    let mut found: Option<(usize, usize)> = None;
    for (at, line) in body.iter().enumerate() {
        let is = regex.find(line).map_err(|error: RegexError| about(error, pattern))?.is_some();
        if is || line.contains(pattern) {
            found = Some(found.map_or((at, 1), |(first, count)| (first, count + 1)));
        }
    }
    // Of equal lines, the first.
    Ok(found.map(|(at, count)| (body.iter().position(|line| *line == body[at]).unwrap_or(at), count)))
}

fn only(target: &str, (_, count): (usize, usize)) -> Result<(), String> {
    match count {
        1 => Ok(()),
        _ => Err(format!("Found more than expected occurrences in \"{target}\" expression")),
    }
}

/// The end of a line; empty if it has none.
fn end_of(line: &str) -> &str {
    ["\r\n", "\n", "\r"].into_iter().find(|end| line.ends_with(end)).unwrap_or("")
}

/// A line with the end of another.
fn ended(like: &str, line: &str) -> String {
    let end = end_of(like);
    format!("{}{}", line.trim_end(), if end.is_empty() { "\n" } else { end })
}

/// Gives all lines but the last an end.
fn end_lines(body: &mut Vec<String>) {
    for at in 0..body.len() {
        if end_of(&body[at]).is_empty() && at + 1 < body.len() {
            let neighbour = at.saturating_sub(1).max(usize::from(at < 2));
            body[at] = ended(&body[neighbour], &body[at]);
        }
    }
    if body.last().is_some_and(String::is_empty) {
        body.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(mode: Mode, content: &'static str) -> Line<'static> {
        Line { mode, content, matching: None, before: None, after: None, location: None, indent: true }
    }

    fn applied(line: &Line<'_>, text: &str) -> Result<String, String> {
        line.apply(text).map(|lines| lines.concat())
    }

    /// Recorded from `file.line` of Salt 3008.3.
    #[test]
    fn lines_are_placed_as_salt_does() {
        let text = "[a]\n  x = 1\n  y = 2\n[b]\n";
        let after = || Line { after: Some("x = "), ..line(Mode::Insert, "z = 3") };
        assert_eq!(applied(&after(), text).unwrap(), "[a]\n  x = 1\n  z = 3\n  y = 2\n[b]\n");
        let before = || Line { before: Some("^\\[b"), ..line(Mode::Insert, "z = 3") };
        assert_eq!(applied(&before(), text).unwrap(), "[a]\n  x = 1\n  y = 2\nz = 3\n[b]\n");
        let end = |indent| Line { location: Some("end"), indent, ..line(Mode::Insert, " z") };
        assert_eq!(applied(&end(true), "  a").unwrap(), "  a\n  z");
        // The line after the last end is one too.
        assert_eq!(applied(&end(false), "  a\n").unwrap(), "  a\n\n z");
        assert_eq!(applied(&end(true), "").unwrap(), " z");
        let start = || Line { location: Some("start"), ..line(Mode::Insert, "z") };
        assert_eq!(applied(&start(), "a\n").unwrap(), "z\na\n");
        assert_eq!(applied(&start(), "").unwrap(), "z\n");
        let replace = Line { matching: Some("y ="), ..line(Mode::Replace, "y = 3") };
        assert_eq!(applied(&replace, text).unwrap(), "[a]\n  x = 1\n  y = 3\n[b]\n");
        assert_eq!(applied(&line(Mode::Delete, "x = 1"), text).unwrap(), "[a]\n  y = 2\n[b]\n");
        assert_eq!(applied(&line(Mode::Delete, "nope"), text).unwrap(), text);
        assert_eq!(applied(&line(Mode::Delete, "x"), "").unwrap(), "");
    }

    #[test]
    fn ensured_lines() {
        let text = "a\nb\nc\n";
        let after = |content| Line { after: Some("a"), ..line(Mode::Ensure, content) };
        assert_eq!(applied(&after("b"), text).unwrap(), text);
        assert_eq!(applied(&after("n"), text).unwrap(), "a\nn\nb\nc\n");
        let both = |content| Line { before: Some("c"), ..after(content) };
        assert_eq!(applied(&both("b"), text).unwrap(), text);
        assert_eq!(applied(&both("n"), text).unwrap(), "a\nn\nc\n");
        assert!(applied(&both("n"), "a\nb\nb\nc\n").unwrap_err().starts_with("Found more than one line"));
        let before = |content| Line { before: Some("c"), ..line(Mode::Ensure, content) };
        assert_eq!(applied(&before("b"), text).unwrap(), text);
        assert_eq!(applied(&before("n"), text).unwrap(), "a\nb\nn\nc\n");
        assert!(applied(&after("n"), "a\na\n").unwrap_err().starts_with("Found more than expected"));
        assert!(applied(&after("n"), "x\n").unwrap_err().starts_with("Wrong conditions?"));
        assert!(applied(&line(Mode::Insert, "n"), "x\n").unwrap_err().starts_with("On insert either"));
    }

    #[test]
    fn expressions_may_be_parts_of_lines() {
        let delete = |matching| Line { matching: Some(matching), ..line(Mode::Delete, "") };
        assert_eq!(applied(&delete("b.*d"), "a\nbcd\n").unwrap(), "a\n");
        assert_eq!(applied(&delete("a+b"), "a+b\nc\n").unwrap(), "c\n");
        assert!(applied(&delete("("), "(\n").is_err());
    }
}
