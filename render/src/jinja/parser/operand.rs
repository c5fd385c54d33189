//! Literals, names, lookups, calls, filters and tests.

use std::rc::Rc;

use super::super::ast::{Args, Expr, ExprKind, Name};
use super::super::error::{JinjaError, Res};
use super::super::token::Tok;
use super::super::{filters, tests};
use super::Parser;
use crate::value::Value;

/// Lookups, calls and filters in a row nest the tree; each takes stack when it is run.
const MAX_CHAIN: usize = 60;

impl Parser {
    pub(super) fn primary(&mut self) -> Res<Expr> {
        let token = self.tokens[self.at].clone();
        let constant = |value| Ok(Expr { line: token.line, kind: ExprKind::Const(value) });
        match token.kind {
            Tok::Name(name) => {
                self.next();
                match name.as_str() {
                    "true" | "True" => return constant(Value::Bool(true)),
                    "false" | "False" => return constant(Value::Bool(false)),
                    "none" | "None" => return constant(Value::None),
                    _ => {}
                }
                for (at, special) in ["varargs", "kwargs", "caller"].iter().enumerate() {
                    if name == *special {
                        self.special.iter_mut().for_each(|flags| flags[at] = true);
                    }
                }
                Ok(Expr { line: token.line, kind: ExprKind::Name(name.into()) })
            }
            Tok::Text(mut text) => {
                self.next();
                while let Tok::Text(more) = self.current() {
                    text.push_str(more);
                    self.next();
                }
                constant(Value::str(text))
            }
            Tok::Int(n) => {
                self.next();
                constant(Value::Int(n))
            }
            Tok::Float(n) => {
                self.next();
                constant(Value::Float(n))
            }
            Tok::Op("(") => {
                self.next();
                let inner = self.tuple(true, true, &[])?;
                self.expect_op(")")?;
                Ok(inner)
            }
            Tok::Op("[") => {
                self.next();
                let items = self.items("]", |parser| parser.expression(true))?;
                Ok(Expr { line: token.line, kind: ExprKind::List(items) })
            }
            Tok::Op("{") => {
                self.next();
                let items = self.items("}", |parser| {
                    let key = parser.expression(true)?;
                    parser.expect_op(":")?;
                    Ok((key, parser.expression(true)?))
                })?;
                Ok(Expr { line: token.line, kind: ExprKind::Dict(items) })
            }
            other => self.fail(format!("unexpected '{}'", other.describe()), token.line),
        }
    }

    fn items<T>(&mut self, end: &str, mut item: impl FnMut(&mut Self) -> Res<T>) -> Res<Vec<T>> {
        let mut items = Vec::new();
        while !self.is_op(end) {
            if !items.is_empty() {
                self.expect_op(",")?;
            }
            if self.is_op(end) {
                break;
            }
            items.push(item(self)?);
        }
        self.expect_op(end)?;
        Ok(items)
    }

    /// An expression, or several with commas, which are a tuple.
    pub(super) fn tuple(&mut self, with_condition: bool, explicit: bool, ends: &[&str]) -> Res<Expr> {
        let mut line = self.line();
        let (mut items, mut is_tuple) = (Vec::new(), false);
        loop {
            if !items.is_empty() {
                self.expect_op(",")?;
            }
            let end = matches!(self.current(), Tok::VariableEnd | Tok::BlockEnd | Tok::Op(")"))
                || ends.iter().any(|name| self.is_name(name));
            if end {
                break;
            }
            items.push(self.expression(with_condition)?);
            if !self.is_op(",") {
                break;
            }
            is_tuple = true;
            line = self.line();
        }
        if !is_tuple {
            if let Some(only) = items.pop() {
                return Ok(only);
            }
            if !explicit {
                let got = self.current().describe();
                return self.fail(format!("Expected an expression, got '{got}'"), self.line());
            }
        }
        Ok(Expr { line, kind: ExprKind::Tuple(items) })
    }

    pub(super) fn postfix(&mut self, mut node: Expr) -> Res<Expr> {
        for length in 0.. {
            node = match self.current() {
                Tok::Op("." | "[") => self.subscript(node)?,
                Tok::Op("(") => self.call(node)?,
                _ => return Ok(node),
            };
            self.check_chain(length)?;
        }
        Ok(node)
    }

    fn check_chain(&self, length: usize) -> Res<()> {
        match length > MAX_CHAIN {
            true => Err(JinjaError::syntax(format!("more than {MAX_CHAIN} lookups in a row"), self.line())),
            false => Ok(()),
        }
    }

    fn call(&mut self, node: Expr) -> Res<Expr> {
        let line = self.line();
        let args = self.args()?;
        Ok(Expr { line, kind: ExprKind::Call(Box::new(node), args) })
    }

