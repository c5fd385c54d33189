//! `brine:host/states`: runs states through the broker, each in an instance of its own.

use brine_sandbox_wire::{ByteBuf, Chunk, HostOp, StatesOp};
use wasmtime::component::HasSelf;

use super::Links;
use super::bindings::brine::host::states::{self as wit, Data, Ended, Host, add_to_linker};
use crate::guest::Guest;
use crate::value::msgpack::{self, Item, Reader};

pub(super) const LINKS: Links =
    &[("brine:host/states", |linker| add_to_linker::<_, HasSelf<Guest>>(linker, |guest| guest))];

impl From<wit::Chunk> for Chunk {
    fn from(chunk: wit::Chunk) -> Self {
        let wit::Chunk { state, tag, arguments, id, sls, saltenv, run_number, changed, test } = chunk;
        let arguments = ByteBuf::from(arguments.msgpack);
        Self { state, tag, arguments, id, sls, saltenv, run_number, changed, test }
    }
}

impl Host for Guest {
    async fn exists(&mut self, state: String) -> wasmtime::Result<bool> {
        let what = "states.exists";
        let value = self.ask_or_end(what, HostOp::States(StatesOp::Exists { state })).await?;
        Ok(super::truth(what, &value)?)
    }

    async fn run(&mut self, chunk: wit::Chunk) -> wasmtime::Result<Data> {
        let what = "states.run";
        let value = self.ask_or_end(what, HostOp::States(StatesOp::Run(chunk.into()))).await?;
        Ok(super::data(what, value)?)
    }

    async fn start(&mut self, chunk: wit::Chunk) -> wasmtime::Result<Result<u32, String>> {
        Ok(self.ask_for("states.start", HostOp::States(StatesOp::Start(chunk.into()))).await?)
    }

    async fn wait(&mut self, milliseconds: u64) -> wasmtime::Result<Option<Ended>> {
        let what = "states.wait";
        let value = self.ask_or_end(what, HostOp::States(StatesOp::Wait { milliseconds })).await?;
        if value == [0xc0] {
            return Ok(None);
        }
        let parts = msgpack::array(&value).map_err(|error| super::odd(what, &error))?;
        let ended = match &*parts {
            [number, result] => match Reader::new(number).item() {
                Ok(Item::Int(number)) => u32::try_from(number).ok().map(|number| (number, result.to_vec())),
                _ => None,
            },
            _ => None,
        };
        let Some((number, msgpack)) = ended else {
            let error = "the minion's answer is not a number and a result".into();
            return Err(crate::failure::HostFailure::Failed { what, error }.into());
        };
        Ok(Some(Ended { number, result: Data { msgpack } }))
    }

    async fn call(
        &mut self,
        function: String,
        args: Vec<Data>,
        kwargs: Data,
    ) -> wasmtime::Result<Result<Data, String>> {
        let operation = |call| HostOp::States(StatesOp::Call(call));
        self.call_function("states.call", function, &args, kwargs, operation).await
    }

    async fn settings(&mut self) -> wasmtime::Result<Result<Data, String>> {
        let what = "states.settings";
        match self.ask(what, HostOp::States(StatesOp::Settings)).await? {
            Ok(value) => Ok(Ok(super::data(what, value)?)),
            Err(error) => Ok(Err(error)),
        }
    }

    async fn use_pillar(&mut self, pillar: Data) -> wasmtime::Result<Result<(), String>> {
        let pillar = ByteBuf::from(pillar.msgpack);
        let taken = self.ask("states.use-pillar", HostOp::States(StatesOp::UsePillar { pillar })).await?;
        Ok(taken.map(drop))
    }

    async fn keep(&mut self, tag: String, result: Data) -> wasmtime::Result<()> {
        let result = ByteBuf::from(result.msgpack);
        self.ask_or_end("states.keep", HostOp::States(StatesOp::Keep { tag, result })).await?;
        Ok(())
    }
}
