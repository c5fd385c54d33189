//! The sentence about an entry, and the names in it.

use std::cmp::Reverse;

use brine_protocol::text::short;
use brine_sandbox::{Names, yaml_text};

/// Names that are written out; the others are counted.
const NAMES_MAX: usize = 4;
/// Characters of a name, of a list of names, and of the sentence.
const NAME_MAX: usize = 100;
const LIST_MAX: usize = 200;
const SENTENCE_MAX: usize = 900;

/// How much harm somebody could do who has the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// A look from which nobody learns what he should not.
    Low,
    /// What the owner has to want.
    Medium,
    /// As good as the whole host, its secrets, or other hosts.
    High,
}

impl Level {
    const fn word(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// One thing that a module could do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Risk {
    pub(super) level: Level,
    /// The end of a sentence: the module could …
    pub(super) could: String,
}

impl Risk {
    pub(super) fn low(could: impl Into<String>) -> Self {
        Self { level: Level::Low, could: could.into() }
    }

    pub(super) fn medium(could: impl Into<String>) -> Self {
        Self { level: Level::Medium, could: could.into() }
    }

    pub(super) fn high(could: impl Into<String>) -> Self {
        Self { level: Level::High, could: could.into() }
    }
}

/// One sentence, which begins with the highest level and what is of it.
pub(super) fn sentence(key: &str, mut all: Vec<Risk>) -> String {
    all.sort_by_key(|risk| Reverse(risk.level));
    let who = if key == "*" { "every module".to_owned() } else { text(key) };
    let Some(worst) = all.first() else { return format!("low: {who} gets nothing by it") };
    let level = worst.level.word();
    let could: Vec<&str> = all.iter().map(|risk| risk.could.as_str()).collect();
    short(&format!("{level}: {who} could {}", could.join("; ")), SENTENCE_MAX)
}

/// A name in the sentence: quoted, unless it is plain, so that none can be taken for the rest of it.
pub(super) fn text(name: &str) -> String {
    yaml_text(&short(name, NAME_MAX))
}

/// A list as the configuration has it.
pub(super) fn list(written: &str) -> String {
    short(written, LIST_MAX)
}

/// Some of the names, and how many more there are.
pub(super) fn some<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    let more = names.len().saturating_sub(NAMES_MAX);
    let mut shown: Vec<String> = names.take(NAMES_MAX).map(text).collect();
    if more > 0 {
        shown.push(format!("{more} more"));
    }
    match shown.split_last() {
        Some((last, before)) if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        _ => shown.concat(),
    }
}

/// The names of a grant.
pub(super) fn named(names: &Names) -> String {
    match names {
        Names::Any => "any".to_owned(),
        Names::Only(names) => some(names.iter().map(String::as_str)),
    }
}

/// Whether a grant by names opens everything, or nearly so.
pub(super) fn is_all(names: &Names) -> bool {
    match names {
        Names::Any => true,
        Names::Only(names) => names.iter().any(|name| name.starts_with(['*', '?'])),
    }
}
