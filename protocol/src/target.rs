//! Targets (§10): whom a job is for.

use std::fmt;
use std::str::FromStr;

use crate::ids::MinionId;
use crate::value::{Value, ValueExt};

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
    Glob(Glob),
    Pcre(regex::Regex),
    List(Vec<String>),
}

/// The longest glob or expression; ids have 255 bytes at most.
const MAX_PATTERN: usize = 4096;
/// What a compiled expression may take: they come from operators, but also from minions (peer publish).
const MAX_REGEX: usize = 1 << 20;

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
        let _ = delimiter; // of grain and pillar targets
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
        let kind = match tgt_type {
            TargetType::Glob => Kind::Glob(Glob::new(pattern()?)),
            TargetType::Pcre => Kind::Pcre(
                regex::RegexBuilder::new(pattern()?)
                    .size_limit(MAX_REGEX)
                    .dfa_size_limit(MAX_REGEX)
                    .build()
                    .map_err(|e| bad(e.to_string().lines().last().unwrap_or_default().trim()))?,
            ),
            TargetType::List => Kind::List(match expr {
                Value::Array(items) => items
                    .iter()
                    .map(|item| item.text().map(str::to_owned).ok_or_else(|| bad("an item is not text")))
                    .collect::<Result<_, _>>()?,
                other => {
                    let text = other.text().ok_or_else(|| bad("it is neither a list nor text"))?;
                    text.split(',').map(str::trim).filter(|id| !id.is_empty()).map(str::to_owned).collect()
                }
            }),
            other => return Err(TargetError::Unsupported(other)),
        };
        Ok(Self { kind })
    }

    /// Whether a minion with this id is meant.
    pub fn matches_id(&self, id: &MinionId) -> bool {
        match &self.kind {
            Kind::Glob(glob) => glob.matches(id.as_str()),
            // Python's re.match: anchored at the start only. The leftmost match starts at 0 if any does.
            Kind::Pcre(regex) => regex.find(id.as_str()).is_some_and(|found| found.start() == 0),
            Kind::List(ids) => ids.iter().any(|i| i == id.as_str()),
        }
    }

    /// Whether this minion is meant.
    pub fn matches(&self, facts: &Facts<'_>) -> bool {
        self.matches_id(facts.id)
    }

    /// The minions among these that are meant, in their order, and the listed ids that are not among them.
    pub fn resolve<'a>(&self, ids: impl IntoIterator<Item = &'a MinionId>) -> Resolved {
        let Kind::List(listed) = &self.kind else {
            let matched = ids.into_iter().filter(|id| self.matches_id(id)).cloned().collect();
            return Resolved { matched, missing: Vec::new() };
        };
        let mut open: indexmap::IndexSet<&str> = listed.iter().map(String::as_str).collect();
        let matched = ids.into_iter().filter(|id| open.shift_remove(id.as_str())).cloned().collect();
        Resolved { matched, missing: open.into_iter().map(str::to_owned).collect() }
    }
}

/// Whether the text matches a shell-style pattern as Python's `fnmatch.fnmatchcase` decides.
pub fn fnmatch(pattern: &str, text: &str) -> bool {
    Glob::new(pattern).matches(text)
}

/// A shell-style pattern with Python's rules, which are not a shell's: `*` takes everything, there is no escape, an
/// unclosed `[` is itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Star,
    Any,
    Char(char),
    Class { negated: bool, ranges: Vec<(char, char)> },
}

impl Glob {
    /// Reads a pattern; every text is one.
    pub fn new(pattern: &str) -> Self {
        let chars: Vec<char> = pattern.chars().collect();
        let mut pieces = Vec::new();
        let mut at = 0;
        while let Some(&c) = chars.get(at) {
            at += 1;
            match c {
                '*' if pieces.last() == Some(&Piece::Star) => {}
                '*' => pieces.push(Piece::Star),
                '?' => pieces.push(Piece::Any),
                '[' => match class(&chars, at) {
                    Some((piece, next)) => {
                        pieces.push(piece);
                        at = next;
                    }
                    None => pieces.push(Piece::Char('[')),
                },
                c => pieces.push(Piece::Char(c)),
            }
        }
        Self(pieces)
    }

    /// Whether the whole text matches. At most as many steps as both lengths multiplied.
    pub fn matches(&self, text: &str) -> bool {
        let text: Vec<char> = text.chars().collect();
        let (mut piece, mut at) = (0, 0);
        // Where to go on if the last star takes one character more.
        let mut retry: Option<(usize, usize)> = None;
        while at < text.len() {
            match self.0.get(piece) {
                Some(Piece::Star) => {
                    retry = Some((piece + 1, at));
                    piece += 1;
                }
                Some(one) if one.takes(text[at]) => {
                    piece += 1;
                    at += 1;
                }
                _ => match &mut retry {
                    Some((after_star, from)) => {
                        *from += 1;
                        (piece, at) = (*after_star, *from);
                    }
                    None => return false,
                },
            }
        }
        self.0[piece..].iter().all(|p| *p == Piece::Star)
    }
}

