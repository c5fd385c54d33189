//! `config.get`: the master's configuration.

use brine_protocol::value::{Value, ValueExt as _};

use super::function::{Function, Run};

/// The functions of this module.
pub(super) const FUNCTIONS: [Function; 1] = [Function {
    name: "config.get",
    parameters: &["key", "default=''", "delimiter=':'"],
    doc: "Returns an option of the master, or a part of one (a:b); secrets and options that Salt does not have are not shown.",
    run: |run| Box::pin(async move { Ok(get(&run)) }),
}];

fn get(run: &Run) -> Value {
    let default = || run.get("default").cloned().unwrap_or_else(|| Value::from(""));
    let Some(key) = run.text("key") else { return default() };
    let delimiter = run.text("delimiter").filter(|text| !text.is_empty()).unwrap_or_else(|| ":".to_owned());
    run.parts.live.load().shown.traverse(&key, &delimiter).cloned().unwrap_or_else(default)
}
