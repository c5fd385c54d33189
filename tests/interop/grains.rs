//! Grains of this host: Brine's beside Python Salt's, each of them.

use std::collections::BTreeSet;

use brine_kit::process::run;
use brine_tests::compiled;
use brine_tests::salt::{Kind, line};
use serde_json::{Map, Value};

/// Those of Python's world and of the program itself, which differ. `docs/interop.md` lists them.
const OWN: [&str; 12] = [
    "brineversion",
    "ca_truststore",
    "package",
    "pid",
    "pythonexecutable",
    "pythonpath",
    "pythonversion",
    "saltpath",
    "saltversion",
    "saltversioninfo",
    "sandbox",
    "zmqversion",
];
/// Those that Python finds by programs that a host may lack; without one, Python leaves the grain out.
const BY_PROGRAMS: [&str; 5] = ["gpus", "num_gpus", "ip_gw", "ip4_gw", "ip6_gw"];

fn grains(kind: Kind) -> Map<String, Value> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let dir = folder.path().display().to_string();
    let config = format!("id: here\nroot_dir: {dir}\ncachedir: {dir}/cache\nlog_file: {dir}/log\nuser: root\n");
    std::fs::write(folder.path().join("minion"), config).expect("our own folder");
    compiled::lay_out(&folder.path().join(compiled::COMPILED));
    let args = ["-c", &dir, "--local", "--out=json", "grains.items"];
    let output = run(&kind.program("salt-call"), &args).exits(0).json();
    output["local"].as_object().cloned().unwrap_or_else(|| panic!("no grains: {output}"))
}

/// Lists of devices and addresses have no order.
fn unordered(value: &Value) -> BTreeSet<String> {
    value.as_array().map_or_else(|| [value.to_string()].into(), |items| items.iter().map(Value::to_string).collect())
}

#[test]
fn a_host_has_the_grains_that_salt_finds() {
    let (theirs, ours) = (grains(Kind::Python), grains(Kind::Brine));
    let names: BTreeSet<&String> = theirs.keys().chain(ours.keys()).collect();
    let mut wrong = Vec::new();
    for name in names {
        match (theirs.get(name), ours.get(name)) {
            _ if OWN.contains(&name.as_str()) => {}
            (None, _) if BY_PROGRAMS.contains(&name.as_str()) || line() < 3008 => {}
            (Some(theirs), Some(ours)) if unordered(theirs) == unordered(ours) => {}
            // Gone with 3008.
            (Some(_), None) if line() < 3008 && name.starts_with("zfs_") => {}
            // Python's order of the addresses within an interface is the system's.
            (Some(Value::Object(theirs)), Some(Value::Object(ours)))
                if theirs.len() == ours.len()
                    && theirs.iter().all(|(key, value)| {
                        ours.get(key).is_some_and(|other| unordered(other) == unordered(value))
                    }) => {}
            (theirs, ours) => wrong.push(format!("{name}: Salt {theirs:?}, Brine {ours:?}")),
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
