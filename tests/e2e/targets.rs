//! Targets by the data of minions, and jobs for batches of minions.

use brine_tests::salt::{Kind, Master};
use serde_json::json;

#[test]
fn targets_by_grains_addresses_compound_and_node_group() {
    let master = Master::start("nodegroups: {front: 'web* and not web2', all: 'N@front or L@db1'}");
    let grains = |role: &str| format!("grains: {{role: {role}, nested: {{tier: [{role}, x]}}}}");
    let _minions = [("web1", "web"), ("web2", "web"), ("db1", "db")]
        .map(|(id, role)| master.minion_kind(Kind::Brine, id, &grains(role)));
    // A minion's data is known once the minion has requested its pillar, which happens before its start event.
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

#[test]
fn a_batch_asks_who_is_there_and_stops_where_it_is_to_stop() {
    let master = Master::start("timeout: 2\ngather_job_timeout: 2");
    let [_first, _second, mut away] = ["m1", "m2", "m3"].map(|id| master.minion(id));
    let events = master.events();
    away.kill();
    let done = master.salt(&["-b", "1", "*", "test.ping"]).exits(0);
    let start = "Minion m3 did not respond. No job will be sent.\n\nExecuting run on ['m1']\n\n\nExecuting run on ['m2']\n\n\
                 jid:\n    …\nm1:\n    True\nretcode:\n    0\njid:\n    …\nm2:\n    True\nretcode:\n    0\n";
    assert!(brine_tests::fits(&done.stdout, start), "{done:?}");
    // One job, published twice: the store's record of it is complete.
    let jid = done.stdout.split_once("jid:\n    ").and_then(|(_, rest)| rest.lines().next()).expect("a jid");
    events.wait_return(jid, "m2");
    assert_eq!(events.count(&format!("salt/job/{jid}/new")), 2);
    let found = master.command("salt-run", &["--out=json", "jobs.lookup_jid", jid]).exits(0).json();
    assert_eq!(found, json!({"m1": true, "m2": true}));

    let stopped = master.salt(&["-b", "1", "--failhard", "-L", "m1,m2", "test.retcode", "7"]);
    assert_eq!((stopped.code, stopped.stdout.matches("Executing run").count()), (7, 1), "{stopped:?}");
    assert!(stopped.stderr.contains("Batch run stopped due to failhard"), "{stopped:?}");
    for (args, code, text) in [
        (&["-b", "much", "*", "test.ping"][..], 64, "Invalid batch data sent: much"),
        (&["-b", "1", "--async", "*", "test.ping"], 64, "--batch does not go with --async"),
        (&["-R", "%cluster", "test.ping"], 2, "targets of type range are not offered"),
        (&["-E", "(?(1)a)", "test.ping"], 2, "conditional groups are not supported"),
        (&["-C", "m1 and", "test.ping"], 2, "is not a compound target: it ends too early"),
    ] {
        let refused = master.salt(args);
        assert!(refused.code == code && refused.stderr.contains(text), "{args:?} {refused:?}");
    }
    // The minions from which the master would expect returns. No job is sent.
    assert_eq!(master.salt(&["--preview-target", "*"]).exits(0).stdout, "- m1\n- m2\n- m3\n");
}
