//! The module `pillar`: the master's data for this minion. The functions and their documentation are in
//! `wit/world.wit`.

wit_bindgen::generate!({
    world: "pillar",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/pillar@1.0.0": brine_guest::host::pillar,
        "brine:host/config@1.0.0": brine_guest::host::config,
    },
});

mod mask;

use brine_guest::Value;
use brine_guest::host::pillar::{self, Wanted};
use brine_guest::host::{config, log};
use brine_guest::lookup::{Choice, filter_by, traverse};

const DELIMITER: &str = ":";

struct Module;

impl Guest for Module {
    fn get(
        key: String,
        default: Option<Data>,
        merge: Option<bool>,
        merge_nested_lists: Option<bool>,
        delimiter: Option<String>,
        pillarenv: Option<String>,
        saltenv: Option<String>,
        unmask: Option<bool>,
    ) -> Result<Data, String> {
        let delimiter = delimiter.as_deref().unwrap_or(DELIMITER);
        let found = look(&key, delimiter, pillarenv, saltenv)?;
        let shown = |value: Value| Ok(mask::shown(value, unmask == Some(true)).into());
        if merge == Some(true) {
            let default = default.as_ref().map(|default| default.value()).transpose()?;
            let join = merge_nested_lists.unwrap_or_else(|| setting("pillar_merge_lists", false));
            match merged(default, found.as_ref(), join) {
                Ok(merged) => return shown(merged),
                Err(why) => log::write(log::Level::Error, &format!("pillar.get: {why} Merge will be skipped.")),
            }
        }
        match (found, default) {
            (Some(found), _) => shown(found),
            (None, Some(default)) => shown(default.value()?),
            (None, None) if setting("pillar_raise_on_missing", false) => Err(missing(&key)),
            (None, None) => Ok("".into()),
        }
    }

    fn fetch(
        key: String,
        default: Option<Data>,
        merge: Option<bool>,
        merge_nested_lists: Option<bool>,
        delimiter: Option<String>,
        pillarenv: Option<String>,
        saltenv: Option<String>,
        unmask: Option<bool>,
    ) -> Result<Data, String> {
        Self::get(key, default, merge, merge_nested_lists, delimiter, pillarenv, saltenv, unmask)
    }

    fn item(
        args: Vec<Data>,
        default: Option<Data>,
        delimiter: Option<String>,
        pillarenv: Option<String>,
        saltenv: Option<String>,
        unmask: Option<bool>,
    ) -> Result<Data, String> {
        let names: Vec<String> = args.iter().map(|arg| arg.name("the name of a value")).collect::<Result<_, _>>()?;
        let delimiter = delimiter.as_deref().unwrap_or(DELIMITER);
        let default = default.map(|default| default.value()).transpose()?.unwrap_or_else(|| "".into());
        let made = made_for(pillarenv, saltenv)?;
        let value = |name: &String| match &made {
            Some(made) => Ok(traverse(made, name, delimiter).cloned()),
            None => present(name, delimiter),
        };
        let values = names.iter().map(|name| Ok((name.as_str(), value(name)?.unwrap_or_else(|| default.clone()))));
        let values = values.collect::<Result<Vec<_>, String>>()?;
        Ok(mask::shown(Value::dict(values), unmask == Some(true)).into())
    }

    fn items(
        args: Vec<Data>,
        pillar: Option<Data>,
        pillar_enc: Option<String>,
        pillarenv: Option<String>,
        saltenv: Option<String>,
        unmask: Option<bool>,
    ) -> Result<Data, String> {
        Ok(items(args, pillar, pillar_enc, pillarenv, saltenv, unmask)?.into())
    }

    fn data(
        args: Vec<Data>,
        pillar: Option<Data>,
        pillar_enc: Option<String>,
        pillarenv: Option<String>,
        saltenv: Option<String>,
        unmask: Option<bool>,
    ) -> Result<Data, String> {
        Self::items(args, pillar, pillar_enc, pillarenv, saltenv, unmask)
    }

    fn obfuscate(
        args: Vec<Data>,
        pillar: Option<Data>,
        pillar_enc: Option<String>,
        pillarenv: Option<String>,
        saltenv: Option<String>,
        unmask: Option<bool>,
    ) -> Result<Data, String> {
        Ok(mask::types(items(args, pillar, pillar_enc, pillarenv, saltenv, unmask)?).into())
    }

    fn ls(
        args: Vec<Data>,
        pillar: Option<Data>,
        pillar_enc: Option<String>,
        pillarenv: Option<String>,
        saltenv: Option<String>,
        unmask: Option<bool>,
    ) -> Result<Data, String> {
        let pillar = items(args, pillar, pillar_enc, pillarenv, saltenv, unmask)?;
        keys_of(pillar).ok_or_else(|| "the master's pillar is no dict".into())
    }

    fn keys(key: String, delimiter: Option<String>, _unmask: Option<bool>) -> Result<Data, String> {
        let found = present(&key, delimiter.as_deref().unwrap_or(DELIMITER))?.ok_or_else(|| missing(&key))?;
        keys_of(found).ok_or_else(|| format!("Pillar value in key {key} is not a dict"))
    }

