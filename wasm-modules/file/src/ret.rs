//! The result of a state while it is made.

use brine_guest::Value;
use brine_guest::states::StateResult;

/// Salt's `ret`.
#[derive(Debug, Clone)]
pub(crate) struct Ret {
    pub(crate) result: Option<bool>,
    pub(crate) comment: String,
    pub(crate) changes: Vec<(Value, Value)>,
    pub(crate) warnings: Vec<String>,
}

impl Ret {
    /// It is as it should be, so far.
    pub(crate) fn new() -> Self {
        Self { result: Some(true), comment: String::new(), changes: Vec::new(), warnings: Vec::new() }
    }

    /// It is as it should be.
    pub(crate) fn good(comment: impl Into<String>) -> Self {
        Self { comment: comment.into(), ..Self::new() }
    }

    /// It failed.
    pub(crate) fn bad(comment: impl Into<String>) -> Self {
        Self { result: Some(false), comment: comment.into(), ..Self::new() }
    }

    /// It fails, with the changes so far.
    pub(crate) fn failed(mut self, comment: impl Into<String>) -> Self {
        self.result = Some(false);
        self.comment = comment.into();
        self
    }

    /// Adds or replaces a change.
    pub(crate) fn change(&mut self, key: &str, value: impl Into<Value>) {
        let value = value.into();
        match self.changes.iter_mut().find(|(known, _)| known.text() == Some(key)) {
            Some((_, known)) => *known = value,
            None => self.changes.push((key.into(), value)),
        }
    }

    /// Adds lines to the comment, as Salt's `check_perms` joins them.
    pub(crate) fn join(&mut self, lines: Vec<String>) {
        let before = Some(std::mem::take(&mut self.comment)).filter(|comment| !comment.is_empty());
        self.comment = before.into_iter().chain(lines).collect::<Vec<_>>().join("; ");
    }

    /// As a dict, for functions.
    pub(crate) fn value(self, name: &str) -> Value {
        Value::dict([
            ("name", name.into()),
            ("changes", Value::Dict(self.changes)),
            ("comment", self.comment.into()),
            ("result", self.result.into()),
        ])
    }
}

impl From<Ret> for StateResult {
    fn from(ret: Ret) -> Self {
        let Ret { result, comment, changes, warnings } = ret;
        StateResult { result, comment, changes: Value::Dict(changes).into(), warnings }
    }
}
