//! What states return.

use crate::host::job;
pub use crate::host::state_types::StateResult;
use crate::value::Value;

/// Whether the job only asks what would change (`test=True`).
pub fn is_dry_run() -> bool {
    job::current().test
}

impl StateResult {
    /// It is as it should be.
    pub fn good(comment: impl Into<String>) -> Self {
        Self::new(Some(true), comment, no_changes())
    }

    /// It failed and changed nothing.
    pub fn bad(comment: impl Into<String>) -> Self {
        Self::new(Some(false), comment, no_changes())
    }

    /// It would be changed, in a dry run. `changes` is a dict.
    pub fn would(comment: impl Into<String>, changes: Value) -> Self {
        Self::new(None, comment, changes)
    }

    /// It was changed. `changes` is a dict.
    pub fn changed(comment: impl Into<String>, changes: Value) -> Self {
        Self::new(Some(true), comment, changes)
    }

    /// All of a result but its warnings. `changes` is a dict.
    pub fn new(result: Option<bool>, comment: impl Into<String>, changes: Value) -> Self {
        Self { result, comment: comment.into(), changes: changes.into(), warnings: Vec::new() }
    }
}

/// The result of a state that this host cannot have, since a program is missing: Salt's sentences of a state module that did
/// not load. `state` is its name with its module's, `why` says what is missing.
pub fn missing(state: &str, why: &str) -> StateResult {
    let sls = job::state().map(|state| state.sls).unwrap_or_default();
    StateResult::bad(format!("State '{state}' was not found in SLS '{sls}'\nReason: {why}\n"))
}

/// The changes of a state that changed nothing.
pub fn no_changes() -> Value {
    Value::Dict(Vec::new())
}
