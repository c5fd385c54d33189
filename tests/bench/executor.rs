//! Measures warm calls through the shipped executor with its walls up, from the first byte of the message to the
//! result.
#![allow(clippy::disallowed_methods, reason = "it starts the two programs of the sandbox")]

use std::fs::File;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use brine_kit::programs::{program, program_folder, testing};
use brine_protocol::msgpack;
use brine_protocol::value::{Value, list, map};
use brine_sandbox_wire::{
    ByteBuf, Connection, DirectGrants, DisksOp, Foreseen, FromExecutor, HostOp, JobContext, Limits, Outcome, Receiver,
    Run, Sender, Sha256Hex, ToExecutor,
};

use crate::usage::mib;

/// Warm-up calls, and measured calls.
const WARM_UP: usize = 1_000;
const CALLS: usize = 10_000;
/// The same for large returns.
const LARGE_WARM_UP: usize = 3;
const LARGE_CALLS: usize = 30;
/// Bytes of a large return.
const LARGE: u32 = 1_000_000;

/// Returns the measurements of the sandbox alone, one line each: median, minimum, goal.
pub(crate) fn report() -> Vec<String> {
    let line = |what: &str, median: f64, minimum: f64, goal: &str| {
        format!("{what:<58} {median:>10.1} {minimum:>10.1} {goal:>10}")
    };
    let of = |what: &str, times: &[Duration], factor: f64, goal: &str| {
        line(what, times[times.len() / 2].as_secs_f64() * factor, times[0].as_secs_f64() * factor, goal)
    };
    let (us, ms) = (1e6, 1e3);
    let mut lines = vec![format!("{:<58} {:>10} {:>10} {:>10}", "", "median", "minimum", "goal")];
    lines.push(of("warm test.ping through the executor (µs)", &warm_ping(), us, "100"));
    for (kind, times, peak) in large_returns() {
        lines.push(of(&format!("a return of 1 MB, {kind}, through the executor (ms)"), &times, ms, "30"));
        lines.push(line("  the executor's memory at its highest (MiB)", mib(peak), mib(peak), "64"));
    }
    let folder = std::env::var_os("BRINE_LANGUAGES");
    for cost in folder.iter().flat_map(|folder| languages(Path::new(folder))) {
        let goal = match cost.language {
            "rust" | "c" => "90",
            "js" => "600",
            _ => "1000",
        };
        lines.push(of(&format!("disk_report in {}, warm (µs)", cost.language), &cost.jobs, us, goal));
        lines.push(of("  where it asks the host (µs)", &cost.asked, us, "-"));
        lines.push(of("  its load (µs)", &[cost.load], us, "-"));
        lines.push(of("  its compile (ms)", &[cost.compile], ms, "-"));
        lines.push(line("  the compiler's memory (MiB)", mib(cost.compile_peak), mib(cost.compile_peak), "-"));
        let kib = |bytes: u64| mib(bytes);
        lines.push(line("  its size and that of its code (KiB)", kib(cost.size), kib(cost.code), "-"));
    }
    lines
}

/// Returns the sorted times of [`CALLS`] calls of the standard `test.ping`, one after the other.
fn warm_ping() -> Vec<Duration> {
    runtime().block_on(async {
        let mut executor = Executor::start(&program_folder().join("../modules/test.wasm")).await;
        executor.measure("ping", &[], WARM_UP, CALLS).await
    })
}

/// Returns, for each kind of return of a megabyte, its name, the sorted times, and the executor's peak memory in KiB.
fn large_returns() -> Vec<(&'static str, Vec<Duration>, u64)> {
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

/// The languages of examples/disk_report.
const LANGUAGES: [&str; 4] = ["rust", "c", "js", "python"];
/// Warm-up calls for each language, and measured calls.
const LANGUAGE_WARM_UP: usize = 200;
const LANGUAGE_CALLS: usize = 2_000;

/// The cost of the same module in one language.
struct Cost {
    language: &'static str,
    /// Bytes of the component.
    size: u64,
    code: u64,
    compile: Duration,
    /// The compiler's peak memory in KiB.
    compile_peak: u64,
    /// Time from the message to the executor's answer.
    load: Duration,
    /// Sorted times of jobs that make one request to the host each.
    asked: Vec<Duration>,
    /// The same, where the answer comes with the call, as from the third call in a row.
    jobs: Vec<Duration>,
}

/// Returns the cost of `examples/disk_report` in each language that is built in `folder`, as `LANGUAGE.wasm`.
fn languages(folder: &Path) -> Vec<Cost> {
    let measure = |language: &'static str| {
        let wasm = folder.join(format!("{language}.wasm"));
        let size = wasm.metadata().ok()?.len();
        let made = tempfile::tempdir().expect("a temporary folder");
        let code = made.path().join("code");
        let began = Instant::now();
        let compile_peak = compile(&wasm, &code, &made.path().join("info"));
        let (compile, code_size) = (began.elapsed(), code.metadata().expect("just compiled").len());
        let (load, asked, jobs) = runtime().block_on(async {
            let mut executor = Executor::spawn();
            let load = executor.load(&code).await;
            let args = ["/".into()];
            let asked = executor.measure("report", &args, LANGUAGE_WARM_UP, LANGUAGE_CALLS).await;
            executor.foresees = Some(DisksOp::FileSystemAt { mount_point: "/".to_owned() });
            let jobs = executor.measure("report", &args, LANGUAGE_WARM_UP, LANGUAGE_CALLS).await;
            assert_eq!(executor.asked, (LANGUAGE_WARM_UP + LANGUAGE_CALLS) as u64, "what is foreseen is not asked");
            (load, asked, jobs)
        });
        Some(Cost { language, size, code: code_size, compile, compile_peak, load, asked, jobs })
    };
    LANGUAGES.into_iter().filter_map(measure).collect()
}

