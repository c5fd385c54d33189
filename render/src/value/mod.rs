//! Python's values, as far as renderers make them and templates change them.
//!
//! Lists, dicts and sets are shared: a clone is another name for the same list, and a change through one name is seen
//! through the others. YAML's aliases, Jinja's `do` and the anchors that the YAML writer sets depend on it. Nothing
//! here is Send: convert a result before it crosses threads.

mod repr;

pub(crate) use repr::float as python_float;

use std::any::Any;
use std::cell::{Ref, RefCell, RefMut};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use indexmap::{Equivalent, IndexMap, IndexSet};

/// Upper bound on nesting in walks over values. A value that contains itself is deeper than any bound.
pub const MAX_DEPTH: usize = 200;
/// Upper bound on the pairs of values that one comparison looks at: shared lists can stand for an exponential number.
const MAX_COMPARISONS: usize = 1 << 22;

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

/// `datetime.date`
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date {
    /// 1 to 9999
    pub year: u16,
    /// 1 to 12
    pub month: u8,
    /// 1 to 31
    pub day: u8,
}

/// `datetime.datetime`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DateTime {
    /// The day.
    pub date: Date,
    /// 0 to 23
    pub hour: u8,
    /// 0 to 59
    pub minute: u8,
    /// 0 to 59
    pub second: u8,
    /// 0 to 999,999
    pub microsecond: u32,
    /// The distance from UTC; none is a naive one.
    pub offset_minutes: Option<i16>,
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
            Self::Dict(dict) if dict.ordered => "OrderedDict",
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
            Self::Set(set) => Some(Rc::as_ptr(&set.0).cast::<()>() as usize),
            // an empty slice has no place of its own
            Self::Tuple(items) if !items.is_empty() => Some(items.0.as_ptr() as usize),
            Self::Object(object) => Some(Rc::as_ptr(object).cast::<()>() as usize),
            _ => None,
        }
    }

    /// Python's `==`; None if the two are too deep or too large to be compared.
    pub fn equals(&self, other: &Self) -> Option<bool> {
        compare(self, other, 0, &mut { MAX_COMPARISONS })
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

impl FromIterator<Key> for Set {
    fn from_iter<I: IntoIterator<Item = Key>>(members: I) -> Self {
        Self(Rc::new(RefCell::new(members.into_iter().collect())))
    }
}

/// A value that can be the key of a dict. As in Python, `1`, `1.0` and `True` are the same key.
#[derive(Clone)]
pub struct Key(Value);

/// What cannot be the key of a dict.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unhashable type: '{0}'")]
pub struct Unhashable(pub String);

impl Key {
    /// Takes a value as key.
    ///
    /// # Errors
    /// Lists, dicts and sets can change, so they cannot be keys; nor can a tuple that has one.
    pub fn new(value: Value) -> Result<Self, Unhashable> {
        check_hashable(&value, 0)?;
        Ok(Self(value))
    }

    /// The key as value.
    pub fn value(&self) -> &Value {
        &self.0
    }

    /// The key as value.
    pub fn into_value(self) -> Value {
        self.0
    }

    /// The text of a `str`.
    pub fn as_str(&self) -> Option<&str> {
        self.0.as_str()
    }
}

fn check_hashable(value: &Value, depth: usize) -> Result<(), Unhashable> {
    match value {
        Value::List(_) | Value::Dict(_) | Value::Set(_) => Err(Unhashable(value.type_name().to_owned())),
        Value::Tuple(_) if depth > MAX_DEPTH => Err(Unhashable("tuple".to_owned())),
        Value::Tuple(items) => items.iter().try_for_each(|item| check_hashable(item, depth + 1)),
        _ => Ok(()),
    }
}

impl From<&str> for Key {
    fn from(text: &str) -> Self {
        Self(Value::str(text))
    }
}

impl From<String> for Key {
    fn from(text: String) -> Self {
        Self(Value::str(text))
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            // NaN is the same key as itself
            (Value::Float(a), Value::Float(b)) => a == b || a.to_bits() == b.to_bits(),
            (a, b) => a.is_same(b) || a == b,
        }
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        hash(&self.0, state);
    }
}

/// Text as key, without making a [`Key`] of it.
pub struct TextKey<'a>(pub &'a str);

impl Hash for TextKey<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        hash_text(self.0, state);
    }
}

impl Equivalent<Key> for TextKey<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        key.as_str() == Some(self.0)
    }
}

fn hash_text<H: Hasher>(text: &str, state: &mut H) {
    2u8.hash(state);
    text.hash(state);
}

