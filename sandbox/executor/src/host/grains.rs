//! `brine:host/grains`: facts about this host, from the broker.

use brine_sandbox_wire::{GrainsOp, HostOp};
use wasmtime::component::HasSelf;

use super::Links;
use super::bindings::brine::host::grains::{Data, Host, add_to_linker};
use crate::guest::Guest;

pub(super) const LINKS: Links =
    &[("brine:host/grains", |linker| add_to_linker::<_, HasSelf<Guest>>(linker, |guest| guest))];

impl Host for Guest {
    async fn items(&mut self) -> wasmtime::Result<Data> {
        let what = "grains.items";
        let value = self.ask_or_end(what, HostOp::Grains(GrainsOp::Items)).await?;
        Ok(super::data(what, value)?)
    }

    async fn get(&mut self, key: String, delimiter: Option<String>) -> wasmtime::Result<Option<Data>> {
        let what = "grains.get";
        let value = self.ask_or_end(what, HostOp::Grains(GrainsOp::Get { key, delimiter })).await?;
        Ok(super::optional(what, value)?)
    }
}
