//! `brine:host/mine`: the data that this minion publishes to other minions through the master, as Salt's `mine.send`
//! and `mine.delete` do (PROTOCOL §6.1).

use brine_protocol::msgpack;
use brine_protocol::value::{Value, map};
use brine_sandbox::{Caller, HostError, MineOp};

use super::events::decode;
use super::{MinionBroker, Perform};

/// Upper bound on the bytes of a name, which is a function or an alias.
const MAX_NAME: usize = 256;
/// Bounds on one value. The master loads all values of the mine into memory to read one of them.
const DATA: msgpack::Limits = msgpack::Limits { max_bytes: 1 << 20, max_depth: 64, max_items: 100_000 };

impl Perform<MineOp> for MinionBroker {
    async fn perform(&self, caller: &Caller, op: MineOp) -> Result<Value, HostError> {
        let id = Value::from(caller.job.minion_id.as_str());
        let (name, load) = match op {
            MineOp::Publish { name, data } => {
                let name = checked(name)?;
                let data = map([(name.as_str(), decode(&data, &DATA)?)]);
                (name, map([("cmd", Value::from("_mine")), ("id", id), ("data", data)]))
            }
            MineOp::Delete { name } => {
                let name = checked(name)?;
                let fun = Value::from(name.as_str());
                (name, map([("cmd", Value::from("_mine_delete")), ("id", id), ("fun", fun)]))
            }
        };
        match self.teller.tell(caller, load).await? {
            Value::Boolean(true) => Ok(Value::from(true)),
            // If storing fails, Salt's masters answer false or a text.
            _ => Err(HostError::Failed(format!("the master did not take the mine value {name}; its log says why"))),
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
