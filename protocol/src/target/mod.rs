//! Targets (§10): the minions that a job is for.
//!
//! - `subdict.rs`   grains and pillar: nested maps
//! - `ipcidr.rs`    addresses and networks
//! - `regex.rs`     expressions with Python's meaning, matched in linear time if possible
//! - `compound.rs`  terms joined by `and`, `or`, `not`
//! - `nodegroup.rs` names for targets
//! - `known.rs`     the master's data about its minions on disk

mod compound;
mod ipcidr;
mod known;
mod nodegroup;
mod regex;
mod subdict;

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

pub use brine_patterns::{Glob, fnmatch};
pub use compound::Term;
pub use known::{Known, read_entries};
pub use nodegroup::Nodegroups;

use compound::Expr;
use ipcidr::IpCidr;
pub use regex::Regex;
use subdict::{How, Subdict};

use crate::ids::MinionId;
use crate::value::{Value, ValueExt};

/// The type of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[allow(missing_docs, reason = "the names are Salt's")]
pub enum TargetType {
    #[default]
    Glob,
    Pcre,
    List,
    Grain,
    GrainPcre,
    Pillar,
    PillarPcre,
    PillarExact,
    Compound,
    CompoundPillarExact,
    Nodegroup,
    IpCidr,
    Range,
    Data,
}

impl TargetType {
    /// Salt's `tgt_type`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Glob => "glob",
            Self::Pcre => "pcre",
            Self::List => "list",
            Self::Grain => "grain",
            Self::GrainPcre => "grain_pcre",
            Self::Pillar => "pillar",
            Self::PillarPcre => "pillar_pcre",
            Self::PillarExact => "pillar_exact",
            Self::Compound => "compound",
            Self::CompoundPillarExact => "compound_pillar_exact",
            Self::Nodegroup => "nodegroup",
            Self::IpCidr => "ipcidr",
            Self::Range => "range",
            Self::Data => "data",
        }
    }
}

impl fmt::Display for TargetType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for TargetType {
    type Err = TargetError;
    fn from_str(name: &str) -> Result<Self, TargetError> {
        Ok(match name {
            "glob" => Self::Glob,
            "pcre" => Self::Pcre,
            "list" => Self::List,
            "grain" => Self::Grain,
            "grain_pcre" => Self::GrainPcre,
            "pillar" => Self::Pillar,
            "pillar_pcre" => Self::PillarPcre,
            "pillar_exact" => Self::PillarExact,
            "compound" => Self::Compound,
            "compound_pillar_exact" => Self::CompoundPillarExact,
            "nodegroup" => Self::Nodegroup,
            "ipcidr" => Self::IpCidr,
            "range" => Self::Range,
            "data" => Self::Data,
            other => return Err(TargetError::UnknownType(other.chars().take(40).collect())),
        })
    }
}

/// Why a target is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// No type of target has this name.
    #[error("{0:?} is not a type of target")]
    UnknownType(String),
    /// A type that Salt has and Brine does not: ranges need a range server, and a minion has no data store.
    #[error("targets of type {0} are not offered")]
    Unsupported(TargetType),
    /// The expression does not parse.
    #[error("{expr:?} is not a {kind} target: {why}")]
    Bad {
        /// The type.
        kind: TargetType,
        /// The expression, shortened to 80 characters.
        expr: String,
        /// What is wrong with it.
        why: String,
    },
}

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

/// A parsed target.
#[derive(Debug, Clone)]
pub struct Target {
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Glob(Glob),
    Pcre(Regex),
    List(Vec<String>),
    Id(String),
    Grains(Subdict),
    Pillar(Subdict),
    IpCidr(IpCidr),
    Compound(Expr),
}

