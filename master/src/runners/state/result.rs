//! Results of states, and what they come to together.

use brine_protocol::value::{Value, ValueExt as _, empty_map, map};

/// A state's result.
pub(super) struct StateResult {
    pub(super) name: Value,
    /// None in a dry run.
    pub(super) result: Option<bool>,
    /// A map.
    pub(super) changes: Value,
    pub(super) comment: String,
    pub(super) warnings: Vec<String>,
    /// The jid of the job or run that it started.
    pub(super) jid: Option<Value>,
}

impl StateResult {
    pub(super) fn new(name: Value, result: Option<bool>, comment: impl Into<String>) -> Self {
        Self { name, result, changes: empty_map(), comment: comment.into(), warnings: Vec::new(), jid: None }
    }

    pub(super) fn to_value(&self) -> Value {
        let mut value = map([
            ("name", self.name.clone()),
            ("changes", self.changes.clone()),
            ("comment", self.comment.as_str().into()),
            ("result", self.result.map_or(Value::Nil, Value::from)),
        ]);
        if let Some(jid) = &self.jid {
            value.insert("__jid__", jid.clone());
        }
        if !self.warnings.is_empty() {
            value.insert("warnings", Value::Array(self.warnings.iter().map(|line| line.as_str().into()).collect()));
        }
        value
    }
}

/// Salt's `check_result`: whether no state of a run failed. A run is a dict of results by tag, or, within another dict,
/// a result of several minions.
pub(super) fn is_good(running: &Value, within: bool) -> bool {
    let Some(entries) = running.entries().filter(|entries| !entries.is_empty()) else { return false };
    entries.iter().all(|(tag, result)| match result {
        Value::Map(_) => match result.get("result") {
            Some(Value::Boolean(false)) => false,
            Some(_) => true,
            None => is_good(result, true),
        },
        Value::Array(_) if tag.text() == Some("__extend__") => true,
        _ => within,
    })
}

#[cfg(test)]
mod tests {
    use brine_protocol::config::yaml;

    use super::*;

    #[test]
    fn one_failure_is_one_of_the_run() {
        for (text, good) in [
            ("{a: {result: true}}", true),
            ("{a: {result: null}}", true),
            ("{a: {result: true}, b: {result: false}}", false),
            ("{m_master: {a: {result: true}}}", true),
            ("{m_master: {a: {result: false}}}", false),
            ("{m_master: [no such sls]}", false),
            ("{m_master: {}}", false),
            ("{}", false),
            ("[a]", false),
            ("null", false),
        ] {
            assert_eq!(is_good(&yaml::load(text).unwrap(), false), good, "{text}");
        }
        // Of a minion's return: what is no dict there does not count.
        assert!(is_good(&yaml::load("{a: {result: true}, b: 5}").unwrap(), true));
    }
}
