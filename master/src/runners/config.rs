//! `config.get`: the master's configuration.

use brine_protocol::value::{Value, ValueExt as _};

use super::function::{Function, Run, functions};

/// The functions of this module.
pub(super) const FUNCTIONS: &[Function] = functions! {
    /// Returns an option of the master, or a part of one (a:b); secrets and options that Salt does not have are not
    /// shown.
    "config.get(key, default='', delimiter=':')" => |run| async move { Ok(get(&run)) },
};

fn get(run: &Run) -> Value {
    let Some(key) = run.find_text("key") else { return run.value("default") };
    let delimiter = match run.text("delimiter") {
        empty if empty.is_empty() => ":".to_owned(),
        given => given,
    };
    run.parts.live.load().shown.traverse(&key, &delimiter).cloned().unwrap_or_else(|| run.value("default"))
}
