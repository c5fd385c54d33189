//! The module `pillar`: the master's data for this minion. The functions and their documentation are in
//! `wit/world.wit`.

wit_bindgen::generate!({
    world: "pillar",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/pillar@1.0.0": brine_guest::host::pillar,
    },
});

use brine_guest::Value;
use brine_guest::host::pillar;

struct Module;

impl Guest for Module {
    fn get(
        key: String,
        default: Option<Data>,
        delimiter: Option<String>,
        _unmask: Option<bool>,
    ) -> Result<Data, String> {
        let found = pillar::get(&key, delimiter.as_deref())?;
        Ok(found.or(default).unwrap_or_else(|| Data::from("")))
    }

    fn item(
        args: Vec<Data>,
        default: Option<Data>,
        delimiter: Option<String>,
        _unmask: Option<bool>,
    ) -> Result<Data, String> {
        let names: Vec<String> = args.iter().map(|arg| arg.name("the name of a value")).collect::<Result<_, _>>()?;
        let get = |name: &String| Self::get(name.clone(), default.clone(), delimiter.clone(), None);
        let values: Vec<Data> = names.iter().map(get).collect::<Result<_, _>>()?;
        Ok(Data::dict(names.iter().map(String::as_str).zip(values)))
    }

    fn items(args: Vec<Data>, _unmask: Option<bool>) -> Result<Data, String> {
        if args.is_empty() { pillar::fetch() } else { Self::item(args, None, None, None) }
    }

    fn ls(_unmask: Option<bool>) -> Result<Data, String> {
        keys_of(pillar::fetch()?.value()?).ok_or_else(|| "the master's pillar is no dict".into())
    }

    fn keys(key: String, delimiter: Option<String>, _unmask: Option<bool>) -> Result<Data, String> {
        let found = pillar::get(&key, delimiter.as_deref())?;
        let found = found.ok_or_else(|| format!("Pillar key not found: {key}"))?;
        keys_of(found.value()?).ok_or_else(|| format!("Pillar value in key {key} is not a dict"))
    }

    fn raw(key: Option<String>, _unmask: Option<bool>) -> Result<Data, String> {
        let Some(key) = key.filter(|key| !key.is_empty()) else { return pillar::items() };
        // As in Salt, this is one key, even if it contains a delimiter.
        let found = pillar::items()?.value()?.get(&key).cloned();
        Ok(found.unwrap_or(Value::Dict(Vec::new())).into())
    }
}

fn keys_of(value: Value) -> Option<Data> {
    let Value::Dict(entries) = value else { return None };
    Some(Value::List(entries.into_iter().map(|(key, _)| key).collect()).into())
}

export!(Module);
