//! The module `grains`: facts about the minion's host, and the static grains that users set. The functions, the states and
//! their documentation are in `wit/world.wit`.
//!
//! - [`change`]: what a change makes of a grain · [`sanitize`]: grains without sensitive data · [`states`]: the states

#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "grains",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/grains@1.0.0": brine_guest::host::grains,
        "brine:host/static-grains@1.0.0": brine_guest::host::static_grains,
    },
    generate_all,
});

mod change;
mod sanitize;
mod states;

use brine_guest::Value;
use brine_guest::host::{grains, static_grains};
use brine_guest::lookup::{Choice, filter_by, traverse};
use change::Setting;

const DELIMITER: &str = ":";

struct Module;

impl Guest for Module {
    fn items(sanitize: Option<bool>) -> Result<Data, String> {
        let grains = grains::items();
        if sanitize == Some(true) { Ok(sanitize::sanitized(grains.value()?).into()) } else { Ok(grains) }
    }

    fn get(
        key: String,
        default: Option<Data>,
        delimiter: Option<String>,
        _ordered: Option<bool>,
    ) -> Result<Data, String> {
        let found = look(&key, delimiter.as_deref().unwrap_or(DELIMITER))?;
        Ok(found.or(default).unwrap_or_else(|| Data::from("")))
    }

    fn fetch(
        key: String,
        default: Option<Data>,
        delimiter: Option<String>,
        ordered: Option<bool>,
    ) -> Result<Data, String> {
        Self::get(key, default, delimiter, ordered)
    }

    fn item(
        args: Vec<Data>,
        default: Option<Data>,
        delimiter: Option<String>,
        sanitize: Option<bool>,
    ) -> Result<Data, String> {
        let names: Vec<String> = args.iter().map(|arg| arg.name("the name of a grain")).collect::<Result<_, _>>()?;
        let get = |name: &String| Self::get(name.clone(), default.clone(), delimiter.clone(), None);
        let values: Vec<Data> = names.iter().map(get).collect::<Result<_, _>>()?;
        let grains = Data::dict(names.iter().map(String::as_str).zip(values));
        if sanitize == Some(true) { Ok(sanitize::sanitized(grains.value()?).into()) } else { Ok(grains) }
    }

    fn has_value(key: String) -> Result<bool, String> {
        Ok(look(&key, DELIMITER)?.is_some())
    }

    fn equals(key: String, value: Data) -> Result<bool, String> {
        Ok(value.value()?.to_text() == Self::get(key, None, None, None)?.value()?.to_text())
    }

    fn ls() -> Result<Vec<String>, String> {
        let Value::Dict(grains) = all()? else {
            return Err("the minion's grains are no dict".into());
        };
        let mut names: Vec<String> = grains.iter().filter_map(|(name, _)| name.text()).map(str::to_owned).collect();
        names.sort();
        Ok(names)
    }

    fn filter_by(
        lookup_dict: Data,
        grain: Option<String>,
        merge: Option<Data>,
        default: Option<String>,
        base: Option<String>,
    ) -> Result<Data, String> {
        let found = look(grain.as_deref().unwrap_or("os_family"), DELIMITER)?.map(|found| found.value()).transpose()?;
        let merge = merge.map(|merge| merge.value()).transpose()?;
        let choice = Choice {
            lookup_dict: &lookup_dict.value()?,
            merge: merge.as_ref(),
            default: default.as_deref().unwrap_or("default"),
            base: base.as_deref(),
        };
        Ok(filter_by(&choice, found.as_ref())?.into())
    }

    fn setval(key: Data, val: Data, destructive: Option<bool>, refresh_pillar: Option<bool>) -> Result<Data, String> {
        let key = key.name("the name of a grain")?;
        write(&[(key.clone(), val.value()?)], destructive == Some(true), refresh_pillar)?;
        Ok(Data::dict([(key.as_str(), val)]))
    }

