//! What the receipt of a job costs a minion, with its file: the lock of the folder, the place in the chain, the signature, the entry in the
//! file, and the text in the return. The sync is not part of a job.
#![allow(missing_docs, reason = "criterion's macros make items")]

use std::sync::Arc;

use brine_minion::pki::Pki;
use brine_minion::receipts::{Draft, Receipts};
use brine_protocol::ids::MinionId;
use brine_protocol::value::{Value, map};
use brine_receipts::{Call, Digest, Fingerprint, Module, Outcome, Time, Usage};
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};

const ROOM: u64 = 64 << 20;

/// Of a job with one function of a standard module.
fn draft() -> Draft {
    let of = |text: &str| Digest::of(text.as_bytes());
    let usage =
        Usage { wall_us: 1200, cpu_us: 900, memory_peak: 1_179_648, host_calls: 3, bytes_in: 120, bytes_out: 64 };
    let module = Module {
        name: "test".to_owned(),
        sha256: of("module"),
        version: Some("0.1.0".to_owned()),
        signers: Vec::new(),
        grants: of("grants"),
    };
    Draft {
        master: Some(Fingerprint([2; 32])),
        publication: None,
        jid: "20261120134740245008".to_owned(),
        arguments: of("arguments"),
        calls: vec![Call { function: "test.ping".to_owned(), retcode: 0, module: Some(module), usage: Some(usage) }],
        policy: Some(of("policy")),
        walls: ["user", "no_new_privs", "hidden", "seccomp", "landlock 6", "cgroup"].map(str::to_owned).to_vec(),
        start: Time::now(),
        end: Time::now(),
        outcome: Outcome::Ran,
    }
}

fn load() -> Value {
    map([("jid", Value::from("20261120134740245008")), ("return", Value::from(true)), ("retcode", Value::from(0))])
}

fn store(c: &mut Criterion) {
    let folder = tempfile::tempdir().expect("a folder");
    let pki = Pki::open(&folder.path().join("pki"), 2048).expect("a key");
    let id = MinionId::new("m1").expect("an id");
    let open = || Receipts::open(&folder.path().join("receipts"), ROOM, &id, &pki).expect("a folder");
    let (receipts, draft) = (Arc::new(open()), draft());
    let mut group = c.benchmark_group("the receipt of a job");
    group.bench_function("sealed and kept", |b| {
        b.iter_batched(load, |mut load| receipts.seal_direct(&draft, &mut load), BatchSize::SmallInput);
    });
    // Each finds what the other wrote.
    let other = open();
    let mut turn = 0;
    group.bench_function("sealed and kept, by two programs in turns", |b| {
        b.iter_batched(
            load,
            |mut load| {
                turn += 1;
                if turn % 2 == 0 { &receipts } else { &other }.seal_direct(&draft, &mut load);
            },
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

criterion_group!(benches, store);
criterion_main!(benches);
