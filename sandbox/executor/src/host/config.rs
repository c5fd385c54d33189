//! `brine:host/config`: the public or granted settings of the minion, from the broker.

use brine_sandbox_wire::{ConfigOp, HostOp};
use wasmtime::component::HasSelf;

use super::Links;
use super::bindings::brine::host::config::{Data, Host, add_to_linker};
use crate::guest::Guest;

pub(super) const LINKS: Links =
    &[("brine:host/config", |linker| add_to_linker::<_, HasSelf<Guest>>(linker, |guest| guest))];

impl Host for Guest {
    async fn get(&mut self, key: String) -> wasmtime::Result<Option<Data>> {
        let what = "config.get";
        let value = self.ask_or_end(what, HostOp::Config(ConfigOp::Get { key })).await?;
        Ok(super::optional(what, value)?)
    }

    async fn items(&mut self) -> wasmtime::Result<Data> {
        let what = "config.items";
        let value = self.ask_or_end(what, HostOp::Config(ConfigOp::Items)).await?;
        Ok(super::data(what, value)?)
    }
}
