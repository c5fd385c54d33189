//! `brine:host/beacons`: the beacons of this minion, from the broker.

use brine_sandbox_wire::{BeaconEdit, BeaconsOp, ByteBuf, HostOp};
use serde::Deserialize;
use wasmtime::component::HasSelf;

use super::bindings::brine::host::beacons::{Edit, Edited, Host, Saved, add_to_linker};
use super::bindings::brine::host::types::Data;
use super::{Links, data};
use crate::guest::Guest;

pub(super) const LINKS: Links =
    &[("brine:host/beacons", |linker| add_to_linker::<_, HasSelf<Guest>>(linker, |guest| guest))];

#[derive(Deserialize)]
struct Changed {
    complete: bool,
    comment: String,
    beacons: ByteBuf,
}

#[derive(Deserialize)]
struct Written {
    path: String,
    written: bool,
}

impl From<Edit> for BeaconEdit {
    fn from(edit: Edit) -> Self {
        match edit {
            Edit::Put((name, config)) => Self::Put { name, config: ByteBuf::from(config.msgpack) },
            Edit::Delete(name) => Self::Delete { name },
            Edit::Enable(on) => Self::Enable(on),
            Edit::EnableBeacon((name, on)) => Self::EnableBeacon { name, on },
            Edit::Reset => Self::Reset,
        }
    }
}

impl Host for Guest {
    async fn list(&mut self, pillar: bool, configuration: bool) -> wasmtime::Result<Result<Data, String>> {
        let what = "beacons.list";
        match self.ask(what, HostOp::Beacons(BeaconsOp::List { pillar, configuration })).await? {
            Ok(value) => Ok(Ok(data(what, value)?)),
            Err(error) => Ok(Err(error)),
        }
    }

    async fn available(&mut self) -> wasmtime::Result<Result<Vec<String>, String>> {
        Ok(self.ask_for("beacons.available", HostOp::Beacons(BeaconsOp::Available)).await?)
    }

    async fn validate(&mut self, name: String, config: Data) -> wasmtime::Result<Result<(bool, String), String>> {
        let op = BeaconsOp::Validate { name, config: ByteBuf::from(config.msgpack) };
        Ok(self.ask_for("beacons.validate", HostOp::Beacons(op)).await?)
    }

    async fn change(&mut self, edit: Edit) -> wasmtime::Result<Result<Edited, String>> {
        let what = "beacons.change";
        let op = HostOp::Beacons(BeaconsOp::Change(edit.into()));
        match self.ask_for::<Changed>(what, op).await? {
            Ok(Changed { complete, comment, beacons }) => {
                Ok(Ok(Edited { complete, comment, beacons: data(what, beacons.into_vec())? }))
            }
            Err(error) => Ok(Err(error)),
        }
    }

    async fn save(&mut self) -> wasmtime::Result<Result<Saved, String>> {
        let saved = self.ask_for::<Written>("beacons.save", HostOp::Beacons(BeaconsOp::Save)).await?;
        Ok(saved.map(|Written { path, written }| Saved { path, written }))
    }
}
