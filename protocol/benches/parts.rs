//! Benchmarks of the protocol work in every job: keys, payloads, MessagePack, targets.
#![allow(missing_docs, reason = "criterion's macros make items")]

use std::hint::black_box;

use brine_protocol::crypticle::{AesKey, Crypticle, SerialGuard};
use brine_protocol::ids::MinionId;
use brine_protocol::keys::{PrivateKey, PrivateOps as _, SignAlg};
use brine_protocol::msgpack::{self, Limits};
use brine_protocol::publication;
use brine_protocol::sealed::{Body, Epoch, SealKeys, SealOffer, Sealed, SigningKey};
use brine_protocol::target::{Facts, Target, TargetType};
use brine_protocol::value::{Value, map};
use criterion::measurement::WallTime;
use criterion::{BatchSize, BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};

const SIGN: SignAlg = SignAlg::Pkcs1v15Sha1;

fn job() -> Value {
    map([
        ("fun", Value::from("test.ping")),
        ("arg", Value::Array(Vec::new())),
        ("tgt", Value::from("*")),
        ("jid", Value::from("20261120134740245008")),
        ("ret", Value::from("")),
        ("tgt_type", Value::from("glob")),
        ("user", Value::from("root")),
    ])
}

/// A value of about this many bytes: maps of text and numbers, as in returns.
fn value(bytes: usize) -> Value {
    let entry = |n: usize| map([("name", Value::from(format!("package-{n}"))), ("size", Value::from(n))]);
    Value::Array((0..bytes.div_ceil(28)).map(entry).collect())
}

fn crypto(c: &mut Criterion) {
    let key = PrivateKey::generate(2048).expect("a key");
    let crypticle = Crypticle::new(&AesKey::generate());
    let mut group = c.benchmark_group("crypto");
    group.bench_function("RSA 2048 sign, portable", |b| b.iter(|| key.sign(SIGN, black_box(b"a publication"))));
    let signature = key.sign(SIGN, b"a publication").expect("it signs");
    group.bench_function("RSA 2048 verify", |b| {
        b.iter(|| key.public().verify(SIGN, black_box(b"a publication"), &signature));
    });
    let sealed = publication::seal(job(), 1, &crypticle, &key, SIGN).expect("it signs");
    group.bench_function("a publication opened", |b| {
        b.iter(|| publication::open(&sealed, key.public(), &crypticle, &mut SerialGuard::new()));
    });
    sealing(&mut group, &key);
    for bytes in [100, 10_000, 1_000_000] {
        let value = value(bytes);
        let sealed = crypticle.seal(&value, None);
        group.throughput(Throughput::Bytes(sealed.len() as u64));
        group.bench_function(format!("sealed, {bytes} B"), |b| b.iter(|| crypticle.seal(black_box(&value), None)));
        group.bench_function(format!("opened, {bytes} B"), |b| {
            b.iter(|| crypticle.open(black_box(&sealed), None, &Limits::REQUEST));
        });
    }
}

/// A publication for minions alone: its body, a header for each minion, and what a minion does with it.
fn sealing(group: &mut BenchmarkGroup<'_, WallTime>, key: &PrivateKey) {
    let (publish, session) = (AesKey::generate(), AesKey::generate());
    let id: MinionId = "web1.example".parse().expect("an id");
    let signer = SigningKey::of(key).expect("it derives");
    let epoch = Epoch::new(&publish, &signer);
    group.bench_function("a body sealed and signed", |b| b.iter(|| Body::seal(&job(), 1, &epoch, &signer)));
    let body = Body::seal(&job(), 1, &epoch, &signer);
    group.bench_function("a header for one minion", |b| b.iter(|| body.header(black_box(&id), &session, &epoch)));
    let sealed = Sealed::parse(&body.header(&id, &session, &epoch), body.bytes()).expect("well formed");
    let keys = SealKeys::new(&id, SealOffer::make(&signer, key).expect("it signs"), &publish, &session);
    group.bench_function("a sealed publication opened", |b| b.iter(|| sealed.load(&keys)));
}

fn packing(c: &mut Criterion) {
    let mut group = c.benchmark_group("msgpack");
    for bytes in [100, 10_000, 1_000_000] {
        let value = value(bytes);
        let packed = msgpack::encode_network(&value);
        group.throughput(Throughput::Bytes(packed.len() as u64));
        group.bench_function(format!("encoded, {bytes} B"), |b| b.iter(|| msgpack::encode_network(black_box(&value))));
        group.bench_function(format!("decoded, {bytes} B"), |b| {
            b.iter_batched(|| (), |()| msgpack::decode(black_box(&packed), &Limits::REQUEST), BatchSize::SmallInput);
        });
    }
}

fn targets(c: &mut Criterion) {
    let minions: Vec<(MinionId, Value)> = (0..10_000)
        .map(|n| {
            let grains = map([
                ("os", Value::from("Debian")),
                ("role", Value::from(if n % 3 == 0 { "web" } else { "db" })),
                ("ip4", Value::from(format!("10.0.{}.{}", n / 250, n % 250))),
            ]);
            (format!("web{n}.example").parse().expect("an id"), grains)
        })
        .collect();
    let list = (0..10_000).step_by(2).map(|n| Value::from(format!("web{n}.example"))).collect();
    let mut group = c.benchmark_group("10,000 minions");
    for (name, kind, expression) in [
        ("glob", TargetType::Glob, Value::from("web*1.example")),
        ("pcre", TargetType::Pcre, Value::from("web[0-9]+5\\.example")),
        ("list of 5,000", TargetType::List, Value::Array(list)),
        ("grain", TargetType::Grain, Value::from("role:web")),
        ("compound", TargetType::Compound, Value::from("web* and G@role:web and not E@web1[0-9]{2}\\.example")),
    ] {
        group.bench_function(name, |b| {
            b.iter(|| {
                let target = Target::parse(kind, &expression, ":").expect("a target");
                let facts = minions.iter().map(|(id, grains)| Facts { id, grains: Some(grains), pillar: None });
                target.resolve(facts).matched.len()
            });
        });
    }
}

criterion_group!(benches, crypto, packing, targets);
criterion_main!(benches);
