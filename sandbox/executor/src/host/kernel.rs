//! `brine:host/kernel`: what the kernel says of this host, from the broker.

use brine_sandbox_wire::{ByteBuf, HostOp, KernelOp};
use wasmtime::component::HasSelf;

use super::Links;
use super::bindings::brine::host::kernel::{Host, add_to_linker};
use crate::guest::Guest;

pub(super) const LINKS: Links =
    &[("brine:host/kernel", |linker| add_to_linker::<_, HasSelf<Guest>>(linker, |guest| guest))];

impl Host for Guest {
    async fn read(&mut self, table: String) -> wasmtime::Result<Result<Vec<u8>, String>> {
        let read = self.ask_for::<ByteBuf>("kernel.read", HostOp::Kernel(KernelOp::Read { table })).await?;
        Ok(read.map(ByteBuf::into_vec))
    }
}
