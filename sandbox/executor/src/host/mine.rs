//! `brine:host/mine`: data that minions publish to other minions, through the broker.

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

    async fn publish_all(&mut self, values: Vec<(String, Data)>, clear: bool) -> wasmtime::Result<Result<(), String>> {
        for (name, data) in &values {
            if let Err(error) = msgpack::check(&data.msgpack) {
                return Ok(Err(format!("{name:?} is not one MessagePack value: {error}")));
            }
        }
        let values = values.into_iter().map(|(name, data)| (name, ByteBuf::from(data.msgpack))).collect();
        Ok(self.ask("mine.publish-all", HostOp::Mine(MineOp::PublishAll { values, clear })).await?.map(drop))
    }

    async fn delete(&mut self, name: String) -> wasmtime::Result<Result<(), String>> {
        Ok(self.ask("mine.delete", HostOp::Mine(MineOp::Delete { name })).await?.map(drop))
    }

    async fn flush(&mut self) -> wasmtime::Result<Result<(), String>> {
        Ok(self.ask("mine.flush", HostOp::Mine(MineOp::Flush)).await?.map(drop))
    }

    async fn get(
        &mut self,
        tgt: Data,
        tgt_type: String,
        names: Vec<String>,
        by_name: bool,
    ) -> wasmtime::Result<Result<Data, String>> {
        let what = "mine.get";
        if let Err(error) = msgpack::check(&tgt.msgpack) {
            return Ok(Err(format!("the target is not one MessagePack value: {error}")));
        }
        let tgt = ByteBuf::from(tgt.msgpack);
        Ok(match self.ask(what, HostOp::Mine(MineOp::Get { tgt, tgt_type, names, by_name })).await? {
            Ok(value) => Ok(super::data(what, value)?),
            Err(error) => Err(error),
        })
    }
}
