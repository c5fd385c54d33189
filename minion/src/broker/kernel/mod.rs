//! `brine:host/kernel`: the kernel's tables of this host.
//!
//! - [`interfaces`] the network interfaces, of which the kernel has no file

mod interfaces;

use std::io::Read as _;

use brine_protocol::value::{Value, bytes};
use brine_sandbox::{Caller, HostError, KernelOp};

use super::{MinionBroker, Perform};

/// Upper bound on the bytes of a table. That of a host with 512 processors has some 700 KB.
const MAX_TABLE: u64 = 4 << 20;
/// Upper bound on the processes that are looked at.
const MAX_PROCESSES: usize = 100_000;
/// The kernel keeps so many bytes of a process's name.
const KEPT: usize = 15;
/// Those of the kernel's own workers are longer, up to this with the end of the line.
const MAX_KEPT: usize = 128;

impl Perform<KernelOp> for MinionBroker {
    async fn perform(&self, _: &Caller, op: KernelOp) -> Result<Value, HostError> {
        // The name is one of a list: it was checked.
        let small = op.is_small();
        let KernelOp::Read { table } = op;
        if small {
            return read(&table).map(bytes);
        }
        let read = tokio::task::spawn_blocking(move || read(&table));
        read.await.map_err(|_| HostError::Failed("the minion failed".to_owned()))?.map(bytes)
    }
}

fn read(table: &str) -> Result<Vec<u8>, HostError> {
    let read = match table {
        "localtime" => Ok(jiff::Zoned::now().strftime("%Y-%m-%dT%H:%M:%S%:z").to_string().into_bytes()),
        "interfaces" => interfaces::table(),
        "processes" => processes(),
        file => whole(&format!("/proc/{file}")),
    };
    read.map_err(|error| HostError::Failed(format!("{table} cannot be read: {error}")))
}

fn whole(path: &str) -> std::io::Result<Vec<u8>> {
    let mut content = Vec::new();
    std::fs::File::open(path)?.take(MAX_TABLE).read_to_end(&mut content)?;
    Ok(content)
}

/// The names of all processes, each ended by a NUL byte.
fn processes() -> std::io::Result<Vec<u8>> {
    let mut all = Vec::new();
    for item in std::fs::read_dir("/proc")?.flatten().take(MAX_PROCESSES) {
        let pid = item.file_name();
        let Some(pid) = pid.to_str().filter(|name| name.bytes().all(|b| b.is_ascii_digit())) else { continue };
        // One that ended meanwhile has no name.
        let Ok(mut name) = kept_name(pid) else { continue };
        while name.last() == Some(&b'\n') {
            name.pop();
        }
        if name.len() >= KEPT
            && let Some(full) = full_name(pid, &name)
        {
            name = full;
        }
        name.retain(|byte| *byte != 0);
        all.extend(name);
        all.push(0);
    }
    Ok(all)
}

/// The name that the kernel keeps of a process. One read is enough, and there are many processes.
fn kept_name(pid: &str) -> std::io::Result<Vec<u8>> {
    let mut name = [0; MAX_KEPT];
    let length = std::fs::File::open(format!("/proc/{pid}/comm"))?.read(&mut name)?;
    Ok(name[..length].to_vec())
}

/// The name of the program, if the kernel's is its beginning. Of the arguments nothing else is given away.
fn full_name(pid: &str, kept: &[u8]) -> Option<Vec<u8>> {
    let arguments = whole(&format!("/proc/{pid}/cmdline")).ok()?;
    let program = arguments.split(|byte| *byte == 0).next()?;
    let name = program.rsplit(|byte| *byte == b'/').next()?;
    name.starts_with(kept).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_have_the_whole_names_of_their_programs() {
        let own = std::env::current_exe().unwrap();
        let own = own.file_name().unwrap().to_str().unwrap().as_bytes();
        let all = processes().unwrap();
        assert_eq!(all.last(), Some(&0));
        assert!(all.split(|byte| *byte == 0).any(|name| name == own), "{}", String::from_utf8_lossy(&all));
    }
}