/// Upper bound on the bytes of a glob or expression; ids have 255 bytes at most.
const MAX_PATTERN: usize = 4096;
/// The minions that a target names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resolved {
    /// The known minions that match.
    pub matched: Vec<MinionId>,
    /// Ids of a list target that no known minion has.
    pub missing: Vec<String>,
}

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
        groups: &Nodegroups,
    ) -> Result<Self, TargetError> {
        let bad = |why: &str| TargetError::Bad {
            kind: tgt_type,
            expr: expr.python_str().chars().take(80).collect(),
            why: why.to_owned(),
        };
        let pattern = || match expr.text() {
            None => Err(bad("it is not text")),
            Some(text) if text.len() > MAX_PATTERN => Err(bad("it is too long")),
            Some(text) => Ok(text),
        };
        let texts = |items: &[Value]| {
            let texts =
                items.iter().map(|item| item.text().map(str::to_owned).ok_or_else(|| bad("an item is not text")));
            texts.collect::<Result<Vec<_>, _>>()
        };
        let subdict = |how| Subdict::new(pattern()?, delimiter, how).map_err(|why| bad(&why));
        let kind = match tgt_type {
            TargetType::Glob => Kind::Glob(Glob::new(pattern()?)),
            TargetType::Pcre => Kind::Pcre(Regex::new(pattern()?).map_err(|why| bad(&why))?),
            TargetType::List => Kind::List(match expr {
                Value::Array(items) => texts(items)?,
                other => {
                    let text = other.text().ok_or_else(|| bad("it is neither a list nor text"))?;
                    text.split(',').filter(|id| !id.is_empty()).map(str::to_owned).collect()
                }
            }),
            TargetType::Grain => Kind::Grains(subdict(How::Glob)?),
            TargetType::GrainPcre => Kind::Grains(subdict(How::Pcre)?),
            TargetType::Pillar => Kind::Pillar(subdict(How::Glob)?),
            TargetType::PillarPcre => Kind::Pillar(subdict(How::Pcre)?),
            TargetType::PillarExact => Kind::Pillar(subdict(How::Exact)?),
            TargetType::IpCidr => Kind::IpCidr(IpCidr::new(pattern()?).map_err(bad)?),
            TargetType::Compound | TargetType::CompoundPillarExact => {
                let words = match expr {
                    Value::Array(items) => texts(items)?,
                    _ => pattern()?.split_whitespace().map(str::to_owned).collect(),
                };
                let exact = tgt_type == TargetType::CompoundPillarExact;
                Kind::Compound(Expr::parse(words, groups, exact).map_err(|why| bad(&why))?)
            }
            TargetType::Nodegroup => {
                let name = pattern()?;
                if !groups.has(name) {
                    return Err(bad("there is no such nodegroup"));
                }
                Kind::Compound(Expr::parse(groups.expand(name), groups, false).map_err(|why| bad(&why))?)
            }
            other @ (TargetType::Range | TargetType::Data) => return Err(TargetError::Unsupported(other)),
        };
        Ok(Self { kind })
    }

    /// The meaning of a term for resources (`T@`, 3008): it matches no minion, because Brine's minions have no
    /// resources and its masters know of none.
    fn nobody() -> Self {
        Self { kind: Kind::List(Vec::new()) }
    }

    /// One minion, for `M@` of 3008: the minion that manages resources.
    fn id(id: &str) -> Self {
        Self { kind: Kind::Id(id.to_owned()) }
    }

    /// Whether the target matches a minion. Unknown data matches nothing, with one exception: a minion with unknown
    /// grains matches every address, because Salt expects returns from minions whose addresses it does not know (§10).
    pub fn matches(&self, facts: &Facts<'_>) -> bool {
        match &self.kind {
            Kind::Glob(glob) => glob.matches(facts.id.as_str()),
            Kind::Pcre(regex) => regex.matches(facts.id.as_str()),
            Kind::List(ids) => ids.iter().any(|id| id == facts.id.as_str()),
            Kind::Id(id) => id == facts.id.as_str(),
            Kind::Grains(subdict) => facts.grains.is_some_and(|grains| subdict.matches(grains)),
            Kind::Pillar(subdict) => facts.pillar.is_some_and(|pillar| subdict.matches(pillar)),
            Kind::IpCidr(cidr) => facts.grains.is_none_or(|grains| cidr.matches(grains)),
            Kind::Compound(expr) => expr.matches(facts),
        }
    }

    /// Whether the target needs grains or pillar, so that the id alone does not decide.
    pub fn needs_data(&self) -> bool {
        let Needs { grains, pillar } = self.needs();
        !grains.is_empty() || !pillar.is_empty()
    }

    /// The data of a minion that the target needs, besides its id.
    pub fn needs(&self) -> Needs {
        let mut needs = Needs::default();
        match &self.kind {
            Kind::Glob(_) | Kind::Pcre(_) | Kind::List(_) | Kind::Id(_) => {}
            Kind::Grains(subdict) => needs.grains.add(subdict.key()),
            Kind::IpCidr(cidr) => needs.grains.add(Some(cidr.key())),
            Kind::Pillar(subdict) => needs.pillar.add(subdict.key()),
            Kind::Compound(expr) => expr.visit(false, &mut |target, _| {
                let inner = target.needs();
                needs.grains.join(inner.grains);
                needs.pillar.join(inner.pillar);
            }),
        }
        needs
    }

    fn listed(&self) -> Option<&[String]> {
        match &self.kind {
            Kind::List(ids) => Some(ids),
            _ => None,
        }
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
        Resolved { matched, missing: self.missing(ids) }
    }

    /// The listed ids that are not among the known ones.
    fn missing<'a>(&self, known: impl IntoIterator<Item = &'a str>) -> Vec<String> {
        let mut listed = indexmap::IndexSet::new();
        match &self.kind {
            Kind::List(ids) => listed.extend(ids.iter().map(String::as_str)),
            // A listed id that is negated is not missing.
            Kind::Compound(expr) => expr.visit(false, &mut |target, negated| {
                if let (false, Some(ids)) = (negated, target.listed()) {
                    listed.extend(ids.iter().map(String::as_str));
                }
            }),
            _ => {}
        }
        if !listed.is_empty() {
            let known: std::collections::HashSet<&str> = known.into_iter().collect();
            listed.retain(|id| !known.contains(id));
        }
        listed.into_iter().map(str::to_owned).collect()
    }
}

/// The data of a minion that a target needs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Needs {
    /// Keys of its grains.
    pub grains: Keys,
    /// Keys of its pillar.
    pub pillar: Keys,
}

/// Top-level keys of a minion's grains or pillar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Keys {
    /// These keys.
    These(BTreeSet<String>),
    /// All keys.
    All,
}

impl Default for Keys {
    fn default() -> Self {
        Self::These(BTreeSet::new())
    }
}

impl Keys {
    /// Whether no key is needed.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::These(keys) if keys.is_empty())
    }

    /// Whether this key is among them.
    pub fn has(&self, key: &str) -> bool {
        match self {
            Self::These(keys) => keys.contains(key),
            Self::All => true,
        }
    }

    fn add(&mut self, key: Option<&str>) {
        match (&mut *self, key) {
            (Self::These(keys), Some(key)) => drop(keys.insert(key.to_owned())),
            _ => *self = Self::All,
        }
    }

    fn join(&mut self, other: Self) {
        match (&mut *self, other) {
            (Self::These(keys), Self::These(others)) => keys.extend(others),
            _ => *self = Self::All,
        }
    }
}

impl<'a> Facts<'a> {
    /// A minion of which only the id is known.
    pub fn of_id(id: &'a MinionId) -> Self {
        Self { id, grains: None, pillar: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{list, text};

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
}
