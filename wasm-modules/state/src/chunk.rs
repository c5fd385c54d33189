//! A low chunk: one state of a run, as Salt's compiler makes it and as the host runs it.

use brine_guest::host::states::{self, Chunk};
use brine_guest::{Data, Value};

/// A low chunk.
pub(crate) struct Low {
    entries: Vec<(Value, Value)>,
}

impl Low {
    pub(crate) fn new(entries: Vec<(Value, Value)>) -> Self {
        Self { entries }
    }

    fn get(&self, key: &str) -> Option<&Value> {
        self.entries.iter().find(|(known, _)| known.text() == Some(key)).map(|(_, value)| value)
    }

    fn text(&self, key: &str) -> String {
        self.get(key).map(Value::to_text).unwrap_or_default()
    }

    /// The state: `file.managed`.
    fn full(&self) -> String {
        format!("{}.{}", self.text("state"), self.text("fun"))
    }

    /// The id; the name where there is none.
    fn id(&self) -> String {
        self.text(if self.get("__id__").is_some() { "__id__" } else { "name" })
    }

    /// The key of its result.
    pub(crate) fn tag(&self) -> String {
        format!("{}_|-{}_|-{}_|-{}", self.text("state"), self.id(), self.text("name"), self.text("fun"))
    }

    /// What is wrong with it, in Salt's words.
    pub(crate) fn errors(&self) -> Vec<String> {
        let mut errors = Vec::new();
        for key in ["state", "fun", "name"] {
            if self.get(key).is_none() {
                errors.push(format!("Missing \"{key}\" data"));
            }
        }
        if let Some(name) = self.get("name").filter(|name| name.truthy() && name.text().is_none()) {
            let within = self.get("__sls__").map(|sls| format!("in SLS '{}' ", sls.to_text())).unwrap_or_default();
            errors.push(format!(
                "ID '{}' {within}is not formed as a string, but is a {}",
                name.to_text(),
                python_type(name)
            ));
        }
        if errors.is_empty() && !states::exists(&self.full()) {
            errors.push(match self.get("__sls__") {
                Some(sls) => format!("State '{}' was not found in SLS '{}'", self.full(), sls.to_text()),
                None => format!("Specified state '{}' was not found", self.full()),
            });
        }
        errors
    }

    /// What the host is told of it.
    pub(crate) fn chunk(&self, run_number: u32, test: bool) -> Chunk {
        Chunk {
            state: self.full(),
            tag: self.tag(),
            arguments: Data::from(Value::Dict(self.entries.clone())),
            id: self.id(),
            sls: self.text("__sls__"),
            saltenv: if self.get("__env__").is_some() { self.text("__env__") } else { "base".into() },
            run_number,
            changed: Vec::new(),
            test,
        }
    }
}

/// Python's name of a value's type.
fn python_type(value: &Value) -> &'static str {
    match value {
        Value::None => "NoneType",
        Value::Bool(_) => "bool",
        Value::Int(_) | Value::Big(_) => "int",
        Value::Float(_) => "float",
        Value::Text(_) => "str",
        Value::Bytes(_) => "bytes",
        Value::List(_) => "list",
        Value::Dict(_) => "dict",
        Value::Ext(..) => "ExtType",
    }
}
