//! Python's values, as far as renderers make them and templates change them.
//!
//! Lists, dicts and sets are shared: a clone is another name for the same list, and a change through one name is seen
//! through the others. YAML's aliases, Jinja's `do` and the anchors that the YAML writer sets depend on it. Nothing
//! here is Send: convert a result before it crosses threads.

mod compare;
mod containers;
mod key;
mod repr;
mod time;

pub use containers::{Dict, Entries, List, Set, Tuple};
pub use key::{Key, TextKey, Unhashable};
pub(crate) use repr::float as python_float;
pub use time::{Date, DateTime};

use std::any::Any;
use std::fmt;
use std::rc::Rc;

/// Upper bound on nesting in walks over values. A value that contains itself is deeper than any bound.
pub const MAX_DEPTH: usize = 200;

/// A value of Python.
#[derive(Clone, Default)]
pub enum Value {
    /// `None`
    #[default]
    None,
    /// `True` and `False`
    Bool(bool),
    /// `int`. Python's has no bound; what makes a number beyond this one's is an error.
    Int(i128),
    /// `float`
    Float(f64),
    /// `str`
    Str(Rc<str>),
    /// `bytes`
    Bytes(Rc<[u8]>),
    /// `list`
    List(List),
    /// `tuple`
    Tuple(Tuple),
    /// `dict` or `OrderedDict`
    Dict(Dict),
    /// `set`
    Set(Set),
    /// `datetime.date`
    Date(Date),
    /// `datetime.datetime`
    DateTime(DateTime),
    /// An object that only its maker knows: a macro, a function, something undefined.
    Object(Rc<dyn Object>),
}

/// A value that only its maker knows.
pub trait Object: Any + fmt::Debug {
    /// The name of its type in messages.
    fn type_name(&self) -> &str;
    /// For its maker to recognise it.
    fn as_any(&self) -> &dyn Any;
    /// Python's truth value.
    fn truthy(&self) -> bool {
        true
    }
    /// Python's `repr`.
    ///
    /// # Errors
    /// The output takes no more.
    fn write_repr(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        write!(out, "<{} object>", self.type_name())
    }
    /// Python's `str`.
    ///
    /// # Errors
    /// The output takes no more.
    fn write_str(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        self.write_repr(out)
    }
}

impl Value {
    /// A tuple.
    pub fn tuple(items: impl IntoIterator<Item = Value>) -> Self {
        Self::Tuple(items.into_iter().collect())
    }

    /// Text.
    pub fn str(text: impl Into<Rc<str>>) -> Self {
        Self::Str(text.into())
    }

    /// A new list.
    pub fn list(items: impl IntoIterator<Item = Value>) -> Self {
        Self::List(items.into_iter().collect())
    }

    /// A new dict (Python's `dict`).
    pub fn dict(entries: impl IntoIterator<Item = (Key, Value)>) -> Self {
        Self::Dict(entries.into_iter().collect())
    }

    /// The name of the type in Python.
    pub fn type_name(&self) -> &str {
        match self {
            Self::None => "NoneType",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Float(_) => "float",
            Self::Str(_) => "str",
            Self::Bytes(_) => "bytes",
            Self::List(_) => "list",
            Self::Tuple(_) => "tuple",
            Self::Dict(dict) if dict.is_ordered() => "OrderedDict",
            Self::Dict(_) => "dict",
            Self::Set(_) => "set",
            Self::Date(_) => "datetime.date",
            Self::DateTime(_) => "datetime.datetime",
            Self::Object(object) => object.type_name(),
        }
    }

    /// Python's truth value: None, false, zero and everything empty are false.
    pub fn truthy(&self) -> bool {
        match self {
            Self::None => false,
            Self::Bool(b) => *b,
            Self::Int(n) => *n != 0,
            Self::Float(n) => *n != 0.0,
            Self::Str(text) => !text.is_empty(),
            Self::Bytes(bytes) => !bytes.is_empty(),
            Self::List(list) => !list.borrow().is_empty(),
            Self::Tuple(items) => !items.is_empty(),
            Self::Dict(dict) => !dict.borrow().is_empty(),
            Self::Set(set) => !set.borrow().is_empty(),
            Self::Date(_) | Self::DateTime(_) => true,
            Self::Object(object) => object.truthy(),
        }
    }

    /// The text of a `str`.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Str(text) => Some(text),
            _ => None,
        }
    }

    /// Whether two names are of the same object (Python's `is`), for what can be shared.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self.address(), other.address()) {
            (Some(a), Some(b)) => a == b,
            _ => false,
        }
    }

    /// Where a shared value is: the same address means the same object while both live.
    pub fn address(&self) -> Option<usize> {
        match self {
            Self::List(list) => Some(list.address()),
            Self::Dict(dict) => Some(dict.address()),
            Self::Set(set) => Some(set.address()),
            Self::Tuple(items) => items.address(),
            Self::Object(object) => Some(Rc::as_ptr(object).cast::<()>() as usize),
            _ => None,
        }
    }

    /// Python's `==`; None if the two are too deep or too large to be compared.
    pub fn equals(&self, other: &Self) -> Option<bool> {
        compare::equals(self, other)
    }

    /// Python's `repr`.
    ///
    /// # Errors
    /// The output takes no more: shared lists can stand for text of any size, so `out` sets the bound.
    pub fn write_repr(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        repr::write(self, out)
    }

    /// Python's `str`.
    ///
    /// # Errors
    /// As [`Value::write_repr`].
    pub fn write_str(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        match self {
            Self::Str(text) => out.write_str(text),
            Self::Date(date) => write!(out, "{date}"),
            Self::DateTime(time) => write!(out, "{time}"),
            Self::Object(object) => object.write_str(out),
            other => other.write_repr(out),
        }
    }

    /// Python's `repr` for messages, cut after a thousand bytes or so.
    pub fn short_repr(&self) -> String {
        let mut out = repr::Short::default();
        // cut is not failed
        let _ = self.write_repr(&mut out);
        out.into_text()
    }
}

