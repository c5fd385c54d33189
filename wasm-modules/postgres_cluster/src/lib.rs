//! The module `postgres_cluster`: states of clusters. Their documentation is in `wit/world.wit`.

#![cfg_attr(not(target_family = "wasm"), allow(dead_code))]

wit_bindgen::generate!({
    world: "postgres-cluster",
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
        states::has_clusters()
    }

    brine_postgresql::functions! {
        fn present(version name; port encoding locale datadir allow_group_access data_checksums wal_segsize) -> StateResult {
            |given| present(given)
        }
        fn absent(version name;) -> StateResult {
            |given| absent(given)
        }
    }
}

fn present(given: &Given) -> Result<StateResult, String> {
    let (version, name) = (given.name("version"), given.name("name"));
    let full = format!("{version}/{name}");
    let all = Call::local().with("verbose", true).value("cluster_list")?;
    if let Some(known) = all.get(&full) {
        let is = |column: &str| known.get(column).unwrap_or(&Value::None);
        // As in Salt: a port that is a text is never the port.
        let differs = |argument: &str| given.is_set(argument) && given.value(argument) != is(argument);
        return Ok(match differs("port") || differs("datadir") {
            true => StateResult::bad(format!("Cluster {full} has wrong parameters which couldn't be changed on fly.")),
            false => StateResult::good(format!("Cluster {full} is already present")),
        });
    }
    if is_dry_run() {
        return Ok(would(format!("Cluster {full} is set to be created")));
    }
    let options = [
        "version",
        "name",
        "port",
        "locale",
        "encoding",
        "datadir",
        "allow_group_access",
        "data_checksums",
        "wal_segsize",
    ];
    Ok(match Call::local().and(given, &options).is("cluster_create")? {
        true => changed(format!("The cluster {full} has been created"), &full, "Present"),
        false => StateResult::bad(format!("Failed to create cluster {full}")),
    })
}

fn absent(given: &Given) -> Result<StateResult, String> {
    let (version, name) = (given.name("version"), given.name("name"));
    let full = format!("{version}/{name}");
    let call = Call::local().and(given, &["version", "name"]);
    if !call.is("cluster_exists")? {
        return Ok(StateResult::good(format!("Cluster {full} is not present, so it cannot be removed")));
    }
    if is_dry_run() {
        return Ok(would(format!("Cluster {full} is set to be removed")));
    }
    let done = call.with("stop", true).value("cluster_remove")?;
    Ok(match done.get("retcode") == Some(&Value::Int(0)) {
        true => changed(format!("Cluster {full} has been removed"), &name, "Absent"),
        false => StateResult::bad(format!("Cluster {full} failed to be removed")),
    })
}

#[cfg(target_family = "wasm")]
export!(Module);
