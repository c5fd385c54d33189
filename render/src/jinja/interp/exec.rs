//! Statements.

use std::rc::Rc;

use super::super::ast::{Name, Stmt, StmtKind, Target, Template};
use super::super::error::{JinjaError, Res};
use super::super::object::{BlockRef, Namespace, cast, object};
use super::super::scope::Scope;
use super::super::{filters, ops, print};
use super::{Interp, Passed, check};
use crate::value::Value;

/// How a body ended.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Flow {
    Next,
    Break,
    Continue,
}

impl Interp<'_> {
    /// Runs a whole template, and those that it extends.
    pub(super) fn run(&mut self, template: &Rc<Template>, scope: &Rc<Scope>, out: &mut String) -> Res<()> {
        let before = std::mem::replace(&mut self.template, template.clone());
        let mut current = template.clone();
        let done = loop {
            self.template = current.clone();
            for (name, block) in &current.blocks {
                let mut blocks = scope.context.blocks.borrow_mut();
                blocks.entry(name.clone()).or_default().push((block.clone(), current.clone()));
            }
            let mut parent = None;
            let template = current.clone();
            match self.deeper(|interp| interp.run_top(&template, scope, out, &mut parent)) {
                Err(error) => break Err(error),
                Ok(()) => match parent {
                    Some(next) => current = next,
                    None => break Ok(()),
                },
            }
            if let Err(error) = self.charge(current.source.len()) {
                break Err(error);
            }
        };
        self.template = before;
        done
    }

    fn run_top(
        &mut self,
        template: &Rc<Template>,
        scope: &Rc<Scope>,
        out: &mut String,
        parent: &mut Option<Rc<Template>>,
    ) -> Res<()> {
        let mut hidden = String::new();
        for stmt in &template.body {
            if let StmtKind::Extends(name) = &stmt.kind {
                if parent.is_some() {
                    return Err(JinjaError::template("extended multiple times"));
                }
                let load = self.eval(name, scope).and_then(|name| self.load_one(&name));
                *parent = Some(load.map_err(|e| e.locate(template.file.as_ref(), stmt.line, &template.source))?);
                continue;
            }
            let out = if parent.is_some() { &mut hidden } else { &mut *out };
            if parent.is_some() && matches!(stmt.kind, StmtKind::Block(_)) {
                continue;
            }
            self.exec(stmt, scope, out)?;
        }
        Ok(())
    }

    pub(super) fn exec_all(&mut self, body: &[Stmt], scope: &Rc<Scope>, out: &mut String) -> Res<Flow> {
        self.deeper(|interp| {
            for stmt in body {
                match interp.exec(stmt, scope, out)? {
                    Flow::Next => {}
                    flow => return Ok(flow),
                }
            }
            Ok(Flow::Next)
        })
    }

    fn exec(&mut self, stmt: &Stmt, scope: &Rc<Scope>, out: &mut String) -> Res<Flow> {
        self.step()?;
        let done = match &stmt.kind {
            StmtKind::Data(text) => self.charge(text.len()).map(|()| {
                out.push_str(text);
                Flow::Next
            }),
            StmtKind::Print(expr) => self.print(expr, scope, out),
            StmtKind::If(branches, otherwise) => return self.exec_if(branches, otherwise, scope, out),
            StmtKind::For(def) => self.run_for(def, scope, out),
            StmtKind::Inline(body) => self.exec_all(body, scope, out),
            StmtKind::Scope(body) => self.exec_all(body, &scope.inner(), out),
            StmtKind::Break => Ok(Flow::Break),
            StmtKind::Continue => Ok(Flow::Continue),
            _ => self.exec_other(stmt, scope, out).map(|()| Flow::Next),
        };
        done.map_err(|error| {
            let template = &self.template;
            error.locate(template.file.as_ref(), stmt.line, &template.source)
        })
    }

    fn print(&mut self, expr: &super::super::ast::Expr, scope: &Rc<Scope>, out: &mut String) -> Res<Flow> {
        let value = self.eval(expr, scope)?;
        if let Value::Str(text) = &value {
            self.charge(text.len())?;
            out.push_str(text);
            return Ok(Flow::Next);
        }
        check(&value)?;
        if let Value::Dict(dict) = &value {
            dict.borrow().values().try_for_each(check)?;
        }
        let text = self.written(|out| print::write(&value, out))?;
        out.push_str(&text);
        Ok(Flow::Next)
    }

    fn exec_if(
        &mut self,
        branches: &[(u32, super::super::ast::Expr, Vec<Stmt>)],
        otherwise: &[Stmt],
        scope: &Rc<Scope>,
        out: &mut String,
    ) -> Res<Flow> {
        for (line, condition, body) in branches {
            let value = self.eval(condition, scope).and_then(|value| self.truthy(&value));
            let template = &self.template;
            if value.map_err(|error| error.locate(template.file.as_ref(), *line, &template.source))? {
                return self.exec_all(body, scope, out);
            }
        }
        self.exec_all(otherwise, scope, out)
    }

    fn exec_other(&mut self, stmt: &Stmt, scope: &Rc<Scope>, out: &mut String) -> Res<()> {
        match &stmt.kind {
            StmtKind::Set(target, expr) => {
                let value = self.eval(expr, scope)?;
                self.assign(target, value, scope)
            }
            StmtKind::SetBlock(target, filter, body) => {
                let mut text = String::new();
                self.exec_all(body, &scope.inner(), &mut text)?;
                let value = match filter {
                    Some(filter) => self.filter_text(filter, Value::str(text), scope)?,
                    None => Value::str(text),
                };
                self.assign(target, value, scope)
            }
            StmtKind::FilterBlock(filter, body) => {
                let mut text = String::new();
                self.exec_all(body, &scope.inner(), &mut text)?;
                let value = self.filter_text(filter, Value::str(text), scope)?;
                let text = self.text(&value)?;
                out.push_str(&text);
                Ok(())
            }
            StmtKind::With(values, body) => {
                let inner = scope.inner();
                for (target, expr) in values {
                    let value = self.eval(expr, scope)?;
                    self.assign(target, value, &inner)?;
                }
                self.exec_all(body, &inner, out).map(|_| ())
            }
            StmtKind::Macro(def) => {
                let made = self.make_macro(def, scope)?;
                if let Some(name) = &def.name {
                    scope.set(name, made);
                }
                Ok(())
            }
            StmtKind::CallBlock(def, call) => {
                let caller = self.make_macro(def, scope)?;
                let super::super::ast::ExprKind::Call(callee, args) = &call.kind else { return Ok(()) };
                let callee = self.eval(callee, scope)?;
                let mut passed = self.eval_args(args, scope)?;
                passed.keyword.push((Name::from("caller"), caller));
                let value = self.call_in(&callee, passed, Some(scope))?;
                let text = self.text(&value)?;
                self.charge(text.len())?;
                out.push_str(&text);
                Ok(())
            }
            StmtKind::Do(expr) => self.eval(expr, scope).map(|_| ()),
            StmtKind::Load(filter, target, def) => {
                let body = self.make_macro(def, scope)?;
                let text = self.call_in(&body, Passed::default(), Some(scope))?;
                let value = filters::apply(self, filter, &text, Passed::default(), Some(scope))?;
                self.assign(target, value, scope)
            }
            StmtKind::Block(block) => {
                let inner = if block.scoped { scope.inner() } else { Scope::top(scope.context.clone()).inner() };
                let text = self.run_block(&BlockRef { name: block.name.clone(), depth: 0, scope: inner })?;
                out.push_str(&text);
                Ok(())
            }
            StmtKind::Include { template, ignore_missing, context } => {
                let name = self.eval(template, scope)?;
                self.include(&name, *ignore_missing, *context, scope, out)
            }
            StmtKind::Import { template, target, context, load } => {
                let name = self.eval(template, scope)?;
                let mut value = Value::Object(self.import(&name, *context, scope)?);
                if let Some(filter) = load {
                    value = filters::apply(self, filter, &value, Passed::default(), Some(scope))?;
                }
                scope.set(target, value);
                Ok(())
            }
            StmtKind::FromImport { template, names, context } => {
                let name = self.eval(template, scope)?;
                self.import_names(&name, names, *context, stmt.line, scope)
            }
            StmtKind::Extends(_) => Err(JinjaError::template("extends inside of another statement is not supported")),
            _ => Ok(()),
        }
    }

    /// A filter chain whose first input is a block's text.
    fn filter_text(&mut self, expr: &super::super::ast::Expr, text: Value, scope: &Rc<Scope>) -> Res<Value> {
        let super::super::ast::ExprKind::Filter(input, name, args) = &expr.kind else { return Ok(text) };
        let input = match input {
            Some(inner) => self.filter_text(inner, text, scope)?,
            None => text,
        };
        let passed = self.eval_args(args, scope)?;
        filters::apply(self, name, &input, passed, Some(scope))
    }

    pub(super) fn assign(&mut self, target: &Target, value: Value, scope: &Rc<Scope>) -> Res<()> {
        match target {
            Target::Name(name) => {
                scope.set(name, value);
                Ok(())
            }
            Target::Tuple(targets) => {
                let values = ops::iterate(self, &value).map_err(|e| {
                    if e.message.ends_with("is not iterable")
                        && cast::<super::super::object::Undefined>(&value).is_none()
                    {
                        JinjaError::python(format!("cannot unpack non-iterable {} object", value.type_name()))
                    } else {
                        e
                    }
                })?;
                let (want, got) = (targets.len(), values.len());
                if got > want {
                    return Err(JinjaError::python(format!("too many values to unpack (expected {want})")));
                }
                if got < want {
                    return Err(JinjaError::python(format!(
                        "not enough values to unpack (expected {want}, got {got})"
                    )));
                }
                targets.iter().zip(values).try_for_each(|(target, value)| self.assign(target, value, scope))
            }
            Target::Namespace(name, attribute) => {
                let holder = scope.get(name);
                match holder.as_ref().and_then(cast::<Namespace>) {
                    Some(namespace) => {
                        namespace.0.set(attribute, value);
                        Ok(())
                    }
                    None => Err(JinjaError::template("cannot assign attribute on non-namespace object")),
                }
            }
        }
    }

    pub(super) fn call_block(&mut self, block: &BlockRef) -> Res<Value> {
        self.run_block(block).map(Value::str)
    }

    fn run_block(&mut self, block: &BlockRef) -> Res<String> {
        let found = {
            let blocks = block.scope.context.blocks.borrow();
            blocks.get(&block.name).and_then(|all| all.get(block.depth)).cloned()
        };
        let Some((def, template)) = found else {
            return Err(JinjaError::template(format!("there is no parent block called '{}'.", block.name)));
        };
        if def.required && block.depth == 0 {
            return Err(JinjaError::template(format!("Required block '{}' not found", block.name)));
        }
        let scope = block.scope.inner();
        let parent = BlockRef { name: block.name.clone(), depth: block.depth + 1, scope: block.scope.clone() };
        scope.set(&Name::from("super"), object(parent));
        let before = std::mem::replace(&mut self.template, template);
        let mut out = String::new();
        let done = self.exec_all(&def.body, &scope, &mut out);
        self.template = before;
        done.map(|_| out)
    }
}
