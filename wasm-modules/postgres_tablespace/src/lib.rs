//! The module `postgres_tablespace`: states of tablespaces. Their documentation is in `wit/world.wit`.

#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "postgres-tablespace",
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
        fn present(name directory; options owner user maintenance_db db_password db_host db_port db_user) -> StateResult {
            |given| present(given)
        }
        fn absent(name; user maintenance_db db_user db_password db_host db_port) -> StateResult {
            |given| absent(given)
        }
    }
}

fn present(given: &Given) -> Result<StateResult, String> {
    let name = given.name("name");
    let call = Call::to_server(given).and(given, &["name"]);
    let all = Call::to_server(given).value("tablespace_list")?;
    let Some(known) = all.get(&name) else {
        if is_dry_run() {
            return Ok(would(format!("Tablespace {name} is set to be created")));
        }
        let made = call.with("location", given.value("directory").clone()).and(given, &["options", "owner"]);
        return Ok(match made.is("tablespace_create")? {
            true => changed(format!("The tablespace {name} has been created"), &name, "Present"),
            false => StateResult::bad(format!("Failed to create tablespace {name}")),
        });
    };
    let is = |column: &str| known.get(column).map(|value| value.to_text()).unwrap_or_default();
    if is("Location") != given.name("directory") && !is_dry_run() {
        // The blanks are Salt's.
        let comment = "is not at the right location. This is\n            unfixable without dropping and recreating the tablespace.";
        return Ok(StateResult::bad(format!("Tablespace {name} {comment}")));
    }
    let mut result = StateResult::good(format!("Tablespace {name} is already present"));
    let mut changes: Vec<(Value, Value)> = Vec::new();
    if let Some(owner) = given.full("owner").filter(|owner| *owner != is("Owner")) {
        if is_dry_run() {
            result = would(format!("Tablespace {name} owner to be altered"));
        } else if call.clone().with("new_owner", owner.as_str()).is("tablespace_alter")? {
            result.comment = format!("Tablespace {name} owner changed");
            changes.push(("owner".into(), owner.into()));
        }
    }
    let options = match given.value("options") {
        Value::Dict(options) => options.as_slice(),
        _ => &[],
    };
    let mut set: Vec<(Value, Value)> = Vec::new();
    for (key, value) in options {
        if is("Opts").contains(&format!("{}={}", key.to_text(), value.to_text())) {
            continue;
        }
        if is_dry_run() {
            result = would(format!("Tablespace {name} options to be\n                        altered"));
            break;
        }
        let one = Value::Dict(vec![(key.clone(), value.clone())]);
        if call.clone().with("set_option", one).is("tablespace_alter")? {
            result.comment = format!("Tablespace {name} opts changed");
            set.push((key.clone(), value.clone()));
        }
    }
    if !set.is_empty() {
        changes.push(("options".into(), Value::Dict(set)));
    }
    if !changes.is_empty() {
        result.changes = Value::Dict(vec![(name.into(), Value::Dict(changes))]).into();
    }
    Ok(result)
}

fn absent(given: &Given) -> Result<StateResult, String> {
    let name = given.name("name");
    let call = Call::to_server(given).and(given, &["name"]);
    let not_there = || StateResult::good(format!("Tablespace {name} is not present, so it cannot be removed"));
    if !call.is("tablespace_exists")? {
        return Ok(not_there());
    }
    if is_dry_run() {
        return Ok(would(format!("Tablespace {name} is set to be removed")));
    }
    Ok(match call.is("tablespace_remove")? {
        true => changed(format!("Tablespace {name} has been removed"), &name, "Absent"),
        false => StateResult::bad(format!("Tablespace {name} failed to be removed")),
    })
}

#[cfg(target_family = "wasm")]
export!(Module);
