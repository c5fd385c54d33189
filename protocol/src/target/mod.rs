//! Targets (§10): the minions that a job is for. What an expression means is in `brine_targets`; here are the ids of
//! minions and the data that a master has about them.
//!
//! - `known.rs`     the master's data about its minions on disk

mod known;

pub use brine_targets::{Glob, Keys, Needs, Nodegroups, Regex, TargetError, TargetType, Term, fnmatch};
pub use known::{Known, read_entries};

use brine_targets::Dialect;

use crate::args::yamlify;
use crate::ids::MinionId;
use crate::value::Value;

/// The data of a minion that targets match.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// Its id.
    pub id: &'a MinionId,
    /// Its grains, a map; none if they are unknown, for example to a master that has not received them yet.
    pub grains: Option<&'a Value>,
    /// Its pillar, a map; none if it is unknown.
    pub pillar: Option<&'a Value>,
}

impl<'a> Facts<'a> {
    /// A minion of which only the id is known.
    pub fn of_id(id: &'a MinionId) -> Self {
        Self { id, grains: None, pillar: None }
    }
}

/// The minions that a target names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resolved {
    /// The known minions that match.
    pub matched: Vec<MinionId>,
    /// Ids of a list target that no known minion has.
    pub missing: Vec<String>,
}

/// A parsed target.
#[derive(Debug, Clone)]
pub struct Target(brine_targets::Target);

impl Target {
    /// Parses a target. `expr` is text; for lists and compounds also a list of texts; for lists also a comma-separated
    /// text. Nodegroups in a compound target are unknown here; [`Target::parse_with`] knows them.
    ///
    /// # Errors
    /// When the type is unknown or unsupported, or the expression does not parse.
    pub fn parse(tgt_type: TargetType, expr: &Value, delimiter: &str) -> Result<Self, TargetError> {
        Self::parse_with(tgt_type, expr, delimiter, &Nodegroups::default())
    }

    /// As [`Target::parse`], with the configured nodegroups.
    ///
    /// # Errors
    /// As [`Target::parse`].
    pub fn parse_with(
        tgt_type: TargetType,
        expr: &Value,
        delimiter: &str,
        nodegroups: &Nodegroups,
    ) -> Result<Self, TargetError> {
        let dialect = Dialect { nodegroups, argument: yamlify };
        brine_targets::Target::parse(tgt_type, expr, delimiter, dialect).map(Self)
    }

    /// Whether the target matches a minion. Unknown data matches nothing, with one exception: a minion with unknown
    /// grains matches every address, because Salt expects returns from minions whose addresses it does not know (§10).
    pub fn matches(&self, facts: &Facts<'_>) -> bool {
        let facts = brine_targets::Facts { id: facts.id.as_str(), grains: facts.grains, pillar: facts.pillar };
        self.0.matches(&facts)
    }

    /// Whether the target needs grains or pillar, so that the id alone does not decide.
    pub fn needs_data(&self) -> bool {
        self.0.needs_data()
    }

    /// The data of a minion that the target needs, besides its id.
    pub fn needs(&self) -> Needs {
        self.0.needs()
    }

