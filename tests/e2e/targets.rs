//! Targets by what minions say of themselves.

use brine_tests::salt::{Kind, Master};
use serde_json::json;

#[test]
fn targets_by_grains_addresses_compound_and_node_group() {
    let master = Master::start("nodegroups: {front: 'web* and not web2', all: 'N@front or L@db1'}");
    let grains = |role: &str| format!("grains: {{role: {role}, nested: {{tier: [{role}, x]}}}}");
    let _minions = [("web1", "web"), ("web2", "web"), ("db1", "db")]
        .map(|(id, role)| master.minion_kind(Kind::Brine, id, &grains(role)));
    // What a minion says of itself is there once its pillar was asked for, which is before it says that it has started.
    let who = |args: &[&str]| {
        let mut all = vec!["--out=json", "--static"];
        all.extend(args);
        all.push("test.ping");
        let output = master.salt(&all);
        let Ok(json) = serde_json::from_str::<serde_json::Value>(&output.stdout) else { return output.stdout };
        let mut ids: Vec<_> = json.as_object().expect("a dict of minions").keys().cloned().collect();
        assert!(json.as_object().expect("a dict").values().all(|ret| *ret == json!(true)), "{json}");
        ids.sort();
        ids.join(" ")
    };
    assert_eq!(who(&["-G", "role:web"]), "web1 web2");
    assert_eq!(who(&["-G", "nested:tier:d*"]), "db1");
    assert_eq!(who(&["-P", "role:(db|cache)"]), "db1");
    assert_eq!(who(&["-G", "role|db", "--delimiter=|"]), "db1");
    assert_eq!(who(&["-S", "127.0.0.0/8"]), "db1 web1 web2");
    assert_eq!(who(&["-C", "G@role:web and not web2"]), "web1");
    assert_eq!(who(&["-C", "( P@role:d. or E@web2 ) and *[12]"]), "db1 web2");
    assert_eq!(who(&["-N", "front"]), "web1");
    assert_eq!(who(&["-N", "all"]), "db1 web1");
    assert_eq!(who(&["-C", "N@all and G@role:db"]), "db1");
    let unknown = master.salt(&["-N", "none", "test.ping"]);
    assert!(unknown.stdout.contains("Node group none unavailable in"), "{unknown:?}");
    let nobody = master.salt(&["-G", "role:none", "test.ping"]);
    assert!(nobody.stdout.contains("No minions matched the target."), "{nobody:?}");
}
