//! A warm call of `test.ping` through an executor process: from the message's first byte in to the answer out. Prints the median; the target
//! is 100 µs.
#![allow(clippy::disallowed_methods, reason = "it starts the program that may start nothing")]

use std::io::{Seek, Write};
use std::process::Command;
use std::time::{Duration, Instant};

use brine_sandbox_wire::{Connection, FromExecutor, JobContext, Limits, Outcome, Run, Sha256Hex, ToExecutor};

const PING: &str = r#"
    (component
        (core module $m (memory 17) (func (export "ping") (result i32) i32.const 1))
        (core instance $i (instantiate $m))
        (func (export "ping") (result bool) (canon lift (core func $i "ping"))))"#;

const WARM_UP: usize = 1_000;
const CALLS: usize = 10_000;

fn main() {
    // `cargo test` runs benches too; then it only shows that they work.
    let quick = !std::env::args().any(|arg| arg == "--bench");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut times = runtime.block_on(measure(if quick { 10 } else { WARM_UP }, if quick { 10 } else { CALLS }));
    times.sort();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100].as_nanos() as f64 / 1_000.0;
    println!(
        "warm test.ping through the executor: p50 {:.1} µs, p90 {:.1} µs, p99 {:.1} µs, least {:.1} µs ({} calls)",
        at(50),
        at(90),
        at(99),
        at(0),
        times.len()
    );
}

async fn measure(warm_up: usize, calls: usize) -> Vec<Duration> {
    let (connection, other) = Connection::pair().expect("a socket pair");
    let mut child =
        Command::new(env!("CARGO_BIN_EXE_brine-executor")).stdin(other).spawn().expect("the executor starts");
    let (mut sender, mut receiver) = connection.minion();
    let wasm = wat::parse_str(PING).expect("the component parses");
    let engine = brine_engine::engine().expect("an engine");
    let mut code = tempfile::tempfile().expect("a file");
    code.write_all(&engine.precompile_component(&wasm).expect("it compiles")).expect("it is written");
    code.rewind().expect("it is rewound");
    let module = Sha256Hex::from([1; 32]);
    sender.send_with_file(&ToExecutor::Load { module, name: "test".into() }, code.into()).await.expect("it is sent");
    let mut times = Vec::with_capacity(calls);
    let mut call = 0;
    while times.len() < calls {
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
            },
            limits: Limits::default(),
            imports_granted: vec!["brine:host/grains".into(), "brine:host/config".into()],
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
        if call >= warm_up as u64 {
            times.push(began.elapsed());
        }
        call += 1;
    }
    drop((sender, receiver));
    child.wait().expect("it ends with its connection");
    times
}
