//! Warm calls through the shipped executor, its walls up: from the message's first byte in to the answer out.
#![allow(clippy::disallowed_methods, reason = "it starts the two programs of the sandbox")]

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use brine_protocol::msgpack;
use brine_protocol::value::Value;
use brine_sandbox_wire::{
    Connection, DirectGrants, FromExecutor, JobContext, Limits, Outcome, Receiver, Run, Sender, Sha256Hex, ToExecutor,
};
use brine_tests::process::{program, program_folder, testing};

/// Calls before counting begins, and calls that count.
const WARM_UP: usize = 1_000;
const CALLS: usize = 10_000;
/// The same of large returns.
const LARGE_WARM_UP: usize = 3;
const LARGE_CALLS: usize = 30;
/// Bytes of a large return.
const LARGE: u32 = 1_000_000;

/// Sorted times of [`CALLS`] calls of the standard `test.ping`, one after the other.
pub(crate) fn warm_ping() -> Vec<Duration> {
    runtime().block_on(async {
        let mut executor = Executor::start(&program_folder().join("../modules/test.wasm")).await;
        executor.measure("ping", &[], WARM_UP, CALLS).await
    })
}

/// For each kind of return of a megabyte: its name, sorted times, and the most memory that the executor had, in KiB.
pub(crate) fn large_returns() -> Vec<(&'static str, Vec<Duration>, u64)> {
    let kinds = ["text", "bytes", "texts", "entries"];
    let measure = |kind: &'static str| {
        runtime().block_on(async {
            let mut executor = Executor::start(&testing("large")).await;
            let times = executor.measure(kind, &[Value::from(LARGE)], LARGE_WARM_UP, LARGE_CALLS).await;
            (kind, times, executor.peak_kib())
        })
    };
    kinds.map(measure).into()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// An executor with one module.
struct Executor {
    child: Child,
    sender: Sender<ToExecutor>,
    receiver: Receiver<FromExecutor>,
    calls: u64,
}

const MODULE: [u8; 32] = [1; 32];

impl Executor {
    async fn start(wasm: &Path) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let code = folder.path().join("code");
        compile(wasm, &code, &folder.path().join("info"));
        let (connection, other) = Connection::pair().expect("a socket pair");
        let child = Command::new(program("brine-executor")).stdin(other).spawn().expect("the executor starts");
        let (mut sender, receiver) = connection.minion();
        let load = ToExecutor::Load { module: Sha256Hex::from(MODULE), name: "module".into(), imports_granted: None };
        let code = File::open(code).expect("just compiled");
        sender.send_with_file(&load, code.into()).await.expect("it is sent");
        Self { child, sender, receiver, calls: 0 }
    }

    async fn measure(&mut self, function: &str, args: &[Value], warm_up: usize, calls: usize) -> Vec<Duration> {
        let mut times = Vec::with_capacity(warm_up + calls);
        for _ in 0..warm_up + calls {
            times.push(self.call(function, args).await);
        }
        let mut times = times.split_off(warm_up);
        times.sort();
        times
    }

    async fn call(&mut self, function: &str, args: &[Value]) -> Duration {
        self.calls += 1;
        let run = Run {
            call: self.calls,
            module: Sha256Hex::from(MODULE),
            function: function.into(),
            args: msgpack::encode_disk(&Value::Array(args.to_vec())),
            kwargs: vec![0x80],
            context: JobContext {
                jid: "20261120120000000000".into(),
                function: format!("module.{function}"),
                user: "root".into(),
                minion_id: "minion".into(),
                ..JobContext::default()
            },
            limits: Limits::default(),
            imports_granted: vec!["brine:host/grains".into(), "brine:host/config".into()],
            direct: DirectGrants::default(),
        };
        let message = ToExecutor::Run(Box::new(run));
        let began = Instant::now();
        self.sender.send(&message).await.expect("the executor takes it");
        loop {
            match self.receiver.recv().await.expect("the executor answers").message {
                FromExecutor::Done { call, outcome: Outcome::Returned { .. }, .. } if call == self.calls => break,
                FromExecutor::Ready { .. } | FromExecutor::Loaded { .. } => {}
                other => panic!("{other:?}"),
            }
        }
        began.elapsed()
    }

    /// The most memory it has had so far, KiB.
    fn peak_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("our own process");
        let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("the kernel tells");
        line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a number of KiB")
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        // Our own child, by its handle.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn compile(wasm: &Path, code: &Path, info: &Path) {
    let wasm = File::open(wasm).unwrap_or_else(|e| panic!("{}: {e}: run `make modules` first", wasm.display()));
    let mut command = Command::new(program("brine-compiler"));
    command.arg("--output").arg(code).arg("--info").arg(info).stdin(wasm);
    assert!(command.status().expect("the compiler starts").success());
}
