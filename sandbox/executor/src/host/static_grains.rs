//! `brine:host/static-grains`: writes this host's static grains, through the broker.

use brine_sandbox_wire::{ByteBuf, HostOp, StaticGrainsOp};
use wasmtime::component::HasSelf;

use super::Links;
use super::bindings::brine::host::static_grains::{Data, Host, add_to_linker};
use crate::guest::Guest;
use crate::value::msgpack;

pub(super) const LINKS: Links =
    &[("brine:host/static-grains", |linker| add_to_linker::<_, HasSelf<Guest>>(linker, |guest| guest))];

impl Host for Guest {
    async fn write(
        &mut self,
        changes: Vec<(String, Option<Data>)>,
        refresh_pillar: bool,
    ) -> wasmtime::Result<Result<(), String>> {
        for (name, value) in &changes {
            if let Some(value) = value
                && let Err(error) = msgpack::check(&value.msgpack)
            {
                return Ok(Err(format!("the grain {name:?} is not one MessagePack value: {error}")));
            }
        }
        let changes =
            changes.into_iter().map(|(name, value)| (name, value.map(|value| ByteBuf::from(value.msgpack)))).collect();
        let op = HostOp::StaticGrains(StaticGrainsOp::Write { changes, refresh_pillar });
        Ok(self.ask("static-grains.write", op).await?.map(drop))
    }
}
