//! `wordwrap`: Python's `textwrap.wrap`, line by line.

use super::super::error::{JinjaError, Res};
use super::super::interp::{Interp, Passed, check};
use super::super::ops;
use crate::value::Value;

pub(super) const NAMES: [&str; 1] = ["wordwrap"];

/// How lines are broken.
struct Wrap {
    width: usize,
    long_words: bool,
    hyphens: bool,
}

pub(super) fn apply(interp: &mut Interp, value: &Value, passed: &Passed) -> Res<Value> {
    check(value)?;
    passed.at_most(&["width", "break_long_words", "wrapstring", "break_on_hyphens"], "do_wordwrap")?;
    let Some(text) = value.as_str() else {
        return Err(JinjaError::python(format!("'{}' object has no attribute 'splitlines'", value.type_name())));
    };
    let width = match passed.get(0, "width") {
        None => 79,
        Some(width) => ops::integer(&width).ok_or_else(|| {
            JinjaError::python(format!("'<=' not supported between instances of '{}' and 'int'", width.type_name()))
        })?,
    };
    let flag = |at, name| passed.get(at, name).is_none_or(|v| v.truthy());
    let end = match passed.get(2, "wrapstring") {
        None | Some(Value::None) => "\n".into(),
        Some(end) => interp.text(&end)?,
    };
    // Only a text that is not empty is wrapped.
    if width <= 0 && !text.is_empty() {
        return Err(JinjaError::python(format!("invalid width {width} (must be > 0)")));
    }
    let wrap = Wrap {
        width: usize::try_from(width).unwrap_or(0),
        long_words: flag(1, "break_long_words"),
        hyphens: flag(3, "break_on_hyphens"),
    };
    interp.take_steps(text.len())?;
    // Each character is copied a few times on the way.
    interp.charge(text.len().saturating_mul(8))?;
    let mut lines = Vec::new();
    for line in lines_of(text) {
        let wrapped = wrap.line(line);
        match wrapped.is_empty() {
            true => lines.push(String::new()),
            false => lines.extend(wrapped),
        }
    }
    interp.charge(end.len().saturating_mul(lines.len()))?;
    Ok(lines.join(&*end).into())
}

/// Python's `splitlines`.
fn lines_of(text: &str) -> Vec<&str> {
    let is_end =
        |c: char| matches!(c, '\n' | '\r' | '\x0b' | '\x0c' | '\x1c'..='\x1e' | '\u{85}' | '\u{2028}' | '\u{2029}');
    let mut lines = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let Some((at, c)) = rest.char_indices().find(|(_, c)| is_end(*c)) else {
            lines.push(rest);
            break;
        };
        lines.push(&rest[..at]);
        let after = &rest[at + c.len_utf8()..];
        rest = if c == '\r' { after.strip_prefix('\n').unwrap_or(after) } else { after };
    }
    lines
}

/// The white space that `textwrap` knows.
fn is_space(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\x0b' | '\x0c' | '\r' | ' ')
}

/// The expression `\w`.
fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

fn is_letter(c: char) -> bool {
    c == '_' || c.is_alphabetic()
}

/// What may stand before a dash of two or more.
fn is_before_dash(c: char) -> bool {
    is_word(c) || "!\"'&.,?".contains(c)
}

impl Wrap {
    fn line(&self, line: &str) -> Vec<String> {
        let text: Vec<char> = line.chars().collect();
        let mut chunks: Vec<&[char]> = if self.hyphens { chunks(&text) } else { words(&text) };
        chunks.reverse();
        let is_blank = |chunk: &[char]| chunk.iter().all(|c| c.is_whitespace());
        let mut lines: Vec<String> = Vec::new();
        while !chunks.is_empty() {
            if !lines.is_empty() && chunks.last().is_some_and(|chunk| is_blank(chunk)) {
                chunks.pop();
            }
            let mut current: Vec<&[char]> = Vec::new();
            let mut length = 0;
            while let Some(chunk) = chunks.last().copied().filter(|chunk| length + chunk.len() <= self.width) {
                length += chunk.len();
                current.push(chunk);
                chunks.pop();
            }
            if let Some(long) = chunks.last().copied().filter(|chunk| chunk.len() > self.width) {
                if self.long_words {
                    let (head, tail) = long.split_at(self.end(long, self.width - length));
                    current.push(head);
                    if let Some(last) = chunks.last_mut() {
                        *last = tail;
                    }
                } else if current.is_empty() {
                    current.push(long);
                    chunks.pop();
                }
            }
            if current.last().is_some_and(|chunk| is_blank(chunk)) {
                current.pop();
            }
            if !current.is_empty() {
                lines.push(current.concat().into_iter().collect());
            }
        }
        lines
    }

    /// Where a word is cut that is longer than a line: after its last hyphen, or where the line ends.
    fn end(&self, word: &[char], left: usize) -> usize {
        let hyphen = word[..left].iter().rposition(|c| *c == '-').filter(|at| word[..*at].iter().any(|c| *c != '-'));
        hyphen.filter(|_| self.hyphens).map_or(left, |at| at + 1)
    }
}

/// Words, and the white space between them.
fn words(text: &[char]) -> Vec<&[char]> {
    text.chunk_by(|a, b| is_space(*a) == is_space(*b)).collect()
}

/// As [`words`], with words broken after hyphens and around dashes.
fn chunks(text: &[char]) -> Vec<&[char]> {
    // Where each run of hyphens ends.
    let mut run_end: Vec<usize> = (0..text.len()).collect();
    for at in (0..text.len()).rev() {
        if text[at] == '-' {
            run_end[at] = if text.get(at + 1) == Some(&'-') { run_end[at + 1] } else { at + 1 };
        }
    }
    let is = |at: usize, test: fn(char) -> bool| text.get(at).is_some_and(|c| test(*c));
    let is_hyphen = |at: usize| text.get(at) == Some(&'-');
    // A dash after a word and before one.
    let is_dash = |at: usize| {
        at > 0 && is(at - 1, is_before_dash) && is_hyphen(at) && run_end[at] >= at + 2 && is(run_end[at], is_word)
    };
    // A hyphen between two parts of a word.
    let breaks = |at: usize| {
        let before = at >= 2 && is(at - 1, is_letter) && is(at - 2, is_letter)
            || at >= 3 && is(at - 1, is_letter) && is_hyphen(at - 2) && is(at - 3, is_letter);
        let after = is(at + 1, is_letter) && (is(at + 2, is_letter) || is_hyphen(at + 2) && is(at + 3, is_letter));
        is_hyphen(at) && before && after
    };
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let mut end = at + 1;
        if is(at, is_space) {
            while is(end, is_space) {
                end += 1;
            }
        } else if is_dash(at) {
            end = run_end[at];
        } else {
            loop {
                if breaks(end) {
                    end += 1;
                    break;
                }
                if end == text.len() || is(end, is_space) || is_dash(end) {
                    break;
                }
                end += 1;
            }
        }
        found.push(&text[at..end]);
        at = end;
    }
    found
}
