//! `brine:host/mine`: what this minion shows to others, asked of the broker.

use brine_sandbox_wire::{ByteBuf, HostOp, MineOp};

use super::bindings::brine::host::mine::{Data, Host};
use crate::guest::Guest;
use crate::value::msgpack;

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
