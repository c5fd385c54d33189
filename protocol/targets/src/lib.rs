//! Targets: the minions that an expression means. No I/O, so that masters, minions and templates match alike.
//!
//! Sections (§) in the comments are those of `PROTOCOL.md`.
//!
//! - `subdict.rs`   grains and pillar: nested maps
//! - `ipcidr.rs`    addresses and networks
//! - `regex.rs`     expressions with Python's meaning, matched in linear time if possible
//! - `compound.rs`  terms joined by `and`, `or`, `not`
//! - `nodegroup.rs` names for targets
//! - `needs.rs`     the data that a target needs

mod compound;
mod ipcidr;
mod needs;
mod nodegroup;
mod regex;
mod subdict;

use std::fmt;
use std::str::FromStr;

pub use brine_patterns::{Glob, fnmatch};
pub use compound::Term;
pub use needs::{Keys, Needs};
pub use nodegroup::Nodegroups;

use compound::Expr;
use indexmap::IndexSet;
use ipcidr::IpCidr;
use regex::Compiler;
pub use regex::Regex;
use subdict::{How, Subdict};

use brine_values::{Value, ValueExt};

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
    pub id: &'a str,
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
    List(IndexSet<String>),
    Id(String),
    Grains(Subdict),
    Pillar(Subdict),
    IpCidr(IpCidr),
    Compound(Expr),
}

/// Upper bound on the bytes of a glob or expression; ids have 255 bytes at most.
const MAX_PATTERN: usize = 4096;

/// What the meaning of an expression depends on.
#[derive(Debug, Clone, Copy)]
pub struct Dialect<'a> {
    /// The configured nodegroups.
    pub nodegroups: &'a Nodegroups,
    /// How a word is read as an argument of a command line: keys that are no text are found by it.
    pub argument: fn(&str) -> Value,
}

impl Target {
    /// Parses a target. `expr` is text; for lists and compounds also a list of texts; for lists also a comma-separated
    /// text.
    ///
    /// # Errors
    /// When the type is unknown or unsupported, or the expression does not parse.
    pub fn parse(
        tgt_type: TargetType,
        expr: &Value,
        delimiter: &str,
        dialect: Dialect<'_>,
    ) -> Result<Self, TargetError> {
        Self::compile(tgt_type, expr, delimiter, dialect, &Compiler::default())
    }

    fn compile(
        tgt_type: TargetType,
        expr: &Value,
        delimiter: &str,
        dialect: Dialect<'_>,
        patterns: &Compiler,
    ) -> Result<Self, TargetError> {
        let groups = dialect.nodegroups;
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
        let subdict =
            |how| Subdict::new(pattern()?, delimiter, how, dialect.argument, patterns).map_err(|why| bad(&why));
        let kind = match tgt_type {
            TargetType::Glob => Kind::Glob(Glob::new(pattern()?)),
            TargetType::Pcre => Kind::Pcre(patterns.compile(pattern()?).map_err(|why| bad(&why))?),
            TargetType::List => Kind::List(match expr {
                Value::Array(items) => texts(items)?.into_iter().collect(),
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
                Kind::Compound(Expr::parse(words, dialect, patterns, exact).map_err(|why| bad(&why))?)
            }
            TargetType::Nodegroup => {
                let name = pattern()?;
                if !groups.has(name) {
                    return Err(bad("there is no such nodegroup"));
                }
                Kind::Compound(Expr::parse(groups.expand(name), dialect, patterns, false).map_err(|why| bad(&why))?)
            }
            other @ (TargetType::Range | TargetType::Data) => return Err(TargetError::Unsupported(other)),
        };
        Ok(Self { kind })
    }

    /// The meaning of a term for resources (`T@`, 3008): it matches no minion, because Brine's minions have no
    /// resources and its masters know of none.
    fn nobody() -> Self {
        Self { kind: Kind::List(IndexSet::new()) }
    }

    /// One minion, for `M@` of 3008: the minion that manages resources.
    fn id(id: &str) -> Self {
        Self { kind: Kind::Id(id.to_owned()) }
    }

    /// Whether the target matches a minion. Unknown data matches nothing, with one exception: a minion with unknown
    /// grains matches every address, because Salt expects returns from minions whose addresses it does not know (§10).
    pub fn matches(&self, facts: &Facts<'_>) -> bool {
        match &self.kind {
            Kind::Glob(glob) => glob.matches(facts.id),
            Kind::Pcre(regex) => regex.matches(facts.id),
            Kind::List(ids) => ids.contains(facts.id),
            Kind::Id(id) => id == facts.id,
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

    fn listed(&self) -> Option<&IndexSet<String>> {
        match &self.kind {
            Kind::List(ids) => Some(ids),
            _ => None,
        }
    }

    /// The listed ids that are not among the known ones.
    pub fn missing<'a>(&self, known: impl IntoIterator<Item = &'a str>) -> Vec<String> {
        let mut listed = IndexSet::new();
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

impl<'a> Facts<'a> {
    /// A minion of which only the id is known.
    pub fn of_id(id: &'a str) -> Self {
        Self { id, grains: None, pillar: None }
    }
}
