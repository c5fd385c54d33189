//! Expressions.

use std::rc::Rc;

use super::super::ast::{Comparison, Expr, ExprKind};
use super::super::error::{ErrorKind, JinjaError, Res};
use super::super::object::Undefined;
use super::super::scope::Scope;
use super::super::{attribute, filters, ops, tests};
use super::{Interp, check};
use crate::value::{Dict, Entries, Key, Value};

impl Interp<'_> {
    pub(in crate::jinja) fn eval(&mut self, expr: &Expr, scope: &Rc<Scope>) -> Res<Value> {
        self.step()?;
        match &expr.kind {
            ExprKind::Const(value) => Ok(value.clone()),
            ExprKind::Name(name) => Ok(self.lookup(name, scope)),
            _ => self.deeper(|interp| interp.eval_inner(expr, scope)),
        }
    }

    fn lookup(&mut self, name: &Rc<str>, scope: &Rc<Scope>) -> Value {
        match scope.get(name) {
            Some(value) => value,
            None if &**name == "self" => super::super::object::object(super::super::object::Blocks(scope.clone())),
            None => Undefined::value(format!("'{name}' is undefined")),
        }
    }

    fn eval_inner(&mut self, expr: &Expr, scope: &Rc<Scope>) -> Res<Value> {
        match &expr.kind {
            ExprKind::Const(_) | ExprKind::Name(_) => Ok(Value::None),
            ExprKind::Text(parts) => self.eval_text(parts, scope),
            ExprKind::List(items) => Ok(Value::list(self.eval_all(items, scope)?)),
            ExprKind::Tuple(items) => Ok(Value::tuple(self.eval_all(items, scope)?)),
            ExprKind::Dict(items) => self.eval_dict(items, scope),
            ExprKind::Attribute(of, name) => {
                let of = self.eval(of, scope)?;
                attribute::get_attribute(self, &of, name)
            }
            ExprKind::Item(of, index) => self.eval_item(of, index, scope),
            ExprKind::Slice(_) => Err(JinjaError::python("a slice outside of a subscript")),
            ExprKind::Call(callee, args) => {
                let callee = self.eval(callee, scope)?;
                let passed = self.eval_args(args, scope)?;
                self.call_in(&callee, passed, Some(scope))
            }
            ExprKind::Filter(input, name, args) => {
                let Some(input) = input else { return Err(JinjaError::template("a filter without an input")) };
                let input = self.eval(input, scope)?;
                let passed = self.eval_args(args, scope)?;
                filters::apply(self, name, &input, passed, Some(scope))
            }
            ExprKind::Test(input, name, args) => {
                let input = self.eval(input, scope)?;
                let passed = self.eval_args(args, scope)?;
                tests::apply(self, name, &input, &passed).map(Value::Bool)
            }
            ExprKind::Not(inner) => {
                let value = self.eval(inner, scope)?;
                Ok(Value::Bool(!self.truthy(&value)?))
            }
            ExprKind::Negative(inner) => {
                let value = self.eval(inner, scope)?;
                ops::negate(&value, true)
            }
            ExprKind::Positive(inner) => {
                let value = self.eval(inner, scope)?;
                ops::negate(&value, false)
            }
            ExprKind::And(left, right) => {
                let left = self.eval(left, scope)?;
                if self.truthy(&left)? { self.eval(right, scope) } else { Ok(left) }
            }
            ExprKind::Or(left, right) => {
                let left = self.eval(left, scope)?;
                if self.truthy(&left)? { Ok(left) } else { self.eval(right, scope) }
            }
            ExprKind::Binary(operator, left, right) => {
                let left = self.eval(left, scope)?;
                let right = self.eval(right, scope)?;
                ops::binary(self, *operator, &left, &right)
            }
            ExprKind::Compare(first, rest) => self.eval_comparison(first, rest, scope),
            ExprKind::If(parts) => {
                let condition = self.eval(&parts.0, scope)?;
                if self.truthy(&condition)? {
                    return self.eval(&parts.1, scope);
                }
                match &parts.2 {
                    Some(otherwise) => self.eval(otherwise, scope),
                    None => Ok(Undefined::value(format!(
                        "the inline if-expression on line {} evaluated to false and no else section was defined.",
                        expr.line
                    ))),
                }
            }
        }
    }

    fn eval_all(&mut self, items: &[Expr], scope: &Rc<Scope>) -> Res<Vec<Value>> {
        self.charge_values(items.len())?;
        items.iter().map(|item| self.eval(item, scope)).collect()
    }

    fn eval_text(&mut self, parts: &[Expr], scope: &Rc<Scope>) -> Res<Value> {
        let values = self.eval_all(parts, scope)?;
        let mut out = String::new();
        for value in &values {
            let text = self.text(value)?;
            self.charge(text.len())?;
            out.push_str(&text);
        }
        Ok(Value::str(out))
    }

    fn eval_dict(&mut self, items: &[(Expr, Expr)], scope: &Rc<Scope>) -> Res<Value> {
        self.charge_values(items.len() * 3)?;
        let mut entries = Entries::with_capacity(items.len());
        for (key, value) in items {
            let key = self.eval(key, scope)?;
            let value = self.eval(value, scope)?;
            entries.insert(hashed(key)?, value);
        }
        Ok(Value::Dict(Dict::from_entries(entries, false)))
    }

    fn eval_item(&mut self, of: &Expr, index: &Expr, scope: &Rc<Scope>) -> Res<Value> {
        let of = self.eval(of, scope)?;
        if let ExprKind::Slice(parts) = &index.kind {
            let mut bounds = [None, None, None];
            for (at, part) in parts.iter().enumerate() {
                if let Some(part) = part {
                    bounds[at] = Some(self.eval(part, scope)?);
                }
            }
            return ops::slice(self, &of, &bounds);
        }
        let index = self.eval(index, scope)?;
        attribute::get_item(self, &of, &index)
    }

    fn eval_comparison(&mut self, first: &Expr, rest: &[(Comparison, Expr)], scope: &Rc<Scope>) -> Res<Value> {
        let mut left = self.eval(first, scope)?;
        for (comparison, right) in rest {
            let right = self.eval(right, scope)?;
            if !ops::compare(self, *comparison, &left, &right)? {
                return Ok(Value::Bool(false));
            }
            left = right;
        }
        Ok(Value::Bool(true))
    }
}

/// A value as key, or Python's `TypeError`.
pub(in crate::jinja) fn hashed(value: Value) -> Res<Key> {
    check(&value)?;
    Key::new(value).map_err(|why| JinjaError::new(ErrorKind::Python, why.to_string()))
}
