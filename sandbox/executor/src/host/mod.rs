//! The imports of a guest: one file for each interface of `wit/`, with the same name, and [`wasi`].
//!
//! Each capability has a file of its name, which declares how its interfaces are linked. `log` and `job` are
//! implemented here, and `metadata` mostly with the granted directories. The other interfaces send requests to the
//! minion's broker, which checks every argument again. [`recorded`] has the same interfaces for calls that are recorded.

pub mod beacons;
pub mod changes;
pub mod config;
pub mod disks;
pub mod events;
pub mod files;
pub mod filesystem;
pub mod functions;
pub mod grains;
pub mod http;
pub mod job;
pub mod jobs;
pub mod kernel;
pub mod log;
pub mod metadata;
pub mod mine;
pub mod modules;
pub mod network;
pub mod pillar;
pub mod policy;
pub mod process;
pub mod progress;
pub mod publish;
pub mod receipts;
pub mod recorded;
pub mod schedule;
pub mod sockets;
pub mod states;
pub mod static_grains;
pub mod unconnected;
pub mod wasi;
pub mod watches;

use wasmtime::component::Linker;

use crate::failure::HostFailure;
use crate::guest::Guest;
use crate::value::msgpack::{self, Item, Reader};

/// An interface, without version, and the function that adds it to a linker.
type Link = (&'static str, fn(&mut Linker<Guest>) -> wasmtime::Result<()>);
/// The interfaces of one capability.
pub type Links = &'static [Link];

macro_rules! link {
    ($($capability:ident in $module:ident: $($op:ident($type:ident)),+;)+) => {
        /// The interfaces that need a grant.
        pub const GRANTABLE: &[Links] = &[$($module::LINKS),+];
    };
}

brine_capabilities::each_capability!(link);

/// The interfaces of `wit/`, as traits that [`crate::guest::Guest`] implements.
#[expect(missing_docs, reason = "made from WIT, which documents them")]
pub mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit",
        inline: "
            package brine:executor;
            world host {
                import brine:host/log@1.0.0;
                import brine:host/job@1.0.0;
                import brine:host/grains@1.0.0;
                import brine:host/static-grains@1.0.0;
                import brine:host/config@1.0.0;
                import brine:host/modules@1.0.0;
                import brine:host/jobs@1.0.0;
                import brine:host/process@1.0.0;
                import brine:host/changes@1.0.0;
                import brine:host/watches@1.0.0;
                import brine:host/functions@1.0.0;
                import brine:host/files@1.0.0;
                import brine:host/http@1.0.0;
                import brine:host/pillar@1.0.0;
                import brine:host/events@1.0.0;
                import brine:host/mine@1.0.0;
                import brine:host/metadata@1.0.0;
                import brine:host/disks@1.0.0;
                import brine:host/policy@1.0.0;
                import brine:host/progress@1.0.0;
                import brine:host/schedule@1.0.0;
                import brine:host/states@1.0.0;
                import brine:host/kernel@1.0.0;
                import brine:host/beacons@1.0.0;
                import brine:host/receipts@1.0.0;
                import brine:host/publish@1.0.0;
            }
        ",
        imports: {
            "brine:host/log@1.0.0": trappable,
            "brine:host/job@1.0.0": trappable,
            default: async | trappable,
        },
    });
}

use bindings::brine::host::types::Data;

impl bindings::brine::host::types::Host for Guest {}

/// The broker's reply as `data`. It is checked, because a guest may rely on one valid value.
fn data(what: &'static str, value: Vec<u8>) -> Result<Data, HostFailure> {
    checked(what, &value)?;
    Ok(Data { msgpack: value })
}

/// The broker's reply as `data`; nil becomes none.
fn optional(what: &'static str, value: Vec<u8>) -> Result<Option<Data>, HostFailure> {
    if value == [0xc0] { Ok(None) } else { data(what, value).map(Some) }
}

/// The broker's reply as a boolean.
fn truth(what: &'static str, value: &[u8]) -> Result<bool, HostFailure> {
    match Reader::new(value).item() {
        Ok(Item::Bool(truth)) if value.len() == 1 => Ok(truth),
        _ => Err(HostFailure::Failed { what, error: "the minion's answer is not a truth value".into() }),
    }
}

/// The broker's reply, deserialized.
fn parsed<T: serde::de::DeserializeOwned>(what: &'static str, value: &[u8]) -> Result<T, HostFailure> {
    checked(what, value)?;
    let odd = |error: rmp_serde::decode::Error| HostFailure::Failed {
        what,
        error: format!("the minion's answer has another shape: {error}"),
    };
    rmp_serde::from_slice(value).map_err(odd)
}

fn checked(what: &'static str, value: &[u8]) -> Result<(), HostFailure> {
    msgpack::check(value).map(drop).map_err(|error| odd(what, &error))
}

fn odd(what: &'static str, error: &msgpack::Malformed) -> HostFailure {
    HostFailure::Failed { what, error: format!("the minion's answer is malformed: {error}") }
}

impl Guest {
    /// Sends a request to the broker, for functions that can return an error.
    async fn ask_for<T: serde::de::DeserializeOwned>(
        &mut self,
        what: &'static str,
        op: brine_sandbox_wire::HostOp,
    ) -> Result<Result<T, String>, HostFailure> {
        match self.ask(what, op).await? {
            Ok(value) => parsed(what, &value).map(Ok),
            Err(error) => Ok(Err(error)),
        }
    }
}
