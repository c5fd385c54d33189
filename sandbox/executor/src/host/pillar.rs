//! `brine:host/pillar`: the granted keys of this minion's pillar, from the broker.

use brine_sandbox_wire::{ByteBuf, HostOp, PillarOp};
use wasmtime::component::HasSelf;

use super::Links;
use super::bindings::brine::host::pillar::{Data, Host, Wanted, add_to_linker};
use crate::guest::Guest;
use crate::value::msgpack;

pub(super) const LINKS: Links =
    &[("brine:host/pillar", |linker| add_to_linker::<_, HasSelf<Guest>>(linker, |guest| guest))];

impl Host for Guest {
    async fn items(&mut self) -> wasmtime::Result<Result<Data, String>> {
        let what = "pillar.items";
        Ok(match self.ask(what, HostOp::Pillar(PillarOp::Items)).await? {
            Ok(value) => Ok(super::data(what, value)?),
            Err(error) => Err(error),
        })
    }

    async fn fetch(&mut self) -> wasmtime::Result<Result<Data, String>> {
        let what = "pillar.fetch";
        Ok(match self.ask(what, HostOp::Pillar(PillarOp::Fetch)).await? {
            Ok(value) => Ok(super::data(what, value)?),
            Err(error) => Err(error),
        })
    }

    async fn compile(&mut self, wanted: Wanted) -> wasmtime::Result<Result<Data, String>> {
        let what = "pillar.compile";
        let Wanted { pillarenv, saltenv, overrides } = wanted;
        if let Some(overrides) = &overrides
            && let Err(error) = msgpack::map(&overrides.msgpack)
        {
            return Ok(Err(format!("values for the pillar are a dict with text for keys: {error}")));
        }
        let overrides = overrides.map(|overrides| ByteBuf::from(overrides.msgpack));
        Ok(match self.ask(what, HostOp::Pillar(PillarOp::Compile { pillarenv, saltenv, overrides })).await? {
            Ok(value) => Ok(super::data(what, value)?),
            Err(error) => Err(error),
        })
    }

    async fn get(&mut self, key: String, delimiter: Option<String>) -> wasmtime::Result<Result<Option<Data>, String>> {
        let what = "pillar.get";
        Ok(match self.ask(what, HostOp::Pillar(PillarOp::Get { key, delimiter })).await? {
            Ok(value) => Ok(super::optional(what, value)?),
            Err(error) => Err(error),
        })
    }
}
