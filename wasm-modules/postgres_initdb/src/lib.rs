//! The module `postgres_initdb`: states of data directories. Their documentation is in `wit/world.wit`.

#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "postgres-initdb",
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
        fn present(name; user password auth encoding locale runas waldir checksums) -> StateResult {
            |given| present(given)
        }
    }
}

fn present(given: &Given) -> Result<StateResult, String> {
    let name = given.name("name");
    let call = Call::local().and(given, &["name"]);
    if call.is("datadir_exists")? {
        return Ok(StateResult::good(format!("Postgres data directory {name} is already present")));
    }
    if is_dry_run() {
        return Ok(would(format!("Postgres data directory {name} is set to be initialized")));
    }
    let call = call.and(given, &["user", "password", "auth", "encoding", "locale", "waldir", "checksums", "runas"]);
    Ok(match call.is("datadir_init")? {
        true => changed(format!("Postgres data directory {name} has been initialized"), &name, "Present"),
        false => StateResult::bad(format!("Postgres data directory {name} initialization failed")),
    })
}

#[cfg(target_family = "wasm")]
export!(Module);
