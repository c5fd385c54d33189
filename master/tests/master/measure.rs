//! Numbers, not tests: `cargo test --release -p brine-master --test master -- --ignored --nocapture measure`.

use std::time::Instant;

use brine_protocol::auth::MinionAuth;
use brine_protocol::value::{Value, map};

use super::harness::*;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "it measures; see the head of this file"]
async fn measure() {
    let master = TestMaster::start("minion_rate: 0\nminion_rate_bytes: 0").await;
    let mut minion = master.minion("web1", 1).await;
    let rate = |what: &str, n: usize, began: Instant| {
        let took = began.elapsed();
        println!("{what}: {n} in {took:.2?}, {:.0}/s, {:.2?} each", n as f64 / took.as_secs_f64(), took / n as u32);
    };

    let session = minion.session.clone().unwrap();
    for (what, connections, each) in [("returns, one at a time", 1, 1_000), ("returns, 64 connections", 64, 150)] {
        let mut sealed = Vec::new();
        for task in 0..connections {
            let loads =
                (0..each).map(|n| minion.return_load(&format!("20261120{connections:04}{task:04}{n:04}"), true));
            sealed.push(loads.map(|load| session.seal_request(load).unwrap()).collect::<Vec<_>>());
        }
        let began = Instant::now();
        let mut tasks = tokio::task::JoinSet::new();
        for requests in sealed {
            let mut requester = master.requester();
            tasks.spawn(async move {
                for request in requests {
                    requester.request(request.payload.into(), SOON).await.unwrap();
                }
            });
        }
        tasks.join_all().await;
        rate(what, connections * each, began);
    }

    let mut requester = master.requester();
    let load =
        || brine_protocol::envelope::Envelope::clear(master.publish_load("*", "glob", "test.ping", vec![])).encode();
    requester.request(load().into(), SOON).await.unwrap();
    let began = Instant::now();
    for _ in 0..300 {
        requester.request(load().into(), SOON).await.unwrap();
    }
    rate("publish", 300, began);

    minion.authenticate(&master).await;
    let mut auth = MinionAuth::new(&minion.id, &minion.key);
    auth.master = minion.master.as_ref();
    let attempts: Vec<_> = (0..1_000).map(|_| auth.attempt().unwrap().payload().to_vec()).collect();
    let began = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for chunk in attempts.chunks(63) {
        let mut requester = master.requester();
        let chunk = chunk.to_vec();
        tasks.spawn(async move {
            for payload in chunk {
                requester.request(payload.into(), SOON).await.unwrap();
            }
        });
    }
    tasks.join_all().await;
    rate("authentications with token, 16 connections", 1_000, began);

    std::fs::write(master.path("files/big"), vec![7; 64 << 20]).unwrap();
    let mut requester = master.requester();
    let began = Instant::now();
    for n in 0..64 {
        let load = map([
            ("cmd", Value::from("_serve_file")),
            ("path", "big".into()),
            ("saltenv", "base".into()),
            ("loc", (n << 20).into()),
        ]);
        let sealed = session.seal_request(load).unwrap();
        requester.request(sealed.payload.into(), SOON).await.unwrap();
    }
    rate("1 MiB file chunks", 64, began);
}
