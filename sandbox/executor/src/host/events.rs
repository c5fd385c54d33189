//! `brine:host/events`: events on the master's bus, fired through the broker.

use brine_sandbox_wire::{ByteBuf, EventsOp, HostOp};
use wasmtime::component::HasSelf;

use super::Links;
use super::bindings::brine::host::events::{Data, Host, add_to_linker};
use crate::guest::Guest;
use crate::value::msgpack;

pub(super) const LINKS: Links =
    &[("brine:host/events", |linker| add_to_linker::<_, HasSelf<Guest>>(linker, |guest| guest))];

impl Host for Guest {
    async fn fire(&mut self, tag: String, data: Data) -> wasmtime::Result<Result<(), String>> {
        if let Err(error) = msgpack::map(&data.msgpack) {
            return Ok(Err(format!("the data of an event is a dict with text for keys: {error}")));
        }
        let op = HostOp::Events(EventsOp::Fire { tag, data: ByteBuf::from(data.msgpack) });
        Ok(self.ask("events.fire", op).await?.map(drop))
    }
}
