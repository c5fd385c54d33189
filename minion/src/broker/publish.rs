//! `brine:host/publish`: jobs that this minion publishes for others, and runners that it starts on the master (PROTOCOL §6.1). The
//! master whose job it is judges them by the id that the channel proved.

use brine_protocol::msgpack;
use brine_protocol::value::{Value, ValueExt as _, empty_map, list, map};
use brine_sandbox::{ByteBuf, Caller, HostError, PublishOp};

use super::events::decode;
use super::{MinionBroker, Perform};

const TARGET: msgpack::Limits = msgpack::Limits { max_bytes: 64 << 10, max_depth: 4, max_items: 10_000 };
const ARGUMENTS: msgpack::Limits = msgpack::Limits { max_bytes: 1 << 20, max_depth: 64, max_items: 100_000 };

impl Perform<PublishOp> for MinionBroker {
    async fn perform(&self, caller: &Caller, op: PublishOp) -> Result<Value, HostError> {
        let id = Value::from(caller.job.minion_id.as_str());
        let args = |args: Vec<ByteBuf>| {
            let values: Result<Vec<Value>, HostError> = args.iter().map(|arg| decode(arg, &ARGUMENTS)).collect();
            values.map(Value::Array)
        };
        // As in Salt, whoever publishes without a master gets nothing.
        if self.teller.is_alone(caller) {
            return Ok(if matches!(op, PublishOp::Job { .. }) { Value::Nil } else { empty_map() });
        }
        match op {
            PublishOp::Job { tgt, tgt_type, function, args: given, returner, timeout } => {
                let load = map([
                    ("cmd", Value::from("minion_pub")),
                    ("fun", function.into()),
                    ("arg", args(given)?),
                    ("tgt", decode(&tgt, &TARGET)?),
                    ("tgt_type", tgt_type.into()),
                    ("ret", returner.into()),
                    ("tmo", timeout.into()),
                    ("form", "clean".into()),
                    ("id", id),
                    ("no_parse", Value::Array(Vec::new())),
                ]);
                let answer = self.teller.tell(caller, load).await?;
                // A master that does not permit it answers with nothing.
                Ok(match (answer.get("jid"), answer.get_list("minions")) {
                    (Some(jid), Some(minions)) => {
                        let minions = minions.iter().filter_map(|minion| minion.text());
                        map([("jid", Value::from(jid.python_str())), ("minions", list(minions))])
                    }
                    _ => Value::Nil,
                })
            }
            PublishOp::Returns { jid } => {
                let load = map([("cmd", Value::from("pub_ret")), ("jid", jid.into()), ("id", id)]);
                match self.teller.ask(caller, load).await? {
                    returns @ Value::Map(_) => Ok(returns),
                    _ => Ok(empty_map()),
                }
            }
            PublishOp::Runner { function, args: given, timeout } => {
                let load = map([
                    ("cmd", Value::from("minion_runner")),
                    ("fun", function.into()),
                    ("arg", args(given)?),
                    ("tmo", timeout.into()),
                    ("id", id),
                    ("no_parse", Value::Array(Vec::new())),
                ]);
                self.teller.start_runner(caller, load).await
            }
        }
    }
}
