//! The job store: returns one after the other, many at once, and looked up.
#![allow(missing_docs, reason = "criterion's macros make items")]

use std::sync::atomic::{AtomicUsize, Ordering};

use brine_master::jobs::{JobStore, NewReturn};
use brine_protocol::ids::Jid;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

static NEXT: AtomicUsize = AtomicUsize::new(0);

/// A return that is not in the store yet.
fn new(jid: &Jid) -> NewReturn {
    NewReturn {
        receipt: None,
        jid: jid.clone(),
        minion: format!("web{}.example", NEXT.fetch_add(1, Ordering::Relaxed)).parse().expect("an id"),
        fun: "test.ping".to_owned(),
        at_ms: 1_800_000_000_000,
        retcode: 0,
        success: true,
        load: vec![7; 300],
    }
}

fn job_store(c: &mut Criterion) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let _entered = runtime.enter();
    let store = JobStore::open(&folder.path().join("jobs.db")).expect("a new store");
    let mut group = c.benchmark_group("job store, every commit on disk");
    let jid = Jid::now();
    group.bench_function("one return", |b| {
        b.iter(|| runtime.block_on(store.add_return(new(&jid))).expect("it is stored"));
    });
    for at_once in [16, 128] {
        group.throughput(Throughput::Elements(at_once));
        group.bench_function(format!("{at_once} returns at once"), |b| {
            b.iter(|| {
                runtime.block_on(futures_util::future::join_all((0..at_once).map(|_| store.add_return(new(&jid)))));
            });
        });
    }
    let other = Jid::now();
    runtime.block_on(futures_util::future::join_all((0..1_000).map(|_| store.add_return(new(&other)))));
    group.throughput(Throughput::Elements(1_000));
    group.bench_function("1,000 returns of a job looked up", |b| {
        b.iter(|| runtime.block_on(store.returns(&other)).expect("they are there").len());
    });
}

criterion_group!(benches, job_store);
criterion_main!(benches);
