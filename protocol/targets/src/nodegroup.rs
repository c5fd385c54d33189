//! Nodegroups (§10.3): names for targets, in the master's configuration.

use indexmap::IndexMap;

use brine_values::{Value, ValueExt};

/// Upper bound on the words of all groups together after expansion: groups that name other groups twice grow
/// exponentially.
const MAX_WORDS: usize = 10_000;
/// Upper bound on nested groups.
const MAX_DEPTH: usize = 32;

const OPERATORS: [&str; 5] = ["and", "or", "not", "(", ")"];

/// The setting `nodegroups`: the words of each group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Nodegroups(IndexMap<String, Vec<String>>);

impl Nodegroups {
    /// Reads the setting. A group that is neither text nor a list has no words, as in Salt.
    pub fn new(setting: &Value) -> Self {
        let words = |value: &Value| match value {
            Value::Array(items) => items.iter().map(ValueExt::python_str).collect(),
            other => other.text().unwrap_or_default().split_whitespace().map(str::to_owned).collect(),
        };
        let entries = setting.entries().unwrap_or_default();
        Self(entries.iter().map(|(name, value)| (name.python_str(), words(value))).collect())
    }

    /// Whether a group has this name.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The names of the groups.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The words of a compound target equivalent to the group, as Salt's `nodegroup_comp`; empty if there is no such
    /// group.
    pub fn expand(&self, name: &str) -> Vec<String> {
        let mut open = Vec::new();
        let mut budget = MAX_WORDS;
        self.expand_within(name, &mut open, &mut budget)
    }

    fn expand_within<'a>(&'a self, name: &'a str, open: &mut Vec<&'a str>, budget: &mut usize) -> Vec<String> {
        let Some(own) = self.0.get(name) else { return Vec::new() };
        if open.contains(&name) || open.len() >= MAX_DEPTH || *budget < own.len() {
            return Vec::new();
        }
        *budget -= own.len();
        let is_first = open.is_empty();
        open.push(name);
        let mut expanded = false;
        let mut words = Vec::new();
        for word in own {
            match word.strip_prefix("N@").filter(|inner| !inner.is_empty()) {
                Some(inner) => {
                    expanded = true;
                    words.extend(self.expand_within(inner, open, budget));
                }
                None => words.push(word.clone()),
            }
        }
        open.pop();
        if let (false, Some(joined)) = (is_first && expanded, join_names(own)) {
            return vec![joined];
        }
        if is_first && !expanded {
            return own.clone();
        }
        if !words.is_empty() {
            words.insert(0, "(".to_owned());
            words.push(")".to_owned());
        }
        words
    }
}

/// Joins a group of bare names into a list; into an expression if the names look like terms.
fn join_names(words: &[String]) -> Option<String> {
    let is_term = |word: &String| {
        let mut chars = word.chars();
        word.contains('*') || (chars.next().is_some_and(|c| c.is_ascii_uppercase()) && chars.next() == Some('@'))
    };
    if words.iter().any(|word| OPERATORS.contains(&word.as_str()) || is_term(word)) {
        return None;
    }
    let is_expression = words.iter().any(|word| word.contains(['(', '[', '{', '\\', '?', '}', ']', ')']));
    Some(format!("{}@{}", if is_expression { 'E' } else { 'L' }, words.join(",")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_values::{list, map, text};

    #[test]
    fn loops_and_bombs_end() {
        let mut groups = vec![("a".to_owned(), text("N@b or x*")), ("b".to_owned(), text("N@a or y*"))];
        for n in 0..40 {
            groups.push((format!("g{n}"), text(format!("N@g{} or N@g{}", n + 1, n + 1))));
        }
        groups.push(("odd".to_owned(), Value::from(7)));
        let groups = Nodegroups::new(&Value::Map(groups.into_iter().map(|(k, v)| (k.into(), v)).collect()));
        assert_eq!(groups.expand("a").join(" "), "( ( or y* ) or x* )");
        assert!(groups.expand("g0").len() <= 5 * MAX_WORDS);
        assert!(groups.expand("none").is_empty() && !groups.has("none"));
    }

    #[test]
    fn bare_names_are_a_list_or_an_expression() {
        let groups = map([("l", list(["m1", "m2"])), ("e", text("web[12] db1")), ("c", text("web* or db1"))]);
        let groups = Nodegroups::new(&groups);
        assert_eq!(groups.expand("l"), ["L@m1,m2"]);
        assert_eq!(groups.expand("e"), ["E@web[12],db1"]);
        assert_eq!(groups.expand("c"), ["web*", "or", "db1"]);
    }
}
