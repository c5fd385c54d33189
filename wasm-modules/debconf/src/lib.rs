//! The module `debconf`: answers to the questions of packages, by the programs of debconf and debconf-utils. The functions and
//! their documentation are in `wit/world.wit`.

wit_bindgen::generate!({
    world: "debconf",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/files@1.0.0": brine_guest::host::files,
        "brine:host/changes@1.0.0": brine_guest::host::changes,
        "brine:host/job@1.0.0": brine_guest::host::job,
        "brine:host/log@1.0.0": brine_guest::host::log,
        "brine:host/process@1.0.0": brine_guest::host::process,
        "brine:host/state-types@1.0.0": brine_guest::host::state_types,
    },
});

mod selections;
mod states;

use brine_guest::{Result, Value};

struct Module;

impl Guest for Module {
    fn get_selections(fetchempty: Option<Data>) -> Result<Data> {
        let with_empty = fetchempty.map(|data| data.value()).transpose()?.is_none_or(|value| value.truthy());
        let all = selections::all(with_empty)?;
        Ok(Value::Dict(all.into_iter().map(|(name, answers)| (name.into(), answers.into())).collect()).into())
    }

    fn show(name: String) -> Result<Data> {
        let answers: Value = selections::of(&name)?.map_or(Value::None, Into::into);
        Ok(answers.into())
    }

    fn set(package: String, question: String, type_: String, value: Data, args: Vec<Data>) -> Result<bool> {
        let mut words = vec![value.value()?.to_text()];
        for more in &args {
            words.push(more.value()?.to_text());
        }
        selections::set(&package, &question, &type_, &words.join(" "))?;
        Ok(true)
    }

    fn set_file(path: String, saltenv: Option<String>, _: Data) -> Result<bool> {
        selections::set_file(&path, saltenv.as_deref().filter(|env| !env.is_empty()).unwrap_or("base"))
    }
}

export!(Module);
