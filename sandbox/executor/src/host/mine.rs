//! `brine:host/mine`: data that this minion publishes to other minions, through the broker.

use brine_sandbox_wire::{ByteBuf, HostOp, MineOp};
use wasmtime::component::HasSelf;

use super::Links;
use super::bindings::brine::host::mine::{Data, Host, add_to_linker};
use crate::guest::Guest;
use crate::value::msgpack;

pub(super) const LINKS: Links =
    &[("brine:host/mine", |linker| add_to_linker::<_, HasSelf<Guest>>(linker, |guest| guest))];

impl Host for Guest {
    async fn publish(&mut self, name: String, data: Data) -> wasmtime::Result<Result<(), String>> {
        if let Err(error) = msgpack::check(&data.msgpack) {
            return Ok(Err(format!("what is published is not one MessagePack value: {error}")));
        }
        let op = HostOp::Mine(MineOp::Publish { name, data: ByteBuf::from(data.msgpack) });
        Ok(self.ask("mine.publish", op).await?.map(drop))
    }

    async fn delete(&mut self, name: String) -> wasmtime::Result<Result<(), String>> {
        Ok(self.ask("mine.delete", HostOp::Mine(MineOp::Delete { name })).await?.map(drop))
    }
}
