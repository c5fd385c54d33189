//! `brine:host/progress`: reports the progress of a job, as Salt does for a generator function (PROTOCOL §6.2).

use brine_protocol::msgpack;
use brine_protocol::value::{Value, map};
use brine_sandbox::{Caller, HostError, ProgressOp};

use super::events::decode;
use super::{MinionBroker, Perform};

/// Bounds on one progress value.
const DATA: msgpack::Limits = msgpack::Limits { max_bytes: 16 << 10, max_depth: 64, max_items: 1_000 };

impl Perform<ProgressOp> for MinionBroker {
    async fn perform(&self, caller: &Caller, op: ProgressOp) -> Result<Value, HostError> {
        let ProgressOp::Report { value } = op;
        let value = decode(&value, &DATA)?;
        self.teller.progress(caller, map([("return", value)])).await
    }
}
