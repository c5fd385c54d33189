//! `slsutil.banner`: a block of comments for the top of a file, with its text wrapped as Python's `textwrap` does.

use super::Answer;
use super::call::Call;
use crate::data::CallError;
use crate::value::Value;

const TITLE: &str = "THIS FILE IS MANAGED BY SALT - DO NOT EDIT";
const TEXT: &str = "The contents of this file are managed by Salt. Any changes to this file may be overwritten \
    automatically and without warning.";
/// Upper bound on the width: a line of a file.
const MAX_WIDTH: i128 = 10_000;

pub(super) const PARAMETERS: &str = "width? commentchar? borderchar? blockstart? blockend? title? text? newline?";

pub(super) fn banner(call: &Call<'_>) -> Answer {
    let width = match call.given("width") {
        None => 72,
        Some(Value::Int(width)) if *width <= MAX_WIDTH => usize::try_from(*width).unwrap_or(0),
        Some(Value::Int(_)) => return Err(CallError::python(format!("the width is more than {MAX_WIDTH}"))),
        Some(other) => {
            let name = other.type_name();
            return Err(CallError::python(format!("unsupported operand type(s) for -: '{name}' and 'int'")));
        }
    };
    let (comment, border) = (call.text("commentchar", "#"), call.text("borderchar", "#"));
    let (title, text) = (call.text("title", TITLE), call.text("text", TEXT));
    let length = |text: &str| text.chars().count();
    let (left, right) = (comment.trim_end(), comment.trim());
    let Some(inner) = width.checked_sub(length(left) + length(right) + 2).filter(|inner| *inner > 0) else {
        return Err(CallError::refused("Width is too small to render banner"));
    };
    let line = border.chars().take(1).collect::<String>().repeat(width - length(left) - length(right));
    let line = format!("{comment}{line}{right}");
    let spacer = format!("{comment}{}{comment}", " ".repeat(width.saturating_sub(length(&comment) * 2)));
    let mut block = Vec::new();
    block.extend(call.given("blockstart").map(crate::data::text).transpose()?);
    block.extend([line.clone(), spacer.clone()]);
    for words in wrap(&title, inner) {
        let pad = inner - length(&words);
        // As Python's `str.center` shares what is left over.
        let before = pad / 2 + (pad & inner & 1);
        block.push(format!("{left} {}{words}{} {right}", " ".repeat(before), " ".repeat(pad - before)));
    }
    block.push(spacer);
    for words in wrap(&text, inner) {
        block.push(format!("{left} {words}{} {right}", " ".repeat(inner - length(&words))));
    }
    block.push(line);
    block.extend(call.given("blockend").map(crate::data::text).transpose()?);
    let end = if call.flag("newline", false) { "\n" } else { "" };
    Ok((block.join("\n") + end).into())
}

/// Lines of at most `width` characters, which is more than 0.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut chunks: std::collections::VecDeque<Vec<char>> = chunks(text).into();
    let is_blank = |chunk: &Vec<char>| chunk.iter().all(|c| *c == ' ');
    let mut lines: Vec<String> = Vec::new();
    while !chunks.is_empty() {
        if !lines.is_empty() && chunks.front().is_some_and(is_blank) {
            chunks.pop_front();
        }
        let (mut line, mut length): (Vec<Vec<char>>, usize) = (Vec::new(), 0);
        while let Some(chunk) = chunks.pop_front_if(|chunk| length + chunk.len() <= width) {
            length += chunk.len();
            line.push(chunk);
        }
        // A word that no line holds is cut, after a hyphen where there is one.
        if let Some(chunk) = chunks.front_mut().filter(|chunk| chunk.len() > width) {
            let left = width - length;
            let hyphen = chunk[..left].iter().rposition(|c| *c == '-').filter(|at| *at > 0);
            let hyphen = hyphen.filter(|at| chunk[..*at].iter().any(|c| *c != '-'));
            let rest = chunk.split_off(hyphen.map_or(left, |at| at + 1));
            line.push(std::mem::replace(chunk, rest));
        }
        if line.last().is_some_and(is_blank) {
            line.pop();
        }
        if !line.is_empty() {
            lines.push(line.concat().into_iter().collect());
        }
    }
    lines
}

/// Words, the blanks between them, and the parts of words that end with a hyphen.
fn chunks(text: &str) -> Vec<Vec<char>> {
    let mut plain: Vec<char> = Vec::new();
    for c in text.chars() {
        match c {
            // Tabs are blanks up to the next eighth column.
            '\t' => plain.extend(std::iter::repeat_n(' ', 8 - plain.len() % 8)),
            '\n' | '\r' | '\u{b}' | '\u{c}' => plain.push(' '),
            other => plain.push(other),
        }
    }
    let mut chunks: Vec<Vec<char>> = Vec::new();
    let word = |at: usize| plain.get(at).is_some_and(|c| c.is_alphanumeric() || *c == '_');
    let letter = |at: usize| word(at) && plain.get(at).is_some_and(|c| !c.is_numeric());
    for (at, c) in plain.iter().enumerate() {
        let starts = at == 0 || {
            let before = plain[at - 1];
            let after_hyphen = at >= 3 && before == '-' && letter(at - 2) && word(at - 3) && word(at);
            (before == ' ') != (*c == ' ') || after_hyphen && (1..).take_while(|n| word(at + n)).any(|n| letter(at + n))
        };
        match chunks.last_mut() {
            Some(chunk) if !starts => chunk.push(*c),
            _ => chunks.push(vec![*c]),
        }
    }
    chunks
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By Python 3.11's `textwrap.wrap`.
    #[test]
    fn lines_are_pythons() {
        for (text, width, expected) in [
            ("a b  c", 3, &["a b", "c"][..]),
            ("well-known words", 6, &["well-", "known", "words"]),
            ("one-1x two", 6, &["one-1x", "two"]),
            ("abcdefghij k", 4, &["abcd", "efgh", "ij k"]),
            ("ab-cdefghijk", 6, &["ab-cde", "fghijk"]),
            ("x\ty", 20, &["x       y"]),
            ("", 5, &[]),
            ("  lead", 10, &["  lead"]),
        ] {
            assert_eq!(wrap(text, width), expected, "{text:?}");
        }
    }
}
