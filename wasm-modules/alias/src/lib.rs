//! The module `alias`: states of `/etc/aliases`. Their documentation is in `wit/world.wit`, the file in
//! [`brine_formats::mail_aliases`]; the functions are in the module `aliases`.

#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "alias",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/state-types@1.0.0": brine_guest::host::state_types,
        "brine:host/changes@1.0.0": brine_guest::host::changes,
        "brine:host/job@1.0.0": brine_guest::host::job,
        "brine:host/process@1.0.0": brine_guest::host::process,
    },
    generate_all,
});

use brine_formats::mail_aliases::MailAliases;
use brine_guest::Value;
use brine_guest::states::{StateResult, is_dry_run, no_changes};

use exports::states::Guest;

struct Module;

fn changed(comment: String, name: &str) -> StateResult {
    StateResult::changed(comment, Value::dict([("alias", name.into())]))
}

impl Guest for Module {
    fn present(name: String, target: Data) -> Result<StateResult, String> {
        let target = target.value()?;
        let mut aliases = MailAliases::open()?;
        if aliases.has(&name, &target)? {
            return Ok(StateResult::good(format!("Alias {name} already present")));
        }
        let shown = target.to_text();
        if is_dry_run() {
            return Ok(StateResult::would(format!("Alias {name} -> {shown} is set to be added"), no_changes()));
        }
        if aliases.set(&name, &target)? {
            aliases.save()?;
        }
        Ok(changed(format!("Set email alias {name} -> {shown}"), &name))
    }

    fn absent(name: String) -> Result<StateResult, String> {
        let mut aliases = MailAliases::open()?;
        if aliases.target(&name).is_empty() {
            return Ok(StateResult::good(format!("Alias {name} already absent")));
        }
        if is_dry_run() {
            return Ok(StateResult::would(format!("Alias {name} is set to be removed"), no_changes()));
        }
        if aliases.remove(&name) {
            aliases.save()?;
        }
        Ok(changed(format!("Removed alias {name}"), &name))
    }
}

#[cfg(target_family = "wasm")]
export!(Module);
