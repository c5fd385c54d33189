//! One publication to many subscribers over loopback, until all of them have received it.
#![allow(missing_docs, reason = "criterion's macros make items")]

use brine_zmtp::{Endpoint, PubConfig, Publisher, SubConfig, SubEvent, Subscriber};
use bytes::Bytes;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tokio::sync::mpsc;

fn fan_out(c: &mut Criterion) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let mut group = c.benchmark_group("fan-out of 1,000 B");
    for peers in [1, 10, 100, 1_000] {
        let (publisher, mut received) = runtime.block_on(connected(peers));
        let payload = Bytes::from(vec![0; 1_000]);
        group.throughput(Throughput::Elements(peers as u64));
        group.bench_function(format!("to {peers}"), |b| {
            b.iter(|| {
                publisher.send(vec![payload.clone()]);
                runtime.block_on(async {
                    for _ in 0..peers {
                        received.recv().await.expect("every subscriber is there");
                    }
                });
            });
        });
    }
}

/// A publisher with `peers` subscribers, and a channel that reports each message that one of them receives.
async fn connected(peers: usize) -> (Publisher, mpsc::UnboundedReceiver<()>) {
    let publisher = Publisher::bind(&Endpoint::tcp("127.0.0.1", 0), PubConfig::default()).await.expect("a free port");
    let (word, received) = mpsc::unbounded_channel();
    for _ in 0..peers {
        let config = SubConfig { subscriptions: vec![Bytes::new()], ..SubConfig::default() };
        let mut subscriber = Subscriber::connect(publisher.endpoint().clone(), config);
        let word = word.clone();
        tokio::spawn(async move {
            loop {
                if matches!(subscriber.recv().await, SubEvent::Message(_)) && word.send(()).is_err() {
                    return;
                }
            }
        });
    }
    publisher.wait_for_subscribers(peers).await;
    (publisher, received)
}

criterion_group!(benches, fan_out);
criterion_main!(benches);
