//! The module `sandbox`: the grants of the host's owner. The functions and their documentation are in `wit/world.wit`.

wit_bindgen::generate!({
    world: "sandbox",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/policy@1.0.0": brine_guest::host::policy,
    },
});

use brine_guest::host::policy;

struct Module;

impl Guest for Module {
    fn list() -> Data {
        policy::list()
    }

    fn show(name: Data) -> Result<Data, String> {
        let name = name.name("name")?;
        policy::show(&name).ok_or_else(|| {
            format!("there is no module or profile {name:?} on this minion: sandbox.list lists the modules")
        })
    }

    fn check() -> Data {
        policy::check()
    }

    fn diff(name: Data) -> Result<Data, String> {
        policy::diff(&name.name("name")?)
    }

    fn approve(name: Data, sha256: Data) -> Result<Data, String> {
        policy::approve(&name.name("name")?, &sha256.name("sha256")?)
    }

    fn rollback(name: Data) -> Result<Data, String> {
        policy::rollback(&name.name("name")?)
    }
}

export!(Module);