fn hash<H: Hasher>(value: &Value, state: &mut H) {
    match value {
        Value::Bool(b) => hash_int(i128::from(*b), state),
        Value::Int(n) => hash_int(*n, state),
        Value::Float(n) => match whole(*n) {
            Some(n) => hash_int(n, state),
            None => n.to_bits().hash(state),
        },
        Value::Str(text) => hash_text(text, state),
        Value::Bytes(bytes) => bytes.hash(state),
        Value::Tuple(items) => items.iter().for_each(|item| hash(item, state)),
        Value::Date(date) => date.hash(state),
        Value::DateTime(time) => time.hash(state),
        other => other.address().hash(state),
    }
}

fn hash_int<H: Hasher>(n: i128, state: &mut H) {
    1u8.hash(state);
    n.hash(state);
}

/// The float as the whole number that it is.
#[expect(clippy::cast_possible_truncation, reason = "checked to be in range")]
pub(crate) fn whole(n: f64) -> Option<i128> {
    const BOUND: f64 = 170_141_183_460_469_231_731_687_303_715_884_105_728.0; // 2 to the 127
    (n.fract() == 0.0 && (-BOUND..BOUND).contains(&n)).then_some(n as i128)
}

fn compare(a: &Value, b: &Value, depth: usize, left: &mut usize) -> Option<bool> {
    use Value as V;
    *left = left.checked_sub(1)?;
    if depth > MAX_DEPTH {
        return None;
    }
    if a.is_same(b) {
        return Some(true);
    }
    Some(match (a, b) {
        (V::None, V::None) => true,
        (V::Bool(a), V::Bool(b)) => a == b,
        (V::Int(a), V::Int(b)) => a == b,
        (V::Bool(b), V::Int(n)) | (V::Int(n), V::Bool(b)) => *n == i128::from(*b),
        (V::Float(a), V::Float(b)) => a == b,
        (V::Float(f), V::Int(n)) | (V::Int(n), V::Float(f)) => whole(*f) == Some(*n),
        (V::Float(f), V::Bool(b)) | (V::Bool(b), V::Float(f)) => *f == f64::from(*b),
        (V::Str(a), V::Str(b)) => a == b,
        (V::Bytes(a), V::Bytes(b)) => a == b,
        (V::List(a), V::List(b)) => compare_all(&a.borrow(), &b.borrow(), depth, left)?,
        (V::Tuple(a), V::Tuple(b)) => compare_all(a, b, depth, left)?,
        (V::Dict(a), V::Dict(b)) => {
            let (ordered, a, b) = (a.ordered && b.ordered, a.borrow(), b.borrow());
            if a.len() != b.len() {
                return Some(false);
            }
            if ordered && !a.keys().eq(b.keys()) {
                return Some(false);
            }
            for (key, value) in a.iter() {
                match b.get(key) {
                    Some(other) if compare(value, other, depth + 1, left)? => {}
                    _ => return Some(false),
                }
            }
            true
        }
        (V::Set(a), V::Set(b)) => *a.borrow() == *b.borrow(),
        (V::Date(a), V::Date(b)) => a == b,
        (V::DateTime(a), V::DateTime(b)) => a == b,
        _ => false,
    })
}

fn compare_all(a: &[Value], b: &[Value], depth: usize, left: &mut usize) -> Option<bool> {
    if a.len() != b.len() {
        return Some(false);
    }
    for (a, b) in a.iter().zip(b) {
        if !compare(a, b, depth + 1, left)? {
            return Some(false);
        }
    }
    Some(true)
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

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.write_repr(f)
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

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

impl DateTime {
    /// Minutes and microseconds of an order in time.
    pub(crate) fn instant(&self) -> (i64, u32) {
        let (year, month) = (i64::from(self.date.year), i64::from(self.date.month));
        // days of a calendar whose year begins in March
        let year = if month <= 2 { year - 1 } else { year };
        let day = (153 * ((month + 9) % 12) + 2) / 5 + i64::from(self.date.day);
        let days = 365 * year + year / 4 - year / 100 + year / 400 + day;
        let minutes = days * 1440 + i64::from(self.hour) * 60 + i64::from(self.minute);
        let offset = i64::from(self.offset_minutes.unwrap_or_default());
        (minutes - offset, u32::from(self.second) * 1_000_000 + self.microsecond)
    }
}

/// Python's `str`, which is `isoformat(" ")`.
impl fmt::Display for DateTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:02}:{:02}:{:02}", self.date, self.hour, self.minute, self.second)?;
        if self.microsecond > 0 {
            write!(f, ".{:06}", self.microsecond)?;
        }
        match self.offset_minutes {
            Some(offset) => {
                let sign = if offset < 0 { '-' } else { '+' };
                write!(f, "{sign}{:02}:{:02}", offset.unsigned_abs() / 60, offset.unsigned_abs() % 60)
            }
            None => Ok(()),
        }
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