/// Python's `==`; what is too deep or too large to be compared is unequal.
impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        self.equals(other).unwrap_or(false)
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_repr(f)
    }
}

macro_rules! from_number {
    ($($kind:ty)*) => { $(impl From<$kind> for Value {
        fn from(n: $kind) -> Self {
            Self::Int(i128::from(n))
        }
    })* };
}

from_number!(i32 i64 u32 u64 i128);

impl From<bool> for Value {
    fn from(b: bool) -> Self {
        Self::Bool(b)
    }
}

impl From<f64> for Value {
    fn from(n: f64) -> Self {
        Self::Float(n)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::str(text)
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::str(text)
    }
}

impl From<List> for Value {
    fn from(list: List) -> Self {
        Self::List(list)
    }
}

impl From<Dict> for Value {
    fn from(dict: Dict) -> Self {
        Self::Dict(dict)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_seen_through_every_name() {
        let list = Value::list([1.into()]);
        let dict = Dict::default();
        dict.set("l", list.clone());
        let Value::List(inner) = dict.get("l").unwrap() else { panic!("a list") };
        inner.borrow_mut().push("x".into());
        assert_eq!(list, Value::list([1.into(), "x".into()]));
        assert!(list.is_same(&dict.get("l").unwrap()));
        assert!(!list.is_same(&Value::list([1.into(), "x".into()])));
    }

    #[test]
    fn one_and_true_are_the_same_key() {
        let dict: Dict = [(Key::new(1.into()).unwrap(), "a".into())].into_iter().collect();
        dict.borrow_mut().insert(Key::new(true.into()).unwrap(), "b".into());
        dict.borrow_mut().insert(Key::new(1.0.into()).unwrap(), "c".into());
        assert_eq!(format!("{dict:?}"), "{1: 'c'}");
        assert_eq!(Key::new(Value::list([])).unwrap_err().to_string(), "unhashable type: 'list'");
        let tuple = Value::tuple([Value::dict([])]);
        assert_eq!(Key::new(tuple).unwrap_err().to_string(), "unhashable type: 'dict'");
    }

    #[test]
    fn printing_is_pythons() {
        let cases: &[(Value, &str)] = &[
            (Value::None, "None"),
            (true.into(), "True"),
            (1.0.into(), "1.0"),
            (1e16.into(), "1e+16"),
            (1.5e-7.into(), "1.5e-07"),
            (f64::NEG_INFINITY.into(), "-inf"),
            ("it's".into(), "\"it's\""),
            ("a\n\u{1}é\u{200b}\\".into(), "'a\\n\\x01é\\u200b\\\\'"),
            (Value::Bytes((*b"\x00a'").into()), "b\"\\x00a'\""),
            (Value::tuple([1.into()]), "(1,)"),
            (Value::dict([("k".into(), Value::list([1.into(), Value::None]))]), "{'k': [1, None]}"),
            (Dict::ordered().into(), "OrderedDict()"),
            (Value::Set(Set::default()), "set()"),
            (Value::Date(Date { year: 2020, month: 1, day: 2 }), "datetime.date(2020, 1, 2)"),
        ];
        for (value, expect) in cases {
            assert_eq!(format!("{value:?}"), *expect);
        }
    }

    #[test]
    fn what_contains_itself_ends() {
        let list = List::default();
        list.borrow_mut().push(Value::List(list.clone()));
        assert_eq!(format!("{list:?}"), "[[...]]");
        let other = List::default();
        other.borrow_mut().push(Value::List(other.clone()));
        assert_eq!(Value::List(list.clone()).equals(&Value::List(other.clone())), None);
        list.borrow_mut().clear();
        other.borrow_mut().clear();
    }

    #[test]
    fn very_many_levels_can_be_dropped() {
        let deep = (0..300_000).fold(Value::None, |inner, at| match at % 3 {
            0 => Value::list([inner]),
            1 => Value::dict([("k".into(), inner)]),
            _ => Value::tuple([inner]),
        });
        assert!(deep.short_repr().len() < 4000);
        assert_eq!(deep.equals(&deep.clone()), Some(true));
    }

    #[test]
    fn what_stands_for_a_billion_is_cut() {
        let bomb = || (0..40).fold(Value::str("lol"), |inner, _| Value::list([inner.clone(), inner]));
        assert!(bomb().short_repr().len() < 2000);
        assert_eq!(bomb().equals(&bomb()), None);
    }
}
