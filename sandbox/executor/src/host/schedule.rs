//! `brine:host/schedule`: the jobs that the minion starts by itself, through the broker.

use brine_sandbox_wire::{ByteBuf, HostOp, ScheduleChange, ScheduleOp, SchedulePlace};
use wasmtime::component::HasSelf;

use super::Links;
use super::bindings::brine::host::schedule::{Change, Data, Host, Place, add_to_linker};
use crate::guest::Guest;
use crate::value::msgpack;

pub(super) const LINKS: Links =
    &[("brine:host/schedule", |linker| add_to_linker::<_, HasSelf<Guest>>(linker, |guest| guest))];

impl Guest {
    async fn ask_schedule(&mut self, what: &'static str, op: ScheduleOp) -> wasmtime::Result<Result<Data, String>> {
        Ok(match self.ask(what, HostOp::Schedule(op)).await? {
            Ok(value) => Ok(super::data(what, value)?),
            Err(error) => Err(error),
        })
    }
}

impl Host for Guest {
    async fn jobs(&mut self, place: Place) -> wasmtime::Result<Result<Data, String>> {
        let place = match place {
            Place::Opts => SchedulePlace::Opts,
            Place::Pillar => SchedulePlace::Pillar,
            Place::All => SchedulePlace::All,
        };
        self.ask_schedule("schedule.list", ScheduleOp::List { place }).await
    }

    async fn saved(&mut self) -> wasmtime::Result<Result<Data, String>> {
        self.ask_schedule("schedule.saved", ScheduleOp::Saved).await
    }

    async fn status(&mut self, name: String, time_format: String) -> wasmtime::Result<Result<Data, String>> {
        self.ask_schedule("schedule.status", ScheduleOp::Status { name, time_format }).await
    }

    async fn update(&mut self, change: Change, persist: bool) -> wasmtime::Result<Result<Data, String>> {
        let bytes = |data: Data| match msgpack::check(&data.msgpack) {
            Ok(_) => Ok(ByteBuf::from(data.msgpack)),
            Err(error) => Err(format!("the jobs are not one MessagePack value: {error}")),
        };
        let change = match change {
            Change::Add(data) => bytes(data).map(ScheduleChange::Add),
            Change::Modify((name, data)) => bytes(data).map(|data| ScheduleChange::Modify(name, data)),
            Change::Delete(name) => Ok(ScheduleChange::Delete(name)),
            Change::Enable(enabled) => Ok(ScheduleChange::Enable(enabled)),
            Change::EnableJob((name, enabled)) => Ok(ScheduleChange::EnableJob(name, enabled)),
            Change::Postpone((name, data)) => bytes(data).map(|data| ScheduleChange::Postpone(name, data)),
            Change::Reload(data) => bytes(data).map(ScheduleChange::Reload),
            Change::Run(name) => Ok(ScheduleChange::Run(name)),
            Change::Save => Ok(ScheduleChange::Save),
            Change::ReplaceSaved(data) => bytes(data).map(ScheduleChange::ReplaceSaved),
        };
        match change {
            Ok(change) => self.ask_schedule("schedule.update", ScheduleOp::Update { change, persist }).await,
            Err(error) => Ok(Err(error)),
        }
    }

    async fn is_date(&mut self, text: String, format: Option<String>) -> wasmtime::Result<Result<bool, String>> {
        let what = "schedule.is-date";
        Ok(match self.ask(what, HostOp::Schedule(ScheduleOp::IsDate { text, format })).await? {
            Ok(value) => Ok(super::truth(what, &value)?),
            Err(error) => Err(error),
        })
    }
}
