//! The module `config`: the minion's settings, with grains and pillar as fallbacks. The functions and their
//! documentation are in `wit/world.wit`.

wit_bindgen::generate!({
    world: "config",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/config@1.0.0": brine_guest::host::config,
        "brine:host/grains@1.0.0": brine_guest::host::grains,
        "brine:host/pillar@1.0.0": brine_guest::host::pillar,
    },
});

mod names;

use brine_guest::Value;
use brine_guest::host::{config, grains, pillar};

struct Module;

impl Guest for Module {
    fn get(
        key: String,
        default: Option<Data>,
        delimiter: Option<String>,
        omit_opts: Option<bool>,
        omit_pillar: Option<bool>,
        omit_grains: Option<bool>,
    ) -> Result<Data, String> {
        let found = look(&key, delimiter.as_deref().unwrap_or(":"), [omit_opts, omit_grains, omit_pillar])?;
        Ok(found.or(default).unwrap_or_else(|| Data::from("")))
    }

    fn items() -> Data {
        let known = names::SETTINGS.iter().filter_map(|name| Some((*name, config::get(name)?)));
        Data::dict(known.collect::<Vec<_>>())
    }
}

/// The value from the first of settings, grains and pillar that has the key.
fn look(key: &str, delimiter: &str, omit: [Option<bool>; 3]) -> Result<Option<Data>, String> {
    let [opts, grains, pillar] = omit.map(|omit| omit != Some(true));
    if opts && let Some(found) = setting(key, delimiter)? {
        return Ok(Some(found));
    }
    if grains && let Some(found) = grains::get(key, Some(delimiter)) {
        return Ok(Some(found));
    }
    if pillar { pillar::get(key, Some(delimiter)) } else { Ok(None) }
}

/// Looks up a setting. The host splits keys only at `:`.
fn setting(key: &str, delimiter: &str) -> Result<Option<Data>, String> {
    if delimiter == ":" {
        return Ok(config::get(key));
    }
    let mut parts = key.split(delimiter);
    let first = parts.next().unwrap_or_default();
    let found = config::get(first).map(|found| found.value()).transpose()?;
    Ok(found.and_then(|found| step_down(found, parts)).map(Data::from))
}

fn step_down<'a>(value: Value, mut parts: impl Iterator<Item = &'a str>) -> Option<Value> {
    parts.try_fold(value, |value, part| value.get(part).cloned())
}

export!(Module);
