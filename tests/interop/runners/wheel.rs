//! The wheel functions with masters of both kinds.

use brine_kit::process::run_with;
use brine_tests::salt::{Master, python};
use serde_json::{Value, json};

/// A function and its arguments.
type Call = (&'static str, Value);

/// Calls with exactly the same results.
fn same() -> Vec<Call> {
    vec![
        ("key.list", json!({"match": "accepted"})),
        ("key.list", json!({"match": "unaccepted"})),
        ("key.list", json!({"match": "nothing"})),
        ("key.glob_match", json!({"match": "*"})),
        ("key.glob_match", json!({"match": "o*,t*"})),
        ("key.accept", json!({"match": "a1"})),
        ("key.accept", json!({"match": "nobody"})),
        ("key.accept_dict", json!({"match": {"minions_pre": ["a2"]}})),
        ("key.reject", json!({"match": "b*"})),
        ("key.accept", json!({"match": "b1"})),
        ("key.accept", json!({"match": "b1", "include_rejected": true})),
        ("key.reject_dict", json!({"match": {"minions": ["b1"]}, "include_accepted": true})),
        ("key.delete_dict", json!({"match": {"minions": ["a1", "a2"]}})),
        ("key.delete", json!({"match": "a*,b*"})),
        ("key.glob_match", json!({"match": "*"})),
        ("file_roots.find", json!({"path": "folder/served.txt"})),
        ("file_roots.find", json!({"path": "../../../../etc/passwd"})),
        ("file_roots.find", json!({"path": "x", "saltenv": "nope"})),
        ("file_roots.list_env", json!({})),
        ("file_roots.list_env", json!({"saltenv": "nope"})),
        ("file_roots.list_roots", json!({})),
        ("file_roots.read", json!({"path": "top.sls"})),
        ("file_roots.read", json!({"path": "/etc/passwd"})),
        ("file_roots.write", json!({"data": "new\n", "path": "w/x.txt"})),
        ("file_roots.read", json!({"path": "w/x.txt"})),
        ("file_roots.write", json!({"data": "x", "path": "../x"})),
        ("file_roots.write", json!({"data": "x", "path": "/x"})),
        ("file_roots.write", json!({"data": "x", "path": "x", "saltenv": "nope"})),
        ("file_roots.write", json!({"data": "x", "path": "x", "index": 3})),
        ("pillar_roots.write", json!({"data": "a: 1\n", "path": "p.sls"})),
        ("pillar_roots.read", json!({"path": "p.sls"})),
        ("pillar_roots.list_env", json!({})),
        ("pillar_roots.write", json!({"data": "x", "path": "../x"})),
        ("error.error", json!({})),
    ]
}

/// Calls with wrong arguments: the errors agree except for the documentation.
fn misused() -> Vec<Call> {
    vec![("key.accept", json!({})), ("file_roots.read", json!({}))]
}

/// Returns `[result, success]` of each call.
fn answers(master: &Master, calls: &[Call]) -> Vec<(Value, bool)> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/interop/python/wheel.py");
    let conf = master.path("conf/master").display().to_string();
    let calls = serde_json::to_string(calls).expect("they are JSON");
    let args = ["-W", "ignore", script, &conf, "", &calls];
    let output = run_with(&python(), &args, &[("PYTHONDONTWRITEBYTECODE", "1")]).exits(0);
    let folder = master.folder.path().display().to_string();
    let last = output.stdout.lines().last().unwrap_or_default().replace(&folder, "ROOT");
    serde_json::from_str(&last).unwrap_or_else(|e| panic!("no list ({e}): {output:?}"))
}

/// Returns the differences.
pub(super) fn compare(brine: &Master, salt: &Master) -> String {
    for master in [brine, salt] {
        // Pending keys. Their content does not matter here.
        for id in ["a1", "a2", "b1"] {
            let keys = master.path("pki");
            std::fs::copy(keys.join("minions/one"), keys.join("minions_pre").join(id)).expect("the key of a minion");
        }
    }
    let calls: Vec<Call> = same().into_iter().chain(misused()).collect();
    let equal = same().len();
    let mut wrong = String::new();
    for (at, (own, theirs)) in answers(brine, &calls).into_iter().zip(answers(salt, &calls)).enumerate() {
        let fits = if at < equal {
            own == theirs
        } else {
            let until =
                |of: &Value| of.as_str().and_then(|text| text.split_once("Usage:")).map(|(why, _)| why.to_owned());
            until(&own.0).is_some() && until(&own.0) == until(&theirs.0) && !own.1
        };
        if !fits {
            wrong.push_str(&format!("---- {:?}\nBrine: {own:?}\nSalt:  {theirs:?}\n", calls[at]));
        }
    }
    wrong
}
