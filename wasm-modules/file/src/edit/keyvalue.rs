//! `file.keyvalue` on a text: lines of a key, a separator and a value.

use brine_guest::Value;

use super::lines;

/// Which keys get which values.
pub(crate) struct KeyValue<'a> {
    pub values: Vec<(String, Value)>,
    pub separator: &'a str,
    pub missing: Missing,
    /// The lines of a key that get its value; further ones are removed. Below 0: all.
    pub count: i64,
    /// Characters before a key that make its line a comment; none for white space.
    pub uncomment: Option<&'a str>,
    pub key_ignore_case: bool,
    pub value_ignore_case: bool,
    /// Whether lines of other keys are removed.
    pub prune: bool,
}

/// What becomes of keys that are not there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    Left,
    Appended,
    Prepended,
}

/// The new text, and what is shown of the change.
#[derive(Default)]
pub(crate) struct Done {
    pub content: Vec<String>,
    /// Lines, each with its sign and its end.
    pub diff: Vec<String>,
    pub changes: usize,
    pub deletions: usize,
}

impl KeyValue<'_> {
    pub(crate) fn apply(&self, text: &str) -> Done {
        let mut done = Done::default();
        let mut left: Vec<i64> = vec![self.count; self.values.len()];
        let mut other: Vec<&str> = Vec::new();
        let text = lines::universal(text);
        for line in text.split_inclusive('\n') {
            let stripped = match self.uncomment {
                Some(marks) => line.trim_start_matches(|c| marks.contains(c)),
                None => line.trim_start(),
            };
            if self.prune {
                let begins = self.folded(stripped, self.key_ignore_case);
                if !self.values.iter().any(|(key, _)| begins.starts_with(&self.folded(key, self.key_ignore_case))) {
                    other.push(line);
                    continue;
                }
            }
            self.line(line, stripped, &mut left, &mut done);
        }
        self.add_missing(&left, &mut done);
        for line in &other {
            let at = 1.min(done.diff.len());
            done.diff.insert(at, format!("- {line}"));
        }
        done.deletions = other.len();
        done
    }

    /// Takes one line; `stripped` is the line without what makes it a comment.
    fn line(&self, line: &str, stripped: &str, left: &mut [i64], done: &mut Done) {
        let commented = stripped.len() < line.len();
        let mut current = line.to_owned();
        if let Some((key_here, rest)) = stripped.split_once(self.separator) {
            let mut value_here = rest.to_owned();
            for ((key, value), left) in self.values.iter().zip(left) {
                if self.folded(key_here, self.key_ignore_case) != self.folded(key, self.key_ignore_case) {
                    continue;
                }
                value_here = self.folded(value_here.trim(), self.value_ignore_case);
                let wanted = self.folded(value.to_text().trim(), self.value_ignore_case);
                let same = value_here == wanted || (commented && *left <= 0);
                let needed = if commented { *left > 0 } else { *left == 0 };
                if !same || needed {
                    done.diff.push(format!("- {current}"));
                    current = String::new();
                    if *left != 0 {
                        current = format!("{key_here}{}{}\n", self.separator, value.to_text());
                        done.diff.push(match value {
                            Value::Text(_) => format!("+ {current}"),
                            other => format!("+ {} (from {} type)\n", current.trim_end(), type_name(other)),
                        });
                    }
                    done.changes += 1;
                }
                if *left > 0 {
                    *left -= 1;
                }
            }
        }
        done.content.push(current);
    }

    fn add_missing(&self, left: &[i64], done: &mut Done) {
        let missing = || self.values.iter().zip(left).filter(|(_, left)| **left > 0);
        let line = |key: &str, value: &Value| format!("{key}{}{}\n", self.separator, value.to_text());
        if missing().next().is_none() {
            return;
        }
        match self.missing {
            Missing::Left => {}
            Missing::Appended => {
                done.diff.push("- <EOF>\n".into());
                for ((key, value), _) in missing() {
                    let line = line(key, value);
                    done.diff.push(format!("+ {line}"));
                    done.content.push(line);
                    done.changes += 1;
                }
                done.diff.push("+ <EOF>\n".into());
            }
            Missing::Prepended => {
                done.diff.insert(0, "  <SOF>\n".into());
                for ((key, value), _) in missing() {
                    let line = line(key, value);
                    done.diff.insert(1, format!("+ {line}"));
                    done.content.insert(0, line);
                    done.changes += 1;
                }
            }
        }
    }

    fn folded(&self, text: &str, fold: bool) -> String {
        if fold { text.to_lowercase() } else { text.to_owned() }
    }
}

/// Python's name of a value's type.
fn type_name(value: &Value) -> &'static str {
    match value {
        Value::None => "NoneType",
        Value::Bool(_) => "bool",
        Value::Int(_) | Value::Big(_) => "int",
        Value::Float(_) => "float",
        Value::Text(_) => "str",
        Value::Bytes(_) => "bytes",
        Value::List(_) => "list",
        Value::Dict(_) => "dict",
        Value::Ext(..) => "ExtType",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[(&str, Value)]) -> KeyValue<'static> {
        KeyValue {
            values: values.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect(),
            separator: "=",
            missing: Missing::Left,
            count: 1,
            uncomment: Some("#"),
            key_ignore_case: false,
            value_ignore_case: false,
            prune: false,
        }
    }

    /// Recorded from the state `file.keyvalue` of Salt 3008.3.
    #[test]
    fn values_are_set_as_salt_does() {
        let done = of(&[("a", "2".into())]).apply("a=1\nb=1\n#a=3\n");
        assert_eq!((done.content.concat().as_str(), done.changes), ("a=2\nb=1\n#a=3\n", 1));
        assert_eq!(done.diff.concat(), "- a=1\n+ a=2\n");
        let done = of(&[("a", "1".into())]).apply("#a=1\na=1\n");
        assert_eq!((done.content.concat().as_str(), done.changes), ("a=1\n", 2));
        assert_eq!(done.diff.concat(), "- #a=1\n+ a=1\n- a=1\n");
        let done = of(&[("a", true.into())]).apply("a=1\n");
        assert_eq!(done.diff.concat(), "- a=1\n+ a=True (from bool type)\n");
    }

    #[test]
    fn missing_keys_and_others() {
        let two = || of(&[("a", "1".into()), ("b", "2".into())]);
        let done = KeyValue { missing: Missing::Appended, ..two() }.apply("b=3\n");
        assert_eq!(done.content.concat(), "b=2\na=1\n");
        assert_eq!(done.diff.concat(), "- b=3\n+ b=2\n- <EOF>\n+ a=1\n+ <EOF>\n");
        let done = KeyValue { missing: Missing::Prepended, ..two() }.apply("c=3\n");
        assert_eq!(done.content.concat(), "b=2\na=1\nc=3\n");
        assert_eq!(done.diff.concat(), "  <SOF>\n+ b=2\n+ a=1\n");
        let done = KeyValue { prune: true, ..two() }.apply("c=3\na=1\n");
        assert_eq!((done.content.concat().as_str(), done.deletions), ("a=1\n", 1));
        let done =
            KeyValue { key_ignore_case: true, value_ignore_case: true, ..of(&[("A", "X".into())]) }.apply("a=x\n");
        assert_eq!(done.changes, 0);
    }
}
