//! Measures the cost of a job in this crate: `cargo run --release -p brine-protocol --example measure`.

use std::time::Instant;

use brine_protocol::crypticle::{AesKey, Crypticle, SerialGuard};
use brine_protocol::keys::{EncAlg, PrivateKey, PrivateOps as _, SignAlg};
use brine_protocol::msgpack::{self, Limits};
use brine_protocol::value::{list, map, text};
use brine_protocol::{publication, request};

fn time(name: &str, times: u32, mut run: impl FnMut()) {
    run();
    let start = Instant::now();
    for _ in 0..times {
        run();
    }
    println!("{name:<44} {:>10.1} µs", start.elapsed().as_secs_f64() * 1e6 / f64::from(times));
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let start = Instant::now();
    let key = PrivateKey::generate(2048)?;
    println!("{:<44} {:>10.0} ms", "a 2048-bit key", start.elapsed().as_secs_f64() * 1e3);
    let public = key.public().clone();
    let signature = key.sign(SignAlg::default(), b"m")?;
    let token = key.x931_sign(b"salt")?;
    let sealed = public.encrypt(EncAlg::default(), b"m")?;
    time("sign (PKCS1v15-SHA1)", 100, || drop(key.sign(SignAlg::default(), b"m")));
    time("decrypt (OAEP-SHA1)", 100, || drop(key.decrypt(EncAlg::default(), &sealed)));
    time("X9.31 sign", 100, || drop(key.x931_sign(b"salt")));
    time("verify", 1000, || assert!(public.verify(SignAlg::default(), b"m", &signature)));
    time("X9.31 recover (each request)", 1000, || assert!(public.x931_recover(&token).is_some()));

    let aes = AesKey::generate();
    let crypticle = Crypticle::new(&aes);
    let load = map([
        ("fun", text("test.ping")),
        ("arg", list::<i64>([])),
        ("tgt", text("*")),
        ("jid", text("20261120134740245008")),
        ("ret", text("")),
        ("tgt_type", text("glob")),
        ("user", text("root")),
    ]);
    let published = publication::seal(load.clone(), 1, &crypticle, &key, SignAlg::default())?;
    time("open a publication", 1000, || {
        assert!(publication::open(&published, &public, &crypticle, &mut SerialGuard::new()).is_ok());
    });
    let nonce = "0123456789abcdef0123456789abcdef";
    time("seal a reply", 10_000, || drop(request::seal_reply(&crypticle, &load, Some(nonce))));

    let big = map([("data", list((0..100_000).map(|n| format!("item {n}"))))]);
    let packed = msgpack::encode_network(&big);
    println!("{:<44} {:>10} KB", "a value of 100,000 texts", packed.len() / 1000);
    time("  encode", 20, || drop(msgpack::encode_network(&big)));
    time("  decode", 20, || drop(msgpack::decode(&packed, &Limits::REQUEST)));
    let megabyte = vec![7_u8; 1 << 20];
    let blob = crypticle.encrypt(&megabyte);
    time("encrypt 1 MiB", 20, || drop(crypticle.encrypt(&megabyte)));
    time("decrypt 1 MiB", 20, || drop(crypticle.decrypt(&blob)));
    Ok(())
}
