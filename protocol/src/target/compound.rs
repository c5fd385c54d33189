//! Compound targets (§10.2): `G@os:Debian and not ( web* or L@db1,db2 )`. They are parsed, never evaluated as a
//! program.
//!
//! `not` binds closer than `and`, and `and` closer than `or`. An expression that Salt's parser refuses is an error
//! here.

use super::nodegroup::Nodegroups;
use super::{Facts, Target, TargetError, TargetType};
use crate::value::Value;

/// Upper bound on the words of an expression after the expansion of groups.
const MAX_WORDS: usize = 20_000;
/// Upper bound on nested parentheses, because the parser recurses.
const MAX_DEPTH: usize = 64;

/// The engine letter, delimiter and pattern of a term; no engine if the word is a glob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Term<'a> {
    /// `G` of `G@os:Debian`.
    pub engine: Option<char>,
    /// `|` of `G|@os|Debian`.
    pub delimiter: Option<char>,
    /// The pattern for the engine.
    pub pattern: &'a str,
}

impl<'a> Term<'a> {
    /// Parses a term as Salt's `parse_target` does.
    pub fn parse(word: &'a str) -> Self {
        let glob = Self { engine: None, delimiter: None, pattern: word };
        let mut chars = word.chars();
        let Some(engine) = chars.next().filter(|c| "GPIJLNSERTM".contains(*c)) else { return glob };
        let rest = chars.as_str();
        if "GPIJ".contains(engine) {
            let mut after = rest.chars();
            if let Some(delimiter) = after.next().filter(|c| *c != '\n')
                && let Some(pattern) = after.as_str().strip_prefix('@').filter(|pattern| !pattern.is_empty())
            {
                return Self { engine: Some(engine), delimiter: Some(delimiter), pattern };
            }
        }
        match rest.strip_prefix('@').filter(|pattern| !pattern.is_empty()) {
            Some(pattern) => Self { engine: Some(engine), delimiter: None, pattern },
            None => glob,
        }
    }
}

/// A parsed expression.
#[derive(Debug, Clone)]
pub(super) enum Expr {
    Term(Box<Target>),
    Not(Box<Expr>),
    All(Vec<Expr>),
    Any(Vec<Expr>),
}

impl Expr {
    /// Parses the words. The error says what is wrong.
    pub(super) fn parse(words: Vec<String>, groups: &Nodegroups, exact: bool) -> Result<Self, String> {
        let words = expand_groups(words, groups)?;
        let mut parser = Parser { words: &words, at: 0, exact };
        let expr = parser.any(0)?;
        match parser.next() {
            None => Ok(expr),
            Some(word) => Err(format!("{word:?} is not expected there")),
        }
    }

    pub(super) fn matches(&self, facts: &Facts<'_>) -> bool {
        match self {
            Self::Term(target) => target.matches(facts),
            Self::Not(expr) => !expr.matches(facts),
            Self::All(all) => all.iter().all(|expr| expr.matches(facts)),
            Self::Any(any) => any.iter().any(|expr| expr.matches(facts)),
        }
    }

    /// Visits every term with whether a `not` negates it.
    pub(super) fn visit<'a>(&'a self, negated: bool, visit: &mut dyn FnMut(&'a Target, bool)) {
        match self {
            Self::Term(target) => visit(target, negated),
            Self::Not(expr) => expr.visit(true, visit),
            Self::All(exprs) | Self::Any(exprs) => exprs.iter().for_each(|expr| expr.visit(false, visit)),
        }
    }
}

/// Expands nodegroups in place as Salt does: without parentheses if the group has none.
fn expand_groups(words: Vec<String>, groups: &Nodegroups) -> Result<Vec<String>, String> {
    let mut out: Vec<String> = Vec::new();
    for word in words {
        match Term::parse(&word) {
            Term { engine: Some('N'), pattern, .. } => out.extend(groups.expand(pattern)),
            _ => out.push(word),
        }
        if out.len() > MAX_WORDS {
            return Err("it has too many words".to_owned());
        }
    }
    Ok(out)
}

struct Parser<'a> {
    words: &'a [String],
    at: usize,
    exact: bool,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a str> {
        self.words.get(self.at).map(String::as_str)
    }

    fn next(&mut self) -> Option<&'a str> {
        let word = self.peek()?;
        self.at += 1;
        Some(word)
    }

    fn any(&mut self, depth: usize) -> Result<Expr, String> {
        let mut any = vec![self.read_all(depth)?];
        while self.peek() == Some("or") {
            self.at += 1;
            any.push(self.read_all(depth)?);
        }
        Ok(if any.len() == 1 { any.remove(0) } else { Expr::Any(any) })
    }

    fn read_all(&mut self, depth: usize) -> Result<Expr, String> {
        let mut all = vec![self.not(depth)?];
        loop {
            match self.peek() {
                Some("and") => self.at += 1,
                // `a not b` means `a and not b`.
                Some("not") => {}
                _ => break,
            }
            all.push(self.not(depth)?);
        }
        Ok(if all.len() == 1 { all.remove(0) } else { Expr::All(all) })
    }

    fn not(&mut self, depth: usize) -> Result<Expr, String> {
        if self.peek() != Some("not") {
            return self.term(depth);
        }
        self.at += 1;
        match self.peek() {
            Some("not") => Err("\"not\" is not expected there".to_owned()),
            _ => Ok(Expr::Not(Box::new(self.term(depth)?))),
        }
    }

    fn term(&mut self, depth: usize) -> Result<Expr, String> {
        match self.next() {
            None => Err("it ends too early".to_owned()),
            Some(word @ ("and" | "or" | ")")) => Err(format!("{word:?} is not expected there")),
            Some("(") if depth >= MAX_DEPTH => Err("it nests too deep".to_owned()),
            Some("(") => {
                let inner = self.any(depth + 1)?;
                match self.next() {
                    Some(")") => Ok(inner),
                    Some(word) => Err(format!("{word:?} is not expected there")),
                    None => Err("a parenthesis is not closed".to_owned()),
                }
            }
            Some(word) => Ok(Expr::Term(Box::new(self.leaf(word).map_err(|error| error.to_string())?))),
        }
    }

    fn leaf(&self, word: &str) -> Result<Target, TargetError> {
        let Term { engine, delimiter, pattern } = Term::parse(word);
        let kind = match engine {
            None => TargetType::Glob,
            Some('G') => TargetType::Grain,
            Some('P') => TargetType::GrainPcre,
            Some('I' | 'J') if self.exact => TargetType::PillarExact,
            Some('I') => TargetType::Pillar,
            Some('J') => TargetType::PillarPcre,
            Some('L') => TargetType::List,
            Some('S') => TargetType::IpCidr,
            Some('E') => TargetType::Pcre,
            Some('R') => TargetType::Range,
            Some('T') => return Ok(Target::nobody()),
            Some('M') => return Ok(Target::id(pattern)),
            // Groups are already expanded.
            Some(other) => return Err(TargetError::UnknownType(format!("{other}@"))),
        };
        let delimiter = delimiter.map_or_else(|| ":".to_owned(), String::from);
        Target::parse(kind, &Value::from(pattern), &delimiter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::MinionId;
    use crate::value::{list, map, text};

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
