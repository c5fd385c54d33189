//! Python's `LocalClient` with a running master: many calls in one process, because each `salt` takes a second to
//! start.

use std::fmt::Write;

use brine_tests::preloaded;
use brine_tests::salt::{Master, python};
use serde_json::{Value, json};

/// A publication by `LocalClient.cmd`.
#[derive(Clone)]
pub(super) struct Call(Value);

/// Returns a call of `fun` for the target. Bytes are written as `{"bytes": HEX}` in both directions.
pub(super) fn call(tgt: impl Into<Value>, fun: &str, arg: Value) -> Call {
    let fields = [("tgt", tgt.into()), ("fun", fun.into()), ("arg", arg)];
    Call(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

impl Call {
    /// Adds keyword arguments.
    pub(super) fn kwarg(mut self, kwarg: Value) -> Self {
        self.0["kwarg"] = kwarg;
        self
    }

    /// Sets another type of target than a glob.
    pub(super) fn tgt_type(mut self, tgt_type: &str) -> Self {
        self.0["tgt_type"] = json!(tgt_type);
        self
    }
}

const SCRIPT: &str = r#"
import json, os, sys
import salt.client
client = salt.client.LocalClient(os.path.join(sys.argv[1], "master"))
def read(value):
    if isinstance(value, dict):
        if list(value) == ["bytes"]:
            return bytes.fromhex(value["bytes"])
        return {key: read(item) for key, item in value.items()}
    return [read(item) for item in value] if isinstance(value, list) else value
def plain(value):
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value
answers = []
for call in json.loads(sys.argv[2]):
    tgt, fun, arg = call["tgt"], call["fun"], read(call["arg"])
    answers.append(client.cmd(tgt, fun, arg, tgt_type=call.get("tgt_type", "glob"), kwarg=read(call.get("kwarg")), timeout=30))
print(json.dumps(plain(answers)))
"#;

/// Returns the results of each call, from minion to return.
pub(super) fn calls(master: &Master, calls: &[Call]) -> Vec<Value> {
    let calls: Vec<&Value> = calls.iter().map(|call| &call.0).collect();
    let calls = json!(calls).to_string();
    let output = preloaded::script(&python(), SCRIPT, &[&master.conf(), &calls]).exits(0);
    // The client prints targets without minions before the result.
    let last = output.stdout.lines().last().unwrap_or_default();
    serde_json::from_str(last).unwrap_or_else(|e| panic!("no list ({e}): {output:?}"))
}

/// Checks one minion's returns for many simultaneous calls: `(function, arguments, return)`.
pub(super) fn answers(master: &Master, minion: &str, table: &[(&str, Value, Value)]) {
    let made: Vec<Call> = table.iter().map(|(fun, arg, _)| call(minion, fun, arg.clone())).collect();
    let mut wrong = String::new();
    for ((fun, arg, expected), got) in table.iter().zip(calls(master, &made)) {
        if got != json!({minion: expected}) {
            let _ = writeln!(wrong, "{fun} {arg}: {got}, not {expected}");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
