//! The wheel: the key folders for callers that do not edit them themselves, files under the roots, the configuration, who is connected.

mod config;
mod key;
mod roots;

use brine_protocol::value::Value;

use super::function::Function;
use super::{error, manage};

/// Every wheel function there is, by module.
pub(super) const FUNCTIONS: &[&[Function]] = &[&OTHERS, &config::FUNCTIONS, &key::FUNCTIONS, &roots::FUNCTIONS];

const OTHERS: [Function; 3] = [
    Function {
        name: "config.values",
        parameters: &[],
        doc: "Returns the master's configuration: Salt's own options, without secrets.",
        run: |run| Box::pin(async move { Ok(run.parts.live.load().shown.clone()) }),
    },
    Function {
        name: "error.error",
        parameters: &["name=None", "message=''"],
        doc: "Fails with this exception, to try what happens then; without a name it does not.",
        run: |run| Box::pin(async move { error::raise(&run, "wheel") }),
    },
    Function {
        name: "minions.connected",
        parameters: &[],
        doc: "Lists the minions that are connected.",
        run: |run| Box::pin(async move { manage::connected(&run.parts).await }),
    },
];

/// Whether a function's arguments are for the caller and the audit log alone: settings may be secrets.
pub(super) fn hides_arguments(fun: &str) -> bool {
    fun == "config.update_config"
}

/// What of a function's result its event tells. The files of the roots and new private keys are for the caller alone: who may read the bus
/// is not who may read these.
pub(super) fn told(fun: &str, result: &Value) -> Value {
    match fun {
        "key.gen" | "key.gen_accept" => key::without_private_key(result),
        "file_roots.read" | "pillar_roots.read" => Value::from(crate::bus::TRIMMED),
        _ => result.clone(),
    }
}
