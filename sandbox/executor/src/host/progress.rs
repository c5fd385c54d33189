//! `brine:host/progress`: the progress of a job, reported through the broker.

use brine_sandbox_wire::{ByteBuf, HostOp, ProgressOp};
use wasmtime::component::HasSelf;

use super::Links;
use super::bindings::brine::host::progress::{Data, Host, add_to_linker};
use crate::guest::Guest;
use crate::value::msgpack;

pub(super) const LINKS: Links =
    &[("brine:host/progress", |linker| add_to_linker::<_, HasSelf<Guest>>(linker, |guest| guest))];

impl Host for Guest {
    async fn report(&mut self, value: Data) -> wasmtime::Result<Result<(), String>> {
        if let Err(error) = msgpack::check(&value.msgpack) {
            return Ok(Err(format!("the progress is not one MessagePack value: {error}")));
        }
        let op = HostOp::Progress(ProgressOp::Report { value: ByteBuf::from(value.msgpack) });
        Ok(self.ask("progress.report", op).await?.map(drop))
    }
}
