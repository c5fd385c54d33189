//! Where names are: the scopes of a template, and the context that templates share.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use indexmap::IndexMap;

use super::ast::{BlockDef, Name, Template};
use crate::value::Value;

type Definitions = Vec<(Rc<BlockDef>, Rc<Template>)>;

/// Names that a template was given, and those that it set at its top.
pub(super) struct Context {
    pub(super) given: Rc<HashMap<Name, Value>>,
    pub(super) set: RefCell<IndexMap<Name, Value>>,
    /// For each block, its definitions from the youngest template to the oldest.
    pub(super) blocks: RefCell<HashMap<Name, Definitions>>,
}

/// A level of names.
pub(super) struct Scope {
    names: RefCell<HashMap<Name, Value>>,
    outer: Option<Rc<Scope>>,
    pub(super) context: Rc<Context>,
    /// Names set here are the template's.
    pub(super) is_top: bool,
}

impl Context {
    pub(super) fn new(given: Rc<HashMap<Name, Value>>) -> Rc<Self> {
        Rc::new(Self { given, set: RefCell::default(), blocks: RefCell::default() })
    }
}

impl Scope {
    pub(super) fn top(context: Rc<Context>) -> Rc<Self> {
        Rc::new(Self { names: RefCell::default(), outer: None, context, is_top: true })
    }

    pub(super) fn inner(self: &Rc<Self>) -> Rc<Self> {
        let context = self.context.clone();
        Rc::new(Self { names: RefCell::default(), outer: Some(self.clone()), context, is_top: false })
    }

    pub(super) fn get(&self, name: &str) -> Option<Value> {
        let mut scope = Some(self);
        while let Some(at) = scope {
            if let Some(value) = at.names.borrow().get(name) {
                return Some(value.clone());
            }
            scope = at.outer.as_deref();
        }
        let set = self.context.set.borrow().get(name).cloned();
        set.or_else(|| self.context.given.get(name).cloned())
    }

    pub(super) fn set(&self, name: &Name, value: Value) {
        if self.is_top {
            self.context.set.borrow_mut().insert(name.clone(), value);
        } else {
            self.names.borrow_mut().insert(name.clone(), value);
        }
    }

    /// All names as they are now: what an included template is given.
    pub(super) fn all(&self) -> HashMap<Name, Value> {
        let mut all = (*self.context.given).clone();
        all.extend(self.context.set.borrow().iter().map(|(name, value)| (name.clone(), value.clone())));
        self.add_locals(&mut all);
        all
    }

    fn add_locals(&self, all: &mut HashMap<Name, Value>) {
        let mut scopes = vec![self];
        while let Some(outer) = scopes.last().and_then(|scope| scope.outer.as_deref()) {
            scopes.push(outer);
        }
        for scope in scopes.into_iter().rev() {
            all.extend(scope.names.borrow().iter().map(|(name, value)| (name.clone(), value.clone())));
        }
    }

    /// Forgets the names. A macro knows the scope that knows the macro: without this, neither would be freed.
    pub(super) fn clear(&self) {
        self.names.take();
        self.context.set.take();
        self.context.blocks.take();
    }
}
