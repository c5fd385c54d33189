//! `grains_blacklist`: grains that are left out.

use brine_protocol::target::{Regex, fnmatch};
use brine_protocol::value::{Value, ValueExt};

/// The names of grains that are left out. Each is a glob or an expression that matches the whole name, as in Salt.
#[derive(Default)]
pub(super) struct Blacklist(Vec<Name>);

struct Name {
    glob: String,
    regex: Option<Regex>,
}

impl Blacklist {
    /// Reads the setting. What is no expression is still a glob.
    pub(super) fn new(names: &[String]) -> Self {
        let name = |glob: &String| Name { regex: Regex::new(&format!(r"(?:{glob})\Z")).ok(), glob: glob.clone() };
        Self(names.iter().map(name).collect())
    }

    /// Removes the listed grains.
    pub(super) fn filter(&self, entries: &mut Vec<(Value, Value)>) {
        if !self.0.is_empty() {
            entries.retain(|(key, _)| !key.text().is_some_and(|key| self.has(key)));
        }
    }

    fn has(&self, key: &str) -> bool {
        self.0
            .iter()
            .any(|name| fnmatch(&name.glob, key) || name.regex.as_ref().is_some_and(|regex| regex.matches(key)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_globs_or_expressions() {
        let list = Blacklist::new(&["cpu*", "mem_.+", "os", "[", "ip_(gw|x)"].map(str::to_owned));
        for (key, listed) in [
            ("cpu_flags", true),
            ("mem_total", true),
            ("mem_", false),
            ("os", true),
            ("osarch", false),
            ("ip_gw", true),
        ] {
            assert_eq!(list.has(key), listed, "{key}");
        }
        let mut entries = vec![(Value::from("os"), Value::Nil), (Value::from(1), Value::Nil)];
        list.filter(&mut entries);
        assert_eq!(entries, [(Value::from(1), Value::Nil)]);
    }
}
