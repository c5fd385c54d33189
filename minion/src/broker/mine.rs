//! `brine:host/mine`: the data that minions publish to other minions through the master, as Salt's module `mine` does
//! (PROTOCOL §6.1).

use brine_protocol::msgpack;
use brine_protocol::value::{Value, ValueExt as _, empty_map, list, map};
use brine_sandbox::{Caller, HostError, MineOp};

use super::events::decode;
use super::{MinionBroker, Perform};

/// Upper bound on the bytes of a name, which is a function or an alias.
const MAX_NAME: usize = 256;
/// Bounds on one value. The master loads all values of the mine into memory to read one of them.
const DATA: msgpack::Limits = msgpack::Limits { max_bytes: 1 << 20, max_depth: 64, max_items: 100_000 };

const TARGET: msgpack::Limits = msgpack::Limits { max_bytes: 64 << 10, max_depth: 4, max_items: 10_000 };

impl Perform<MineOp> for MinionBroker {
    async fn perform(&self, caller: &Caller, op: MineOp) -> Result<Value, HostError> {
        let id = Value::from(caller.job.minion_id.as_str());
        let data = |values: Vec<(String, Value)>, clear: bool| {
            let mut load = map([("cmd", Value::from("_mine")), ("id", id.clone()), ("data", map(values))]);
            if clear {
                load.insert("clear", true);
            }
            load
        };
        let (what, load) = match op {
            MineOp::Publish { name, data: value } => {
                let name = checked(name)?;
                let value = decode(&value, &DATA)?;
                (format!("value {name}"), data(vec![(name, value)], false))
            }
            MineOp::PublishAll { values, clear } => {
                let values = values.into_iter().map(|(name, value)| Ok((checked(name)?, decode(&value, &DATA)?)));
                ("values".to_owned(), data(values.collect::<Result<_, HostError>>()?, clear))
            }
            MineOp::Delete { name } => {
                let name = checked(name)?;
                let fun = Value::from(name.as_str());
                (format!("value {name}"), map([("cmd", Value::from("_mine_delete")), ("id", id), ("fun", fun)]))
            }
            MineOp::Flush => {
                // Salt's masters answer false where there was nothing.
                self.teller.tell(caller, map([("cmd", Value::from("_mine_flush")), ("id", id)])).await?;
                return Ok(Value::from(true));
            }
            MineOp::Get { tgt, tgt_type, names, by_name } => {
                return self.mine_get(caller, &tgt, tgt_type, names, by_name).await;
            }
        };
        match self.teller.tell(caller, load).await? {
            Value::Boolean(true) => Ok(Value::from(true)),
            // If storing fails, Salt's masters answer false or a text.
            _ => Err(HostError::Failed(format!("the master did not take the mine {what}; its log says why"))),
        }
    }
}

impl MinionBroker {
    /// Asks the master for what minions published. The master decides what this minion may see.
    async fn mine_get(
        &self,
        caller: &Caller,
        tgt: &[u8],
        tgt_type: String,
        names: Vec<String>,
        by_name: bool,
    ) -> Result<Value, HostError> {
        let names = names.into_iter().map(checked).collect::<Result<Vec<_>, _>>()?;
        // As in Salt: formulas ask the mine on hosts without a master too, and nothing is there.
        if self.teller.is_alone(caller) {
            return Ok(empty_map());
        }
        // A master answers a list by name, and one name by minion.
        let fun = match (by_name, names.as_slice()) {
            (false, [name]) => Value::from(name.as_str()),
            _ => list(names.iter().map(String::as_str)),
        };
        let load = map([
            ("cmd", Value::from("_mine_get")),
            ("id", Value::from(caller.job.minion_id.as_str())),
            ("tgt", decode(tgt, &TARGET)?),
            ("fun", fun),
            ("tgt_type", Value::from(tgt_type)),
        ]);
        match self.teller.ask(caller, load).await? {
            found @ Value::Map(_) => Ok(found),
            _ => Err(HostError::Failed("the master's answer about the mine is no dict".to_owned())),
        }
    }
}

fn checked(name: String) -> Result<String, HostError> {
    // A comma separates names in a query of the mine.
    if name.is_empty() || name.len() > MAX_NAME || name.contains(|c: char| c.is_control() || c == ',') {
        return Err(HostError::Failed("a name in the mine is one line of at most 256 bytes without commas".to_owned()));
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked() {
        for (name, good) in [("network.ip_addrs", true), ("a b", true), ("", false), ("a,b", false), ("a\nb", false)] {
            assert_eq!(checked(name.to_owned()).is_ok(), good, "{name:?}");
        }
        assert!(checked("x".repeat(MAX_NAME + 1)).is_err());
    }
}
