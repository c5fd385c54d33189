//! The module `grains`: facts about the minion's host. The functions and their documentation are in `wit/world.wit`.

wit_bindgen::generate!({
    world: "grains",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/grains@1.0.0": brine_guest::host::grains,
    },
});

mod sanitize;

use brine_guest::Value;
use brine_guest::host::grains;

struct Module;

impl Guest for Module {
    fn items(sanitize: Option<bool>) -> Result<Data, String> {
        let grains = grains::items();
        if sanitize == Some(true) { Ok(sanitize::sanitized(grains.value()?).into()) } else { Ok(grains) }
    }

    fn get(key: String, default: Option<Data>, delimiter: Option<String>) -> Data {
        grains::get(&key, delimiter.as_deref()).or(default).unwrap_or_else(|| Data::from(""))
    }

    fn item(
        args: Vec<Data>,
        default: Option<Data>,
        delimiter: Option<String>,
        sanitize: Option<bool>,
    ) -> Result<Data, String> {
        let names: Vec<String> = args.iter().map(|arg| arg.name("the name of a grain")).collect::<Result<_, _>>()?;
        let get = |name: &String| Self::get(name.clone(), default.clone(), delimiter.clone());
        let grains = Data::dict(names.iter().map(|name| (name.as_str(), get(name))));
        if sanitize == Some(true) { Ok(sanitize::sanitized(grains.value()?).into()) } else { Ok(grains) }
    }

    fn has_value(key: String) -> bool {
        grains::get(&key, None).is_some()
    }

    fn ls() -> Result<Vec<String>, String> {
        let Value::Dict(grains) = grains::items().value()? else {
            return Err("the minion's grains are no dict".into());
        };
        let mut names: Vec<String> = grains.iter().filter_map(|(name, _)| name.text()).map(str::to_owned).collect();
        names.sort();
        Ok(names)
    }
}

export!(Module);
