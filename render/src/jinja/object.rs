//! The objects of templates that are not plain values.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;

use indexmap::IndexMap;

use super::ast::{For, MacroDef, Name, Template};
use super::error::{ErrorKind, JinjaError};
use super::scope::Scope;
use crate::value::{Dict, Object, Value};

macro_rules! object {
    ($type:ty, $name:expr) => {
        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.write_repr(f)
            }
        }
        impl Object for $type {
            fn type_name(&self) -> &str {
                $name
            }
            fn as_any(&self) -> &dyn Any {
                self
            }
        }
    };
}

/// Gets an object of a type from a value.
pub(super) fn cast<T: 'static>(value: &Value) -> Option<&T> {
    match value {
        Value::Object(object) => object.as_any().downcast_ref(),
        _ => None,
    }
}

pub(super) fn object(object: impl Object) -> Value {
    Value::Object(Rc::new(object))
}

/// Jinja's `StrictUndefined`: any use but asking for its existence is an error.
pub(super) struct Undefined {
    pub(super) message: String,
    /// What kind of error the use of it is.
    pub(super) kind: ErrorKind,
}

impl fmt::Debug for Undefined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Undefined")
    }
}

impl Object for Undefined {
    fn type_name(&self) -> &str {
        "StrictUndefined"
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn truthy(&self) -> bool {
        false
    }
    fn write_repr(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        out.write_str("Undefined")
    }
    fn write_str(&self, _: &mut dyn fmt::Write) -> fmt::Result {
        Ok(())
    }
}

impl Undefined {
    /// An `if` without `else` gives Jinja's plain `Undefined`, which prints as nothing.
    pub(super) fn is_lenient(&self) -> bool {
        self.message.starts_with("the inline if-expression")
    }

    pub(super) fn value(message: impl Into<String>) -> Value {
        Self::of(ErrorKind::Undefined, message)
    }

    pub(super) fn of(kind: ErrorKind, message: impl Into<String>) -> Value {
        object(Self { message: message.into(), kind })
    }

