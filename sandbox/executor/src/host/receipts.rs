//! `brine:host/receipts`: the receipts of this host's jobs, from the broker.

use brine_sandbox_wire::{HostOp, ReceiptsOp};
use wasmtime::component::HasSelf;

use super::Links;
use super::bindings::brine::host::receipts::{Data, Host, add_to_linker};
use crate::guest::Guest;

pub(super) const LINKS: Links =
    &[("brine:host/receipts", |linker| add_to_linker::<_, HasSelf<Guest>>(linker, |guest| guest))];

impl Host for Guest {
    async fn page(&mut self, place: String, jid: String, evidence: bool) -> wasmtime::Result<Result<Data, String>> {
        self.receipts("receipts.page", ReceiptsOp::Page { place, jid, evidence }).await
    }

    async fn verify(&mut self) -> wasmtime::Result<Result<Data, String>> {
        self.receipts("receipts.verify", ReceiptsOp::Verify).await
    }
}

impl Guest {
    async fn receipts(&mut self, what: &'static str, op: ReceiptsOp) -> wasmtime::Result<Result<Data, String>> {
        match self.ask(what, HostOp::Receipts(op)).await? {
            Ok(value) => Ok(Ok(super::data(what, value)?)),
            Err(error) => Ok(Err(error)),
        }
    }
}
