//! The arguments of states.

use brine_guest::{Data, Value};

use crate::change::mode;
use crate::change::owner::Wanted;

/// The keywords of a state. One that is None counts as not given.
pub(crate) struct Arguments(Vec<(Value, Value)>);

impl Arguments {
    pub(crate) fn new(kwargs: &Data) -> Result<Self, String> {
        match kwargs.value()? {
            Value::Dict(entries) => Ok(Self(entries)),
            _ => Err("the arguments are no dict".into()),
        }
    }

    pub(crate) fn from(entries: Vec<(Value, Value)>) -> Self {
        Self(entries)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        let found = self.0.iter().find(|(key, _)| key.text() == Some(name)).map(|(_, value)| value);
        found.filter(|value| **value != Value::None)
    }

    pub(crate) fn value(&self, name: &str) -> Value {
        self.get(name).cloned().unwrap_or_default()
    }

    pub(crate) fn set(&mut self, name: &str, value: Value) {
        self.0.retain(|(key, _)| key.text() != Some(name));
        self.0.push((name.into(), value));
    }

    /// Python's `str` of an argument.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.get(name).map(Value::to_text)
    }

    /// The same of one that counts as true.
    pub(crate) fn named(&self, name: &str) -> Option<String> {
        self.get(name).filter(|value| value.truthy()).map(Value::to_text)
    }

    /// Whether an argument counts as true. As in Python, a None that is given is no truth, whatever the default.
    pub(crate) fn flag(&self, name: &str, default: bool) -> bool {
        let given = self.0.iter().find(|(key, _)| key.text() == Some(name));
        given.map_or(default, |(_, value)| value.truthy())
    }

    /// A whole number.
    pub(crate) fn number(&self, name: &str, default: i64) -> Result<i64, String> {
        match self.get(name) {
            None => Ok(default),
            Some(Value::Int(number)) => Ok(*number),
            Some(Value::Text(text)) => text.trim().parse().map_err(|_| format!("{name} is no number: {text:?}")),
            Some(other) => Err(format!("{name} is to be a number, not {}", other.kind())),
        }
    }

    /// Whether an argument is given, None too.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(key, _)| key.text() == Some(name))
    }

    /// The end of a backup's name, `.bak` if it is not given; none if it is false.
    pub(crate) fn ending(&self, name: &str) -> Option<String> {
        if self.has(name) { self.named(name) } else { Some(".bak".into()) }
    }

    /// A mode in Salt's form.
    pub(crate) fn mode(&self, name: &str) -> Option<String> {
        self.get(name).and_then(mode::normal)
    }

    /// A list, or one text as a list.
    pub(crate) fn list(&self, name: &str) -> Vec<Value> {
        match self.get(name) {
            None => Vec::new(),
            Some(Value::List(items)) => items.clone(),
            Some(one) => vec![one.clone()],
        }
    }

    /// `user` and `group`. As in Salt, `owner` is taken for `user`.
    pub(crate) fn owner(&self) -> Wanted {
        let user = self.get("user").filter(|user| user.truthy()).or_else(|| self.get("owner"));
        Wanted { user: user.cloned().unwrap_or_default(), group: self.value("group") }
    }

    /// All keywords but some.
    pub(crate) fn others(&self, known: &[&str]) -> impl Iterator<Item = &(Value, Value)> {
        self.0.iter().filter(move |(key, _)| key.text().is_some_and(|key| !known.contains(&key)))
    }
}

/// The arguments that are given, by their parameters' names.
macro_rules! given {
    ($($name:ident),* $(,)?) => {{
        let mut entries: Vec<(brine_guest::Value, brine_guest::Value)> = Vec::new();
        $(if let Some(value) = $name {
            entries.push((stringify!($name).into(), value.value()?));
        })*
        $crate::states::Arguments::from(entries)
    }};
}
pub(crate) use given;
