//! Python's regular expressions, with a bound on backtracking.

use brine_patterns::{Dialect, Flags, rewrite};
use fancy_regex::{Regex, RegexBuilder};

use super::error::{JinjaError, Res};
use crate::value::Value;

const MAX_BACKTRACKS: usize = 200_000;

/// Compiles an expression. `at_start`: as `re.match`.
pub(super) fn compile(pattern: &str, ignore_case: bool, multiline: bool, at_start: bool) -> Res<Regex> {
    let flags = Flags { multiline, ..Flags::default() };
    let rewritten = rewrite(pattern, flags, Dialect::Unicode).map_err(JinjaError::python)?;
    let mut text = rewritten.pattern;
    if ignore_case {
        text = format!("(?i:{text})");
    }
    if at_start {
        text = format!(r"\A(?:{text})");
    }
    let built = RegexBuilder::new(&text).backtrack_limit(MAX_BACKTRACKS).delegate_size_limit(1 << 20).build();
    built.map_err(|error| JinjaError::python(error.to_string()))
}

/// The groups of the first match, as `regex_search` gives them.
pub(super) fn groups(regex: &Regex, text: &str) -> Res<Value> {
    let found = regex.captures(text).map_err(|error| JinjaError::limit(error.to_string()))?;
    let Some(found) = found else { return Ok(Value::None) };
    let group = |at: usize| found.get(at).map_or(Value::None, |m| Value::str(m.as_str()));
    Ok(match found.len() {
        1 => Value::tuple([group(0)]),
        count => Value::tuple((1..count).map(group)),
    })
}

/// `re.sub`, with Python's references in the replacement.
pub(super) fn replace(
    regex: &Regex,
    text: &str,
    replacement: &str,
    mut charge: impl FnMut(usize) -> Res<()>,
) -> Res<String> {
    let mut out = String::new();
    let mut last = 0;
    for found in regex.captures_iter(text) {
        let found = found.map_err(|error| JinjaError::limit(error.to_string()))?;
        let Some(whole) = found.get(0) else { continue };
        let start = out.len();
        out.push_str(&text[last..whole.start()]);
        last = whole.end();
        let mut chars = replacement.chars().peekable();
        while let Some(c) = chars.next() {
            if c != '\\' {
                out.push(c);
                continue;
            }
            match chars.next() {
                Some(digit @ '0'..='9') => {
                    let mut number = digit as usize - 48;
                    if number > 0
                        && let Some(second) = chars.next_if(char::is_ascii_digit)
                    {
                        number = number * 10 + (second as usize - 48);
                    }
                    if number >= found.len() {
                        return Err(JinjaError::python(format!("invalid group reference {number}")));
                    }
                    out.push_str(found.get(number).map_or("", |m| m.as_str()));
                }
                Some('g') if chars.next_if_eq(&'<').is_some() => {
                    let name: String = chars.by_ref().take_while(|c| *c != '>').collect();
                    let group = name.parse().map_or_else(|_| found.name(&name), |at| found.get(at));
                    out.push_str(group.map_or("", |m| m.as_str()));
                }
                Some('n') => out.push('\n'),
                Some('t') => out.push('\t'),
                Some('r') => out.push('\r'),
                Some(c) if c.is_ascii_alphabetic() => {
                    return Err(JinjaError::python(format!("bad escape \\{c}")));
                }
                Some('\\') => out.push('\\'),
                Some(c) => out.extend(['\\', c]),
                None => return Err(JinjaError::python("bad escape (end of pattern)")),
            }
        }
        charge(out.len() - start)?;
    }
    out.push_str(&text[last..]);
    charge(text.len())?;
    Ok(out)
}
