//! The module `postgres_language`: states of languages. Their documentation is in `wit/world.wit`.

#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "postgres-language",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/state-types@1.0.0": brine_guest::host::state_types,
        "brine:host/changes@1.0.0": brine_guest::host::changes,
        "brine:host/config@1.0.0": brine_guest::host::config,
        "brine:host/functions@1.0.0": brine_guest::host::functions,
        "brine:host/job@1.0.0": brine_guest::host::job,
    },
    generate_all,
});

use brine_guest::states::{StateResult, is_dry_run};
use brine_postgresql::given::Given;
use brine_postgresql::states::{self, Call, changed, would};

use exports::states::Guest;

struct Module;

// Salt's arguments in Salt's order.
#[rustfmt::skip]
impl Guest for Module {
    fn mod_available() -> Result<(), String> {
        states::has_psql()
    }

    brine_postgresql::functions! {
        fn present(name maintenance_db; user db_password db_host db_port db_user) -> StateResult {
            |given| present(given)
        }
        fn absent(name maintenance_db; user db_password db_host db_port db_user) -> StateResult {
            |given| absent(given)
        }
    }
}

fn present(given: &Given) -> Result<StateResult, String> {
    let name = given.name("name");
    let call = Call::to_server(given).and(given, &["name"]);
    if call.is("language_exists")? {
        return Ok(StateResult::good(format!("Language {name} is already installed")));
    }
    if is_dry_run() {
        return Ok(would(format!("Language {name} is set to be installed")));
    }
    Ok(match call.is("language_create")? {
        true => changed(format!("Language {name} has been installed"), &name, "Present"),
        false => StateResult::bad(format!("Failed to install language {name}")),
    })
}

fn absent(given: &Given) -> Result<StateResult, String> {
    let name = given.name("name");
    let call = Call::to_server(given).and(given, &["name"]);
    if !call.is("language_exists")? {
        return Ok(StateResult::good(format!("Language {name} is not present so it cannot be removed")));
    }
    if is_dry_run() {
        return Ok(would(format!("Language {name} is set to be removed")));
    }
    Ok(match call.is("language_remove")? {
        true => changed(format!("Language {name} has been removed"), &name, "Absent"),
        false => StateResult::bad(format!("Failed to remove language {name}")),
    })
}

#[cfg(target_family = "wasm")]
export!(Module);
