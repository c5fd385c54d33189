//! Targets (§10): whom a job is for.

use std::fmt;
use std::str::FromStr;

use crate::ids::MinionId;
use crate::value::Value;

/// How a target is read.
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
            "nodegroup" => Self::Nodegroup,
            "ipcidr" => Self::IpCidr,
            "range" => Self::Range,
            "data" => Self::Data,
            other => return Err(TargetError::UnknownType(other.chars().take(40).collect())),
        })
    }
}

/// Why a target is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// There is no such type of target.
    #[error("{0:?} is not a type of target")]
    UnknownType(String),
    /// A type that is not supported yet.
    #[error("targets of type {0} are not supported yet")]
    Unsupported(TargetType),
    /// The expression does not parse.
    #[error("{expr:?} is not a {kind} target: {why}")]
    Bad {
        /// The type.
        kind: TargetType,
        /// The expression, cut to 80 characters.
        expr: String,
        /// What is wrong with it.
        why: String,
    },
}

/// What a minion is matched by.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// Its id.
    pub id: &'a MinionId,
    /// Its grains, a map.
    pub grains: &'a Value,
    /// Its pillar, a map.
    pub pillar: &'a Value,
}

/// A parsed target.
#[derive(Debug, Clone)]
pub struct Target {
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Pattern(regex::Regex),
    List(Vec<String>),
}

/// Which minions a target names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resolved {
    /// The known minions that match.
    pub matched: Vec<MinionId>,
    /// Ids of a list target that no known minion has.
    pub missing: Vec<String>,
}

impl Target {
    /// Reads a target; `expr` is text, or for lists a list of texts or a comma text.
    ///
    /// # Errors
    /// When the type is unknown or unsupported, or the expression does not parse.
    pub fn parse(tgt_type: TargetType, expr: &Value, delimiter: &str) -> Result<Self, TargetError> {
        let _ = (tgt_type, expr, delimiter);
        todo!()
    }

    /// Whether a minion with this id is meant.
    pub fn matches_id(&self, id: &MinionId) -> bool {
        match &self.kind {
            Kind::Pattern(regex) => regex.is_match(id.as_str()),
            Kind::List(ids) => ids.iter().any(|i| i == id.as_str()),
        }
    }

    /// Whether this minion is meant.
    pub fn matches(&self, facts: &Facts<'_>) -> bool {
        self.matches_id(facts.id)
    }

    /// The minions among these that are meant, in their order, and the listed ids that are not among them.
    pub fn resolve<'a>(&self, ids: impl IntoIterator<Item = &'a MinionId>) -> Resolved {
        let _ = ids.into_iter();
        todo!()
    }
}

/// Whether the text matches a shell-style pattern as Python's `fnmatch.fnmatchcase` decides.
pub fn fnmatch(pattern: &str, text: &str) -> bool {
    let _ = (pattern, text);
    todo!()
}
