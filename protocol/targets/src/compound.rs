//! Compound targets (§10.2): `G@os:Debian and not ( web* or L@db1,db2 )`. They are parsed, never evaluated as a
//! program.
//!
//! `not` binds closer than `and`, and `and` closer than `or`. An expression that Salt's parser refuses is an error
//! here.

use brine_values::Value;

use super::nodegroup::Nodegroups;
use super::regex::Compiler;
use super::{Dialect, Facts, Target, TargetError, TargetType};

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
    pub(super) fn parse(
        words: Vec<String>,
        dialect: Dialect<'_>,
        patterns: &Compiler,
        exact: bool,
    ) -> Result<Self, String> {
        let words = expand_groups(words, dialect.nodegroups)?;
        let mut parser = Parser { words: &words, at: 0, exact, argument: dialect.argument, patterns };
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
    argument: fn(&str) -> Value,
    patterns: &'a Compiler,
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
        let dialect = Dialect { nodegroups: &Nodegroups::default(), argument: self.argument };
        Target::compile(kind, &Value::from(pattern), &delimiter, dialect, self.patterns)
    }
}