    fn raw(key: Option<String>, unmask: Option<bool>) -> Result<Data, String> {
        let unmask = unmask != Some(false);
        let Some(key) = key.filter(|key| !key.is_empty()) else {
            return if unmask { pillar::items() } else { Ok(mask::shown(pillar::items()?.value()?, false).into()) };
        };
        // As in Salt, this is one key, even if it contains a delimiter.
        let found = pillar::items()?.value()?.get(&key).cloned();
        Ok(mask::shown(found.unwrap_or(Value::Dict(Vec::new())), unmask).into())
    }

    fn filter_by(
        lookup_dict: Data,
        pillar: String,
        merge: Option<Data>,
        default: Option<String>,
        base: Option<String>,
    ) -> Result<Data, String> {
        let found = present(&pillar, DELIMITER)?;
        let merge = merge.map(|merge| merge.value()).transpose()?;
        let choice = Choice {
            lookup_dict: &lookup_dict.value()?,
            merge: merge.as_ref(),
            default: default.as_deref().unwrap_or("default"),
            base: base.as_deref(),
        };
        Ok(filter_by(&choice, found.as_ref())?.into())
    }
}

/// A value of the pillar that the minion has. The host answers nothing for a value that is None too.
fn present(key: &str, delimiter: &str) -> Result<Option<Value>, String> {
    match pillar::get(key, Some(delimiter))? {
        Some(found) => found.value().map(Some),
        None => Ok(traverse(&pillar::items()?.value()?, key, delimiter).cloned()),
    }
}

fn look(
    key: &str,
    delimiter: &str,
    pillarenv: Option<String>,
    saltenv: Option<String>,
) -> Result<Option<Value>, String> {
    match made_for(pillarenv, saltenv)? {
        Some(made) => Ok(traverse(&made, key, delimiter).cloned()),
        None => present(key, delimiter),
    }
}

/// The pillar of an environment, made by the master for this call; none if no environment is named. Salt masks it as
/// `pillar.items` does, also where the caller then unmasks one value.
fn made_for(pillarenv: Option<String>, saltenv: Option<String>) -> Result<Option<Value>, String> {
    if pillarenv.is_none() && saltenv.is_none() {
        return Ok(None);
    }
    items(Vec::new(), None, None, pillarenv, saltenv, None).map(Some)
}

fn items(
    args: Vec<Data>,
    overrides: Option<Data>,
    pillar_enc: Option<String>,
    pillarenv: Option<String>,
    saltenv: Option<String>,
    unmask: Option<bool>,
) -> Result<Value, String> {
    if !args.is_empty() {
        // As in Salt, `unmask` does not count here.
        return Module::item(args, None, None, pillarenv, saltenv, None)?.value();
    }
    let overrides = match overrides.map(|given| given.value()).transpose()? {
        // Salt logs other values and goes on without them.
        Some(given @ Value::Dict(_)) if given.truthy() => Some(given),
        Some(given) if given.truthy() => {
            log::write(log::Level::Error, "Pillar data must be a dictionary");
            None
        }
        _ => None,
    };
    if overrides.is_some() && pillar_enc.is_some_and(|renderer| !renderer.is_empty()) {
        return Err("Failed to decrypt pillar override: encrypted pillar is not offered here".into());
    }
    let wanted = Wanted { pillarenv, saltenv, overrides: overrides.map(Data::from) };
    let made = pillar::compile(&wanted)?.value()?;
    Ok(mask::shown(made, unmask.unwrap_or_else(|| !setting("pillar_mask_output", true))))
}

/// Merges the value into the default, as far as both are of a kind.
fn merged(default: Option<Value>, found: Option<&Value>, merge_lists: bool) -> Result<Value, String> {
    match (default, found) {
        (Some(default @ (Value::Dict(_) | Value::List(_))), None) => Ok(default),
        (Some(mut default @ Value::Dict(_)), Some(found @ Value::Dict(_))) => {
            default.update(found, merge_lists);
            Ok(default)
        }
        (Some(Value::List(mut items)), Some(Value::List(more))) => {
            let new: Vec<Value> =
                more.iter().filter(|item| !items.iter().any(|known| known.same(item))).cloned().collect();
            items.extend(new);
            Ok(Value::List(items))
        }
        (Some(Value::Dict(_)), _) => Err("The default is a dict, the pillar's value is not.".into()),
        (Some(Value::List(_)), _) => Err("The default is a list, the pillar's value is not.".into()),
        _ => Err("The default must be a dict or a list.".into()),
    }
}

fn setting(name: &str, default: bool) -> bool {
    config::get(name).and_then(|value| value.value().ok()).map_or(default, |value| value.truthy())
}

fn missing(key: &str) -> String {
    format!("Pillar key not found: {key}")
}

fn keys_of(value: Value) -> Option<Data> {
    let Value::Dict(entries) = value else { return None };
    Some(Value::List(entries.into_iter().map(|(key, _)| key).collect()).into())
}

export!(Module);
