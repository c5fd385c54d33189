//! `mine.get`: what minions put into the mine.

use brine_protocol::ids::MinionId;
use brine_protocol::keys::KeyState;
use brine_protocol::value::{Value, map};

use super::function::{Function, Outcome, Run, functions};

/// The functions of this module.
pub(super) const FUNCTIONS: &[Function] = functions! {
    /// Returns what minions put into the mine under a name, or under several between commas: what the master itself may read of it, as a minion
    /// of its id.
    "mine.get(tgt, fun, tgt_type='glob')" => get,
};

async fn get(run: Run) -> Outcome {
    let parts = &run.parts;
    let id = MinionId::try_from(parts.opts.id.as_str()).map_err(|error| error.to_string())?;
    let accepted = parts.keys.list(KeyState::Accepted).map_err(|error| error.to_string())?;
    let argument = |name: &str| run.get(name).cloned().unwrap_or(Value::Nil);
    let load = map(["tgt", "fun", "tgt_type"].map(|name| (name, argument(name))));
    Ok(parts.mine.get(&id, &load, accepted).await?)
}
