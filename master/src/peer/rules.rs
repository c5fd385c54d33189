//! The rules of `peer` and `peer_run`: what each minion may publish or run.
//!
//! ```yaml
//! peer:
//!   web.*:                          # minions, a regular expression
//!     - test.*                      # functions, on any minion
//!     - G@role:db:                  # functions on the minions of a compound target only
//!       - pkg.version
//!       - file.read: [{args: [/etc/motd]}]
//! ```
//!
//! The lists have the form of `external_auth` ([`crate::access::permission`]). Expressions match from the start of a
//! text, like Python's `re.match`: `test.ping` permits `test.ping_all` too.

use brine_protocol::ids::MinionId;
use brine_protocol::value::{Value, ValueExt};

use crate::access::permission::{self, Allowed, Pattern, Permission};

/// Patterns of minions with their permissions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rules(Vec<(Pattern, Vec<Permission>)>);

impl Rules {
    /// Reads a setting; `None` permits nothing. The error is for the operator, without the setting's name.
    pub(crate) fn read(setting: Option<&Value>) -> Result<Self, String> {
        let Some(setting) = setting.filter(|setting| !setting.is_nil()) else { return Ok(Self::default()) };
        let minions = setting.entries().ok_or("it must be a map of minions to lists of functions")?;
        let read = |(who, what): &(Value, Value)| {
            let who = who.python_str();
            let permissions = permission::parse(what).map_err(|why| format!("{who}: {why}"))?;
            Ok((Pattern::new(&who)?, permissions))
        };
        minions.iter().map(read).collect::<Result<_, String>>().map(Self)
    }

    /// Returns the permissions of this minion.
    pub(super) fn of(&self, id: &MinionId) -> Vec<&Permission> {
        self.0.iter().filter(|(who, _)| who.matches(id.as_str())).flat_map(|(_, what)| what).collect()
    }

    /// Returns whether this minion may run this runner.
    pub(super) fn allow_runner(&self, id: &MinionId, fun: &str) -> bool {
        permission::job(self.of(id), fun, &[]) == Allowed::Everywhere
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brine_protocol::config::yaml;

    fn rules(text: &str) -> Result<Rules, String> {
        Rules::read(Some(&yaml::load(text).unwrap()))
    }

    #[test]
    fn functions_are_permitted_by_minion() {
        let rules = rules("{web.*: [test.ping, 'grains\\.', {db*: [cmd.run]}], db1: [.*]}").unwrap();
        for (id, fun, expect) in [
            ("web1", "test.ping", true),
            ("web1", "test.ping_all", true),
            ("web1", "xtest.ping", false),
            ("web1", "grains.items", true),
            ("web1", "cmd.run", false),
            ("aweb1", "test.ping", false),
            ("db1", "cmd.run", true),
            ("db2", "cmd.run", false),
        ] {
            assert_eq!(rules.allow_runner(&id.parse().unwrap(), fun), expect, "{id} {fun}");
        }
        assert!(!Rules::read(None).unwrap().allow_runner(&"web1".parse().unwrap(), "test.ping"));
    }

    /// Salt ignores mistakes; here they are errors for the operator.
    #[test]
    fn mistakes_are_told() {
        for (text, said) in [
            ("[a]", "map of minions"),
            ("{a: test.ping}", "a list"),
            ("{'(': []}", "not an expression"),
            ("{a: ['(']}", "not an expression"),
            ("{a: [{b: [c], d: [e]}]}", "neither a function"),
            ("{a: [{b: [{c: 1}]}]}", "must be a map"),
        ] {
            let error = rules(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