    /// The matching minions in their order, and the listed ids that are unknown.
    pub fn resolve<'a>(&self, known: impl IntoIterator<Item = Facts<'a>>) -> Resolved {
        let mut ids = Vec::new();
        let mut matched = Vec::new();
        for facts in known {
            ids.push(facts.id.as_str());
            if self.matches(&facts) {
                matched.push(facts.id.clone());
            }
        }
        Resolved { matched, missing: self.0.missing(ids) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{list, map, text};

    fn ids(names: &[&str]) -> Vec<MinionId> {
        names.iter().map(|n| MinionId::new(*n).unwrap()).collect()
    }

    fn target(kind: TargetType, expr: impl std::borrow::Borrow<Value>) -> Result<Target, TargetError> {
        Target::parse(kind, expr.borrow(), ":")
    }

    #[test]
    fn pcre_is_anchored_at_its_start_only() {
        let t = target(TargetType::Pcre, text("web|db1$")).unwrap();
        let known = ids(&["web1", "aweb", "db1", "db12"]);
        assert_eq!(t.resolve(known.iter().map(Facts::of_id)).matched, ids(&["web1", "db1"]));
    }

    #[test]
    fn a_list_names_what_is_missing() {
        let known = ids(&["a", "b", "c"]);
        for expr in [list(["c", "x", "a", "a"]), text("c,x,a,")] {
            let resolved = target(TargetType::List, expr).unwrap().resolve(known.iter().map(Facts::of_id));
            assert_eq!(resolved, Resolved { matched: ids(&["a", "c"]), missing: vec!["x".to_owned()] });
        }
    }

    #[test]
    fn bad_targets_say_what_is_wrong() {
        assert!(matches!(target(TargetType::Glob, Value::Nil), Err(TargetError::Bad { .. })));
        let error = target(TargetType::Pcre, text("(")).unwrap_err().to_string();
        assert_eq!(error, r#""(" is not a pcre target: missing ), unterminated subpattern"#);
        assert!(target(TargetType::Pcre, text("(a{1000}){1000}")).is_err(), "a bomb");
        assert!(target(TargetType::List, list([1])).is_err());
        assert!(matches!(target(TargetType::Range, text("a")), Err(TargetError::Unsupported(_))));
        assert!("hostname".parse::<TargetType>().is_err());
        assert_eq!("ipcidr".parse::<TargetType>().unwrap().to_string(), "ipcidr");
    }

    fn groups() -> Nodegroups {
        Nodegroups::new(&map([("web", text("web*")), ("both", text("N@web or L@db1")), ("loose", text("web1 or db1"))]))
    }

    /// Whether the expression matches the minion; none if the expression is invalid.
    fn meant(expr: &str, id: &str) -> Option<bool> {
        let grains = map([("os", text("Debian")), ("ipv4", list(["10.0.0.1"]))]);
        let pillar = map([("role", text("front"))]);
        let target = Target::parse_with(TargetType::Compound, &text(expr), ":", &groups()).ok()?;
        let id = MinionId::new(id).unwrap();
        Some(target.matches(&Facts { id: &id, grains: Some(&grains), pillar: Some(&pillar) }))
    }

    #[test]
    fn precedence_is_pythons() {
        for (expr, expected) in [
            ("web*", Some(true)),
            ("db* or web*", Some(true)),
            ("db* and web* or web1", Some(true)),
            ("web1 or db* and db*", Some(true)),
            ("( web1 or db* ) and db*", Some(false)),
            ("not db*", Some(true)),
            ("not web*", Some(false)),
            ("web* not web1", Some(false)),
            ("web* not db1", Some(true)),
            ("web* and not ( web1 or web2 )", Some(false)),
            ("not ( db1 and web1 )", Some(true)),
            ("G@os:Deb* and I@role:front", Some(true)),
            ("G|@os|Debian", Some(true)),
            ("P@os:(Deb|Red).* and E@web[0-9]", Some(true)),
            ("J@role:fr.nt", Some(true)),
            ("S@10.0.0.0/8 and L@web1,web2", Some(true)),
            ("S@192.168.0.0/16", Some(false)),
            ("N@web", Some(true)),
            ("N@both and G@os:Debian", Some(true)),
            // As in Salt, the words of a group get no parentheses of their own: this means web1 or ( db1 and db2 ).
            ("N@loose and db2", Some(true)),
            ("X@foo", Some(false)),
            // No minion has resources. A minion manages its own resources.
            ("T@ssh", Some(false)),
            ("not T@ssh:web1", Some(true)),
            ("M@web1", Some(true)),
            ("M@web*", Some(false)),
            ("G@", Some(false)),
        ] {
            assert_eq!(meant(expr, "web1"), expected, "{expr}");
        }
    }

    #[test]
    fn what_is_no_target_is_refused() {
        for expr in [
            "",
            "and",
            "or web1",
            ") web1",
            "( web1",
            "web1 )",
            "web1 db1",
            "not",
            "not not web1",
            "web1 and",
            "web1 and or db1",
            "( and web1 )",
            "( )",
            "N@none and",
            "N@none",
            "R@%x",
            "E@(",
            "S@x",
        ] {
            assert_eq!(meant(expr, "web1"), None, "{expr}");
        }
        assert_eq!(meant(&("( ".repeat(1_000) + "web1" + &" )".repeat(1_000)), "web1"), None);
    }

    #[test]
    fn the_error_says_what_is_wrong() {
        let error = |expr: &str| Target::parse(TargetType::Compound, &text(expr), ":").unwrap_err().to_string();
        assert_eq!(error("web1 and"), "\"web1 and\" is not a compound target: it ends too early");
        assert_eq!(error("web1 db1"), "\"web1 db1\" is not a compound target: \"db1\" is not expected there");
    }

    #[test]
    fn a_minion_of_which_nothing_is_known() {
        let id = MinionId::new("web1").unwrap();
        let meant = |expr: &str| {
            let target = Target::parse(TargetType::Compound, &text(expr), ":").unwrap();
            target.matches(&Facts::of_id(&id))
        };
        assert!(!meant("G@os:*"));
        assert!(meant("not G@os:*"));
        assert!(meant("S@10.0.0.0/8"), "it may have any address");
    }

    #[test]
    fn missing_ids_of_lists_but_not_of_excluded_ones() {
        let target = Target::parse(TargetType::Compound, &text("L@web1,gone or web2 and not L@away"), ":").unwrap();
        let ids = ["web1", "web2"].map(|id| MinionId::new(id).unwrap());
        let resolved = target.resolve(ids.iter().map(Facts::of_id));
        assert_eq!((resolved.matched, resolved.missing), (ids.to_vec(), vec!["gone".to_owned()]));
    }
}
