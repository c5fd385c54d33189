//! `brine:host/config`: the minion's settings as far as they are public or granted, asked of the broker.

use brine_sandbox_wire::{ConfigOp, HostOp};

use super::bindings::brine::host::config::{Data, Host};
use crate::guest::Guest;

impl Host for Guest {
    async fn get(&mut self, key: String) -> wasmtime::Result<Option<Data>> {
        let what = "config.get";
        let value = self.ask_or_end(what, HostOp::Config(ConfigOp::Get { key })).await?;
        Ok(super::optional(what, value)?)
    }
}
