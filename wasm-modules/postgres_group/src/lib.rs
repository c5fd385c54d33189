//! The module `postgres_group`: states of roles. Their documentation is in `wit/world.wit`.

#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "postgres-group",
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

use brine_guest::states::StateResult;
use brine_postgresql::given::Given;
use brine_postgresql::roles::{self, Kind};
use brine_postgresql::states;

use wasi::random::random::get_random_u64;

use exports::states::Guest;

struct Module;

// Salt's arguments in Salt's order.
#[rustfmt::skip]
impl Guest for Module {
    fn mod_available() -> Result<(), String> {
        states::has_psql()
    }

    brine_postgresql::functions! {
        fn present(name; createdb createroles encrypted superuser inherit login replication password refresh_password groups user
            maintenance_db db_password db_host db_port db_user) -> StateResult {
            |given| present(given)
        }
        fn absent(name; user maintenance_db db_password db_host db_port db_user) -> StateResult {
            |given| roles::absent(given, &KIND)
        }
    }
}

const KIND: Kind = Kind { word: "group", title: "Group", name: "groupname" };

fn present(given: &Given) -> Result<StateResult, String> {
    roles::present(given, &KIND, get_random_u64)
}

#[cfg(target_family = "wasm")]
export!(Module);