/// Number of file systems in the answers to `brine:host/disks`.
const MOUNTS: u64 = 10;

/// Returns the minion's answer to `brine:host/disks`.
fn disks(op: &DisksOp) -> Value {
    let mount = |n: u64| {
        map([
            ("device", Value::from("/dev/vda")),
            ("mount_point", Value::from(if n == 0 { "/".to_owned() } else { format!("/mnt/{n}") })),
            ("fstype", Value::from("ext4")),
            ("options", list(["rw", "relatime"])),
            ("device_number", Value::from(n)),
        ])
    };
    let space = || {
        map([
            ("block_size", Value::from(4096)),
            ("blocks", Value::from(66_053_064)),
            ("blocks_free", Value::from(54_465_000)),
            ("blocks_available", Value::from(12_233_716)),
            ("inodes", Value::from(16_777_216)),
            ("inodes_free", Value::from(16_227_801)),
        ])
    };
    let file_system = |n| map([("mount", mount(n)), ("space", space())]);
    match op {
        DisksOp::Mounts => list((0..MOUNTS).map(mount)),
        DisksOp::Usage { .. } => space(),
        DisksOp::FileSystemAt { .. } => file_system(0),
        DisksOp::FileSystems => list((0..MOUNTS).map(file_system)),
    }
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
    /// The question whose answer is handed over with each call, as the minion does.
    foresees: Option<DisksOp>,
    /// Number of questions.
    asked: u64,
}

const MODULE: [u8; 32] = [1; 32];

impl Executor {
    async fn start(wasm: &Path) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let code = folder.path().join("code");
        compile(wasm, &code, &folder.path().join("info"));
        let mut executor = Self::spawn();
        executor.load(&code).await;
        executor
    }

    fn spawn() -> Self {
        let (connection, other) = Connection::pair().expect("a socket pair");
        let child = Command::new(program("brine-executor")).stdin(other).spawn().expect("the executor starts");
        let (sender, receiver) = connection.minion();
        Self { child, sender, receiver, calls: 0, foresees: None, asked: 0 }
    }

    /// Loads a module and returns the time from the message to the answer.
    async fn load(&mut self, code: &Path) -> Duration {
        // The first message arrives when the executor's walls are up.
        self.receiver.recv().await.expect("it is ready");
        let code = File::open(code).expect("just compiled");
        let load = ToExecutor::Load { module: Sha256Hex::from(MODULE), name: "module".into(), imports_granted: None };
        let began = Instant::now();
        self.sender.send_with_file(&load, code.into()).await.expect("it is sent");
        match self.receiver.recv().await.expect("the executor answers").message {
            FromExecutor::Loaded { .. } => began.elapsed(),
            other => panic!("{other:?}"),
        }
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
            imports_granted: ["grains", "config", "disks", "functions"].map(|name| format!("brine:host/{name}")).into(),
            direct: DirectGrants::default(),
            would_write: Vec::new(),
            record: None,
            foreseen: Vec::new(),
        };
        let mut message = Box::new(run);
        let began = Instant::now();
        let answer = |op: &DisksOp| ByteBuf::from(msgpack::encode_disk(&disks(op)));
        let foreseen = self.foresees.as_ref().map(|op| Foreseen { op: HostOp::Disks(op.clone()), answer: answer(op) });
        message.foreseen = foreseen.into_iter().collect();
        let message = ToExecutor::Run(message);
        self.sender.send(&message).await.expect("the executor takes it");
        loop {
            match self.receiver.recv().await.expect("the executor answers").message {
                FromExecutor::Done { call, outcome: Outcome::Returned { .. }, .. } if call == self.calls => break,
                FromExecutor::HostCall { call, request, op: HostOp::Disks(op) } => {
                    self.asked += 1;
                    let result = Ok(answer(&op));
                    self.sender.send(&ToExecutor::HostReply { call, request, result }).await.expect("it takes it");
                }
                other => panic!("{other:?}"),
            }
        }
        began.elapsed()
    }

    /// Returns its peak memory in KiB.
    fn peak_kib(&self) -> u64 {
        peak_kib(self.child.id())
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        // The child is killed by its handle, so no other process can be hit.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Compiles a component. Returns the peak memory in KiB, sampled every few milliseconds.
fn compile(wasm: &Path, code: &Path, info: &Path) -> u64 {
    let wasm = File::open(wasm).unwrap_or_else(|e| panic!("{}: {e}: run `make modules` first", wasm.display()));
    let mut command = Command::new(program("brine-compiler"));
    // More than a minion's default, because the compiler of a development build is slow.
    command.args(["--cpu", "600"]).arg("--output").arg(code).arg("--info").arg(info).stdin(wasm);
    let mut child = command.spawn().expect("the compiler starts");
    let mut peak = 0;
    loop {
        peak = peak.max(peak_kib(child.id()));
        if let Some(status) = child.try_wait().expect("our own child") {
            assert!(status.success(), "{status}");
            return peak;
        }
        std::thread::sleep(Duration::from_millis(2)); // sampling interval
    }
}

/// Returns the peak memory of a process in KiB; 0 if it has ended.
fn peak_kib(pid: u32) -> u64 {
    brine_kit::process::size(pid, "VmHWM").unwrap_or(0) >> 10
}
