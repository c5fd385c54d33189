//! A result that is put together.

use brine_guest::Value;
use brine_guest::states::{StateResult, no_changes};

/// What a state has found so far.
pub(super) struct Parts {
    pub result: Option<bool>,
    pub comment: String,
    pub changes: Value,
}

/// What replaces parts of a result; what is none stays.
#[derive(Default)]
pub(super) struct Update {
    pub result: Option<Option<bool>>,
    pub comment: Option<String>,
    pub changes: Option<Value>,
}

impl Update {
    pub(super) fn new(result: Option<bool>, comment: impl Into<String>) -> Self {
        Self { result: Some(result), comment: Some(comment.into()), changes: None }
    }

    pub(super) fn with(self, changes: Value) -> Self {
        Self { changes: Some(changes), ..self }
    }
}

impl Parts {
    pub(super) fn good() -> Self {
        Self::new(Some(true), "")
    }

    pub(super) fn new(result: Option<bool>, comment: impl Into<String>) -> Self {
        Self { result, comment: comment.into(), changes: no_changes() }
    }

    pub(super) fn update(&mut self, update: Update) {
        if let Some(result) = update.result {
            self.result = result;
        }
        if let Some(comment) = update.comment {
            self.comment = comment;
        }
        if let Some(changes) = update.changes {
            self.changes = changes;
        }
    }
}

impl From<Parts> for StateResult {
    fn from(parts: Parts) -> Self {
        StateResult::new(parts.result, parts.comment, parts.changes)
    }
}

/// Comments, a line each; empty ones are left out.
pub(super) fn lines(comments: &[&str]) -> String {
    comments.iter().copied().filter(|comment| !comment.is_empty()).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_leaves_what_it_does_not_say() {
        let mut parts = Parts::new(Some(true), "a");
        parts.changes = Value::dict([("x", true.into())]);
        parts.update(Update::new(None, "b"));
        assert_eq!((parts.result, parts.comment.as_str()), (None, "b"));
        assert!(parts.changes.truthy());
        parts.update(Update::default().with(no_changes()));
        assert!(!parts.changes.truthy());
        assert_eq!(lines(&["a", "", "b"]), "a\nb");
    }
}
