//! The module `kmod`: modules of the kernel. The functions, the states and their documentation are in `wit/world.wit`.
//!
//! - [`kernel`]: what the kernel has and what is loaded · [`persistent`]: what is loaded at the start
//! - [`change`]: loads and removes · [`states`]: the states

#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "kmod",
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

mod change;
mod kernel;
mod persistent;
mod states;

struct Module;

/// The names of modules that an operation was about, or why it failed.
fn names_or_why(done: Result<Vec<String>, String>) -> Data {
    done.map_or_else(Data::from, Data::from)
}

impl Guest for Module {
    fn available() -> Result<Vec<String>, String> {
        kernel::available()
    }

    fn check_available(module: String) -> Result<bool, String> {
        Ok(kernel::available()?.contains(&module))
    }

    fn lsmod() -> Result<Data, String> {
        Ok(kernel::loaded()?.iter().map(kernel::Loaded::value).collect::<Vec<_>>().into())
    }

    fn mod_list(only_persist: Option<bool>) -> Result<Vec<String>, String> {
        if only_persist == Some(true) { persistent::names() } else { kernel::names() }
    }

    fn load(module: String, persist: Option<bool>) -> Result<Data, String> {
        change::load(&module, persist == Some(true)).map(names_or_why)
    }

    fn is_loaded(module: String) -> Result<bool, String> {
        Ok(kernel::names()?.contains(&module))
    }

    fn remove(module: String, persist: Option<bool>, comment: Option<bool>) -> Result<Data, String> {
        change::remove(&module, persist == Some(true), comment != Some(false)).map(names_or_why)
    }
}

#[cfg(target_family = "wasm")]
export!(Module);
