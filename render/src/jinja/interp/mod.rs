//! Runs a template: walks the tree, counts steps and bytes.

mod call;
mod eval;
pub(super) use eval::hashed;
mod exec;
mod import;
mod loops;
pub(super) use loops::{loop_attribute, loop_method};
mod macros;

use std::collections::HashMap;
use std::fmt::{self, Write};
use std::rc::Rc;

use super::ast::{Name, Template};
use super::error::{JinjaError, Res};
use super::object::{Builtin, Module, Undefined, cast, object};
use super::scope::{Context, Scope};
use super::{Host, Limits, Settings, globals};
use crate::value::Value;

pub(super) struct Interp<'h> {
    pub(super) host: &'h dyn Host,
    pub(super) settings: &'h Settings,
    pub(super) limits: &'h Limits,
    steps: u64,
    bytes: usize,
    depth: usize,
    /// The template whose code runs.
    template: Rc<Template>,
    templates: HashMap<String, Rc<Template>>,
    modules: HashMap<String, Rc<Module>>,
    /// What every template sees: the context that was given, and Jinja's own functions.
    globals: HashMap<Name, Value>,
    /// Scopes with macros, which know them in turn.
    closures: Vec<Rc<Scope>>,
}

/// The positional and the keyword arguments of a call.
#[derive(Default)]
pub(super) struct Passed {
    pub(super) positional: Vec<Value>,
    pub(super) keyword: Vec<(Name, Value)>,
}

impl<'h> Interp<'h> {
    pub(super) fn new(
        host: &'h dyn Host,
        settings: &'h Settings,
        limits: &'h Limits,
        template: Rc<Template>,
        context: HashMap<Name, Value>,
    ) -> Self {
        let builtins = globals::NAMES.iter().map(|name| (Name::from(*name), object(Builtin(name))));
        let globals = builtins.chain(context).collect();
        Self {
            host,
            settings,
            limits,
            steps: limits.steps,
            bytes: limits.bytes,
            depth: 0,
            template,
            templates: HashMap::new(),
            modules: HashMap::new(),
            globals,
            closures: Vec::new(),
        }
    }

    /// Renders the template that this was made for.
    pub(super) fn render(&mut self) -> Res<String> {
        let context = Context::new(Rc::new(self.globals.clone()));
        let template = self.template.clone();
        let mut out = String::new();
        let scope = Scope::top(context);
        self.closures.push(scope.clone());
        let done = self.run(&template, &scope, &mut out);
        done.map(|()| out)
    }

    /// Counts a step.
    pub(super) fn step(&mut self) -> Res<()> {
        self.steps = self
            .steps
            .checked_sub(1)
            .ok_or_else(|| JinjaError::limit(format!("the template takes more than {} steps", self.limits.steps)))?;
        Ok(())
    }

    /// Counts many steps at once, before work that takes so many.
    pub(super) fn take_steps(&mut self, count: usize) -> Res<()> {
        self.steps = self.steps.saturating_sub(count as u64 / 4);
        self.step()
    }

    /// Counts bytes that are about to be made.
    pub(super) fn charge(&mut self, bytes: usize) -> Res<()> {
        self.bytes = self
            .bytes
            .checked_sub(bytes)
            .ok_or_else(|| JinjaError::limit(format!("the template makes more than {} bytes", self.limits.bytes)))?;
        Ok(())
    }

    /// Counts values that are about to be made.
    pub(super) fn charge_values(&mut self, count: usize) -> Res<()> {
        self.charge(count.saturating_mul(std::mem::size_of::<Value>() * 2))
    }

    /// Python's `str`.
    pub(super) fn text(&mut self, value: &Value) -> Res<Rc<str>> {
        if let Value::Str(text) = value {
            return Ok(text.clone());
        }
        check(value)?;
        self.written(|out| value.write_str(out)).map(Into::into)
    }

    /// Text that is written with a bound.
    pub(super) fn written(&mut self, write: impl FnOnce(&mut dyn Write) -> fmt::Result) -> Res<String> {
        let mut out = Bounded { text: String::new(), left: self.bytes };
        if write(&mut out).is_err() {
            return self.charge(usize::MAX).map(|()| String::new());
        }
        self.charge(out.text.len())?;
        Ok(out.text)
    }

    /// Goes one level deeper, which takes stack.
    pub(super) fn deeper<T>(&mut self, run: impl FnOnce(&mut Self) -> Res<T>) -> Res<T> {
        if self.depth >= self.limits.depth {
            return Err(JinjaError::limit("maximum recursion depth exceeded"));
        }
        self.depth += 1;
        let done = run(self);
        self.depth -= 1;
        done
    }

    /// Python's truth value; something undefined has none.
    pub(super) fn truthy(&mut self, value: &Value) -> Res<bool> {
        check(value)?;
        Ok(value.truthy())
    }
}

impl Drop for Interp<'_> {
    fn drop(&mut self) {
        for scope in std::mem::take(&mut self.closures) {
            scope.clear();
        }
    }
}

/// Refuses something undefined.
pub(super) fn check(value: &Value) -> Res<()> {
    match cast::<Undefined>(value) {
        Some(undefined) if !undefined.is_lenient() => Err(undefined.error()),
        _ => Ok(()),
    }
}

struct Bounded {
    text: String,
    left: usize,
}

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.left = self.left.checked_sub(text.len()).ok_or(fmt::Error)?;
        self.text.push_str(text);
        Ok(())
    }
}
