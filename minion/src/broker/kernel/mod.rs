//! `brine:host/kernel`: the kernel's tables of this host.
//!
//! - [`figures`] parts of tables · [`processes`] what runs · [`names`] the names alone
//! - [`crate::interfaces`] the network interfaces, of which the kernel has no file

mod figures;
mod names;
mod processes;

use std::io::{Error, ErrorKind, Read as _};
use std::path::Path;
use std::sync::Arc;

use brine_protocol::value::{Value, bytes};
use brine_sandbox::{Caller, HostError, KernelOp};

use super::{MinionBroker, Perform};
use crate::interfaces;
pub(super) use names::Names;

/// Upper bound on the bytes of a table. That of a host with 512 processors has some 700 KB.
const MAX_TABLE: u64 = 4 << 20;
/// Upper bound on the bytes of a public key in PEM.
const MAX_PEM: u64 = 64 << 10;

impl Perform<KernelOp> for MinionBroker {
    async fn perform(&self, _: &Caller, op: KernelOp) -> Result<Value, HostError> {
        // The name is one of a list: it was checked.
        let small = op.is_small();
        let KernelOp::Read { table } = op;
        let pki = self.opts.pki_dir.clone();
        if table == "process-list" {
            return self.process_list().await.map(bytes);
        }
        if small {
            return read(&table, &pki).map(bytes);
        }
        let names = Arc::clone(&self.process_names);
        let read = tokio::task::spawn_blocking(move || match &*table {
            "processes" => names.table().map_err(|error| failed(&table, &error)),
            _ => read(&table, &pki),
        });
        read.await.map_err(|_| HostError::Failed("the minion failed".to_owned()))?.map(bytes)
    }
}

fn read(table: &str, pki: &Path) -> Result<Vec<u8>, HostError> {
    let read = match table {
        "localtime" => Ok(jiff::Zoned::now().strftime("%Y-%m-%dT%H:%M:%S%:z").to_string().into_bytes()),
        "minion.pub" | "minion_master.pub" => public_key(&pki.join(table)),
        "interfaces" => interfaces::table(),
        "load-averages" => whole("/proc/loadavg").map(|loadavg| figures::load_averages(&loadavg)),
        "memory-used" => whole("/proc/meminfo").and_then(|meminfo| {
            figures::memory_used(&meminfo).ok_or_else(|| Error::other("the kernel does not say how much there is"))
        }),
        "process-arguments" => processes::arguments(),
        file => whole(&format!("/proc/{file}")),
    };
    read.map_err(|error| failed(table, &error))
}

fn failed(table: &str, error: &Error) -> HostError {
    HostError::Failed(format!("{table} cannot be read: {error}"))
}

/// A public key in PEM, empty if there is none yet.
fn public_key(path: &Path) -> std::io::Result<Vec<u8>> {
    match brine_files::read_named_text(path, MAX_PEM) {
        Ok(pem) => Ok(pem.into_bytes()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

fn whole(path: &str) -> std::io::Result<Vec<u8>> {
    let mut content = Vec::new();
    std::fs::File::open(path)?.take(MAX_TABLE).read_to_end(&mut content)?;
    Ok(content)
}
