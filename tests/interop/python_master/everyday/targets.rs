//! The matching minions for each type of target, determined by the Python master from cached grains and pillar, and
//! again by each minion.

use std::fmt::Write;

use serde_json::{Value, json};

use super::super::client::{Call, call, calls};
use super::Fleet;

pub(super) fn check(fleet: &Fleet) {
    let table: &[(&str, Value, &str)] = &[
        ("glob", json!("brine*"), "brine1 brine2"),
        ("glob", json!("*[!2]"), "brine1 python"),
        ("pcre", json!("brine[13]|py.*"), "brine1 python"),
        ("list", json!(["brine2", "python"]), "brine2 python"),
        ("grain", json!("role:web"), "brine1"),
        ("grain", json!("nested:tier:f*"), "brine1"),
        ("grain", json!("NUM:5"), ""),
        ("grain", json!("num:5"), "brine1"),
        ("grain", json!("kernel:Linux"), "brine1 brine2 python"),
        ("grain", json!("brineversion:*"), "brine1 brine2"),
        ("grain_pcre", json!("id:(brine2|python)$"), "brine2 python"),
        ("pillar", json!("known:v1"), "brine1 brine2 python"),
        ("pillar", json!("only:brine1"), "brine1"),
        ("pillar_pcre", json!("only:b.*"), "brine1 brine2"),
        ("ipcidr", json!("127.0.0.1"), "brine1 brine2 python"),
        ("ipcidr", json!("203.0.113.0/24"), ""),
        ("compound", json!("G@role:web or python"), "brine1 python"),
        ("compound", json!("* and not G@role:web and not E@py.*"), "brine2"),
        ("compound", json!("( P@role:w.. or I@only:brine2 ) and S@127.0.0.0/8 and L@brine1,brine2"), "brine1 brine2"),
        ("compound", json!("G|@nested|tier|front"), "brine1"),
        ("compound", json!("J@only:(brine1|python)"), "brine1 python"),
    ];
    let made: Vec<Call> =
        table.iter().map(|(tgt_type, tgt, _)| call(tgt.clone(), "test.ping", json!([])).tgt_type(tgt_type)).collect();
    let mut wrong = String::new();
    for ((tgt_type, tgt, expected), got) in table.iter().zip(calls(&fleet.master, &made)) {
        let got = ids(&got);
        if got != *expected {
            let _ = writeln!(wrong, "{tgt_type} {tgt}: {got:?}, not {expected:?}");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    // The command resolves node groups and sends them as compound targets.
    let salt = |args: &[&str]| {
        let output = fleet.master.salt(&[&["--out=json", "--static"], args, &["test.ping"]].concat());
        ids(&output.json())
    };
    assert_eq!(salt(&["-N", "brines"]), "brine1 brine2");
    assert_eq!(salt(&["-N", "nested"]), "brine1");
    assert_eq!(salt(&["-N", "grainy"]), "brine1 python");
    // Without --static, because with it 3007 sends the job to all of them.
    let output = fleet.master.salt(&["--subset", "1", "brine*", "test.ping"]).exits(0);
    assert_eq!(output.stdout.matches("True").count(), 1, "{output:?}");
}

fn ids(answers: &Value) -> String {
    let mut ids: Vec<&str> = answers.as_object().expect("a dict of minions").keys().map(String::as_str).collect();
    ids.sort_unstable();
    ids.join(" ")
}
