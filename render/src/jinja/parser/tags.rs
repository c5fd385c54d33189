//! Macros, call blocks, imports, and Salt's tags.

use std::rc::Rc;

use super::super::ast::{ExprKind, MacroDef, Name, StmtKind};
use super::super::error::Res;
use super::super::token::Tok;
use super::Parser;

impl Parser {
    fn params(&mut self) -> Res<Vec<(Name, Option<super::super::ast::Expr>)>> {
        let mut params: Vec<(Name, Option<_>)> = Vec::new();
        self.expect_op("(")?;
        while !self.is_op(")") {
            if !params.is_empty() {
                self.expect_op(",")?;
            }
            let name = self.expect_name()?;
            if self.skip_op("=") {
                params.push((name, Some(self.expression(true)?)));
            } else if params.last().is_some_and(|(_, default)| default.is_some()) {
                return self.fail("non-default argument follows default argument", self.line());
            } else {
                params.push((name, None));
            }
        }
        self.expect_op(")")?;
        Ok(params)
    }

    /// A macro from its parameters on.
    pub(super) fn macro_def(&mut self, name: Option<Name>, end: &'static str) -> Res<Rc<MacroDef>> {
        let params = self.params()?;
        self.macro_body(name, params, end)
    }

    fn macro_body(
        &mut self,
        name: Option<Name>,
        params: Vec<(Name, Option<super::super::ast::Expr>)>,
        end: &'static str,
    ) -> Res<Rc<MacroDef>> {
        self.special.push([false; 3]);
        let body = self.body_until(end)?;
        let flags = self.special.pop().unwrap_or_default();
        let names = |special: &str| params.iter().any(|(name, _)| &**name == special);
        Ok(Rc::new(MacroDef {
            catch_varargs: flags[0] && !names("varargs"),
            catch_kwargs: flags[1] && !names("kwargs"),
            takes_caller: flags[2],
            name,
            params,
            body,
        }))
    }

    pub(super) fn call_block(&mut self, line: u32) -> Res<StmtKind> {
        let params = if self.is_op("(") { self.params()? } else { Vec::new() };
        let call = self.expression(true)?;
        if !matches!(call.kind, ExprKind::Call(..)) {
            return self.fail("expected call", line);
        }
        Ok(StmtKind::CallBlock(self.macro_body(None, params, "endcall")?, call))
    }

    pub(super) fn load(&mut self, filter: &str) -> Res<StmtKind> {
        if !self.skip_name("as") {
            return self.expected("as");
        }
        let target = self.target(&[])?;
        let body = self.macro_body(None, Vec::new(), "endload")?;
        Ok(StmtKind::Load(filter.into(), target, body))
    }

    /// `with context` or `without context`.
    fn context(&mut self, default: bool) -> bool {
        let with = self.is_name("with");
        if (with || self.is_name("without")) && matches!(self.look(), Tok::Name(n) if n == "context") {
            self.next();
            self.next();
            return with;
        }
        default
    }

    pub(super) fn include(&mut self) -> Res<StmtKind> {
        let template = self.expression(true)?;
        let ignore = self.is_name("ignore") && matches!(self.look(), Tok::Name(n) if n == "missing");
        if ignore {
            self.next();
            self.next();
        }
        Ok(StmtKind::Include { template, ignore_missing: ignore, context: self.context(true) })
    }

    pub(super) fn import(&mut self, load: Option<Name>) -> Res<StmtKind> {
        let template = self.expression(true)?;
        if !self.skip_name("as") {
            return self.expected("as");
        }
        let target = self.expect_name()?;
        let context = self.context(false);
        Ok(StmtKind::Import { template, target, context, load })
    }

    pub(super) fn import_names(&mut self, line: u32) -> Res<StmtKind> {
        let template = self.expression(true)?;
        if !self.skip_name("import") {
            return self.expected("import");
        }
        let mut names = Vec::new();
        let mut context = None;
        loop {
            if !names.is_empty() {
                self.expect_op(",")?;
            }
            if !matches!(self.current(), Tok::Name(_)) {
                return self.expected("name");
            }
            if self.with_context(&mut context) {
                break;
            }
            let name = self.expect_name()?;
            if name.starts_with('_') {
                return self.fail("names starting with an underline can not be imported", line);
            }
            let alias = if self.skip_name("as") { self.expect_name()? } else { name.clone() };
            names.push((name, alias));
            if self.with_context(&mut context) || !self.is_op(",") {
                break;
            }
        }
        Ok(StmtKind::FromImport { template, names, context: context.unwrap_or(false) })
    }

    fn with_context(&mut self, context: &mut Option<bool>) -> bool {
        let at = self.at;
        let with = self.context(false);
        if self.at != at {
            *context = Some(with);
        }
        self.at != at
    }
}
