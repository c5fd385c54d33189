//! Measurements, not tests: `cargo test --release -p brine-master --test master -- --ignored --nocapture measure`.

use std::time::Instant;

use brine_protocol::auth::MinionAuth;
use brine_protocol::value::{Value, map};

use super::harness::*;

#[tokio::test(flavor = "multi_thread")]
#[ignore = "it measures; see the head of this file"]
async fn measure() {
    let master = TestMaster::start("minion_rate: 0\nminion_rate_bytes: 0").await;
    let minion = master.minion("web1", 1).await;
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

/// A master in its own process, so that its memory can be measured: this build, or the program in
/// `BRINE_MEASURE_MASTER`.
struct Process {
    child: std::process::Child,
    dir: tempfile::TempDir,
    request: u16,
    publish: u16,
}

impl Process {
    #[allow(clippy::disallowed_methods, reason = "a test starts what it measures")]
    async fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("pki/minions")).unwrap();
        key(0).write_private(&dir.path().join("pki/master.pem")).unwrap();
        std::fs::write(dir.path().join("pki/minions/web1"), key(1).public().clean_pem()).unwrap();
        let [publish, request] = brine_kit::ports::free_ports();
        let top = dir.path().display();
        let config = format!(
            "id: test\ninterface: 0.0.0.0\npublish_port: {publish}\nret_port: {request}\nroot_dir: {top}\npki_dir: {top}/pki\ncachedir: {top}/cache\n\
             sock_dir: {top}/sock\npidfile: {top}/pid\nlog_file: {top}/log\nlog_level: error\nsharedsecret: right\n\
             external_auth: {{sharedsecret: {{ann: ['.*']}}}}\n"
        );
        std::fs::write(dir.path().join("master"), config).unwrap();
        let program =
            std::env::var("BRINE_MEASURE_MASTER").unwrap_or_else(|_| env!("CARGO_BIN_EXE_salt-master").into());
        println!("{program}");
        let child = std::process::Command::new(program).arg("-c").arg(dir.path()).spawn().unwrap();
        while tokio::net::TcpStream::connect(("127.0.0.1", request)).await.is_err() {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        Self { child, dir, request, publish }
    }

    fn memory_mib(&self) -> u64 {
        brine_kit::process::resident(self.child.id()) >> 20
    }

    fn requester(&self) -> brine_zmtp::Requester {
        brine_zmtp::Requester::new(
            brine_zmtp::Endpoint::tcp("127.0.0.1", self.request),
            brine_zmtp::ReqConfig::default(),
        )
    }

    /// Measures a minion's requests while `beside` runs.
    async fn minion_beside(&self, beside: impl Future<Output = ()>) -> Vec<std::time::Duration> {
        let mut minion = TestMinion::new("web1", 1);
        minion.connect(&brine_zmtp::Endpoint::tcp("127.0.0.1", self.request)).await;
        let mut took = Vec::new();
        let asking = async {
            loop {
                let began = Instant::now();
                let sealed = minion.session.as_ref().unwrap().seal_request(map([("cmd", "_file_envs")])).unwrap();
                // Each request has a new connection, like those of 3006's minions, and a longer time limit than theirs.
                let _ = self.requester().request(sealed.payload.into(), 4 * SOON).await;
                took.push(began.elapsed());
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        tokio::select! { () = beside => {}, () = asking => {} }
        took.sort_unstable();
        took
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = self.dir.path();
    }
}

/// Connects and completes the handshake, from one of 200 addresses if this host has them (`ip addr add 10.77.0.N dev
/// lo`).
async fn raw(n: usize, port: u16, kind: &str) -> Option<tokio::net::TcpStream> {
    use brine_zmtp::frame::{Command, ReadyProperties, encode_command};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    let from = std::net::Ipv4Addr::new(10, 77, 0, u8::try_from(n % 200 + 1).unwrap());
    let to = match socket.bind((from, 0).into()) {
        Ok(()) => std::net::Ipv4Addr::new(10, 77, 0, 1),
        Err(_) => std::net::Ipv4Addr::LOCALHOST,
    };
    let mut stream = socket.connect((to, port).into()).await.ok()?;
    let mut greeting = [0; 64];
    stream.read_exact(&mut greeting).await.ok()?;
    let ready = Command::Ready(ReadyProperties { socket_type: kind.to_owned().into(), identity: Vec::new().into() });
    stream.write_all(&[&greeting[..], &encode_command(&ready)].concat()).await.ok()?;
    let mut header = [0; 2];
    stream.read_exact(&mut header).await.ok()?;
    stream.read_exact(&mut vec![0; usize::from(header[1])]).await.ok()?;
    Some(stream)
}

/// Measures the effect of strangers on others and on the master's memory: `… -- --ignored --nocapture
/// crowds_of_strangers`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "it measures; see the head of this file"]
async fn crowds_of_strangers() {
    use brine_protocol::envelope::Envelope;
    use brine_zmtp::frame::{Command, encode_command, encode_message};
    use tokio::io::AsyncWriteExt;

    let master = Process::start().await;
    let request = |n: usize| {
        let load = map([
            ("cmd", Value::from("mk_token")),
            ("eauth", "sharedsecret".into()),
            ("username", format!("user{n}").into()),
            ("password", "wrong".into()),
            ("x", Value::Array(vec![Value::from(1); 5_000])),
        ]);
        encode_message(&[bytes::Bytes::new(), Envelope::clear(load).encode().into()])
    };
    let burst = async {
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        let mut peers = tokio::task::JoinSet::new();
        for n in 0..4_500 {
            let (request, port) = (request(n), master.request);
            peers.spawn(async move {
                let mut peer = raw(n, port, "REQ").await?;
                peer.write_all(&request).await.ok()?;
                Some(peer)
            });
        }
        let _peers = peers.join_all().await;
        tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    };
    let took = master.minion_beside(burst).await;
    let at = |part: f64| took[((took.len() - 1) as f64 * part) as usize];
    println!(
        "4,500 log-ins of 5,000 values: a minion's requests: {} of them, median {:.1?}, p99 {:.1?}, longest {:.1?}; memory {} MiB",
        took.len(),
        at(0.5),
        at(0.99),
        at(1.0),
        master.memory_mib()
    );
    drop(master);

    let master = Process::start().await;
    println!("memory before: {} MiB", master.memory_mib());
    let mut hostile = tokio::task::JoinSet::new();
    for n in 0..800 {
        let port = master.publish;
        hostile.spawn(async move {
            let mut peer = raw(n, port, "SUB").await?;
            for number in 0..1_024_u32 {
                let mut topic = vec![7; 4_080];
                topic.extend(number.to_be_bytes());
                peer.write_all(&encode_command(&Command::Subscribe(topic.into()))).await.ok()?;
            }
            Some(peer)
        });
    }
    let hostile = hostile.join_all().await;
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    println!("800 connections of 1,024 subscriptions of 4 KiB: {} MiB", master.memory_mib());
    drop(hostile);
    let mut hostile = tokio::task::JoinSet::new();
    for n in 0..800 {
        let port = master.publish;
        hostile.spawn(async move {
            let mut peer = raw(n, port, "SUB").await?;
            for number in 0..16_u8 {
                let topic = vec![number; 256];
                peer.write_all(&encode_command(&Command::Subscribe(topic.into()))).await.ok()?;
            }
            Some(peer)
        });
    }
    let hostile = hostile.join_all().await;
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    println!("800 connections of 16 subscriptions of 256 bytes: {} MiB", master.memory_mib());
    drop(hostile);
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    println!("when they have gone: {} MiB", master.memory_mib());

    let mut good = Vec::new();
    for n in 0..9_900 {
        let Some(mut peer) = raw(n, master.publish, "SUB").await else { break };
        for topic in ["0123456789".repeat(4), "9876543210".repeat(4), "broadcast".to_owned()] {
            peer.write_all(&encode_command(&Command::Subscribe(topic.into()))).await.unwrap();
        }
        good.push(peer);
    }
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    let is_open = |peer: &&tokio::net::TcpStream| match peer.try_read(&mut [0]) {
        Ok(count) => count > 0,
        Err(error) => error.kind() == std::io::ErrorKind::WouldBlock,
    };
    let open = good.iter().filter(is_open).count();
    println!("{} good subscribers of three topics, {} still there: {} MiB", good.len(), open, master.memory_mib());
}
