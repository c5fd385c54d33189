//! Bodies and the statements of Jinja itself.

use std::rc::Rc;

use super::super::ast::{BlockDef, Expr, For, Name, Stmt, StmtKind, Target};
use super::super::error::Res;
use super::super::token::Tok;
use super::Parser;

impl Parser {
    /// Reads until a tag that ends the body; the caller reads the tag.
    pub(super) fn parse_body(&mut self, ends: &[&'static str]) -> Res<Vec<Stmt>> {
        self.enter()?;
        let mut body = Vec::new();
        if !ends.is_empty() {
            self.ends.push(ends.to_vec());
        }
        loop {
            let line = self.line();
            match self.current() {
                Tok::Data(_) => {
                    if let Tok::Data(text) = self.next().kind {
                        body.push(Stmt { line, kind: StmtKind::Data(text) });
                    }
                }
                Tok::VariableBegin => {
                    self.next();
                    let expr = self.tuple(true, false, &[])?;
                    if *self.current() != Tok::VariableEnd {
                        return self.expected("end of print statement");
                    }
                    self.next();
                    body.push(Stmt { line: expr.line, kind: StmtKind::Print(expr) });
                }
                Tok::BlockBegin => {
                    self.next();
                    if ends.iter().any(|end| self.is_name(end)) {
                        break;
                    }
                    body.push(self.statement()?);
                    self.expect_block_end()?;
                }
                Tok::Eof if ends.is_empty() => break,
                Tok::Eof => return self.unknown(None, line),
                _ => return self.fail("internal parsing error", line),
            }
        }
        if !ends.is_empty() {
            self.ends.pop();
        }
        self.nesting -= 1;
        Ok(body)
    }

    /// A body with its end tag's name passed (`drop_needle`).
    pub(super) fn body_until(&mut self, end: &'static str) -> Res<Vec<Stmt>> {
        let body = self.statements(&[end])?;
        self.next();
        Ok(body)
    }

    /// A body after an optional colon; its end tag is not passed.
    pub(super) fn statements(&mut self, ends: &[&'static str]) -> Res<Vec<Stmt>> {
        self.skip_op(":");
        self.expect_block_end()?;
        self.parse_body(ends)
    }

    /// Jinja's message about a tag that nobody expects, or about the end of the text.
    pub(super) fn unknown<T>(&self, name: Option<&str>, line: u32) -> Res<T> {
        let mut message = match name {
            None => "Unexpected end of template.".to_owned(),
            Some(name) => format!("Encountered unknown tag '{name}'."),
        };
        if let Some(last) = self.ends.last() {
            let looking = last.iter().map(|end| format!("'{end}'")).collect::<Vec<_>>().join(" or ");
            message += &match name {
                Some(name) if self.ends.iter().flatten().any(|end| *end == name) => format!(
                    " You probably made a nesting mistake. Jinja is expecting this tag, but currently looking for {looking}."
                ),
                _ => format!(" Jinja was looking for the following tags: {looking}."),
            };
        }
        if let Some(tag) = self.tags.last() {
            message += &format!(" The innermost block that needs to be closed is '{tag}'.");
        }
        self.fail(message, line)
    }

    fn statement(&mut self) -> Res<Stmt> {
        let line = self.line();
        let Tok::Name(name) = self.current().clone() else {
            return self.fail("tag name expected", line);
        };
        self.tags.push(name.clone());
        self.next();
        let kind = match name.as_str() {
            "for" => self.for_loop()?,
            "if" => self.if_statement()?,
            "set" => self.set()?,
            "with" => self.with()?,
            "block" => self.block(line)?,
            "filter" => {
                let input = self.filter_chain()?;
                let body = self.body_until("endfilter")?;
                StmtKind::FilterBlock(input, body)
            }
            "macro" => {
                let name = self.expect_name()?;
                StmtKind::Macro(self.macro_def(Some(name), "endmacro")?)
            }
            "call" => self.call_block(line)?,
            "autoescape" => {
                self.expression(true)?;
                StmtKind::Scope(self.body_until("endautoescape")?)
            }
            "print" => {
                let mut outputs = Vec::new();
                while *self.current() != Tok::BlockEnd {
                    if !outputs.is_empty() {
                        self.expect_op(",")?;
                    }
                    let expr = self.expression(true)?;
                    outputs.push(Stmt { line: expr.line, kind: StmtKind::Print(expr) });
                }
                StmtKind::Inline(outputs)
            }
            "do" => StmtKind::Do(self.tuple(true, false, &[])?),
            "break" => StmtKind::Break,
            "continue" => StmtKind::Continue,
            "include" => self.include()?,
            "import" => self.import(None)?,
            "from" => self.import_names(line)?,
            "extends" => StmtKind::Extends(self.expression(true)?),
            "import_yaml" | "import_json" | "import_text" => {
                let load = name.replace("import", "load");
                self.import(Some(load.into()))?
            }
            "load_yaml" | "load_json" | "load_text" => self.load(&name)?,
            "profile" => {
                if !self.skip_name("as") {
                    return self.expected("as");
                }
                self.expression(true)?;
                StmtKind::Inline(self.body_until("endprofile")?)
            }
            other => {
                self.tags.pop();
                return self.unknown(Some(other), line);
            }
        };
        self.tags.pop();
        Ok(Stmt { line, kind })
    }

    fn for_loop(&mut self) -> Res<StmtKind> {
        let target = self.target(&["in"])?;
        if !self.skip_name("in") {
            return self.expected("in");
        }
        let items = self.tuple(false, false, &["recursive"])?;
        let condition = if self.skip_name("if") { Some(self.expression(true)?) } else { None };
        let recursive = self.skip_name("recursive");
        let body = self.statements(&["endfor", "else"])?;
        let otherwise = if self.skip_name("else") { self.body_until("endfor")? } else { self.drop(Vec::new()) };
        Ok(StmtKind::For(Rc::new(For { target, items, condition, recursive, body, otherwise })))
    }

    fn drop<T>(&mut self, value: T) -> T {
        self.next();
        value
    }

    fn if_statement(&mut self) -> Res<StmtKind> {
        let mut branches = Vec::new();
        let mut line = self.line();
        self.soft += 1;
        loop {
            let condition = self.tuple(false, false, &[])?;
            let body = self.statements(&["elif", "else", "endif"])?;
            branches.push((line, condition, body));
            line = self.line();
            if !self.skip_name("elif") {
                break;
            }
        }
        let otherwise = if self.skip_name("else") { self.body_until("endif")? } else { self.drop(Vec::new()) };
        self.soft -= 1;
        Ok(StmtKind::If(branches, otherwise))
    }

    fn set(&mut self) -> Res<StmtKind> {
        let target = self.target(&[])?;
        if self.skip_op("=") {
            return Ok(StmtKind::Set(target, self.tuple(true, false, &[])?));
        }
        let filter = if self.skip_op("|") { Some(self.filter_chain()?) } else { None };
        Ok(StmtKind::SetBlock(target, filter, self.body_until("endset")?))
    }

    /// Filters in a row without an input.
    fn filter_chain(&mut self) -> Res<Expr> {
        let mut node = self.filter(None)?;
        while self.skip_op("|") {
            node = self.filter(Some(Box::new(node)))?;
        }
        Ok(node)
    }

    fn with(&mut self) -> Res<StmtKind> {
        let mut values = Vec::new();
        while *self.current() != Tok::BlockEnd {
            if !values.is_empty() {
                self.expect_op(",")?;
            }
            let target = self.single_target()?;
            self.expect_op("=")?;
            values.push((target, self.expression(true)?));
        }
        Ok(StmtKind::With(values, self.body_until("endwith")?))
    }

    fn block(&mut self, line: u32) -> Res<StmtKind> {
        let name = self.expect_name()?;
        let scoped = self.skip_name("scoped");
        let required = self.skip_name("required");
        let body = self.body_until("endblock")?;
        if let Tok::Name(end) = self.current()
            && *end == *name
        {
            self.next();
        }
        let block = Rc::new(BlockDef { name: name.clone(), body, scoped, required });
        if self.blocks.insert(name.clone(), block.clone()).is_some() {
            return self.fail(format!("block '{name}' defined twice"), line);
        }
        Ok(StmtKind::Block(block))
    }

    pub(super) fn target(&mut self, ends: &[&str]) -> Res<Target> {
        let (mut targets, mut is_tuple) = (Vec::new(), false);
        loop {
            if matches!(self.current(), Tok::BlockEnd | Tok::Op(")" | "=")) || ends.iter().any(|e| self.is_name(e)) {
                break;
            }
            targets.push(self.single_target()?);
            if !self.skip_op(",") {
                break;
            }
            is_tuple = true;
        }
        match targets.len() {
            1 if !is_tuple => Ok(targets.remove(0)),
            0 if !is_tuple => {
                let got = self.current().describe();
                self.fail(format!("Expected an expression, got '{got}'"), self.line())
            }
            _ => Ok(Target::Tuple(targets)),
        }
    }

    pub(super) fn single_target(&mut self) -> Res<Target> {
        if self.skip_op("(") {
            self.enter()?;
            let inner = self.target(&[])?;
            self.nesting -= 1;
            self.expect_op(")")?;
            return Ok(inner);
        }
        let line = self.line();
        let kind = match self.current() {
            Tok::Name(_) => None,
            Tok::Op("[") => Some("list"),
            Tok::Op("{") => Some("dict"),
            Tok::Text(_) | Tok::Int(_) | Tok::Float(_) => Some("const"),
            _ => return self.primary().and_then(|_| self.fail("can't assign", line)),
        };
        if let Some(kind) = kind {
            return self.fail(format!("can't assign to '{kind}'"), line);
        }
        let name: Name = self.expect_name()?;
        if matches!(&*name, "true" | "false" | "none" | "True" | "False" | "None") {
            return self.fail("can't assign to 'const'", line);
        }
        if self.skip_op(".") {
            return Ok(Target::Namespace(name, self.expect_name()?));
        }
        Ok(Target::Name(name))
    }
}
