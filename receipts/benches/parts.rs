//! What a receipt costs without the disk: on the minion, which signs and encodes it for its file and for the return, and on the master,
//! which reads and verifies it.
#![allow(missing_docs, reason = "criterion's macros make items")]

use std::hint::black_box;

use brine_receipts::{
    Call, Digest, Fingerprint, Module, Outcome, Receipt, Series, SignedReceipt, SigningKey, Time, Usage, Vouched,
};
use criterion::{Criterion, criterion_group, criterion_main};

const MINION_KEY: Fingerprint = Fingerprint([7; 32]);

/// Of a job with one function of a standard module.
fn receipt() -> Receipt {
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
    Receipt {
        version: Receipt::VERSION,
        number: 1_000,
        previous: Some(of("previous")),
        minion: "web01.frankfurt.example.com".to_owned(),
        minion_key: MINION_KEY,
        master: Some(Fingerprint([2; 32])),
        series: Series::Spooled,
        publication: Some(of("publication")),
        jid: "20261120134740245008".to_owned(),
        arguments: of("arguments"),
        calls: vec![Call { function: "test.ping".to_owned(), retcode: 0, module: Some(module), usage: Some(usage) }],
        policy: Some(of("policy")),
        walls: ["user", "no_new_privs", "hidden", "seccomp", "landlock 6", "cgroup"].map(str::to_owned).to_vec(),
        start: Time(1_763_646_460_245_008_000),
        end: Time(1_763_646_460_249_000_001),
        retcode: 0,
        outcome: Outcome::Ran,
        returned: of("returned"),
    }
}

fn parts(c: &mut Criterion) {
    let key = SigningKey::from_pem(&SigningKey::generate().expect("random numbers")).expect("just made");
    let receipt = receipt();
    let signed = key.sign(receipt.clone());
    let vouched = Vouched { receipt: signed.clone(), vouch: vec![7; 256] };
    let text = vouched.to_text();
    let compact = signed.to_compact();
    let mut group = c.benchmark_group("a receipt");
    group.bench_function("signed", |b| b.iter(|| key.sign(black_box(receipt.clone()))));
    group.bench_function("encoded for the file", |b| b.iter(|| signed.to_compact()));
    group.bench_function("encoded for the return", |b| b.iter(|| vouched.to_text()));
    group.bench_function("read from a return and verified", |b| {
        b.iter(|| Vouched::from_text(black_box(&text), MINION_KEY).expect("it holds"));
    });
    group.bench_function("read from a file and verified", |b| {
        b.iter(|| SignedReceipt::from_compact(black_box(&compact)).expect("it holds"));
    });
    group.bench_function("read from a file", |b| {
        b.iter(|| SignedReceipt::unverified(black_box(&compact)).expect("it is one"));
    });
    group.finish();
}

criterion_group!(benches, parts);
criterion_main!(benches);
