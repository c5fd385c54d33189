//! The executor's parts: an instance for each job in process and through the executor's process, values both ways, and modules
//! being loaded, compiled and from the cache.
#![allow(missing_docs, reason = "criterion's macros make items")]
#![allow(clippy::disallowed_methods, reason = "it starts the executor")]

use std::fs::File;
use std::io::{Seek, Write};
use std::process::Command;
use std::sync::Arc;

use brine_executor::call::{self, Shared};
use brine_executor::line::Line;
use brine_executor::links::{InterfaceSet, Linkers};
use brine_executor::load;
use brine_executor::modules::LoadedModule;
use brine_executor::ticker::Ticker;
use brine_executor::value::lift;
use brine_executor::value::lower::{self, ValueBudget};
use brine_executor::value::msgpack::Writer;
use brine_executor::value::signature::{Signature, TypedParam};
use brine_executor::value::ty::Ty;
use brine_sandbox_wire::{
    Connection, DirectGrants, FromExecutor, JobContext, Limits, Outcome, Run, Sha256Hex, ToExecutor,
};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use tokio::sync::{Mutex, Semaphore};

const PING: &str = r#"
    (component
        (core module $m (memory 17) (func (export "ping") (result i32) i32.const 1))
        (core instance $i (instantiate $m))
        (func (export "ping") (result bool) (canon lift (core func $i "ping"))))"#;

/// The code of a component.
fn compiled(wasm: &[u8]) -> Vec<u8> {
    brine_engine::engine().and_then(|engine| engine.precompile_component(wasm)).expect("it compiles")
}

fn file(content: &[u8]) -> File {
    let mut file = tempfile::tempfile().expect("a temporary file");
    file.write_all(content).and_then(|()| file.rewind()).expect("room for it");
    file
}

fn job(call: u64) -> Run {
    Run {
        call,
        module: Sha256Hex::from([1; 32]),
        function: "ping".into(),
        args: vec![0x90],
        kwargs: vec![0x80],
        context: JobContext { jid: "20261120120000000000".into(), user: "root".into(), ..JobContext::default() },
        limits: Limits::default(),
        imports_granted: Vec::new(),
        direct: DirectGrants::default(),
        would_write: Vec::new(),
        record: None,
        foreseen: Vec::new(),
    }
}

fn is_true(message: &FromExecutor) -> bool {
    matches!(message, FromExecutor::Done { outcome: Outcome::Returned { value, .. }, .. } if value == &[0xc3])
}

/// Store, instance, call and drop of each job.
fn instances(c: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let code = compiled(&wat::parse_str(PING).expect("it is a component"));
    let mut group = c.benchmark_group("a job with an instance of its own");
    {
        let _entered = runtime.enter();
        let engine = load::engine().expect("an engine");
        let (minion, executor) = Connection::pair().expect("a socket pair");
        let (mut answers, sender) =
            (minion.minion().1, Connection::from_fd(executor).expect("our own socket").executor().0);
        let host = Shared {
            links: Linkers::new(&engine),
            ticker: Ticker::start(&engine).expect("a thread"),
            running: Semaphore::new(1),
            sender: Mutex::new(sender),
            engine: engine.clone(),
        };
        let component = load::load(&engine, file(&code).into()).expect("our own code");
        let module = LoadedModule::new(&engine, "test", component).expect("it has a function");
        group.bench_function("in process", |b| {
            b.iter(|| {
                runtime.block_on(async {
                    call::run(&host, &module, job(1), Arc::new(Line::new(1, 0, 0))).await.expect("the socket is there");
                    assert!(is_true(&answers.recv().await.expect("the socket is there").message));
                });
            });
        });
    }
    let (connection, other) = {
        let _entered = runtime.enter();
        Connection::pair().expect("a socket pair")
    };
    let mut child =
        Command::new(env!("CARGO_BIN_EXE_brine-executor")).stdin(other).spawn().expect("the executor starts");
    let (mut sender, mut answers) = {
        let _entered = runtime.enter();
        connection.minion()
    };
    runtime.block_on(async {
        answers.recv().await.expect("it is ready");
        let load = ToExecutor::Load { module: Sha256Hex::from([1; 32]), name: "test".into(), imports_granted: None };
        sender.send_with_file(&load, file(&code).into()).await.expect("it takes it");
        assert!(matches!(answers.recv().await.expect("it answers").message, FromExecutor::Loaded { .. }));
    });
    let mut call = 0;
    group.bench_function("through the executor", |b| {
        b.iter(|| {
            call += 1;
            runtime.block_on(async {
                sender.send(&ToExecutor::Run(Box::new(job(call)))).await.expect("it takes it");
                assert!(is_true(&answers.recv().await.expect("it answers").message));
            });
        });
    });
    group.finish();
    child.kill().and_then(|()| child.wait()).expect("our own child");
}

/// A dict of texts as a job's argument, to component values and back.
fn values(c: &mut Criterion) {
    let ty = Ty::Dict(Box::new(Ty::Text));
    let signature = Signature {
        name: "test.echo".into(),
        params: [TypedParam::new("value", ty.clone())].into(),
        result: Some(ty.clone().into()),
    };
    let mut group = c.benchmark_group("a dict of texts");
    for (size, entries) in [("100 B", 4_u32), ("10 KB", 400), ("1 MB", 40_000)] {
        let dict: Vec<(rmpv::Value, rmpv::Value)> =
            (0..entries).map(|n| (format!("key-{n:06}").into(), format!("value-{n:06}").into())).collect();
        let mut args = Vec::new();
        rmpv::encode::write_value(&mut args, &rmpv::Value::Array(vec![rmpv::Value::Map(dict)])).expect("to memory");
        let lowered = |args: &[u8]| {
            let given = signature.bind(args, &[0x80]).expect("it fits");
            lower::lower_all(&signature, &given, &mut ValueBudget::new(usize::MAX)).expect("it fits")
        };
        group.throughput(Throughput::Bytes(args.len() as u64));
        group.bench_function(format!("{size} lowered"), |b| b.iter(|| lowered(&args)));
        let vals = lowered(&args);
        group.bench_function(format!("{size} lifted"), |b| {
            b.iter(|| {
                let mut out = Writer::new(usize::MAX);
                lift::lift(&vals[0], &ty, &mut out).expect("it fits");
                out.into_bytes()
            });
        });
    }
    group.finish();
}

/// From a component to a module that can be called, and from the code that is kept of it.
fn modules(c: &mut Criterion) {
    let wasm = wat::parse_str(PING).expect("it is a component");
    let code = compiled(&wasm);
    let engine = load::engine().expect("an engine");
    let links = Linkers::new(&engine);
    let ready = |file: File| {
        let module = LoadedModule::new(&engine, "test", load::load(&engine, file.into()).expect("our own code"));
        let module = module.expect("it has a function");
        module.linked(&links, InterfaceSet::new(&[]).into()).map(drop).expect("it needs nothing");
        module
    };
    let mut group = c.benchmark_group("a module is made ready");
    group.bench_function("compiled", |b| b.iter(|| ready(file(&compiled(&wasm)))));
    group.bench_function("from the cache", |b| {
        b.iter_batched(|| file(&code), ready, BatchSize::SmallInput);
    });
    group.finish();
}

criterion_group!(benches, instances, values, modules);
criterion_main!(benches);
