//! The module `logrotate`: when logs are put away. The functions, the state and their documentation are in `wit/world.wit`;
//! answers, comments and changes are Salt's.
//!
//! - [`conf`] the configuration and its values · [`set`] setting one

#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "logrotate",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/state-types@1.0.0": brine_guest::host::state_types,
        "brine:host/changes@1.0.0": brine_guest::host::changes,
        "brine:host/functions@1.0.0": brine_guest::host::functions,
        "brine:host/job@1.0.0": brine_guest::host::job,
    },
    generate_all,
});

mod conf;
mod set;

use brine_guest::Value;
use brine_guest::states::{StateResult, is_dry_run};

struct Module;

/// The file, where no other one is said.
const FILE: &str = "/etc/logrotate.conf";

fn value(data: Option<Data>) -> Result<Value, String> {
    data.map_or(Ok(Value::None), |data| data.value())
}

impl Guest for Module {
    fn show_conf(conf_file: Option<String>) -> Result<Data, String> {
        Ok(conf::read(conf_file.as_deref().unwrap_or(FILE))?.into())
    }

    fn get(key: String, command: Option<Data>, conf_file: Option<String>) -> Result<Data, String> {
        let conf = conf::read(conf_file.as_deref().unwrap_or(FILE))?;
        Ok(conf::get(&conf, &key, &value(command)?)?.into())
    }

    fn set(key: String, command: Data, setting: Option<Data>, conf_file: Option<String>) -> Result<Data, String> {
        let file = conf_file.as_deref().unwrap_or(FILE);
        Ok(set::set(&key, &command.value()?, &value(setting)?, file)?.into())
    }
}

impl exports::states::Guest for Module {
    fn set(
        _name: Data,
        key: String,
        command: Data,
        setting: Option<Data>,
        conf_file: Option<String>,
    ) -> Result<StateResult, String> {
        let (command, setting) = (command.value()?, value(setting)?);
        let file = conf_file.as_deref().unwrap_or(FILE);
        let is_plain = setting == Value::None;
        let asked = if is_plain { &Value::None } else { &command };
        // As in Salt, a log whose value is none of a log counts as not there.
        let old = conf::get(&conf::read(file)?, &key, asked).unwrap_or(Value::Bool(false));
        let new = conf::number(if is_plain { &command } else { &setting });
        let what = match is_plain {
            true => format!("ommand '{key}'"),
            false => format!("lock '{key}' command '{}'", command.to_text()),
        };
        let (capital, small) = if is_plain { ("C", "c") } else { ("B", "b") };
        let shown = new.to_text();
        if old.same(&new) {
            return Ok(StateResult::good(format!("{capital}{what} already has value: {shown}")));
        }
        let changes = Value::dict([("old", old), ("new", new.clone())]);
        if is_dry_run() {
            return Ok(StateResult::would(format!("{capital}{what} will be set to value: {shown}"), changes));
        }
        let done = match is_plain {
            true => set::set(&key, &new, &Value::None, file)?,
            false => set::set(&key, &command, &new, file)?,
        };
        let said = if done.truthy() { "Set" } else { "Unable to set" };
        Ok(StateResult::new(Some(done.truthy()), format!("{said} {small}{what} value: {shown}"), changes))
    }
}

#[cfg(target_family = "wasm")]
export!(Module);
