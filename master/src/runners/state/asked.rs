//! What a caller asks for.

use brine_protocol::value::{Value, ValueExt as _, map};

use super::super::function::{Failure, Run};

/// What is compiled and run.
pub(super) enum What {
    /// SLS files.
    Sls { mods: Vec<String>, exclude: Vec<Value> },
    /// High data.
    High(Value),
    /// One low chunk.
    Low(Value),
    /// The high data of SLS files is shown.
    Show { mods: Vec<String> },
}

/// An orchestration that was asked for.
pub(super) struct Asked {
    pub(super) what: What,
    pub(super) saltenv: String,
    pub(super) pillarenv: Option<String>,
    /// A map.
    pub(super) pillar: Value,
    pub(super) test: Option<bool>,
}

impl Asked {
    pub(super) fn new(run: &Run, what: What) -> Result<Self, Failure> {
        if run.is("pillar_enc") || named(run, "pillar_enc").is_some() {
            return Err(run.wrong("pillar_enc is not taken: this master cannot decrypt pillars"));
        }
        let pillar = match run.get("pillar").filter(|pillar| !pillar.is_nil()) {
            None => map::<&str, Value>([]),
            Some(pillar @ Value::Map(_)) => pillar.clone(),
            Some(_) => return Err(run.wrong("Pillar data must be formatted as a dictionary")),
        };
        let text = |name: &str| {
            let value = run.get(name).cloned().or_else(|| named(run, name));
            value.filter(|value| value.truthy()).map(|value| value.python_str())
        };
        let test = run.get("test").filter(|test| !test.is_nil()).map(|test| test.truthy());
        let saltenv = text("saltenv").unwrap_or_else(|| "base".to_owned());
        Ok(Self { what, saltenv, pillarenv: text("pillarenv"), pillar, test })
    }
}

/// An argument in `**kwargs`.
fn named(run: &Run, name: &str) -> Option<Value> {
    run.given.kwargs.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
}

/// The names in a list, or in a text between commas.
pub(super) fn names(run: &Run, name: &str) -> Vec<String> {
    split(&run.value(name)).iter().map(|name| name.python_str()).collect()
}

/// What `exclude` has.
pub(super) fn excluded(run: &Run) -> Vec<Value> {
    run.get("exclude").filter(|value| value.truthy()).map(split).unwrap_or_default()
}

fn split(value: &Value) -> Vec<Value> {
    match value {
        Value::Array(items) => items.clone(),
        other => {
            let text = other.python_str();
            text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(Value::from).collect()
        }
    }
}

/// High data, with `salt.state: […]` as `salt: [state, …]`, as the compile of an SLS file leaves it.
pub(super) fn high(run: &Run) -> Result<Value, Failure> {
    let data = run.value("data");
    let Some(entries) = data.entries() else { return Err(run.wrong("data must be a dict, as an SLS file has it")) };
    Ok(Value::Map(entries.iter().map(|(id, body)| (id.clone(), declared(body))).collect()))
}

fn declared(body: &Value) -> Value {
    let Some(entries) = body.entries() else { return body.clone() };
    let long = |(key, arguments): &(Value, Value)| {
        let split = key.text().filter(|key| !key.starts_with("__")).and_then(|key| key.split_once('.'));
        match (split, arguments) {
            (Some((module, function)), Value::Array(arguments)) if !function.contains('.') => {
                let mut arguments = arguments.clone();
                arguments.push(function.into());
                (module.into(), Value::Array(arguments))
            }
            _ => (key.clone(), arguments.clone()),
        }
    };
    Value::Map(entries.iter().map(long).collect())
}

/// The low chunk of a single state.
pub(super) fn chunk(run: &Run) -> Result<Value, Failure> {
    let (fun, name) = (run.text("fun"), run.value("name"));
    let Some((state, function)) = fun.split_once('.') else { return Err("Invalid function passed".into()) };
    let given = run.given.kwargs.iter().filter(|(name, _)| !name.starts_with("__"));
    let mut low = map(given.map(|(name, value)| (name.as_str(), value.clone())));
    for (key, value) in [("state", state.into()), ("fun", function.into()), ("__id__", name.clone()), ("name", name)] {
        low.insert(key, value);
    }
    Ok(low)
}

#[cfg(test)]
mod tests {
    use brine_protocol::config::yaml;

    use super::*;

    #[test]
    fn a_short_declaration_becomes_a_long_one() {
        let load = |text: &str| yaml::load(text).unwrap();
        let short = load("{salt.state: [{tgt: a}], __sls__: x.y, test: [nop], a.b.c: [], salt.x: 5}");
        let long = load("{salt: [{tgt: a}, state], __sls__: x.y, test: [nop], a.b.c: [], salt.x: 5}");
        assert_eq!(declared(&short), long);
        assert_eq!(declared(&load("text")), load("text"));
    }
}