    fn setvals(grains: Data, destructive: Option<bool>, refresh_pillar: Option<bool>) -> Result<Data, String> {
        let Value::Dict(entries) = grains.value()? else {
            return Err("setvals grains must be a dictionary.".into());
        };
        let named = |(name, value): (Value, Value)| (name.to_text(), value);
        let changes: Vec<(String, Value)> = entries.into_iter().map(named).collect();
        write(&changes, destructive == Some(true), refresh_pillar)?;
        Ok(grains)
    }

    fn set(
        key: String,
        val: Option<Data>,
        force: Option<bool>,
        destructive: Option<bool>,
        delimiter: Option<String>,
    ) -> Result<Data, String> {
        let value = val.map(|val| val.value()).transpose()?.unwrap_or_else(|| "".into());
        set(&key, value, force, destructive, delimiter)
    }

    fn delval(key: String, destructive: Option<bool>, force: Option<bool>) -> Result<Data, String> {
        set(&key, Value::None, force, destructive, None)
    }

    fn delkey(key: String, force: Option<bool>) -> Result<Data, String> {
        set(&key, Value::None, force, Some(true), None)
    }

    fn append(key: String, val: Data, convert: Option<bool>, delimiter: Option<String>) -> Result<Data, String> {
        let delimiter = delimiter.unwrap_or_else(|| DELIMITER.into());
        let changed = change::append(&all()?, &key, val.value()?, convert == Some(true), &delimiter);
        written(changed)
    }

    fn remove(key: String, val: Data, delimiter: Option<String>) -> Result<Data, String> {
        let delimiter = delimiter.unwrap_or_else(|| DELIMITER.into());
        written(change::remove(&all()?, &key, &val.value()?, &delimiter))
    }
}

fn all() -> Result<Value, String> {
    grains::items().value()
}

/// The grain; none if there is none. The host answers nothing for a grain that is None too.
fn look(key: &str, delimiter: &str) -> Result<Option<Data>, String> {
    match grains::get(key, Some(delimiter)) {
        None => Ok(traverse(&all()?, key, delimiter).map(|found| found.clone().into())),
        found => Ok(found),
    }
}

/// Writes static grains; with `destructive`, those that are None are removed. The master is told unless the caller says
/// otherwise.
fn write(changes: &[(String, Value)], destructive: bool, refresh_pillar: Option<bool>) -> Result<(), String> {
    let value = |value: &Value| (!destructive || *value != Value::None).then(|| Data::from(value.clone()));
    let changes: Vec<(String, Option<Data>)> = changes.iter().map(|(name, v)| (name.clone(), value(v))).collect();
    static_grains::write(&changes, refresh_pillar != Some(false))
}

/// Writes the grain that changed and returns it, or returns why nothing changed.
fn written(changed: Result<(String, Value), String>) -> Result<Data, String> {
    match changed {
        Err(why) => Ok(why.into()),
        Ok((name, value)) => {
            let shown = Value::Dict(vec![(name.as_str().into(), value.clone())]);
            write(&[(name, value)], false, None)?;
            Ok(shown.into())
        }
    }
}

fn set(
    key: &str,
    value: Value,
    force: Option<bool>,
    destructive: Option<bool>,
    delimiter: Option<String>,
) -> Result<Data, String> {
    let (force, destructive) = (force == Some(true), destructive == Some(true));
    let delimiter = delimiter.unwrap_or_else(|| DELIMITER.into());
    let answer = |result: bool, comment: String, changes: Value| {
        Ok(Value::dict([("comment", comment.into()), ("changes", changes), ("result", result.into())]).into())
    };
    let nothing = || Value::Dict(Vec::new());
    match change::set(&all()?, &Setting { key, value, force, destructive, delimiter: &delimiter }) {
        Ok(None) => answer(true, "Grain is already set".into(), nothing()),
        Err(why) => answer(false, why, nothing()),
        Ok(Some((name, value))) => match write(&[(name.clone(), value.clone())], destructive, None) {
            Ok(()) => answer(true, String::new(), Value::Dict(vec![(name.into(), value)])),
            Err(why) => answer(false, why, nothing()),
        },
    }
}

#[cfg(target_family = "wasm")]
export!(Module);
