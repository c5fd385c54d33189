//! The module `postgres_database`: states of databases. Their documentation is in `wit/world.wit`.

#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "postgres-database",
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
        fn present(name; tablespace encoding lc_collate lc_ctype owner owner_recurse template user maintenance_db db_password
            db_host db_port db_user) -> StateResult {
            |given| present(given)
        }
        fn absent(name; user maintenance_db db_password db_host db_port db_user) -> StateResult {
            |given| absent(given)
        }
    }
}

fn present(given: &Given) -> Result<StateResult, String> {
    let name = given.name("name");
    let call = Call::to_server(given).and(given, &["name"]);
    let all = Call::to_server(given).value("db_list")?;
    let Some(known) = all.get(&name) else {
        if is_dry_run() {
            return Ok(would(format!("Database {name} is set to be created")));
        }
        let made = call.and(given, &["tablespace", "encoding", "lc_collate", "lc_ctype", "owner", "template"]);
        return Ok(match made.is("db_create")? {
            true => changed(format!("The database {name} has been created"), &name, "Present"),
            false => StateResult::bad(format!("Failed to create database {name}")),
        });
    };
    let differs = |argument: &str, column: &str, any_case: bool| {
        let is = known.get(column).map(|value| value.to_text()).unwrap_or_default();
        given.full(argument).is_some_and(|said| match any_case {
            true => said.to_lowercase() != is.to_lowercase(),
            false => said != is,
        })
    };
    if differs("encoding", "Encoding", true)
        || differs("lc_collate", "Collate", false)
        || differs("lc_ctype", "Ctype", false)
    {
        return Ok(StateResult::bad(format!("Database {name} has wrong parameters which couldn't be changed on fly.")));
    }
    if !differs("tablespace", "Tablespace", false) && !differs("owner", "Owner", false) {
        return Ok(StateResult::good(format!("Database {name} is already present")));
    }
    if is_dry_run() {
        return Ok(would(format!("Database {name} exists, but parameters need to be changed")));
    }
    Ok(match call.and(given, &["tablespace", "owner", "owner_recurse"]).is("db_alter")? {
        true => changed(format!("Parameters for database {name} have been changed"), &name, "Parameters changed"),
        false => StateResult::bad(format!("Failed to change parameters for database {name}")),
    })
}

fn absent(given: &Given) -> Result<StateResult, String> {
    let name = given.name("name");
    let call = Call::to_server(given).and(given, &["name"]);
    if !call.is("db_exists")? {
        return Ok(StateResult::good(format!("Database {name} is not present, so it cannot be removed")));
    }
    if is_dry_run() {
        return Ok(would(format!("Database {name} is set to be removed")));
    }
    Ok(match call.is("db_remove")? {
        true => changed(format!("Database {name} has been removed"), &name, "Absent"),
        false => StateResult::bad(format!("Database {name} failed to be removed")),
    })
}

#[cfg(target_family = "wasm")]
export!(Module);
