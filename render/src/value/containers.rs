//! Lists, dicts, tuples and sets: shared, and taken apart without recursion.

use std::cell::{Ref, RefCell, RefMut};
use std::fmt;
use std::rc::Rc;

use indexmap::{IndexMap, IndexSet};

use super::Value;
use super::key::{Key, TextKey};

/// A list, shared.
#[derive(Clone, Default)]
pub struct List(Rc<RefCell<Vec<Value>>>);

/// A tuple.
#[derive(Clone)]
pub struct Tuple(Rc<[Value]>);

/// The entries of a dict in their order.
pub type Entries = IndexMap<Key, Value>;

/// A dict, shared.
#[derive(Clone, Default)]
pub struct Dict {
    entries: Rc<RefCell<Entries>>,
    ordered: bool,
}

/// A set, shared, in the order of insertion.
#[derive(Clone, Default)]
pub struct Set(Rc<RefCell<IndexSet<Key>>>);

impl List {
    /// The items.
    ///
    /// # Panics
    /// While the items are being changed.
    pub fn borrow(&self) -> Ref<'_, Vec<Value>> {
        self.0.borrow()
    }

    /// The items, to change them.
    ///
    /// # Panics
    /// While somebody looks at the items.
    pub fn borrow_mut(&self) -> RefMut<'_, Vec<Value>> {
        self.0.borrow_mut()
    }

    /// Where the list is.
    pub fn address(&self) -> usize {
        Rc::as_ptr(&self.0).cast::<()>() as usize
    }
}

impl FromIterator<Value> for List {
    fn from_iter<I: IntoIterator<Item = Value>>(items: I) -> Self {
        Self(Rc::new(RefCell::new(items.into_iter().collect())))
    }
}

impl From<Vec<Value>> for List {
    fn from(items: Vec<Value>) -> Self {
        Self(Rc::new(RefCell::new(items)))
    }
}

impl Tuple {
    /// Where the tuple is; an empty one has no place of its own.
    pub fn address(&self) -> Option<usize> {
        if self.0.is_empty() { None } else { Some(self.0.as_ptr() as usize) }
    }
}

impl std::ops::Deref for Tuple {
    type Target = [Value];

    fn deref(&self) -> &[Value] {
        &self.0
    }
}

impl FromIterator<Value> for Tuple {
    fn from_iter<I: IntoIterator<Item = Value>>(items: I) -> Self {
        Self(items.into_iter().collect())
    }
}

impl From<Vec<Value>> for Tuple {
    fn from(items: Vec<Value>) -> Self {
        Self(items.into())
    }
}

// A template can put a list into a list a million times. Dropping that as Rust does takes a stack frame a level, so the
// last owner of a container takes its content apart in a loop.

impl Drop for List {
    fn drop(&mut self) {
        if let Some(items) = Rc::get_mut(&mut self.0)
            && items.get_mut().iter().any(holds_values)
        {
            take_apart(std::mem::take(items.get_mut()));
        }
    }
}

impl Drop for Dict {
    fn drop(&mut self) {
        if let Some(entries) = Rc::get_mut(&mut self.entries)
            && entries.get_mut().values().any(holds_values)
        {
            take_apart(entries.get_mut().drain(..).map(|(_, value)| value).collect());
        }
    }
}

impl Drop for Tuple {
    fn drop(&mut self) {
        if let Some(items) = Rc::get_mut(&mut self.0)
            && items.iter().any(holds_values)
        {
            take_apart(items.iter_mut().map(std::mem::take).collect());
        }
    }
}

fn holds_values(value: &Value) -> bool {
    matches!(value, Value::List(_) | Value::Dict(_) | Value::Tuple(_))
}

fn take_apart(mut pile: Vec<Value>) {
    while let Some(mut value) = pile.pop() {
        match &mut value {
            Value::List(list) => {
                if let Some(items) = Rc::get_mut(&mut list.0) {
                    pile.append(items.get_mut());
                }
            }
            Value::Dict(dict) => {
                if let Some(entries) = Rc::get_mut(&mut dict.entries) {
                    pile.extend(entries.get_mut().drain(..).map(|(_, value)| value));
                }
            }
            Value::Tuple(items) => {
                if let Some(items) = Rc::get_mut(&mut items.0) {
                    pile.extend(items.iter_mut().map(std::mem::take));
                }
            }
            _ => {}
        }
    }
}

impl Dict {
    /// An empty `OrderedDict`, which is what rendered files are made of. The YAML writer sorts the keys of a `dict`,
    /// and keeps the order of an `OrderedDict`.
    pub fn ordered() -> Self {
        Self::from_entries(Entries::default(), true)
    }

    /// From entries: an `OrderedDict` or a `dict`.
    pub fn from_entries(entries: Entries, ordered: bool) -> Self {
        Self { entries: Rc::new(RefCell::new(entries)), ordered }
    }

    /// Whether Python would call it an `OrderedDict`.
    pub fn is_ordered(&self) -> bool {
        self.ordered
    }

    /// The entries.
    ///
    /// # Panics
    /// While the entries are being changed.
    pub fn borrow(&self) -> Ref<'_, Entries> {
        self.entries.borrow()
    }

    /// The entries, to change them. Remove with `shift_remove`, which keeps the order.
    ///
    /// # Panics
    /// While somebody looks at the entries.
    pub fn borrow_mut(&self) -> RefMut<'_, Entries> {
        self.entries.borrow_mut()
    }

    /// The value under a text key.
    pub fn get(&self, key: &str) -> Option<Value> {
        self.borrow().get(&TextKey(key)).cloned()
    }

    /// Sets the value of a text key.
    pub fn set(&self, key: &str, value: Value) {
        self.borrow_mut().insert(Key::from(key), value);
    }

    /// Where the dict is.
    pub fn address(&self) -> usize {
        Rc::as_ptr(&self.entries).cast::<()>() as usize
    }
}

impl FromIterator<(Key, Value)> for Dict {
    fn from_iter<I: IntoIterator<Item = (Key, Value)>>(entries: I) -> Self {
        Self::from_entries(entries.into_iter().collect(), false)
    }
}

impl Set {
    /// The members.
    ///
    /// # Panics
    /// While the members are being changed.
    pub fn borrow(&self) -> Ref<'_, IndexSet<Key>> {
        self.0.borrow()
    }

    /// The members, to change them.
    ///
    /// # Panics
    /// While somebody looks at the members.
    pub fn borrow_mut(&self) -> RefMut<'_, IndexSet<Key>> {
        self.0.borrow_mut()
    }
}

impl Set {
    /// Where the set is.
    pub fn address(&self) -> usize {
        Rc::as_ptr(&self.0).cast::<()>() as usize
    }
}

impl FromIterator<Key> for Set {
    fn from_iter<I: IntoIterator<Item = Key>>(members: I) -> Self {
        Self(Rc::new(RefCell::new(members.into_iter().collect())))
    }
}

impl fmt::Debug for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Value::List(self.clone()).write_repr(f)
    }
}

impl fmt::Debug for Dict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Value::Dict(self.clone()).write_repr(f)
    }
}

impl fmt::Debug for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Value::Set(self.clone()).write_repr(f)
    }
}
