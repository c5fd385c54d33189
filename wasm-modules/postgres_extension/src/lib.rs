//! The module `postgres_extension`: states of extensions. Their documentation is in `wit/world.wit`.

#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "postgres-extension",
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

use brine_guest::Value;
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
        fn present(name; if_not_exists schema ext_version from_version user maintenance_db db_user db_password db_host db_port) -> StateResult {
            |given| present(given)
        }
        fn absent(name; if_exists restrict cascade user maintenance_db db_user db_password db_host db_port) -> StateResult {
            |given| absent(given)
        }
    }
}

fn present(given: &Given) -> Result<StateResult, String> {
    let name = given.name("name");
    let call = Call::to_server(given).and(given, &["name", "schema", "ext_version"]);
    let Value::List(flags) = call.value("create_metadata")? else {
        return Err("postgres.create_metadata is no list".into());
    };
    let has = |flag: &str| flags.iter().any(|known| known.text() == Some(flag));
    let (mode, done) = if has("EXTENSION NOT INSTALLED") {
        ("install", "installed")
    } else if has("EXTENSION TO MOVE") || has("EXTENSION TO UPGRADE") {
        ("upgrade", "upgraded")
    } else {
        return Ok(StateResult::good(format!("Extension {name} is already present")));
    };
    if is_dry_run() {
        return Ok(would(format!("Extension {name} is set to be {done}")));
    }
    Ok(match call.and(given, &["if_not_exists", "from_version"]).is("create_extension")? {
        true => {
            let title = format!("{}{}", done[..1].to_uppercase(), &done[1..]);
            changed(format!("The extension {name} has been {done}"), &name, title)
        }
        false => StateResult::bad(format!("Failed to {mode} extension {name}")),
    })
}

fn absent(given: &Given) -> Result<StateResult, String> {
    let name = given.name("name");
    let call = Call::to_server(given).and(given, &["name"]);
    if !call.is("is_installed_extension")? {
        return Ok(StateResult::good(format!("Extension {name} is not present, so it cannot be removed")));
    }
    if is_dry_run() {
        return Ok(would(format!("Extension {name} is set to be removed")));
    }
    Ok(match call.and(given, &["if_exists", "restrict", "cascade"]).is("drop_extension")? {
        true => changed(format!("Extension {name} has been removed"), &name, "Absent"),
        false => StateResult::bad(format!("Extension {name} failed to be removed")),
    })
}

#[cfg(target_family = "wasm")]
export!(Module);
