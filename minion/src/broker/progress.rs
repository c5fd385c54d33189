//! `brine:host/progress`: how far a job is, as Salt tells of a job with a generator function (PROTOCOL §6.2).

use brine_protocol::msgpack;
use brine_protocol::value::{Value, map};
use brine_sandbox::{Caller, HostError, ProgressOp};

use super::events::decode;
use super::{MinionBroker, Perform};

/// One value.
const DATA: msgpack::Limits = msgpack::Limits { max_bytes: 16 << 10, max_depth: 64, max_items: 1_000 };

impl Perform<ProgressOp> for MinionBroker {
    async fn perform(&self, caller: &Caller, op: ProgressOp) -> Result<Value, HostError> {
        let ProgressOp::Report { value } = op;
        let value = decode(&value, &DATA)?;
        self.teller.progress(caller, map([("return", value)])).await
    }
}
