//! From tokens to the syntax tree, with Jinja's messages.

mod expression;
mod operand;
mod statement;
mod tags;

use std::collections::HashMap;
use std::rc::Rc;

use super::Settings;
use super::ast::{BlockDef, Name, Template};
use super::error::{JinjaError, Res};
use super::lexer;
use super::token::{Tok, Token};

/// Upper bound on nested expressions and blocks: each level takes stack, here and when it is run.
const MAX_NESTING: usize = 60;

/// Parses a template. `file` is its path for messages.
pub(super) fn parse(source: &str, file: Option<Name>, settings: &Settings) -> Res<Rc<Template>> {
    let tokens = lexer::tokenize(&lexer::normalize(source, settings), settings)?;
    // As it was: an error shows its lines, and an empty one at the end too.
    let source = source.to_owned();
    let size = source.len() * 2 + tokens.len() * 200;
    let mut parser = Parser {
        tokens,
        at: 0,
        tags: Vec::new(),
        ends: Vec::new(),
        blocks: HashMap::new(),
        nesting: 0,
        soft: 0,
        missing: Vec::new(),
        special: Vec::new(),
    };
    let body = parser.parse_body(&[]);
    let body = body.and_then(|body| match parser.missing.into_iter().next() {
        Some(error) => Err(Box::new(error)),
        None => Ok(body),
    });
    match body {
        Ok(body) => Ok(Rc::new(Template { file, name: None, source, size, body, blocks: parser.blocks })),
        Err(error) => Err(error.locate(file.as_ref(), 1, &source)),
    }
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    /// The open tags.
    tags: Vec<String>,
    /// The names that end each open body.
    ends: Vec<Vec<&'static str>>,
    blocks: HashMap<Name, Rc<BlockDef>>,
    nesting: usize,
    /// Inside of conditions, an unknown filter is an error only when it is reached.
    soft: usize,
    /// Unknown filters and tests: said when all else is right.
    missing: Vec<JinjaError>,
    /// For each open macro: whether it names `varargs`, `kwargs`, `caller`.
    special: Vec<[bool; 3]>,
}

impl Parser {
    fn current(&self) -> &Tok {
        &self.tokens[self.at].kind
    }

    fn line(&self) -> u32 {
        self.tokens[self.at].line
    }

    fn look(&self) -> &Tok {
        &self.tokens[(self.at + 1).min(self.tokens.len() - 1)].kind
    }

    fn next(&mut self) -> Token {
        let token = self.tokens[self.at].clone();
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
        token
    }

    fn is_op(&self, op: &str) -> bool {
        matches!(self.current(), Tok::Op(o) if *o == op)
    }

    fn is_name(&self, name: &str) -> bool {
        matches!(self.current(), Tok::Name(n) if n == name)
    }

    fn skip_op(&mut self, op: &str) -> bool {
        let is = self.is_op(op);
        if is {
            self.next();
        }
        is
    }

    fn skip_name(&mut self, name: &str) -> bool {
        let is = self.is_name(name);
        if is {
            self.next();
        }
        is
    }

    fn fail<T>(&self, message: impl Into<String>, line: u32) -> Res<T> {
        match self.current() {
            Tok::Wrong(why) => Err(JinjaError::syntax(why.clone(), self.line())),
            _ => Err(JinjaError::syntax(message, line)),
        }
    }

    fn expected<T>(&self, what: &str) -> Res<T> {
        match self.current() {
            Tok::Eof => self.fail(format!("unexpected end of template, expected '{what}'."), self.line()),
            got => self.fail(format!("expected token '{what}', got '{}'", got.describe()), self.line()),
        }
    }

    fn expect_op(&mut self, op: &str) -> Res<()> {
        if self.skip_op(op) { Ok(()) } else { self.expected(op) }
    }

    fn expect_name(&mut self) -> Res<Name> {
        match self.current() {
            Tok::Name(name) => {
                let name = name.as_str().into();
                self.next();
                Ok(name)
            }
            _ => self.expected("name"),
        }
    }

    fn expect_block_end(&mut self) -> Res<()> {
        if *self.current() == Tok::BlockEnd {
            self.next();
            return Ok(());
        }
        self.expected("end of statement block")
    }

    fn enter(&mut self) -> Res<()> {
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            return Err(JinjaError::syntax(format!("more than {MAX_NESTING} levels of nesting"), self.line()));
        }
        Ok(())
    }
}
