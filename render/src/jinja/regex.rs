//! Python's regular expressions in templates.

use super::error::{JinjaError, Res};
use crate::regex::{Flags, Regex, RegexError, Replacement};
use crate::value::Value;

const MAX_BACKTRACKS: usize = 200_000;

/// Compiles an expression. `at_start`: as `re.match`.
pub(super) fn compile(pattern: &str, ignore_case: bool, multiline: bool, at_start: bool) -> Res<Regex> {
    let flags = Flags { ignore_case, multiline, ..Flags::default() };
    let compile = if at_start { Regex::at_start } else { Regex::new };
    Ok(compile(pattern, flags, MAX_BACKTRACKS)?)
}

/// The groups of the first match, as `regex_search` gives them.
pub(super) fn groups(regex: &Regex, text: &str) -> Res<Value> {
    let Some(found) = regex.groups(text)? else { return Ok(Value::None) };
    let skipped = usize::from(found.len() > 1);
    Ok(Value::tuple(found.into_iter().skip(skipped).map(|group| group.map_or(Value::None, Value::str))))
}

/// `re.sub`, with Python's references in the replacement.
pub(super) fn replace(
    regex: &Regex,
    text: &str,
    replacement: &str,
    charge: impl FnMut(usize) -> Res<()>,
) -> Res<String> {
    let replacement = Replacement::read(replacement, regex)?;
    Ok(regex.replace(text, &replacement, 0, charge)?.0)
}

impl From<RegexError> for Box<JinjaError> {
    fn from(error: RegexError) -> Self {
        match error {
            RegexError::Invalid(text) => JinjaError::python(text),
            RegexError::Limit(text) => JinjaError::limit(text),
        }
    }
}