impl Piece {
    fn takes(&self, c: char) -> bool {
        match self {
            Self::Star => false,
            Self::Any => true,
            Self::Char(own) => *own == c,
            Self::Class { negated, ranges } => ranges.iter().any(|(from, to)| (*from..=*to).contains(&c)) != *negated,
        }
    }
}

/// The class that begins behind `[`, and where the pattern goes on; none if it is not closed.
fn class(chars: &[char], start: usize) -> Option<(Piece, usize)> {
    let negated = chars.get(start) == Some(&'!');
    let first = start + usize::from(negated);
    // A `]` in the first place is a member.
    let end = first + 1 + chars.get(first + 1..)?.iter().position(|&c| c == ']')?;
    let mut ranges = Vec::new();
    let mut at = first;
    while at < end {
        if at + 2 < end && chars[at + 1] == '-' {
            // An empty range matches nothing, as in Python.
            ranges.push((chars[at], chars[at + 2]));
            at += 3;
        } else {
            ranges.push((chars[at], chars[at]));
            at += 1;
        }
    }
    Some((Piece::Class { negated, ranges }, end + 1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::value::{list, text};

    #[test]
    fn globs_are_pythons() {
        let cases = [
            ("*", "", true),
            ("web*", "web1", true),
            ("web*", "aweb", false),
            ("*.example.*", "a.example.com", true),
            ("w?b", "wéb", true),
            ("w?b", "wb", false),
            ("[ab]x", "bx", true),
            ("[!ab]x", "bx", false),
            ("[!ab]x", "cx", true),
            ("[a-c]", "b", true),
            ("[c-a]", "b", false),
            ("[!c-a]", "b", true),
            ("[a-]", "-", true),
            ("[]]", "]", true),
            ("[!]]", "]", false),
            ("[]a]", "a", true),
            ("[", "[", true),
            ("[a", "[a", true),
            ("[]", "[]", true),
            ("[!]", "[!]", true),
            ("a\\*", "a\\b", true),
            ("WEB", "web", false),
            ("a**b*c", "aXbYc", true),
            ("[^a]", "^", true),
            ("[[]", "[", true),
            ("[a-b-c]", "-", true),
            ("{a,b}", "a", false),
            ("{a,b}", "{a,b}", true),
        ];
        for (pattern, name, expect) in cases {
            assert_eq!(fnmatch(pattern, name), expect, "{pattern} {name}");
        }
    }

    #[test]
    fn many_stars_take_no_exponential_time() {
        let pattern = "*a".repeat(1000) + "b";
        assert!(!fnmatch(&pattern, &"a".repeat(255)));
    }

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
        assert_eq!(t.resolve(&known).matched, ids(&["web1", "db1"]));
    }

    #[test]
    fn a_list_names_what_is_missing() {
        let known = ids(&["a", "b", "c"]);
        for expr in [list(["c", "x", "a", "a"]), text("c,x, a,")] {
            let resolved = target(TargetType::List, expr).unwrap().resolve(&known);
            assert_eq!(resolved, Resolved { matched: ids(&["a", "c"]), missing: vec!["x".to_owned()] });
        }
    }

    #[test]
    fn bad_targets_say_what_is_wrong() {
        assert!(matches!(target(TargetType::Glob, Value::Nil), Err(TargetError::Bad { .. })));
        let error = target(TargetType::Pcre, text("(")).unwrap_err().to_string();
        assert_eq!(error, r#""(" is not a pcre target: error: unclosed group"#);
        assert!(target(TargetType::Pcre, text("(a{1000}){1000}")).is_err(), "a bomb");
        assert!(target(TargetType::List, list([1])).is_err());
        assert!(matches!(target(TargetType::Compound, text("a")), Err(TargetError::Unsupported(_))));
        assert!("hostname".parse::<TargetType>().is_err());
        assert_eq!("ipcidr".parse::<TargetType>().unwrap().to_string(), "ipcidr");
    }

    proptest! {
        #[test]
        fn every_text_is_a_glob_and_none_panics(pattern in "[\\[\\]!a-c*?-]{0,12}", name in "[a-c\\[\\]!-]{0,8}") {
            let _ = fnmatch(&pattern, &name);
        }

        #[test]
        fn a_glob_without_magic_is_equality(a in "[a-c.]{0,3}", b in "[a-c.]{0,3}") {
            prop_assert_eq!(fnmatch(&a, &b), a == b);
        }
    }
}
