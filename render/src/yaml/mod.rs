//! YAML 1.1 as stock Salt reads and writes it: libyaml's scanner, parser and emitter, PyYAML's resolver and
//! representer, and Salt's own rules (`salt/utils/yamlloader.py`, `yamldumper.py`).
//!
//! | file | from | to |
//! |---|---|---|
//! | `scanner`, `parser` | text | tokens, events |
//! | `compose`, `resolve` of the crate `emitter` | events | nodes with types |
//! | `construct`, `scalar` | nodes | values |
//! | `represent` | values | nodes |
//! | the crate `emitter` | nodes | text |

mod compose;
mod construct;
mod error;
mod parser;
mod represent;
mod scalar;
mod scanner;

pub use brine_yaml_emitter::Style;
pub(crate) use brine_yaml_emitter::escaped;
pub use error::{Mark, YamlError, YamlErrorKind};
pub use represent::{DumpError, DumpOptions, dump};

use crate::value::Value;

type Result<T> = std::result::Result<T, Box<YamlError>>;

/// What a text may be.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Upper bound on the bytes of the text.
    pub text: usize,
    /// Upper bound on nesting.
    pub depth: usize,
    /// Upper bound on the values, aliases and merged entries.
    pub values: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { text: 8 << 20, depth: 100, values: 1 << 18 }
    }
}

/// Loads one document as Salt's YAML renderer does: maps are `OrderedDict`s. An empty text is None.
///
/// # Errors
/// The text is not YAML, not one document, or outside the bounds.
pub fn load_ordered(text: &str, limits: &Limits) -> std::result::Result<Value, Box<YamlError>> {
    load_with(text, limits, true)
}

/// Loads one document as `salt.utils.yaml.safe_load` does: maps are `dict`s. An empty text is None.
///
/// # Errors
/// As [`load_ordered`].
pub fn load(text: &str, limits: &Limits) -> std::result::Result<Value, Box<YamlError>> {
    load_with(text, limits, false)
}

fn load_with(text: &str, limits: &Limits, ordered: bool) -> Result<Value> {
    if text.len() > limits.text {
        return Err(YamlError::limit(format!("the text has more than {} bytes", limits.text), Mark::default()));
    }
    check_characters(text)?;
    // a byte order mark is no text
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let nodes = compose::compose(text, limits)?;
    construct::construct(nodes, limits, ordered)
}

/// Refuses control characters, as libyaml's reader does.
fn check_characters(text: &str) -> Result<()> {
    let allowed = |c| {
        matches!(c,
            '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
    };
    match text.char_indices().find(|(_, c)| !allowed(*c)) {
        None => Ok(()),
        Some((at, c)) => {
            let before = &text[..at];
            let line = before.matches('\n').count();
            let column = before.rsplit('\n').next().map_or(0, |line| line.chars().count());
            let mark = Mark { index: at as u32, line: line as u32, column: column as u32 };
            let problem = format!(
                "unacceptable character #x{:04x}: control characters are not allowed\n  in \"<unicode string>\", \
                 position {at}",
                u32::from(c)
            );
            Err(YamlError::new(YamlErrorKind::Reader, problem, mark))
        }
    }
}
