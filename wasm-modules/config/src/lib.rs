//! The module `config`: the minion's settings, with grains and pillar as fallbacks. The functions and their
//! documentation are in `wit/world.wit`; what is more than a look is in `brine_render::functions`, as for templates.

wit_bindgen::generate!({
    world: "config",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/config@1.0.0": brine_guest::host::config,
        "brine:host/grains@1.0.0": brine_guest::host::grains,
        "brine:host/job@1.0.0": brine_guest::host::job,
        "brine:host/log@1.0.0": brine_guest::host::log,
        "brine:host/pillar@1.0.0": brine_guest::host::pillar,
    },
});

mod names;

use brine_guest::host::{config, grains, pillar};
use brine_guest::{Value, compute};
use brine_render::functions::Module as Functions;

struct Module;

impl Guest for Module {
    fn get(
        key: String,
        default: Option<Data>,
        delimiter: Option<String>,
        merge: Option<Data>,
        omit_opts: Option<bool>,
        omit_pillar: Option<bool>,
        omit_master: Option<bool>,
        omit_grains: Option<bool>,
    ) -> Result<Data, String> {
        let between = delimiter.as_deref().unwrap_or(":");
        let merge = merge.filter(|merge| !matches!(merge.value(), Ok(Value::None)));
        if merge.is_none() {
            if let Some(found) = look(&key, between, [omit_opts, omit_grains, omit_pillar])? {
                return Ok(found);
            }
        } else if omit_opts != Some(true) {
            setting(&key, between)?;
        }
        let [opts, pillar, master, grains] = [omit_opts, omit_pillar, omit_master, omit_grains].map(flag);
        call(
            "get",
            [
                ("key", Some(key.into())),
                ("default", default),
                ("delimiter", delimiter.map(Data::from)),
                ("merge", merge),
                ("omit_opts", opts),
                ("omit_pillar", pillar),
                ("omit_master", master),
                ("omit_grains", grains),
            ],
        )
    }

    fn option(
        value: String,
        default: Option<Data>,
        omit_opts: Option<bool>,
        omit_grains: Option<bool>,
        omit_pillar: Option<bool>,
        omit_master: Option<bool>,
        omit_all: Option<bool>,
        wildcard: Option<bool>,
    ) -> Result<Data, String> {
        if [omit_opts, omit_all, wildcard].iter().all(|omit| *omit != Some(true)) {
            ask(&value);
        }
        let [opts, grains, pillar] = [omit_opts, omit_grains, omit_pillar].map(flag);
        let [master, all, wildcard] = [omit_master, omit_all, wildcard].map(flag);
        call(
            "option",
            [
                ("value", Some(value.into())),
                ("default", default),
                ("omit_opts", opts),
                ("omit_grains", grains),
                ("omit_pillar", pillar),
                ("omit_master", master),
                ("omit_all", all),
                ("wildcard", wildcard),
            ],
        )
    }

    fn merge(
        value: String,
        default: Option<Data>,
        omit_opts: Option<bool>,
        omit_master: Option<bool>,
        omit_pillar: Option<bool>,
    ) -> Result<Data, String> {
        if omit_opts != Some(true) {
            ask(&value);
        }
        let [opts, master, pillar] = [omit_opts, omit_master, omit_pillar].map(flag);
        call(
            "merge",
            [
                ("value", Some(value.into())),
                ("default", default),
                ("omit_opts", opts),
                ("omit_master", master),
                ("omit_pillar", pillar),
            ],
        )
    }

    fn dot_vals(value: String) -> Result<Data, String> {
        call("dot_vals", [("value", Some(value.into()))])
    }

    fn manage_mode(mode: Data) -> Result<Data, String> {
        compute::call(Functions::CONFIG, &compute::nothing(), "manage_mode", [("mode", Some(mode))])
    }

    fn valid_fileproto(uri: Data) -> Result<Data, String> {
        compute::call(Functions::CONFIG, &compute::nothing(), "valid_fileproto", [("uri", Some(uri))])
    }

    fn backup_mode(backup: Option<Data>) -> Result<Data, String> {
        call("backup_mode", [("backup", backup)])
    }

    fn items() -> Data {
        let known = names::SETTINGS.iter().filter_map(|name| Some((*name, config::get(name)?)));
        Data::dict(known.collect::<Vec<_>>())
    }
}

fn call<const N: usize>(function: &str, arguments: [(&str, Option<Data>); N]) -> Result<Data, String> {
    compute::call(Functions::CONFIG, &compute::surroundings()?, function, arguments)
}

fn flag(flag: Option<bool>) -> Option<Data> {
    flag.map(Data::from)
}

/// Asks for a setting by its name: one that is not granted ends the call, with the line that would grant it.
fn ask(name: &str) {
    // A name with a colon leads into a setting here; to these functions, it is a name.
    if !name.contains(':') {
        config::get(name);
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
