//! What is to become of packages: dpkg's selections, and holding packages back.

use brine_apt::dpkg;
use brine_guest::states::is_dry_run;
use brine_guest::{Result, Value};

use crate::host::{self, How};
use crate::targets;

/// Names by selections, of the packages that match a pattern of dpkg.
pub(crate) fn all(pattern: Option<&str>) -> Result<Vec<(String, Vec<String>)>> {
    host::check_family()?;
    let pattern = pattern.filter(|pattern| !pattern.is_empty()).unwrap_or("*");
    let words = ["dpkg-query", "--showformat", "${binary:Package}\t${db:Status-Want}\n", "--show", "--", pattern];
    let mut found = dpkg::selections(&host::run(&words, How::default())?.stdout);
    found.retain(|(selection, _)| selection != "unknown");
    Ok(found)
}

/// The packages with one selection.
pub(crate) fn of(pattern: Option<&str>, selection: &str) -> Result<Vec<String>> {
    let found = all(pattern)?.into_iter().find(|(known, _)| known == selection);
    Ok(found.map(|(_, names)| names).unwrap_or_default())
}

pub(crate) fn get(pattern: Option<&str>, state: Option<&str>) -> Result<Value> {
    Ok(match state.filter(|state| !state.is_empty()) {
        Some(state) => Value::dict([(state, of(pattern, state)?.into())]),
        None => Value::Dict(all(pattern)?.into_iter().map(|(name, names)| (name.into(), names.into())).collect()),
    })
}

const STATES: [&str; 4] = ["install", "hold", "deinstall", "purge"];

/// Selects packages: names by selections. Returns what changed.
pub(crate) fn set(selection: &[(String, Vec<String>)], clear: bool) -> Result<Value> {
    let bad: Vec<&str> =
        selection.iter().map(|(state, _)| &state[..]).filter(|state| !STATES.contains(state)).collect();
    if !bad.is_empty() {
        return Err(format!("Invalid state(s): {}", bad.join(", ")));
    }
    if clear && !is_dry_run() {
        let done = host::run_apt(vec!["dpkg".into(), "--clear-selections".into()], How::default())?;
        if done.code != 0 {
            return Err(format!("Running dpkg --clear-selections failed: {}", done.stderr));
        }
    }
    let before = all(None)?;
    let mut changes = Vec::new();
    for (state, names) in selection {
        for name in names {
            let old = before.iter().find(|(_, names)| names.contains(name)).map(|(old, _)| old.clone());
            if old.as_ref() == Some(state) || is_dry_run() {
                continue;
            }
            if name.contains(char::is_whitespace) {
                return Err(format!("{name:?} is no name of a package"));
            }
            let how = How { stdin: Some(format!("{name} {state}").into_bytes()), ..How::default() };
            let done = host::run_apt(vec!["dpkg".into(), "--set-selections".into()], how)?;
            if done.code != 0 {
                host::log_error(&format!("failed to set state {state} for package {name}"));
            } else {
                let change = Value::dict([("old", old.into()), ("new", state.clone().into())]);
                changes.push((name.clone().into(), change));
            }
        }
    }
    Ok(Value::Dict(changes))
}

/// Reads the argument `selection`, or the file at `path`.
pub(crate) fn asked(path: Option<&str>, selection: &Value, saltenv: &str) -> Result<Vec<(String, Vec<String>)>> {
    if let Some(path) = path {
        let content = targets::content(path, saltenv)?.ok_or_else(|| format!("there is no file {path}"))?;
        return Ok(dpkg::selections(&String::from_utf8_lossy(&content)));
    }
    let Value::Dict(entries) = selection else {
        return Err(format!("Improperly-formatted selection: a dict is expected, not {}", selection.kind()));
    };
    let names = |value: &Value| match value {
        Value::List(names) => names.iter().map(Value::to_text).collect(),
        one => vec![one.to_text()],
    };
    Ok(entries.iter().map(|(state, value)| (state.to_text(), names(value))).collect())
}

/// What became of a package that is to be held back, or no longer: a part of the answer of `hold`.
pub(crate) struct Holding {
    pub name: String,
    pub changes: Value,
    pub result: Option<bool>,
    pub comment: String,
}

impl Holding {
    pub(crate) fn to_value(&self) -> Value {
        Value::dict([
            ("name", self.name.clone().into()),
            ("changes", self.changes.clone()),
            ("result", self.result.into()),
            ("comment", self.comment.clone().into()),
        ])
    }
}

fn change(name: &str, state: &str) -> Result<Value> {
    let changes = set(&[(state.into(), vec![name.into()])], false)?;
    changes.get(name).cloned().ok_or_else(|| format!("'{name}'"))
}

pub(crate) fn hold(names: &[String]) -> Result<Vec<Holding>> {
    let each = |name: &String| {
        let held = !of(Some(name), "hold")?.is_empty();
        let (changes, result, comment) = match (held, is_dry_run()) {
            (true, _) => (Value::Dict(Vec::new()), Some(true), "is already set to be held."),
            (false, true) => (Value::Dict(Vec::new()), None, "is set to be held."),
            (false, false) => (change(name, "hold")?, Some(true), "is now being held."),
        };
        Ok(Holding { name: name.clone(), changes, result, comment: format!("Package {name} {comment}") })
    };
    names.iter().map(each).collect()
}

pub(crate) fn unhold(names: &[String]) -> Result<Vec<Holding>> {
    let each = |name: &String| {
        let state = all(Some(name))?;
        let held = state.iter().any(|(selection, _)| selection == "hold");
        let (changes, result, comment) = match (state.is_empty(), held, is_dry_run()) {
            (true, ..) => (Value::Dict(Vec::new()), Some(false), "does not have a state."),
            (_, false, _) => (Value::Dict(Vec::new()), Some(true), "is already set not to be held."),
            (_, true, true) => (Value::Dict(Vec::new()), None, "is set not to be held."),
            (_, true, false) => (change(name, "install")?, Some(true), "is no longer being held."),
        };
        Ok(Holding { name: name.clone(), changes, result, comment: format!("Package {name} {comment}") })
    };
    names.iter().map(each).collect()
}

/// As a dict by package.
pub(crate) fn to_value(holdings: &[Holding]) -> Value {
    Value::Dict(holdings.iter().map(|holding| (holding.name.clone().into(), holding.to_value())).collect())
}

/// The packages that a call of `hold` names.
pub(crate) fn named(name: Option<&str>, pkgs: &Value, sources: &Value) -> Result<Vec<String>> {
    if name.is_none_or(str::is_empty) && !pkgs.truthy() && !sources.truthy() {
        return Err("One of name, pkgs, or sources must be specified.".into());
    }
    if pkgs.truthy() && sources.truthy() {
        return Err("Only one of pkgs or sources can be specified.".into());
    }
    Ok(match (pkgs, sources) {
        (Value::List(items), _) | (_, Value::List(items)) if !items.is_empty() => {
            items.iter().map(brine_apt::arguments::first_key).collect()
        }
        // A dict is its keys, as in Python.
        (Value::Dict(entries), _) if !entries.is_empty() => entries.iter().map(|(name, _)| name.to_text()).collect(),
        _ => vec![name.unwrap_or_default().to_owned()],
    })
}
