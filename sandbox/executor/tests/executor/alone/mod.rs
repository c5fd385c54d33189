//! A guest without an executor process; the tests call it as the engine does.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::sync::Arc;

use brine_executor::directories::Directories;
use brine_executor::guest::Guest;
use brine_executor::line::Line;
use brine_sandbox_wire::{DirectGrants, Directory, JobContext, Limits, NetworkRule, Run, Sha256Hex};
use wasmtime::component::Resource;
use wasmtime_wasi::filesystem::Descriptor;

/// A guest of this module with these limits and connections.
pub(crate) fn connecting(module: &str, limits: Limits, network: Vec<NetworkRule>) -> Guest {
    let mut run = Run {
        call: 1,
        module: Sha256Hex::from([0; 32]),
        function: "f".into(),
        args: vec![0x90],
        kwargs: vec![0x80],
        context: JobContext::default(),
        limits,
        imports_granted: Vec::new(),
        direct: DirectGrants { network, ..DirectGrants::default() },
        would_write: Vec::new(),
        record: None,
        foreseen: Vec::new(),
    };
    Guest::new(Arc::new(Line::new(1, 1 << 16, 1_000)), &module.into(), &mut run)
}

/// A guest of this module with these directories, and the notes about them.
pub(crate) fn guest(module: &str, limits: Limits, granted: &[Directory]) -> (Guest, Vec<String>) {
    let mut guest = connecting(module, limits, Vec::new());
    let (directories, said) = Directories::open(granted);
    guest.files.directories = directories;
    (guest, said)
}

/// The same guest for another call.
pub(crate) fn same(fd: &Resource<Descriptor>) -> Resource<Descriptor> {
    Resource::new_borrow(fd.rep())
}
