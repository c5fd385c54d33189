//! `brine:host/events`: events on the master's bus, asked of the broker.

use brine_sandbox_wire::{ByteBuf, EventsOp, HostOp};

use super::bindings::brine::host::events::{Data, Host};
use crate::guest::Guest;
use crate::value::msgpack;

impl Host for Guest {
    async fn fire(&mut self, tag: String, data: Data) -> wasmtime::Result<Result<(), String>> {
        if let Err(error) = msgpack::map(&data.msgpack) {
            return Ok(Err(format!("the data of an event is a dict with text for keys: {error}")));
        }
        let op = HostOp::Events(EventsOp::Fire { tag, data: ByteBuf::from(data.msgpack) });
        Ok(self.ask("events.fire", op).await?.map(drop))
    }
}
