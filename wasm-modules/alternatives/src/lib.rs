//! The module `alternatives`: which of several programs a name means. The functions, the states and their documentation are
//! in `wit/world.wit`.
//!
//! - [`system`]: the host's program for it, and what it keeps · [`states`]: the states

#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "alternatives",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/state-types@1.0.0": brine_guest::host::state_types,
        "brine:host/changes@1.0.0": brine_guest::host::changes,
        "brine:host/grains@1.0.0": brine_guest::host::grains,
        "brine:host/job@1.0.0": brine_guest::host::job,
        "brine:host/process@1.0.0": brine_guest::host::process,
    },
    generate_all,
});

mod states;
mod system;

use brine_guest::Value;

struct Module;

/// A text, or False.
fn or_false(text: Option<String>) -> Data {
    text.map_or(Value::Bool(false), Value::from).into()
}

impl Guest for Module {
    fn display(name: String) -> Result<String, String> {
        system::display(&name)
    }

    fn show_link(name: String) -> Result<Data, String> {
        system::link(&name).map(or_false)
    }

    fn show_current(name: String) -> Result<Data, String> {
        system::current(&name).map(or_false)
    }

    fn check_exists(name: String, path: String) -> Result<bool, String> {
        system::is_registered(&name, &path)
    }

    fn check_installed(name: String, path: String) -> Result<bool, String> {
        Ok(system::current(&name)?.is_some_and(|current| current == path))
    }

    fn install(name: String, link: String, path: String, priority: Data) -> Result<String, String> {
        system::install(&name, &link, &path, &priority.value()?.to_text())
    }

    fn remove(name: String, path: String) -> Result<String, String> {
        system::remove(&name, &path)
    }

    fn auto(name: String) -> Result<String, String> {
        system::auto(&name)
    }

    fn set(name: String, path: String) -> Result<String, String> {
        system::set(&name, &path)
    }
}

#[cfg(target_family = "wasm")]
export!(Module);
