//! Why a file does not render: for the master's log without what may be a value of the pillar, and in Salt's words.
//!
//! A pillar's file is full of secrets, so the log has neither the lines around an error nor quoted values.

use brine_render::jinja::{ErrorKind, JinjaError};
use brine_render::pipe::PipeError;
use brine_render::yaml::{YamlError, YamlErrorKind};

/// Longest text of a cause in the log, in characters.
const CAUSE_MAX: usize = 400;
/// What stands for a value.
const HIDDEN: &str = "'…'";
/// How the message of a filter begins that goes on with the value.
const LOADING: &str = "Unable to load json";
/// Quoted words of Python's messages that are names of types.
const TYPES: [&str; 16] = [
    "int",
    "str",
    "float",
    "bool",
    "list",
    "dict",
    "tuple",
    "set",
    "bytes",
    "NoneType",
    "OrderedDict",
    "collections.OrderedDict",
    "datetime.date",
    "datetime.datetime",
    "function",
    "Macro",
];

/// Why a file does not render.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// One line for the log.
    pub(crate) cause: String,
    /// Salt's text, with lines of the file.
    pub(crate) full: String,
}

impl Failure {
    /// A failure whose text has no values.
    pub(crate) fn plain(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { cause: one_line(&text), full: text }
    }

    pub(crate) fn of_pipe(error: &PipeError) -> Self {
        let cause = match error {
            PipeError::Yaml(error) => of_yaml(error),
            PipeError::Json(error) => error.to_string(),
            PipeError::Jinja(_) => "Jinja error".to_owned(),
            other => other.to_string(),
        };
        Self { cause: one_line(&cause), full: error.to_string() }
    }

    /// `own` is what this master's functions said, which has no values.
    pub(crate) fn of_jinja(error: &JinjaError, own: Option<&str>) -> Self {
        let prefix = match error.kind {
            ErrorKind::Undefined => "Jinja variable ",
            ErrorKind::Template => "Jinja syntax error: ",
            ErrorKind::Function => "Problem running salt function in Jinja template: ",
            ErrorKind::Python | ErrorKind::Lookup | ErrorKind::NotFound | ErrorKind::Limit => "Jinja error: ",
        };
        let message = match error.kind {
            ErrorKind::Template if error.message.starts_with(LOADING) => LOADING.to_owned() + " from " + HIDDEN,
            // They are made of the names in the template.
            ErrorKind::Undefined | ErrorKind::Template | ErrorKind::NotFound | ErrorKind::Limit => {
                error.message.clone()
            }
            _ if own.is_some_and(|own| own == error.message) => error.message.clone(),
            _ => without_values(&error.message),
        };
        let place = match &error.file {
            _ if error.line == 0 => String::new(),
            Some(file) => format!("; {file} line {}", error.line),
            None => format!("; line {}", error.line),
        };
        Self { cause: format!("{prefix}{}{place}", one_line(&message)), full: error.to_string() }
    }
}

/// The problem and its line. PyYAML's text names keys and characters, and values only of numbers.
fn of_yaml(error: &YamlError) -> String {
    let problem = match error.kind {
        YamlErrorKind::Value | YamlErrorKind::Key => without_values(&error.problem),
        _ => error.problem.clone(),
    };
    match error.line() {
        Some(line) => format!("{problem}; line {line} of what was rendered"),
        None => problem,
    }
}

/// Replaces what stands between quotes, unless it is the name of a type.
fn without_values(message: &str) -> String {
    let mut out = String::new();
    let mut rest = message;
    while let Some(start) = rest.find(['\'', '"']) {
        let quote = rest.as_bytes()[start] as char;
        out.push_str(&rest[..start]);
        let after = &rest[start + 1..];
        // A value can have the quote in it: the last one of the line ends it, unless a name of a type comes first.
        let named =
            after.find(quote).map(|end| &after[..end]).filter(|word| TYPES.contains(&word.trim_end_matches(" object")));
        match named {
            Some(word) => {
                out.push_str(&rest[start..start + word.len() + 2]);
                rest = &after[word.len() + 1..];
            }
            None => {
                out.push_str(HIDDEN);
                rest = after.rfind(quote).map_or("", |end| &after[end + 1..]);
            }
        }
    }
    out.push_str(rest);
    out
}

fn one_line(text: &str) -> String {
    let line: String = text.split('\n').map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(CAUSE_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_left_out() {
        for (message, shown) in [
            ("invalid literal for int() with base 10: 'hunter2'", "invalid literal for int() with base 10: '…'"),
            ("can only concatenate str (not \"int\") to str", "can only concatenate str (not \"int\") to str"),
            ("'NoneType' object is not iterable", "'NoneType' object is not iterable"),
            (
                "unsupported operand type(s) for +: 'int' and 'str'",
                "unsupported operand type(s) for +: 'int' and 'str'",
            ),
            ("x 'it's a secret' y", "x '…' y"),
            ("unterminated 'secret", "unterminated '…'"),
            ("'int' then 'secret' then 'str'", "'int' then '…'"),
        ] {
            assert_eq!(without_values(message), shown, "{message}");
        }
    }

    #[test]
    fn a_cause_is_one_short_line() {
        let failure = Failure::plain(format!("a\n  b\n{}", "x".repeat(1000)));
        assert!(failure.cause.starts_with("a b xxx") && failure.cause.chars().count() == CAUSE_MAX + 1);
    }
}
