//! The module `mine`: data that minions publish to each other through the master. The functions and their documentation
//! are in `wit/world.wit`.

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
        "brine:host/job@1.0.0": brine_guest::host::job,
        "brine:host/modules@1.0.0": brine_guest::host::modules,
    },
});

mod definition;

use brine_guest::Value;
use brine_guest::host::{config, functions, job, log, mine, modules, pillar};
use definition::Definition;

/// The name of the setting, and of the pillar key.
const CONFIGURED: &str = "mine_functions";
/// Bytes of one value. The host and the master have the same bound.
const VALUE_MAX: usize = 1 << 20;
/// Bytes of the values of one request.
const REQUEST_MAX: usize = 3 << 20;
/// Values of one request.
const VALUES_MAX: usize = 1_000;

struct Module;

impl Guest for Module {
    fn send(name: String, args: Vec<Data>, kwargs: Data) -> Result<bool, String> {
        let mut definition = Definition::read(name, kwargs.value()?)?;
        definition.args = args.iter().map(Data::value).collect::<Result<_, _>>()?;
        let name = definition.name.clone();
        match called(definition) {
            Ok(data) => mine::publish(&name, &data).map(|()| true),
            Err(why) => {
                left_out(&name, &why);
                Ok(false)
            }
        }
    }

    fn update(clear: Option<bool>, mine_functions: Option<Data>) -> Result<Option<bool>, String> {
        let definitions = match mine_functions.map(|given| given.value()).transpose()?.filter(Value::truthy) {
            Some(given) => definition::all(given),
            None => configured()?,
        };
        if definitions.is_empty() {
            return Ok(None);
        }
        let mut values: Vec<(String, Data)> = Vec::new();
        let (mut bytes, mut clear) = (0, clear == Some(true));
        for (name, definition) in definitions {
            let data = match Definition::read(name.clone(), definition).and_then(called) {
                Ok(data) if data.msgpack.len() <= VALUE_MAX => data,
                Ok(data) => {
                    left_out(
                        &name,
                        &format!("it has {} bytes, more than the {VALUE_MAX} there may be", data.msgpack.len()),
                    );
                    continue;
                }
                Err(why) => {
                    left_out(&name, &why);
                    continue;
                }
            };
            if !values.is_empty() && (bytes + data.msgpack.len() > REQUEST_MAX || values.len() == VALUES_MAX) {
                mine::publish_all(&values, clear)?;
                values.clear();
                (bytes, clear) = (0, false);
            }
            bytes += data.msgpack.len();
            values.push((name, data));
        }
        if clear || !values.is_empty() {
            mine::publish_all(&values, clear)?;
        }
        Ok(Some(true))
    }

    fn get(tgt: Data, fun: Data, tgt_type: Option<String>, exclude_minion: Option<bool>) -> Result<Data, String> {
        let (names, by_name) = match fun.value()? {
            Value::Text(names) => definition::names(&names),
            Value::List(names) => (names.iter().map(Value::to_text).collect(), true),
            _ => return Ok(Value::Dict(Vec::new()).into()),
        };
        let found = mine::get(&tgt, tgt_type.as_deref().unwrap_or("glob"), &names, by_name)?;
        if exclude_minion != Some(true) {
            return Ok(found);
        }
        let own = job::current().minion_id;
        // As in Salt, this looks for the minion on the first level only.
        Ok(match found.value()? {
            Value::Dict(mut minions) => {
                minions.retain(|(minion, _)| minion.text() != Some(&own));
                Value::Dict(minions).into()
            }
            other => other.into(),
        })
    }

    fn valid() -> Result<Option<Data>, String> {
        let definitions = configured()?;
        if definitions.is_empty() {
            return Ok(None);
        }
        let mut valid = Vec::new();
        for (name, definition) in definitions {
            let shown = match Definition::read(name.clone(), definition.clone()) {
                Ok(read) if is_function(&read.function) => read.shown(definition),
                Ok(read) => {
                    log::write(
                        log::Level::Error,
                        &format!("Function {} in mine_functions not available", read.function),
                    );
                    continue;
                }
                Err(why) => {
                    left_out(&name, &why);
                    continue;
                }
            };
            valid.push((name.into(), shown));
        }
        Ok(Some(Value::Dict(valid).into()))
    }

    fn delete(fun: String) -> Result<bool, String> {
        mine::delete(&fun).map(|()| true)
    }

    fn flush() -> Result<bool, String> {
        mine::flush().map(|()| true)
    }
}

/// The entries of the pillar, and those of the configuration, which replace entries of the same name.
fn configured() -> Result<Vec<(String, Value)>, String> {
    let value = |data: Option<Data>| {
        data.map(|data| data.value()).transpose().map(|value| definition::all(value.unwrap_or_default()))
    };
    let mut all = value(pillar::get(CONFIGURED, None)?)?;
    for (name, definition) in value(config::get(CONFIGURED))? {
        match all.iter_mut().find(|(known, _)| *known == name) {
            Some((_, slot)) => *slot = definition,
            None => all.push((name, definition)),
        }
    }
    Ok(all)
}

/// Whether this minion has the function.
fn is_function(name: &str) -> bool {
    let Some((module, function)) = name.split_once('.') else { return false };
    modules::describe(module).is_some_and(|module| module.functions.iter().any(|known| known.name == function))
}

/// Calls the function. The result carries who may read it.
fn called(definition: Definition) -> Result<Data, String> {
    let args: Vec<Data> = definition.args.into_iter().map(Data::from).collect();
    let kwargs = Value::Dict(definition.kwargs).into();
    let value = functions::call(&definition.function, &args, &kwargs)?;
    match definition.allowed {
        None => Ok(value),
        Some(allowed) => Ok(allowed.wrap(value.value()?).into()),
    }
}

fn left_out(name: &str, why: &str) {
    log::write(log::Level::Error, &format!("{name} is not in the mine: {why}"));
}

export!(Module);