    pub(super) fn error(&self) -> Box<JinjaError> {
        JinjaError::new(self.kind, &*self.message)
    }
}

/// Something to go through: a view, a range, a generator.
pub(super) struct Iter {
    pub(super) kind: IterKind,
    pub(super) items: RefCell<Vec<Value>>,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum IterKind {
    /// Empty after the first time; has no length.
    Generator(&'static str),
    View(&'static str),
    Range(i128, i128, i128),
}

impl Iter {
    pub(super) fn generator(items: Vec<Value>) -> Value {
        Self::of(IterKind::Generator("generator"), items)
    }

    pub(super) fn of(kind: IterKind, items: Vec<Value>) -> Value {
        object(Self { kind, items: RefCell::new(items) })
    }

    pub(super) fn is_generator(&self) -> bool {
        matches!(self.kind, IterKind::Generator(_))
    }
}

impl fmt::Debug for Iter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_repr(f)
    }
}

impl Object for Iter {
    fn type_name(&self) -> &str {
        match self.kind {
            IterKind::Generator(name) | IterKind::View(name) => name,
            IterKind::Range(..) => "range",
        }
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn truthy(&self) -> bool {
        self.is_generator() || !self.items.borrow().is_empty()
    }
    fn write_repr(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        match self.kind {
            IterKind::Range(start, stop, 1) => write!(out, "range({start}, {stop})"),
            IterKind::Range(start, stop, step) => write!(out, "range({start}, {stop}, {step})"),
            IterKind::Generator(name) => write!(out, "<{name} object>"),
            IterKind::View(name) => {
                write!(out, "{name}(")?;
                Value::list(self.items.borrow().iter().cloned()).write_repr(out)?;
                out.write_char(')')
            }
        }
    }
}

/// A group that `groupby` makes: a tuple whose two items have names.
pub(super) struct Group {
    pub(super) grouper: Value,
    pub(super) list: Value,
}

impl Group {
    pub(super) fn items(&self) -> [Value; 2] {
        [self.grouper.clone(), self.list.clone()]
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_repr(f)
    }
}

impl Object for Group {
    fn type_name(&self) -> &str {
        "_GroupTuple"
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn write_repr(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        Value::tuple(self.items()).write_repr(out)
    }
}

/// A macro, or the body of a call block.
pub(super) struct Macro {
    pub(super) name: Option<Name>,
    pub(super) def: Rc<MacroDef>,
    pub(super) scope: Rc<Scope>,
    pub(super) template: Rc<Template>,
}
object!(Macro, "Macro");

/// What an import gives.
pub(super) struct Module {
    pub(super) values: IndexMap<Name, Value>,
    pub(super) body: String,
    pub(super) name: String,
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<TemplateModule '{}'>", self.name)
    }
}

impl Object for Module {
    fn type_name(&self) -> &str {
        "TemplateModule"
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn write_repr(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        write!(out, "<TemplateModule '{}'>", self.name)
    }
    fn write_str(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        out.write_str(&self.body)
    }
}

/// `namespace()`
pub(super) struct Namespace(pub(super) Dict);

impl fmt::Debug for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_repr(f)
    }
}

impl Object for Namespace {
    fn type_name(&self) -> &str {
        "Namespace"
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn write_repr(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        out.write_str("<Namespace ")?;
        Value::Dict(self.0.clone()).write_repr(out)?;
        out.write_char('>')
    }
}

/// A method and its receiver.
pub(super) struct Method {
    pub(super) receiver: Value,
    pub(super) name: &'static str,
}
object!(Method, "builtin_function_or_method");

/// A global function of Jinja or Salt.
pub(super) struct Builtin(pub(super) &'static str);
object!(Builtin, "function");

/// `cycler(…)`
pub(super) struct Cycler {
    pub(super) items: Vec<Value>,
    pub(super) at: Cell<usize>,
}
object!(Cycler, "Cycler");

/// `joiner(…)`
pub(super) struct Joiner {
    pub(super) text: Value,
    pub(super) used: Cell<bool>,
}
object!(Joiner, "Joiner");

/// `loop`
pub(super) struct Loop {
    pub(super) at: Cell<usize>,
    pub(super) items: Vec<Value>,
    pub(super) depth: usize,
    pub(super) changed: RefCell<Option<Vec<Value>>>,
    /// What calling the loop runs again.
    pub(super) recursive: Option<(Rc<For>, Rc<Scope>)>,
}

impl fmt::Debug for Loop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_repr(f)
    }
}

impl Object for Loop {
    fn type_name(&self) -> &str {
        "LoopContext"
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn write_repr(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        write!(out, "<LoopContext {}/{}>", self.at.get() + 1, self.items.len())
    }
}

/// `salt`: the execution functions of the host; with a prefix, those of one module.
pub(super) struct Functions {
    pub(super) module: Option<Rc<str>>,
}

impl fmt::Debug for Functions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_repr(f)
    }
}

impl Object for Functions {
    fn type_name(&self) -> &str {
        if self.module.is_some() { "LoadedMod" } else { "AliasedLoader" }
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn write_repr(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        match &self.module {
            Some(module) => write!(out, "<LoadedMod module='salt.loaded.{module}'>"),
            None => out.write_str("<salt.utils.templates.AliasedLoader object>"),
        }
    }
}

/// An execution function of the host.
pub(super) struct Function {
    pub(super) name: Rc<str>,
}

impl Function {
    pub(super) fn value(name: impl Into<Rc<str>>) -> Value {
        object(Self { name: name.into() })
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_repr(f)
    }
}

impl Object for Function {
    fn type_name(&self) -> &str {
        "LoadedFunc"
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn write_repr(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        write!(out, "<LoadedFunc name='{}'>", self.name)
    }
}

/// `self`: the blocks of the template.
pub(super) struct Blocks(pub(super) Rc<Scope>);
object!(Blocks, "TemplateReference");

/// A block that can be called: `self.name()`, `super()`.
pub(super) struct BlockRef {
    pub(super) name: Name,
    pub(super) depth: usize,
    pub(super) scope: Rc<Scope>,
}
object!(BlockRef, "BlockReference");
