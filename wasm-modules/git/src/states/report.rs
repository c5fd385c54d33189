//! What states say.

use brine_guest::Value;
use brine_guest::states::{StateResult, is_dry_run};

/// A state's changes and what it did, in sentences.
#[derive(Debug, Default)]
pub(super) struct Report {
    changes: Vec<(Value, Value)>,
    pub(super) comments: Vec<String>,
    pub(super) warnings: Vec<String>,
}

impl Report {
    pub(super) fn change(&mut self, name: &str, value: impl Into<Value>) {
        self.changes.push((name.into(), value.into()));
    }

    /// The change of a commit.
    pub(super) fn moved(&mut self, name: &str, old: Option<&str>, new: Option<&str>) {
        let text = |text: Option<&str>| Value::from(text.map(str::to_owned));
        self.change(name, Value::dict([("old", text(old)), ("new", text(new))]));
    }

    pub(super) fn has_changes(&self) -> bool {
        !self.changes.is_empty()
    }

    pub(super) fn say(&mut self, comment: impl Into<String>) {
        self.comments.push(comment.into());
    }

    /// The end with a comment of its own.
    pub(super) fn end(self, result: Option<bool>, comment: impl Into<String>) -> StateResult {
        let warnings = self.warnings;
        StateResult { warnings, ..StateResult::new(result, comment, Value::Dict(self.changes)) }
    }

    /// It failed; with what was done before.
    pub(super) fn fail(self, why: impl Into<String>) -> StateResult {
        let mut why = why.into();
        if !self.comments.is_empty() {
            why.push_str(&format!("\n\nChanges already made: {}", joined(&self.comments)));
        }
        self.end(Some(false), why)
    }

    /// It failed, whatever was done before.
    pub(super) fn fail_alone(self, why: impl Into<String>) -> StateResult {
        self.end(Some(false), why)
    }

    /// What a dry run would do.
    pub(super) fn would(self, comment: impl Into<String>) -> StateResult {
        self.end(None, comment)
    }

    /// It did what the comments say.
    pub(super) fn done(self) -> StateResult {
        let comment = joined(&self.comments);
        self.end(Some(true), comment)
    }

    /// It is as it should be, and so were the changes of files if they stay.
    pub(super) fn up_to_date(self, target: &str, is_changed_here: bool) -> StateResult {
        let mut comment = format!("Repository {target} is up-to-date");
        if is_changed_here {
            comment.push_str(", but with uncommitted changes. Set 'force_reset' to True to purge uncommitted changes.");
        }
        comment.push_str(&made(&self.comments));
        self.end(Some(true), comment)
    }
}

/// What was done beside, at the end of a comment.
pub(super) fn made(comments: &[String]) -> String {
    match comments.is_empty() {
        true => String::new(),
        false => format!("\n\nChanges {}made: {}", if is_dry_run() { "that would be " } else { "" }, joined(comments)),
    }
}

/// Sentences in one text.
pub(super) fn joined(comments: &[String]) -> String {
    format!("{}{}", comments.join(". "), if comments.len() > 1 { "." } else { "" })
}

/// An error without the command that failed.
pub(super) fn stripped(why: &str) -> &str {
    let line = why.split('\n').next().unwrap_or_default();
    let is_command = ["Command '", "Command \""].iter().any(|start| line.starts_with(start));
    let end = ["' failed: ", "\" failed: "].iter().filter_map(|end| Some(line.rfind(end)? + end.len())).max();
    match end {
        Some(end) if is_command => &why[end..],
        _ => why,
    }
}

/// The beginning of a hash.
pub(super) fn short(hash: &str) -> &str {
    hash.get(..7).unwrap_or(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_shown_without_the_command() {
        assert_eq!(
            stripped("Command 'git x 'a' failed: b' failed: fatal: no\nmore' failed: "),
            "fatal: no\nmore' failed: "
        );
        assert_eq!(stripped("User 'x' is not available"), "User 'x' is not available");
        assert_eq!(stripped("Command 'git x' failed"), "Command 'git x' failed");
    }

    #[test]
    fn sentences_are_joined() {
        assert_eq!(joined(&[]), "");
        assert_eq!(joined(&["a".into()]), "a");
        assert_eq!(joined(&["a".into(), "b".into()]), "a. b.");
        assert_eq!((short("0123456789"), short("01")), ("0123456", "01"));
    }
}