    fn subscript(&mut self, node: Expr) -> Res<Expr> {
        let line = self.line();
        let node = Box::new(node);
        if self.skip_op(".") {
            let token = self.next();
            let kind = match token.kind {
                Tok::Name(name) => ExprKind::Attribute(node, name.into()),
                Tok::Int(n) => {
                    let index = Expr { line: token.line, kind: ExprKind::Const(Value::Int(n)) };
                    ExprKind::Item(node, Box::new(index))
                }
                _ => return self.fail("expected name or number", token.line),
            };
            return Ok(Expr { line, kind });
        }
        self.expect_op("[")?;
        let mut items = Vec::new();
        while !self.is_op("]") {
            if !items.is_empty() {
                self.expect_op(",")?;
            }
            items.push(self.index()?);
        }
        self.expect_op("]")?;
        let index = match items.len() {
            1 => items.remove(0),
            _ => Expr { line, kind: ExprKind::Tuple(items) },
        };
        Ok(Expr { line, kind: ExprKind::Item(node, Box::new(index)) })
    }

    fn index(&mut self) -> Res<Expr> {
        let line = self.line();
        let start = if self.is_op(":") { None } else { Some(self.expression(true)?) };
        if !self.skip_op(":") {
            return match start {
                Some(index) => Ok(index),
                None => self.expected(":"),
            };
        }
        let part = |parser: &mut Self| {
            let none = matches!(parser.current(), Tok::Op(":" | "]" | ","));
            if none { Ok(None) } else { parser.expression(true).map(Some) }
        };
        let stop = part(self)?;
        let step = if self.skip_op(":") { part(self)? } else { None };
        Ok(Expr { line, kind: ExprKind::Slice(Box::new([start, stop, step])) })
    }

    pub(super) fn args(&mut self) -> Res<Args> {
        let line = self.line();
        self.expect_op("(")?;
        let mut args = Args::default();
        let mut comma = false;
        while !self.is_op(")") {
            if comma {
                self.expect_op(",")?;
                if self.is_op(")") {
                    break;
                }
            }
            comma = true;
            let mut valid = args.stars.is_none();
            if self.skip_op("*") {
                valid &= args.star.is_none();
                args.star = Some(Box::new(self.expression(true)?));
            } else if self.skip_op("**") {
                args.stars = Some(Box::new(self.expression(true)?));
            } else if matches!(self.current(), Tok::Name(_)) && *self.look() == Tok::Op("=") {
                let name = self.expect_name()?;
                self.expect_op("=")?;
                args.keyword.push((name, self.expression(true)?));
            } else {
                valid &= args.star.is_none() && args.keyword.is_empty();
                args.positional.push(self.expression(true)?);
            }
            if !valid {
                return self.fail("invalid syntax for function call expression", line);
            }
        }
        self.expect_op(")")?;
        Ok(args)
    }

    /// Filters, tests and calls after an operand.
    pub(super) fn filters(&mut self, mut node: Expr) -> Res<Expr> {
        for length in 0.. {
            node = match self.current() {
                Tok::Op("|") => {
                    self.next();
                    self.filter(Some(Box::new(node)))?
                }
                Tok::Name(name) if name == "is" => self.test(node)?,
                Tok::Op("(") => self.call(node)?,
                _ => return Ok(node),
            };
            self.check_chain(length)?;
        }
        Ok(node)
    }

    fn dotted(&mut self) -> Res<Name> {
        let mut name = self.expect_name()?.to_string();
        while self.skip_op(".") {
            name.push('.');
            name.push_str(&self.expect_name()?);
        }
        Ok(Rc::from(name))
    }

    /// A filter after its bar. None as input: what a filter block or a set block contains.
    pub(super) fn filter(&mut self, input: Option<Box<Expr>>) -> Res<Expr> {
        let line = self.line();
        let name = self.dotted()?;
        if !filters::exists(&name) && self.soft == 0 {
            self.missing.push(*JinjaError::syntax(format!("No filter named '{name}'."), line));
        }
        let args = if self.is_op("(") { self.args()? } else { Args::default() };
        Ok(Expr { line, kind: ExprKind::Filter(input, name, args) })
    }

    fn test(&mut self, node: Expr) -> Res<Expr> {
        let line = self.next().line;
        let negated = self.skip_name("not");
        let name = self.dotted()?;
        if !tests::exists(&name) && self.soft == 0 {
            self.missing.push(*JinjaError::syntax(format!("No test named '{name}'."), line));
        }
        let ends = ["else", "or", "and"].iter().any(|name| self.is_name(name));
        let args = match self.current() {
            Tok::Op("(") => self.args()?,
            Tok::Name(_) | Tok::Text(_) | Tok::Int(_) | Tok::Float(_) | Tok::Op("[" | "{") if !ends => {
                if self.is_name("is") {
                    return self.fail("You cannot chain multiple tests with is", self.line());
                }
                let operand = self.primary()?;
                Args { positional: vec![self.postfix(operand)?], ..Args::default() }
            }
            _ => Args::default(),
        };
        let test = Expr { line, kind: ExprKind::Test(Box::new(node), name, args) };
        Ok(if negated { Expr { line, kind: ExprKind::Not(Box::new(test)) } } else { test })
    }
}
