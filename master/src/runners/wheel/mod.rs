//! The wheel: management of keys, files under the roots, the configuration, and the connected minions.

mod config;
mod key;
mod roots;

use brine_protocol::value::Value;

use super::function::{Function, functions};
use super::{error, manage};

/// All wheel functions, by module.
pub(super) const FUNCTIONS: &[&[Function]] = &[OTHERS, config::FUNCTIONS, key::FUNCTIONS, roots::FUNCTIONS];

const OTHERS: &[Function] = functions! {
    /// Returns the master's configuration: Salt's own options, without secrets.
    "config.values()" => |run| async move { Ok(run.parts.live.load().shown.clone()) },
    /// Fails with this exception, to try what happens then; without a name it does not.
    "error.error(name=None, message='')" => |run| async move { error::raise(&run, "wheel") },
    /// Lists the minions that are connected.
    "minions.connected()" => |run| async move { manage::connected(&run.parts).await },
};

/// Returns whether a function's arguments are left out of its events, because settings may be secrets.
pub(super) fn hides_arguments(fun: &str) -> bool {
    fun == "config.update_config"
}

/// Returns the part of a function's result that its event contains. Content of files in the roots and new private keys
/// are only for the caller, because readers of the bus may have no right to them.
pub(super) fn told(fun: &str, result: &Value) -> Value {
    match fun {
        "key.gen" | "key.gen_accept" => key::without_private_key(result),
        "file_roots.read" | "pillar_roots.read" => Value::from(crate::bus::TRIMMED),
        _ => result.clone(),
    }
}
