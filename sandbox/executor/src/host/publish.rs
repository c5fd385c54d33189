//! `brine:host/publish`: jobs for other minions and runners of the master, through the broker.

use brine_sandbox_wire::{ByteBuf, HostOp, PublishOp};
use serde::Deserialize;
use wasmtime::component::HasSelf;

use super::Links;
use super::bindings::brine::host::publish::{Data, Host, Published, add_to_linker};
use crate::guest::Guest;
use crate::value::msgpack;

pub(super) const LINKS: Links =
    &[("brine:host/publish", |linker| add_to_linker::<_, HasSelf<Guest>>(linker, |guest| guest))];

#[derive(Deserialize)]
struct Job {
    jid: String,
    minions: Vec<String>,
}

fn bytes(values: Vec<Data>) -> Result<Vec<ByteBuf>, String> {
    let checked = |value: Data| match msgpack::check(&value.msgpack) {
        Ok(_) => Ok(ByteBuf::from(value.msgpack)),
        Err(error) => Err(format!("an argument is not one MessagePack value: {error}")),
    };
    values.into_iter().map(checked).collect()
}

impl Host for Guest {
    async fn job(
        &mut self,
        target: Data,
        tgt_type: String,
        function: String,
        arguments: Vec<Data>,
        returner: String,
        timeout: u32,
    ) -> wasmtime::Result<Result<Option<Published>, String>> {
        if let Err(error) = msgpack::check(&target.msgpack) {
            return Ok(Err(format!("the target is not one MessagePack value: {error}")));
        }
        let args = match bytes(arguments) {
            Ok(args) => args,
            Err(error) => return Ok(Err(error)),
        };
        let tgt = ByteBuf::from(target.msgpack);
        let op = HostOp::Publish(PublishOp::Job { tgt, tgt_type, function, args, returner, timeout });
        let what = "publish.job";
        Ok(match self.ask(what, op).await? {
            Ok(value) => {
                let job: Option<Job> = super::parsed(what, &value)?;
                Ok(job.map(|Job { jid, minions }| Published { jid, minions }))
            }
            Err(error) => Err(error),
        })
    }

    async fn returns(&mut self, jid: String) -> wasmtime::Result<Result<Data, String>> {
        self.publish("publish.returns", PublishOp::Returns { jid }).await
    }

    async fn runner(
        &mut self,
        function: String,
        arguments: Vec<Data>,
        timeout: u32,
    ) -> wasmtime::Result<Result<Data, String>> {
        match bytes(arguments) {
            Ok(args) => self.publish("publish.runner", PublishOp::Runner { function, args, timeout }).await,
            Err(error) => Ok(Err(error)),
        }
    }
}

impl Guest {
    async fn publish(&mut self, what: &'static str, op: PublishOp) -> wasmtime::Result<Result<Data, String>> {
        Ok(match self.ask(what, HostOp::Publish(op)).await? {
            Ok(value) => Ok(super::data(what, value)?),
            Err(error) => Err(error),
        })
    }
}
