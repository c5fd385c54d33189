//! The module `aliases`: `/etc/aliases`. The functions and their documentation are in `wit/world.wit`, the file in
//! [`brine_formats::mail_aliases`]; the states are in the module `alias`.

#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "aliases",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/changes@1.0.0": brine_guest::host::changes,
        "brine:host/process@1.0.0": brine_guest::host::process,
    },
    generate_all,
});

use brine_formats::mail_aliases::MailAliases;

struct Module;

impl Guest for Module {
    fn list_aliases() -> Result<Data, String> {
        Ok(MailAliases::open()?.value().into())
    }

    fn get_target(alias: String) -> Result<String, String> {
        Ok(MailAliases::open()?.target(&alias).to_owned())
    }

    fn has_target(alias: String, target: Data) -> Result<bool, String> {
        MailAliases::open()?.has(&alias, &target.value()?)
    }

    fn set_target(alias: String, target: Data) -> Result<bool, String> {
        let mut aliases = MailAliases::open()?;
        if aliases.set(&alias, &target.value()?)? {
            aliases.save()?;
        }
        Ok(true)
    }

    fn rm_alias(alias: String) -> Result<bool, String> {
        let mut aliases = MailAliases::open()?;
        if aliases.remove(&alias) {
            aliases.save()?;
        }
        Ok(true)
    }
}

#[cfg(target_family = "wasm")]
export!(Module);
