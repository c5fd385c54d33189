//! The arguments of the functions that compile: what of `kwargs` they know.

use brine_guest::Data;
use brine_render::{Dict, Value};

use crate::wire;

/// What a run is told beside its SLS files.
pub(crate) struct Arguments {
    all: Dict,
}

impl Arguments {
    pub(crate) fn new(kwargs: &Data) -> Result<Self, String> {
        let arguments = Self { all: wire::dict(kwargs)? };
        let pillar = arguments.get("pillar");
        if pillar.is_some_and(|pillar| !matches!(pillar, Value::Dict(_))) {
            return Err("Pillar data must be formatted as a dictionary, unless pillar_enc is specified.".into());
        }
        Ok(arguments)
    }

    /// An argument that was given and is not None.
    pub(crate) fn get(&self, name: &str) -> Option<Value> {
        self.all.get(name).filter(|value| !matches!(value, Value::None))
    }

    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value.truthy())
    }

    /// A list, or text separated by commas.
    pub(crate) fn list(&self, name: &str) -> Vec<Value> {
        self.get(name).map(|value| split(&value)).unwrap_or_default()
    }

    /// The texts of a list.
    pub(crate) fn texts(&self, name: &str) -> Vec<String> {
        self.list(name).iter().map(text).collect()
    }
}

/// Salt's `split_input`: the items of a list, or the parts of a text between commas.
pub(crate) fn split(value: &Value) -> Vec<Value> {
    match value {
        Value::List(items) => items.borrow().clone(),
        Value::Tuple(items) => items.iter().cloned().collect(),
        other => {
            let text = text(other);
            let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
            parts.map(Value::from).collect()
        }
    }
}

/// Python's `str` of a value.
pub(crate) fn text(value: &Value) -> String {
    match value.as_str() {
        Some(text) => text.to_owned(),
        None => brine_render::data::text(value).unwrap_or_default(),
    }
}

/// The items of a list or tuple; another value is one item.
pub(crate) fn items(value: &Value) -> Vec<Value> {
    match value {
        Value::List(items) => items.borrow().clone(),
        Value::Tuple(items) => items.iter().cloned().collect(),
        Value::None => Vec::new(),
        other => vec![other.clone()],
    }
}
