//! Expressions from the condition down to the unary operators.

use super::super::ast::{Comparison, Expr, ExprKind, Operator};
use super::super::error::Res;
use super::super::token::Tok;
use super::Parser;

fn boxed(line: u32, kind: ExprKind) -> Expr {
    Expr { line, kind }
}

impl Parser {
    pub(super) fn expression(&mut self, with_condition: bool) -> Res<Expr> {
        self.enter()?;
        let expr = if with_condition { self.conditional() } else { self.or() };
        self.nesting -= 1;
        expr
    }

    fn conditional(&mut self) -> Res<Expr> {
        let missing = self.missing.len();
        let mut line = self.line();
        let mut value = self.or()?;
        while self.skip_name("if") {
            self.soft += 1;
            let condition = self.or()?;
            let otherwise = if self.skip_name("else") {
                self.enter()?;
                let otherwise = self.conditional()?;
                self.nesting -= 1;
                Some(otherwise)
            } else {
                None
            };
            self.soft -= 1;
            self.missing.truncate(missing);
            value = boxed(line, ExprKind::If(Box::new((condition, value, otherwise))));
            line = self.line();
        }
        Ok(value)
    }

    fn or(&mut self) -> Res<Expr> {
        let mut line = self.line();
        let mut links = 0;
        let mut left = self.and()?;
        while self.skip_name("or") {
            let right = self.and()?;
            left = boxed(line, ExprKind::Or(Box::new(left), Box::new(right)));
            line = self.line();
            self.chain(&mut links)?;
        }
        Ok(left)
    }

    fn and(&mut self) -> Res<Expr> {
        let mut line = self.line();
        let mut links = 0;
        let mut left = self.not()?;
        while self.skip_name("and") {
            let right = self.not()?;
            left = boxed(line, ExprKind::And(Box::new(left), Box::new(right)));
            line = self.line();
            self.chain(&mut links)?;
        }
        Ok(left)
    }

    fn not(&mut self) -> Res<Expr> {
        if self.is_name("not") {
            let line = self.next().line;
            self.enter()?;
            let inner = self.not()?;
            self.nesting -= 1;
            return Ok(boxed(line, ExprKind::Not(Box::new(inner))));
        }
        self.compare()
    }

    fn compare(&mut self) -> Res<Expr> {
        let mut line = self.line();
        let first = self.sum()?;
        let mut rest = Vec::new();
        loop {
            line = if rest.is_empty() { line } else { self.line() };
            let comparison = match self.current() {
                Tok::Op("==") => Comparison::Eq,
                Tok::Op("!=") => Comparison::Ne,
                Tok::Op("<") => Comparison::Lt,
                Tok::Op("<=") => Comparison::Le,
                Tok::Op(">") => Comparison::Gt,
                Tok::Op(">=") => Comparison::Ge,
                Tok::Name(name) if name == "in" => Comparison::In,
                Tok::Name(name) if name == "not" && matches!(self.look(), Tok::Name(n) if n == "in") => {
                    self.next();
                    Comparison::NotIn
                }
                _ => break,
            };
            self.next();
            rest.push((comparison, self.sum()?));
        }
        Ok(if rest.is_empty() { first } else { boxed(line, ExprKind::Compare(Box::new(first), rest)) })
    }

    fn sum(&mut self) -> Res<Expr> {
        let mut line = self.line();
        let mut links = 0;
        let mut left = self.concat()?;
        loop {
            let operator = match self.current() {
                Tok::Op("+") => Operator::Add,
                Tok::Op("-") => Operator::Sub,
                _ => return Ok(left),
            };
            self.next();
            let right = self.concat()?;
            left = boxed(line, ExprKind::Binary(operator, Box::new(left), Box::new(right)));
            line = self.line();
            self.chain(&mut links)?;
        }
    }

    fn concat(&mut self) -> Res<Expr> {
        let line = self.line();
        let mut parts = vec![self.product()?];
        while self.skip_op("~") {
            parts.push(self.product()?);
        }
        Ok(match parts.len() {
            1 => parts.remove(0),
            _ => boxed(line, ExprKind::Text(parts)),
        })
    }

    fn product(&mut self) -> Res<Expr> {
        let mut line = self.line();
        let mut links = 0;
        let mut left = self.power()?;
        loop {
            let operator = match self.current() {
                Tok::Op("*") => Operator::Mul,
                Tok::Op("/") => Operator::Div,
                Tok::Op("//") => Operator::FloorDiv,
                Tok::Op("%") => Operator::Mod,
                _ => return Ok(left),
            };
            self.next();
            let right = self.power()?;
            left = boxed(line, ExprKind::Binary(operator, Box::new(left), Box::new(right)));
            line = self.line();
            self.chain(&mut links)?;
        }
    }

    fn power(&mut self) -> Res<Expr> {
        let mut line = self.line();
        let mut links = 0;
        let mut left = self.unary(true)?;
        while self.skip_op("**") {
            let right = self.unary(true)?;
            left = boxed(line, ExprKind::Binary(Operator::Pow, Box::new(left), Box::new(right)));
            line = self.line();
            self.chain(&mut links)?;
        }
        Ok(left)
    }

    fn unary(&mut self, with_filter: bool) -> Res<Expr> {
        let line = self.line();
        let sign = match self.current() {
            Tok::Op("-") => Some(ExprKind::Negative as fn(_) -> _),
            Tok::Op("+") => Some(ExprKind::Positive as fn(_) -> _),
            _ => None,
        };
        let operand = match sign {
            Some(sign) => {
                self.next();
                self.enter()?;
                let inner = self.unary(false)?;
                self.nesting -= 1;
                boxed(line, sign(Box::new(inner)))
            }
            None => self.primary()?,
        };
        let operand = self.postfix(operand)?;
        if with_filter { self.filters(operand) } else { Ok(operand) }
    }

    /// Counts the operators of a chain: each is a level of the tree.
    fn chain(&self, links: &mut usize) -> Res<()> {
        *links += 1;
        match *links > super::MAX_NESTING {
            true => Err(super::JinjaError::syntax(
                format!("more than {} operators in a row", super::MAX_NESTING),
                self.line(),
            )),
            false => Ok(()),
        }
    }
}
