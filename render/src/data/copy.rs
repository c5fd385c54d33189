//! Copies of values.

use std::collections::HashMap;

use super::{Budget, CallError};
use crate::value::{Dict, Entries, List, MAX_DEPTH, Value};

/// What Salt 3008 shows in place of a value of the pillar.
const MASK: &str = "**********";

/// How a copy differs from what it is a copy of.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// `copy.deepcopy`: what is shared stays shared, in the copy.
    Deep,
    /// Dicts are plain ones: as JSON or MessagePack would give them back.
    Plain,
    /// As [`Kind::Plain`], and values that say something are masked.
    Masked,
}

struct Copier<'a> {
    kind: Kind,
    known: HashMap<usize, Value>,
    budget: &'a Budget,
}

/// `copy.deepcopy`.
///
/// # Errors
/// The value is too deep or too large, or something that cannot be copied.
pub fn deep_copy(value: &Value, budget: &Budget) -> Result<Value, CallError> {
    copy(value, Kind::Deep, budget)
}

/// A copy in which each dict is a plain one of Python, as what came from a master is: changes in it change nothing else.
///
/// # Errors
/// As [`deep_copy`].
pub fn plain(value: &Value, budget: &Budget) -> Result<Value, CallError> {
    copy(value, Kind::Plain, budget)
}

/// A copy in which all that says something is masked.
///
/// # Errors
/// As [`deep_copy`].
pub fn mask(value: &Value, budget: &Budget) -> Result<Value, CallError> {
    copy(value, Kind::Masked, budget)
}

fn copy(value: &Value, kind: Kind, budget: &Budget) -> Result<Value, CallError> {
    Copier { kind, known: HashMap::new(), budget }.copy(value, 0)
}

impl Copier<'_> {
    fn copy(&mut self, value: &Value, depth: usize) -> Result<Value, CallError> {
        if depth > MAX_DEPTH {
            return Err(CallError::python("maximum recursion depth exceeded"));
        }
        if let Some(known) = value.address().and_then(|at| self.known.get(&at)) {
            return Ok(known.clone());
        }
        match value {
            Value::List(list) => {
                let items = list.borrow().clone();
                self.budget.take_values(items.len() + 1)?;
                let made = List::default();
                self.remember(value, &Value::List(made.clone()));
                for item in &items {
                    let item = self.copy(item, depth + 1)?;
                    made.borrow_mut().push(item);
                }
                Ok(made.into())
            }
            Value::Dict(dict) => {
                let entries = dict.borrow().clone();
                self.budget.take_values(entries.len() * 2 + 1)?;
                let is_ordered = dict.is_ordered() && self.kind == Kind::Deep;
                let made = Dict::from_entries(Entries::with_capacity(entries.len()), is_ordered);
                self.remember(value, &Value::Dict(made.clone()));
                for (key, item) in entries {
                    let item = self.copy(&item, depth + 1)?;
                    made.borrow_mut().insert(key, item);
                }
                Ok(made.into())
            }
            Value::Tuple(items) => {
                self.budget.take_values(items.len() + 1)?;
                let made = items.iter().map(|item| self.copy(item, depth + 1)).collect::<Result<Vec<_>, _>>()?;
                Ok(Value::tuple(made))
            }
            Value::Set(set) => {
                self.budget.take_values(set.borrow().len() + 1)?;
                let made = Value::Set(set.borrow().iter().cloned().collect());
                self.remember(value, &made);
                Ok(made)
            }
            Value::Object(object) if self.kind == Kind::Deep && object.type_name() == "generator" => {
                Err(CallError::python("cannot pickle 'generator' object"))
            }
            Value::Bytes(bytes) if self.kind == Kind::Masked && !bytes.is_empty() => {
                Ok(Value::Bytes(MASK.as_bytes().into()))
            }
            Value::Str(_) | Value::Bool(_) | Value::Int(_) | Value::Float(_)
                if self.kind == Kind::Masked && value.truthy() =>
            {
                Ok(MASK.into())
            }
            _ => Ok(value.clone()),
        }
    }

    fn remember(&mut self, value: &Value, made: &Value) {
        if let Some(at) = value.address() {
            self.known.insert(at, made.clone());
        }
    }
}
