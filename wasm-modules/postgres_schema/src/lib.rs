//! The module `postgres_schema`: states of schemas. Their documentation is in `wit/world.wit`.

#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "postgres-schema",
    path: "wit",
    with: {
        "brine:host/types@1.0.0": brine_guest::host::types,
        "brine:host/changes@1.0.0": brine_guest::host::changes,
        "brine:host/config@1.0.0": brine_guest::host::config,
        "brine:host/functions@1.0.0": brine_guest::host::functions,
        "brine:host/job@1.0.0": brine_guest::host::job,
    },
    generate_all,
});

use brine_guest::Value;
use brine_guest::states::is_dry_run;
use brine_postgresql::given::Given;
use brine_postgresql::states::{self, Call};

use exports::states::Guest;

struct Module;

// Salt's arguments in Salt's order.
#[rustfmt::skip]
impl Guest for Module {
    fn mod_available() -> Result<(), String> {
        states::has_psql()
    }

    brine_postgresql::functions! {
        fn present(dbname name; owner user db_user db_password db_host db_port) -> Data {
            |given| present(given).map(Data::from)
        }
        fn absent(dbname name; user db_user db_password db_host db_port) -> Data {
            |given| absent(given).map(Data::from)
        }
    }
}

/// Salt's result of a schema names the database too.
fn result(given: &Given, result: Option<bool>, comment: String, change: Option<&str>) -> Value {
    let name = given.value("name");
    let changes = change.map(|change| (name.clone(), change.into()));
    Value::dict([
        ("name", name.clone()),
        ("dbname", given.value("dbname").clone()),
        ("changes", Value::Dict(changes.into_iter().collect())),
        ("result", result.into()),
        ("comment", comment.into()),
    ])
}

fn present(given: &Given) -> Result<Value, String> {
    let (name, database) = (given.name("name"), given.name("dbname"));
    let call = Call::to_schema(given).and(given, &["dbname", "name"]);
    if call.value("schema_get")? != Value::None {
        return Ok(result(given, Some(true), format!("Schema {name} already exists in database {database}"), None));
    }
    if is_dry_run() {
        let comment = format!("Schema {name} is set to be created in database {database}.");
        return Ok(result(given, None, comment, None));
    }
    Ok(match call.and(given, &["owner"]).is("schema_create")? {
        true => {
            result(given, Some(true), format!("Schema {name} has been created in database {database}"), Some("Present"))
        }
        false => result(given, Some(false), format!("Failed to create schema {name} in database {database}"), None),
    })
}

fn absent(given: &Given) -> Result<Value, String> {
    let (name, database) = (given.name("name"), given.name("dbname"));
    let call = Call::to_schema(given).and(given, &["dbname", "name"]);
    if !call.is("schema_exists")? {
        let comment = format!("Schema {name} is not present in database {database}, so it cannot be removed");
        return Ok(result(given, Some(true), comment, None));
    }
    if is_dry_run() {
        return Ok(result(given, None, format!("Schema {name} is set to be removed from database {database}"), None));
    }
    Ok(match call.is("schema_remove")? {
        true => result(
            given,
            Some(true),
            format!("Schema {name} has been removed from database {database}"),
            Some("Absent"),
        ),
        false => result(given, Some(false), format!("Schema {name} failed to be removed"), None),
    })
}

#[cfg(target_family = "wasm")]
export!(Module);
