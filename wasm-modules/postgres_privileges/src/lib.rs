//! The module `postgres_privileges`: states of privileges. Their documentation is in `wit/world.wit`.

#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "postgres-privileges",
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
        fn present(name object_name object_type; privileges grant_option prepend maintenance_db user db_password db_host db_port
            db_user) -> StateResult {
            |given| present(given)
        }
        fn absent(name object_name object_type; privileges prepend maintenance_db user db_password db_host db_port db_user) -> StateResult {
            |given| absent(given)
        }
    }
}

/// The privileges as functions take them, and as comments name them.
fn privileges(given: &Given) -> (Value, String) {
    let words = match given.value("privileges") {
        // As in Python, a text is a list of its characters.
        Value::Text(text) => text.chars().map(String::from).collect(),
        _ => given.names("privileges").unwrap_or_default(),
    };
    let words = if words.is_empty() { Value::None } else { words.join(",").into() };
    let named = if given.name("object_type") == "group" { given.name("object_name") } else { words.to_text() };
    (words, named)
}

fn call(given: &Given, words: Value) -> Call {
    Call::to_server(given)
        .and(given, &["name", "object_name", "object_type"])
        .with("privileges", words)
        .with("prepend", given.text("prepend").unwrap_or_else(|| "public".into()))
}

fn present(given: &Given) -> Result<StateResult, String> {
    let name = given.name("name");
    let (words, named) = privileges(given);
    let call = call(given, words).and(given, &["grant_option"]);
    if call.is("has_privileges")? {
        return Ok(StateResult::good("The requested privilege(s) are already set"));
    }
    if is_dry_run() {
        return Ok(would(format!("The privilege(s): {named} are set to be granted to {name}")));
    }
    Ok(match call.is("privileges_grant")? {
        true => changed(format!("The privilege(s): {named} have been granted to {name}"), &name, "Present"),
        false => StateResult::bad(format!("Failed to grant privilege(s): {named} to {name}")),
    })
}

fn absent(given: &Given) -> Result<StateResult, String> {
    let name = given.name("name");
    let (words, named) = privileges(given);
    let call = call(given, words);
    if !call.is("has_privileges")? {
        return Ok(StateResult::good("The requested privilege(s) are not set so cannot be revoked"));
    }
    if is_dry_run() {
        return Ok(would(format!("The privilege(s): {named} are set to be revoked from {name}")));
    }
    Ok(match call.is("privileges_revoke")? {
        true => changed(format!("The privilege(s): {named} have been revoked from {name}"), &name, "Absent"),
        false => StateResult::bad(format!("Failed to revoke privilege(s): {named} from {name}")),
    })
}

#[cfg(target_family = "wasm")]
export!(Module);
