//! Errors with more to say than a sentence.

use brine_guest::Value;

use crate::nested::nested;

/// An error, and what else is known: a dict, with the `changes` that were made before it.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    message: String,
    info: Value,
}

impl Failure {
    /// `info` is a dict.
    pub fn with(message: impl Into<String>, info: Value) -> Self {
        Self { message: message.into(), info }
    }

    /// Whether there is more than the sentence.
    pub fn has_info(&self) -> bool {
        self.info.truthy()
    }

    /// The changes that were made before it: a dict.
    pub fn changes(&self) -> Value {
        self.info.get("changes").cloned().unwrap_or_else(|| Value::Dict(Vec::new()))
    }

    /// The whole text.
    pub fn text(&self) -> String {
        self.followed_by(&self.info)
    }

    /// The text for a state, which shows the changes elsewhere.
    pub fn without_changes(&self) -> String {
        let Value::Dict(entries) = &self.info else { return self.message.clone() };
        let others = entries.iter().filter(|(key, _)| key.text() != Some("changes")).cloned();
        self.followed_by(&Value::Dict(others.collect()))
    }

    fn followed_by(&self, info: &Value) -> String {
        if !info.truthy() {
            return self.message.clone();
        }
        let stop = if self.message.ends_with(['.', '?', '!']) { "" } else { "." };
        format!("{}{stop} Additional info follows:\n\n{}", self.message, nested(info))
    }
}

impl From<String> for Failure {
    fn from(message: String) -> Self {
        Self { message, info: Value::None }
    }
}

impl From<&str> for Failure {
    fn from(message: &str) -> Self {
        message.to_owned().into()
    }
}

impl From<Failure> for String {
    fn from(failure: Failure) -> Self {
        failure.text()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_said_once() {
        let changes = Value::dict([("a", Value::dict([("old", "".into()), ("new", "1".into())]))]);
        let failure = Failure::with("It broke", Value::dict([("changes", changes), ("errors", vec!["why"].into())]));
        assert_eq!(failure.without_changes(), "It broke. Additional info follows:\n\nerrors:\n    - why");
        assert!(failure.text().starts_with("It broke. Additional info follows:\n\nchanges:\n    ----------\n    a:\n"));
        assert_eq!(Failure::from("It broke").text(), "It broke");
    }
}
