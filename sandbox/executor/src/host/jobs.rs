//! `brine:host/jobs`: the minion's running jobs, from the broker.

use brine_sandbox_wire::{HostOp, JobsOp};
use wasmtime::component::HasSelf;

use super::Links;
use super::bindings::brine::host::jobs::{Data, Host, add_to_linker};
use crate::guest::Guest;

pub(super) const LINKS: Links =
    &[("brine:host/jobs", |linker| add_to_linker::<_, HasSelf<Guest>>(linker, |guest| guest))];

impl Host for Guest {
    async fn running(&mut self) -> wasmtime::Result<Data> {
        let what = "jobs.running";
        let value = self.ask_or_end(what, HostOp::Jobs(JobsOp::Running)).await?;
        Ok(super::data(what, value)?)
    }

    async fn find(&mut self, jid: String) -> wasmtime::Result<Data> {
        let what = "jobs.find";
        let value = self.ask_or_end(what, HostOp::Jobs(JobsOp::Find { jid })).await?;
        Ok(super::data(what, value)?)
    }

    async fn kill(&mut self, jid: String) -> wasmtime::Result<bool> {
        let what = "jobs.kill";
        let value = self.ask_or_end(what, HostOp::Jobs(JobsOp::Kill { jid })).await?;
        Ok(super::truth(what, &value)?)
    }
}
