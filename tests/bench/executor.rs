//! A warm call of the standard `test.ping` through the shipped executor: from the message's first byte in to the answer out.
#![allow(clippy::disallowed_methods, reason = "it starts the two programs of the sandbox")]

use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use brine_sandbox_wire::{Connection, FromExecutor, JobContext, Limits, Outcome, Run, Sha256Hex, ToExecutor};
use brine_tests::process::{program, program_folder};

/// Calls before counting begins, and calls that count.
const WARM_UP: u64 = 1_000;
const CALLS: u64 = 10_000;

/// Sorted times of [`CALLS`] calls, one after the other.
pub(crate) fn warm_ping() -> Vec<Duration> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let code = folder.path().join("test.cwasm");
    compile(&program_folder().join("../modules/test.wasm"), &code, &folder.path().join("info"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut times = runtime.block_on(measure(File::open(code).expect("just compiled")));
    times.sort();
    times
}

fn compile(wasm: &Path, code: &Path, info: &Path) {
    let wasm = File::open(wasm).unwrap_or_else(|e| panic!("{}: {e}: run `make modules` first", wasm.display()));
    let mut command = Command::new(program("brine-compiler"));
    command.arg("--output").arg(code).arg("--info").arg(info).stdin(wasm);
    assert!(command.status().expect("the compiler starts").success());
}

async fn measure(code: File) -> Vec<Duration> {
    let (connection, other) = Connection::pair().expect("a socket pair");
    let mut child = Command::new(program("brine-executor")).stdin(other).spawn().expect("the executor starts");
    let (mut sender, mut receiver) = connection.minion();
    let module = Sha256Hex::from([1; 32]);
    sender
        .send_with_file(&ToExecutor::Load { module, name: "test".into(), imports_granted: None }, code.into())
        .await
        .expect("it is sent");
    let mut times = Vec::new();
    for call in 0..WARM_UP + CALLS {
        let run = Run {
            call,
            module,
            function: "ping".into(),
            args: vec![0x90],
            kwargs: vec![0x80],
            context: JobContext {
                jid: "20261120120000000000".into(),
                function: "test.ping".into(),
                user: "root".into(),
                minion_id: "minion".into(),
                test: false,
                master: None,
            },
            limits: Limits::default(),
            imports_granted: vec!["brine:host/grains".into(), "brine:host/config".into()],
            direct: brine_sandbox_wire::DirectGrants::default(),
        };
        let message = ToExecutor::Run(Box::new(run));
        let began = Instant::now();
        sender.send(&message).await.expect("the executor takes it");
        loop {
            match receiver.recv().await.expect("the executor answers").message {
                FromExecutor::Done { call: done, outcome: Outcome::Returned { .. }, .. } if done == call => break,
                FromExecutor::Ready { .. } | FromExecutor::Loaded { .. } => {}
                other => panic!("{other:?}"),
            }
        }
        if call >= WARM_UP {
            times.push(began.elapsed());
        }
    }
    drop((sender, receiver));
    child.wait().expect("it ends with its connection");
    times
}
