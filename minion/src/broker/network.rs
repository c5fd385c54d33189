//! `brine:host/http` and `wasi:sockets/ip-name-lookup`: requests and names, by the crate `brine-egress`.

use brine_protocol::value::Value;
use brine_sandbox::{Caller, HostError, HttpOp, NetworkOp};

use super::{MinionBroker, Perform};

impl Perform<NetworkOp> for MinionBroker {
    async fn perform(&self, caller: &Caller, op: NetworkOp) -> Result<Value, HostError> {
        brine_egress::resolve(self, &*self.resolver, caller, op).await
    }
}

impl Perform<HttpOp> for MinionBroker {
    async fn perform(&self, caller: &Caller, op: HttpOp) -> Result<Value, HostError> {
        self.http.answer(self, caller, op).await
    }
}
