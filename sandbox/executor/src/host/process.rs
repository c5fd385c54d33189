//! `brine:host/process`: programs of this host, run by the broker.

use brine_sandbox_wire::{ByteBuf, HostOp, ProcessOp, ProcessRun};
use serde::Deserialize;
use wasmtime::component::HasSelf;

use super::Links;
use super::bindings::brine::host::process as wit;
use crate::guest::Guest;

pub(super) const LINKS: Links =
    &[("brine:host/process", |linker| wit::add_to_linker::<_, HasSelf<Guest>>(linker, |guest| guest))];

#[derive(Deserialize)]
struct Finished {
    pid: u32,
    code: Option<i32>,
    signal: Option<i32>,
    stdout: ByteBuf,
    stderr: ByteBuf,
    stdout_dropped: u64,
    stderr_dropped: u64,
    timed_out: bool,
}

/// The answer to a probe.
#[derive(Deserialize)]
#[serde(untagged)]
enum Probed {
    Finished(Finished),
    Unable(String),
}

impl From<Finished> for wit::Finished {
    fn from(finished: Finished) -> Self {
        let Finished { pid, code, signal, stdout, stderr, stdout_dropped, stderr_dropped, timed_out } = finished;
        let (stdout, stderr) = (stdout.into_vec(), stderr.into_vec());
        Self { pid, code, signal, stdout, stderr, stdout_dropped, stderr_dropped, timed_out }
    }
}

impl From<wit::Command> for ProcessRun {
    fn from(command: wit::Command) -> Self {
        Self {
            argv: command.argv,
            cwd: command.cwd,
            env: command.env,
            clean_env: command.clean_env,
            stdin: command.stdin.map(ByteBuf::from),
            timeout_ms: command.timeout_ms,
            run_as: command.run_as,
            group: command.group,
            umask: command.umask,
            max_output: command.max_output,
            merge_stderr: command.merge_stderr,
        }
    }
}

impl wit::Host for Guest {
    async fn run(&mut self, command: wit::Command) -> wasmtime::Result<Result<wit::Finished, String>> {
        let op = HostOp::Process(ProcessOp::Run(Box::new(command.into())));
        Ok(self.ask_for::<Finished>("process.run", op).await?.map(Into::into))
    }

    async fn probe(&mut self, command: wit::Command) -> wasmtime::Result<Result<wit::Finished, wit::Unprobed>> {
        let op = HostOp::Process(ProcessOp::Probe(Box::new(command.into())));
        Ok(match self.ask_for::<Probed>("process.probe", op).await? {
            Ok(Probed::Finished(finished)) => Ok(finished.into()),
            Ok(Probed::Unable(why)) => Err(wit::Unprobed::Unable(why)),
            Err(error) => Err(wit::Unprobed::Failed(error)),
        })
    }

    async fn which(&mut self, name: String) -> wasmtime::Result<Result<Option<String>, String>> {
        Ok(self.ask_for("process.which", HostOp::Process(ProcessOp::Which { name })).await?)
    }

    async fn shell(&mut self, path: Option<String>) -> wasmtime::Result<Result<Option<String>, String>> {
        Ok(self.ask_for("process.shell", HostOp::Process(ProcessOp::Shell { path })).await?)
    }
}
