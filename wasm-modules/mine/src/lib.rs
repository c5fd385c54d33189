//! The module `mine`: data that this minion publishes to other minions through the master. The functions and their
//! documentation are in `wit/world.wit`.

wit_bindgen::generate!({
    world: "mine",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/mine@1.0.0": brine_guest::host::mine,
        "brine:host/functions@1.0.0": brine_guest::host::functions,
        "brine:host/config@1.0.0": brine_guest::host::config,
        "brine:host/pillar@1.0.0": brine_guest::host::pillar,
        "brine:host/log@1.0.0": brine_guest::host::log,
    },
});

mod definition;

use brine_guest::Value;
use brine_guest::host::{config, functions, log, mine, pillar};
use definition::Definition;

/// The name of the setting, and of the pillar key.
const CONFIGURED: &str = "mine_functions";

struct Module;

impl Guest for Module {
    fn send(name: String, args: Vec<Data>, kwargs: Data) -> Result<bool, String> {
        let mut definition = Definition::read(name, kwargs.value()?)?;
        definition.args = args.iter().map(Data::value).collect::<Result<_, _>>()?;
        publish(definition)?;
        Ok(true)
    }

    fn update(mine_functions: Option<Data>) -> Result<Option<bool>, String> {
        let definitions = match mine_functions {
            Some(given) => definition::all(given.value()?),
            None => configured()?,
        };
        if definitions.is_empty() {
            return Ok(None);
        }
        for (name, definition) in definitions {
            let published = Definition::read(name.clone(), definition).and_then(publish);
            if let Err(why) = published {
                log::write(log::Level::Error, &format!("{name} is not in the mine: {why}"));
            }
        }
        Ok(Some(true))
    }

    fn delete(fun: String) -> Result<bool, String> {
        mine::delete(&fun).map(|()| true)
    }
}

/// The entries of the configuration, and those entries of the pillar that the configuration lacks.
fn configured() -> Result<Vec<(String, Value)>, String> {
    let value = |data: Option<Data>| {
        data.map(|data| data.value()).transpose().map(|value| definition::all(value.unwrap_or_default()))
    };
    let mut all = value(config::get(CONFIGURED))?;
    for (name, definition) in value(pillar::get(CONFIGURED, None)?)? {
        if !all.iter().any(|(known, _)| *known == name) {
            all.push((name, definition));
        }
    }
    Ok(all)
}

fn publish(definition: Definition) -> Result<(), String> {
    let args: Vec<Data> = definition.args.into_iter().map(Data::from).collect();
    let kwargs = Value::Dict(definition.kwargs).into();
    let value = functions::call(&definition.function, &args, &kwargs)?;
    let data = match definition.allowed {
        None => value,
        Some(allowed) => allowed.wrap(value.value()?).into(),
    };
    mine::publish(&definition.name, &data)
}

export!(Module);
