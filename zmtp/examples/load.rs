//! How much the bound sockets carry, measured from outside: run the two halves as two processes.
//!
//! ```text
//! load serve PEERS                    prints two endpoints, then what it carried, second by second; publishes without
//!                                     pause once so many peers have subscribed
//! load subscribe ENDPOINT PEERS       subscribes with so many peers
//! load request ENDPOINT PEERS         asks with so many peers, each as fast as it is answered
//! load stuck ENDPOINT PEERS           subscribes and never reads
//! ```
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a tool for measuring")]

use std::{env, time::Duration};

use brine_zmtp::{
    Endpoint, Heartbeat, PubConfig, Publisher, ReqConfig, Requester, Router, RouterConfig, SocketLimits, SubConfig,
    SubEvent, Subscriber,
};
use bytes::Bytes;
use tokio::{
    task::JoinSet,
    time::{Instant, interval, sleep},
};

const PAYLOAD_LEN: usize = 1000;
/// Publications sent before the publisher checks whether they were delivered.
const BURST: u64 = 100;

#[tokio::main]
async fn main() {
    let args: Vec<String> = env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", peers] => serve(peers.parse().unwrap()).await,
        ["subscribe", endpoint, peers] => subscribe(endpoint.parse().unwrap(), peers.parse().unwrap()).await,
        ["request", endpoint, peers] => request(endpoint.parse().unwrap(), peers.parse().unwrap()).await,
        ["stuck", endpoint, peers] => stuck(&endpoint.parse().unwrap(), peers.parse().unwrap()).await,
        _ => println!(
            "usage: load serve PEERS | subscribe ENDPOINT PEERS | request ENDPOINT PEERS | stuck ENDPOINT PEERS"
        ),
    }
}

async fn serve(peers: usize) {
    let any = Endpoint::tcp("127.0.0.1", 0);
    let publisher = Publisher::bind(&any, PubConfig::default()).await.unwrap();
    let mut router = Router::bind(&any, RouterConfig::default()).await.unwrap();
    println!("publisher {}\nrouter {}", publisher.endpoint(), router.endpoint());

    let sending = publisher.clone();
    tokio::spawn(async move {
        let payload = Bytes::from(vec![0; PAYLOAD_LEN]);
        loop {
            sending.wait_for_subscribers(peers).await;
            let before = sending.stats();
            for _ in 0..BURST {
                sending.send(vec![payload.clone()]);
            }
            // The next burst follows when this one was delivered, or when a subscriber is stuck.
            let expected = before.delivered + BURST * before.subscribers as u64;
            let patience = Instant::now() + Duration::from_millis(100);
            while sending.stats().delivered < expected && Instant::now() < patience {
                sleep(Duration::from_micros(200)).await;
            }
        }
    });

    let mut second = interval(Duration::from_secs(1));
    let (mut delivered, mut replies) = (0, 0);
    loop {
        tokio::select! {
            incoming = router.recv() => {
                let incoming = incoming.unwrap();
                // A peer that left needs no reply.
                let _ = incoming.reply.send(incoming.payload).await;
            }
            _ = second.tick() => {
                let (published, routed) = (publisher.stats(), router.stats());
                println!(
                    "{} subscribers {} deliveries/s {} lost | {} requesters {} requests/s | {}",
                    published.subscribers, published.delivered - delivered, published.dropped,
                    routed.connections, routed.replies - replies, memory(),
                );
                (delivered, replies) = (published.delivered, routed.replies);
            }
        }
    }
}

/// Resident memory, now and at its highest.
fn memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let lines = status.lines().filter(|line| line.starts_with("VmRSS") || line.starts_with("VmHWM"));
    lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>().join(" ")
}

async fn subscribe(endpoint: Endpoint, peers: usize) {
    let mut tasks = JoinSet::new();
    for _ in 0..peers {
        let config = SubConfig {
            subscriptions: vec![Bytes::new()],
            limits: SocketLimits { max_queued: 16, ..SocketLimits::default() },
            heartbeat: Heartbeat::OFF,
            ..SubConfig::default()
        };
        let mut subscriber = Subscriber::connect(endpoint.clone(), config);
        tasks.spawn(async move {
            loop {
                if let SubEvent::Disconnected { reason } = subscriber.recv().await {
                    println!("{reason}");
                }
            }
        });
    }
    while tasks.join_next().await.is_some() {}
}

async fn request(endpoint: Endpoint, peers: usize) {
    let mut tasks = JoinSet::new();
    let end = Instant::now() + Duration::from_secs(15);
    for _ in 0..peers {
        let mut requester = Requester::new(endpoint.clone(), ReqConfig::default());
        tasks.spawn(async move {
            let payload = Bytes::from(vec![0; PAYLOAD_LEN]);
            let mut count = 0u64;
            while Instant::now() < end {
                match requester.request(payload.clone(), Duration::from_secs(60)).await {
                    Ok(_) => count += 1,
                    Err(error) => println!("{error}"),
                }
            }
            count
        });
    }
    let mut counts = tasks.join_all().await;
    counts.sort_unstable();
    println!("replies by peer: fewest {} median {} most {}", counts[0], counts[peers / 2], counts[peers - 1]);
}

async fn stuck(endpoint: &Endpoint, peers: usize) {
    use tokio::{io::AsyncWriteExt, net::TcpStream};
    let mut greeting = [0; 64];
    (greeting[0], greeting[9], greeting[10]) = (0xff, 0x7f, 3);
    greeting[12..16].copy_from_slice(b"NULL");
    let mut streams = Vec::new();
    for _ in 0..peers {
        let mut stream = TcpStream::connect(("127.0.0.1", endpoint.port().unwrap())).await.unwrap();
        stream.write_all(&greeting).await.unwrap();
        stream.write_all(b"\x04\x19\x05READY\x0bSocket-Type\0\0\0\x03SUB\0\x01\x01").await.unwrap();
        streams.push(stream);
    }
    std::future::pending::<()>().await;
}
