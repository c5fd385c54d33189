//! salt-api on another host than its master: here, one without the master's files. Its key has to be accepted, the master's key
//! has to be the right one, and strangers at the port get nothing.

use std::net::SocketAddr;
use std::os::unix::fs::chown;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use brine_kit::ports::free_ports;
use brine_kit::process::Daemon;
use brine_kit::programs::program;
use brine_kit::wait::{Deadline as _, wait_for};
use brine_kit::{files, is_root, keys};
use brine_protocol::envelope::Envelope;
use brine_protocol::keys::PrivateKey;
use brine_protocol::nodes::{self, FrameReader, Refusal, ToMaster, ToNode};
use brine_protocol::value::map;
use brine_tests::salt::{Kind, Master};
use brine_tls::{Identity, NodeStream};
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

use super::api::{PASSWORD, post, send};
use super::api_events::{Stream, events};

/// A second and some milliseconds for the test itself, on a busy machine.
const A_SECOND: Duration = Duration::from_millis(1_500);

/// A master with a port for nodes.
struct Elsewhere {
    master: Master,
    port: u16,
}

impl Elsewhere {
    fn prepare(more: &str) -> Self {
        let [port] = free_ports();
        Self { master: Master::prepare(Kind::Brine, &config(port, more)), port }
    }

    fn start(more: &str) -> Self {
        let mut there = Self::prepare(more);
        there.master.up();
        there
    }

    fn key(&self, args: &[&str]) -> Value {
        let mut all = vec!["--nodes", "--out=json", "-y"];
        all.extend(args);
        let output = self.master.command("salt-key", &all).exits(0);
        serde_json::from_str(&output.stdout).unwrap_or_default()
    }

    /// Waits until a key of this name has a status, and returns its fingerprint.
    fn wait_for(&self, name: &str, folder: &str) -> String {
        wait_for(&format!("{name} in {folder}"), || self.key(&["-L"])[folder][name].as_str().map(str::to_owned))
    }

    fn accept(&self, node: &Node) {
        self.wait_for(&node.name, "nodes_pre");
        self.key(&["-a", &node.name]);
        node.daemon.wait_log(IS_THERE);
    }
}

const IS_THERE: &str = "the master's event bus is there";

fn config(port: u16, more: &str) -> String {
    format!(
        "api_port: {port}\nexternal_auth: {{sharedsecret: {{ops: ['.*', '@events', '@wheel'], joe: [test.ping]}}}}\n\
         sharedsecret: {PASSWORD}\naudit_log: audit.log\n{more}"
    )
}

/// A salt-api without a master on its host.
struct Node {
    daemon: Daemon,
    name: String,
    port: u16,
    folder: tempfile::TempDir,
}

impl Node {
    /// Prepares one of this name with one of the tests' keys; the master's port is `at`.
    fn prepare(name: &str, pem: &str, at: u16, more: &str) -> (tempfile::TempDir, u16) {
        let folder = files::folder("brine-a");
        let [port] = free_ports();
        let dir = folder.path().display();
        for sub in ["conf", "pki"] {
            std::fs::create_dir_all(folder.path().join(sub)).expect("our own folder");
        }
        let key = PrivateKey::from_pem(pem).expect("a key");
        key.write_private(&folder.path().join("pki/api.pem")).expect("our own folder");
        let text = format!(
            "root_dir: {dir}\napi_master: 127.0.0.1\napi_port: {at}\napi_id: {name}\napi_pki_dir: {dir}/pki\n\
             api_logfile: {dir}/log\napi_pidfile: {dir}/pid\nnetapi_enable_clients: [local, local_async, wheel]\n\
             rest_cherrypy: {{host: 127.0.0.1, port: {port}, disable_ssl: True}}\n{more}\n"
        );
        std::fs::write(folder.path().join("conf/master"), text).expect("our own folder");
        (folder, port)
    }

    fn start(name: &str, pem: &str, at: u16, more: &str) -> Self {
        let (folder, port) = Self::prepare(name, pem, at, &format!("user: root\n{more}"));
        let daemon = Self::up(folder.path(), port);
        Self { daemon, name: name.to_owned(), port, folder }
    }

    fn up(folder: &Path, port: u16) -> Daemon {
        let conf = folder.join("conf").display().to_string();
        let daemon = Daemon::start(&program("salt-api"), &["-c", &conf, "-l", "debug"], &folder.join("out"));
        wait_for("salt-api to listen", || std::net::TcpStream::connect(("127.0.0.1", port)).ok().map(drop));
        daemon
    }

    fn log_in(&self, user: &str) -> String {
        let body = json!({"username": user, "password": PASSWORD, "eauth": "sharedsecret"});
        let reply = post(self.port, "/login", &[], &body);
        reply.json()["return"][0]["token"].as_str().unwrap_or_else(|| panic!("a token: {reply:?}")).to_owned()
    }

    fn ping(&self, token: &str) -> super::api::Reply {
        post(
            self.port,
            "/",
            &[("X-Auth-Token", token)],
            &json!({"client": "local_async", "tgt": "*", "fun": "test.ping"}),
        )
    }

    /// The status of a log-in with a wrong password: 401 where a master answers.
    fn answers(&self) -> u16 {
        let body = json!({"username": "ops", "password": "", "eauth": "sharedsecret"});
        post(self.port, "/login", &[], &body).status
    }

    fn is_away(&self) {
        assert_eq!(self.answers(), 503);
    }

    fn wait_away(&self, within: Duration) {
        within.wait_for("the node to lose its connection", || (self.answers() == 503).then_some(()));
    }
}

/// Both log in, run and watch; what one node's stream has not shown, the other one shows.
#[test]
fn a_stream_resumes_at_another_node() {
    let there = Elsewhere::start("");
    let minion = there.master.minion("m1");
    let [a, b] = [("api-a", 0), ("api-b", 1)].map(|(name, key)| Node::start(name, keys::PEM[key], there.port, ""));
    for node in [&a, &b] {
        node.is_away();
        there.accept(node);
        assert!(!node.folder.path().join("sock").exists() && !node.folder.path().join("cache").exists());
    }
    let token = a.log_in("ops");
    let key = ("X-Auth-Token", token.as_str());
    let ping = json!({"client": "local", "tgt": "m1", "fun": "test.ping"});
    assert_eq!(
        post(b.port, "/", &[key], &ping).json(),
        json!({"return": [{"m1": true}]}),
        "logged in at the other one"
    );
    let mut a = a;
    let first = Stream::at(a.port, &[key]);
    let jid = |reply: super::api::Reply| reply.json()["return"][0]["jid"].as_str().expect("a jid").to_owned();
    let before = jid(b.ping(&token));
    first.wait(&format!("tag: salt/job/{before}/ret/m1"));
    // Some come while it dies, and some when it is dead.
    let mut jids: Vec<String> = (0..5).map(|_| jid(b.ping(&token))).collect();
    a.daemon.kill();
    let first = events(&first.end());
    jids.extend((0..5).map(|_| jid(b.ping(&token))));
    let (_, last) = first.last().expect("events").clone();
    let second = Stream::at(b.port, &[key, ("Last-Event-ID", &last)]);
    for jid in &jids {
        wait_for("all returns", || {
            let both = [first.clone(), events(&second.text())].concat();
            both.iter().any(|(tag, _)| *tag == format!("salt/job/{jid}/ret/m1")).then_some(())
        });
    }
    let all = [first, events(&second.text())].concat();
    // Who may see all events gets each number once.
    let numbers: Vec<u64> =
        all.iter().map(|(_, id)| id.split_once('-').expect("an id").1.parse().expect("a number")).collect();
    let expected: Vec<u64> = (numbers[0]..).take(numbers.len()).collect();
    assert_eq!(numbers, expected, "nothing twice, nothing missing: {all:?}");
    let audit = std::fs::read_to_string(there.master.path("audit.log")).expect("an audit log");
    assert!(audit.contains(r#""action":"node","outcome":"allowed","id":"api-b","address":"127.0.0.1""#), "{audit}");
    drop(minion);
}

/// Only a key that the operator has accepted as a node's speaks for anybody, and only as long as it is accepted.
#[test]
fn only_an_accepted_key_speaks_for_callers() {
    // What lets minions in lets no node in.
    let mut there = Elsewhere::prepare("auto_accept: True\nautosign_file: autosign");
    std::fs::create_dir_all(there.master.path("conf")).expect("our own folder");
    std::fs::write(there.master.path("autosign"), "*\n").expect("our own folder");
    there.master.up();
    let minion = there.master.minion("m1");
    let of_minion = std::fs::read_to_string(minion.path("pki/minion.pem")).expect("the minion's key");
    let known = Node::start("m1", &of_minion, there.port, "");
    let finger = there.wait_for("m1", "nodes_pre");
    assert_eq!(there.master.command("salt-key", &["--out=json", "-f", "m1"]).json()["minions"]["m1"], json!(finger));
    known.daemon.wait_log("its key waits to be accepted there");
    known.is_away();
    let minions = there.master.command("salt-key", &["--out=json", "-L"]).exits(0).json();
    assert_eq!((&minions["minions"], &minions["minions_pre"]), (&json!(["m1"]), &json!([])), "a node is no minion");

    let node = Node::start("api1", keys::PEM[0], there.port, "");
    there.accept(&node);
    assert_eq!(node.answers(), 401);
    let token = node.log_in("ops");
    assert_eq!(node.ping(&token).status, 200);
    // The wheel decides about minions and not about nodes.
    let wheel = json!({"client": "wheel", "fun": "key.accept", "match": "*"});
    assert_eq!(post(node.port, "/", &[("X-Auth-Token", &token)], &wheel).status, 200);
    known.is_away();
    let stream = Stream::at(node.port, &[("X-Auth-Token", &token)]);

    // Another key by the same name.
    let thief = Node::start("api1", keys::PEM[1], there.port, "");
    thief.daemon.wait_log("another key is known there by this name");
    thief.is_away();
    assert_eq!(there.key(&["-L"])["nodes_denied"].as_object().map(|nodes| nodes.len()), Some(1));

    // Rejected, it loses its connection; accepted again, it comes back by itself, and its streams go on.
    there.key(&["--include-accepted", "-r", "api1"]);
    node.wait_away(A_SECOND);
    node.daemon.wait_log("its key has been rejected there");
    there.key(&["--include-rejected", "-a", "api1"]);
    wait_for("the node to come back", || (node.answers() == 401).then_some(()));
    let jid = node.ping(&token).json()["return"][0]["jid"].as_str().expect("a jid").to_owned();
    stream.wait(&format!("salt/job/{jid}/ret/m1"));
    // Deleted, it is a stranger.
    there.key(&["-d", "api1"]);
    node.wait_away(A_SECOND);
    there.wait_for("api1", "nodes_pre");
    node.is_away();
    let audit = std::fs::read_to_string(there.master.path("audit.log")).expect("an audit log");
    for part in [r#""act":"accepted","id":"api1""#, r#""act":"rejected","id":"api1""#, r#""act":"delete","id":"api1""#]
    {
        assert!(
            audit.lines().any(|line| line.contains(r#""action":"node_key""#) && line.contains(part)),
            "{part}: {audit}"
        );
    }
    assert_eq!(there.master.salt(&["m1", "test.ping"]).code, 0, "the minion is still one");
}

/// A node goes to its own master alone, and has no secrets for another one.
#[test]
fn another_masters_key_is_refused() {
    let mut first = Elsewhere::start("");
    let finger =
        first.master.command("salt-key", &["--out=json", "-f", "master.pub"]).json()["local"]["master.pub"].clone();
    let finger = format!("api_master_finger: '{}'", finger.as_str().expect("a fingerprint"));
    let trusting = Node::start("api1", keys::PEM[0], first.port, "");
    let knowing = Node::start("api2", keys::PEM[1], first.port, &finger);
    for node in [&trusting, &knowing] {
        first.accept(node);
        assert_eq!(node.answers(), 401);
    }
    assert!(trusting.folder.path().join("pki/api_master.pub").exists());
    assert!(!knowing.folder.path().join("pki/api_master.pub").exists());
    // The master goes, and another one takes its place, which has accepted everybody.
    first.master.stop();
    let mut other = Master::prepare(Kind::Brine, &config(first.port, ""));
    for (name, pem) in [("api1", keys::PEM[0]), ("api2", keys::PEM[1])] {
        std::fs::create_dir_all(other.path("pki/nodes")).expect("our own folder");
        let public = PrivateKey::from_pem(pem).expect("a key").public().to_pem();
        std::fs::write(other.path("pki/nodes").join(name), public).expect("our own folder");
    }
    other.up();
    trusting.daemon.wait_log("it has another key than before");
    knowing.daemon.wait_log("is not that of api_master_finger");
    trusting.is_away();
    knowing.is_away();
    assert!(!other.daemon.as_ref().expect("it runs").log_text().contains("has connected"), "nobody came");
    // The first one is back.
    other.stop();
    first.master.up();
    for node in [&trusting, &knowing] {
        wait_for("the node to come back by itself", || (node.answers() == 401).then_some(()));
    }
}

fn identity(n: usize) -> Identity {
    Identity::new(&PrivateKey::from_pem(keys::PEM[n]).expect("a key")).expect("2,048 bits")
}

async fn connect(port: u16, from: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(SocketAddr::new(from.parse().expect("an address"), 0)).expect("an address of this host");
    socket.connect(SocketAddr::from(([127, 0, 0, 1], port))).await.expect("the master listens")
}

async fn tls(port: u16, from: &str, n: usize) -> NodeStream<TcpStream> {
    brine_tls::connect(connect(port, from).await, &identity(n), |_| true).await.expect("a master").0
}

/// Returns what the other end says until it closes the connection, which it does soon.
async fn said(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> Vec<u8> {
    let mut said = Vec::new();
    // A reset says as much as an end.
    let _ = Duration::from_secs(15).within(stream.read_to_end(&mut said)).await;
    said
}

/// Whoever comes to the port without an accepted key gets a refusal at most, soon, and keeps no node away.
#[tokio::test(flavor = "multi_thread")]
async fn strangers_get_nothing() {
    let there = Elsewhere::start("");
    let port = there.port;
    let mut node = tokio::task::block_in_place(|| {
        let node = Node::start("api1", keys::PEM[0], port, "");
        there.accept(&node);
        node
    });

    // Something else, in clear.
    for text in [&b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..], b"\0\0\0\x02\x95\x05", b"\x16\x03\x01\xff\xff\xff"] {
        let mut stream = connect(port, "127.1.0.1").await;
        stream.write_all(text).await.expect("it is accepted");
        let _ = stream.shutdown().await;
        let said = said(&mut stream).await;
        assert!(said.is_empty() || said[0] == 0x15, "an alert of TLS at most: {said:?}");
    }
    // TLS as others speak it: 1.2, and 1.3 without a key of one's own.
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config =
            ClientConfig::builder_with_provider(provider).with_protocol_versions(&[version]).expect("a version");
        let config = config.with_root_certificates(RootCertStore::empty()).with_no_client_auth();
        let stream = connect(port, "127.1.0.2").await;
        let name = ServerName::try_from("master").expect("a name");
        let error = TlsConnector::from(Arc::new(config)).connect(name, stream).await.expect_err("refused");
        assert!(error.to_string().contains("received fatal alert"), "{error}");
    }
    // A key that nobody has accepted: one message, whatever it asks for.
    let mut stream = tls(port, "127.1.0.3", 1).await;
    let log_in = map([("cmd", "mk_token"), ("username", "ops"), ("password", PASSWORD), ("eauth", "sharedsecret")]);
    let request = ToMaster::Request {
        id: 1,
        address: [192, 0, 2, 7].into(),
        until: u64::MAX,
        payload: Envelope::clear(log_in).encode(),
    };
    let join = |name: &str| ToMaster::Join { version: nodes::VERSION, name: name.to_owned() };
    for message in [join("api2"), request.clone()] {
        stream.write_all(&nodes::frame(&message.encode())).await.expect("it is open");
    }
    let mut reader = FrameReader::new(&mut stream, 1 << 10);
    let only = reader.next().await.expect("a message").expect("a message");
    assert_eq!(ToNode::decode(&only), Ok(ToNode::Refused(Refusal::Pending)));
    assert!(!matches!(reader.next().await, Ok(Some(_))), "no more");
    // Requests before it says who it is, and names that are none.
    for (n, first) in
        [(0, request), (0, join("../../etc/passwd")), (0, join("*")), (0, join("")), (0, join(&"x".repeat(5_000)))]
    {
        let mut stream = tls(port, "127.1.0.4", n).await;
        let _ = stream.write_all(&nodes::frame(&first.encode())).await;
        assert_eq!(said(&mut stream).await, b"");
    }
    // Who proves an accepted key and says nothing, or half a handshake.
    let began = Instant::now();
    let (mut silent, mut slow) = (tls(port, "127.1.0.5", 0).await, connect(port, "127.1.0.5").await);
    slow.write_all(b"\x16\x03\x01").await.expect("it is open");
    let both = tokio::join!(said(&mut silent), said(&mut slow));
    assert_eq!(both, (Vec::new(), Vec::new()));
    assert!(began.elapsed() < Duration::from_secs(12), "{:?}", began.elapsed());

    // A thousand strangers from many addresses, most of which say nothing, and keys of many of them.
    let mut held = Vec::new();
    for n in 0..1_000_u16 {
        let from = format!("127.2.{}.{}", n / 250, n % 250 + 1);
        held.push(connect(port, &from).await);
    }
    let floods = (0..30).map(|n| async move {
        for key in [1, 2] {
            let from = format!("127.3.0.{}", n % 5 + 1);
            let stream = connect(port, &from).await;
            let Ok((mut stream, _)) = brine_tls::connect(stream, &identity(key), |_| true).await else { continue };
            let join = ToMaster::Join { version: nodes::VERSION, name: format!("flood{n}") };
            let _ = stream.write_all(&nodes::frame(&join.encode())).await;
            said(&mut stream).await;
        }
    });
    futures_util::future::join_all(floods).await;
    tokio::task::block_in_place(|| {
        assert_eq!(node.answers(), 401, "a connected node notices nothing");
        let waiting = there.key(&["-L"])["nodes_pre"].as_object().map(|nodes| nodes.len()).unwrap_or_default();
        assert!((1..=1 + 5 * 4).contains(&waiting), "of one address four keys wait: {waiting}");
        // It comes back while they stay: its address is known.
        assert!(node.daemon.terminate().success());
        node.daemon = Node::up(node.folder.path(), node.port);
        wait_for("the node to come back", || (node.answers() == 401).then_some(()));
    });
    // The silent ones are closed.
    for stream in &mut held {
        assert_eq!(said(stream).await, b"");
    }
}

/// A connection of the node `api1`, whose key is accepted, after the master's first message.
async fn joined(port: u16) -> (FrameReader<tokio::io::ReadHalf<NodeStream<TcpStream>>>, Writer) {
    let mut stream = tls(port, "127.0.0.1", 0).await;
    let join = ToMaster::Join { version: nodes::VERSION, name: "api1".to_owned() };
    stream.write_all(&nodes::frame(&join.encode())).await.expect("it is open");
    let (reader, writer) = tokio::io::split(stream);
    let mut reader = FrameReader::new(reader, 1 << 20);
    let first = Duration::from_secs(15).within(reader.next()).await.expect("a message").expect("a message");
    assert!(matches!(ToNode::decode(&first), Ok(ToNode::Hello { .. })), "{first:?}");
    (reader, writer)
}

type Writer = tokio::io::WriteHalf<NodeStream<TcpStream>>;

/// A node with an accepted key that has fallen into wrong hands costs the master a bounded share, and others notice nothing.
#[tokio::test(flavor = "multi_thread")]
async fn an_accepted_node_that_misbehaves_is_bounded() {
    let there = Elsewhere::start("");
    let port = there.port;
    let (honest, token) = tokio::task::block_in_place(|| {
        let honest = Node::start("api2", keys::PEM[1], port, "");
        there.accept(&honest);
        let token = honest.log_in("ops");
        // The key of the other one is accepted too.
        let other = Node::start("api1", keys::PEM[0], port, "");
        there.accept(&other);
        (honest, token)
    });
    let frame = |message: ToMaster| nodes::frame(&message.encode());
    let join = || ToMaster::Join { version: nodes::VERSION, name: "api2".to_owned() };
    // What is no message, one that is too long, a second name, a token without end: the connection ends.
    let long = ToMaster::Watch { id: 1, token: "a".repeat(1 << 20).into(), after: None };
    for wrong in [nodes::frame(b"\xc1").to_vec(), frame(join()).to_vec(), frame(long).to_vec(), vec![0xff; 64]] {
        let (mut reader, mut writer) = joined(port).await;
        let _ = writer.write_all(&wrong).await;
        let end = async { while let Ok(Some(_)) = reader.next().await {} };
        Duration::from_secs(15).within(end).await;
    }
    // One name has four connections at most. Nobody hears from a silent one for long.
    let began = Instant::now();
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(joined(port).await);
    }
    let mut fifth = tls(port, "127.0.0.1", 0).await;
    let own = ToMaster::Join { version: nodes::VERSION, name: "api1".to_owned() };
    fifth.write_all(&frame(own)).await.expect("it is open");
    let mut reader = FrameReader::new(&mut fifth, 1 << 10);
    let only = reader.next().await.expect("a message").expect("a message");
    assert_eq!(ToNode::decode(&only), Ok(ToNode::Refused(Refusal::Many)));
    for (reader, _writer) in &mut held {
        let end = async { while let Ok(Some(_)) = reader.next().await {} };
        Duration::from_secs(30).within(end).await;
    }
    assert!(began.elapsed() > Duration::from_secs(5), "silence for a moment is no end: {:?}", began.elapsed());
    drop(held);

    // It asks and asks, and reads no reply: what waits has a bound in bytes, and the rest waits in its own socket.
    let pid = there.master.daemon.as_ref().expect("it runs").pid();
    let before = brine_kit::process::resident(pid);
    let (_reader, mut writer) = joined(port).await;
    // Replies that are larger than the buffers between the two.
    let load = map([("cmd", "wheel"), ("token", &*token), ("fun", "config.values"), ("rest", &*"y".repeat(4 << 20))]);
    let payload = Envelope::clear(load).encode();
    let mut sent = 0;
    for id in 1.. {
        let address = [192, 0, 2, 7].into();
        let request = frame(ToMaster::Request { id, address, until: u64::MAX, payload: payload.clone() });
        match tokio::time::timeout(Duration::from_secs(3), writer.write_all(&request)).await {
            Ok(Ok(())) if sent < 2 << 30 => sent += request.len(),
            _ => break,
        }
    }
    let grown = brine_kit::process::resident(pid).saturating_sub(before) >> 20;
    // Most of it is what the allocator keeps of single requests; without the bound, all that is sent stays.
    assert!(grown < 1_400, "{grown} MiB for {sent} bytes");
    tokio::task::block_in_place(|| assert_eq!(honest.ping(&token).status, 200, "others notice nothing"));
}

/// A master that hangs keeps its sockets open. New requests are 503 within a second all the same, and what was given up is not done
/// when it goes on.
#[test]
fn a_master_that_hangs_is_away_within_a_second() {
    let there = Elsewhere::start("");
    let remote = Node::start("api1", keys::PEM[0], there.port, "");
    there.accept(&remote);
    let token = remote.log_in("ops");
    let key = ("X-Auth-Token", token.as_str());
    // Over the socket it is the same.
    let [local] = free_ports();
    std::fs::create_dir_all(there.master.path("conf2")).expect("our own folder");
    let text = std::fs::read_to_string(there.master.path("conf/master")).expect("our own file");
    let more = format!(
        "netapi_enable_clients: [local_async]\napi_logfile: api.log\napi_pidfile: api.pid\n\
         rest_cherrypy: {{host: 127.0.0.1, port: {local}, disable_ssl: True}}\n"
    );
    std::fs::write(there.master.path("conf2/master"), text + &more).expect("our own folder");
    let conf = there.master.path("conf2").display().to_string();
    let daemon = Daemon::start(&program("salt-api"), &["-c", &conf, "-l", "debug"], &there.master.path("api.out"));
    daemon.wait_log(IS_THERE);
    let ping = json!({"client": "local_async", "tgt": "*", "fun": "test.ping"}).to_string();
    let log_in = json!({"username": "ops", "password": PASSWORD, "eauth": "sharedsecret"}).to_string();
    let events = there.master.events();
    let stream = Stream::at(remote.port, &[key]);
    let master = there.master.daemon.as_ref().expect("it runs");
    master.signal(Signal::STOP);
    // The signal is on its way for a moment, to each of its threads.
    wait_for("the master to hang", || {
        let threads = std::fs::read_dir(format!("/proc/{}/task", master.pid())).ok()?;
        let mut states =
            threads.flatten().filter_map(|thread| std::fs::read_to_string(thread.path().join("stat")).ok());
        states.all(|stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))).then_some(())
    });
    let types = ("Content-Type", "application/json");
    let asked: Vec<_> = [remote.port, local]
        .into_iter()
        .flat_map(|port| {
            let calls = [
                ("POST", "/", &ping),
                ("POST", "/login", &log_in),
                ("GET", "/events", &log_in),
                ("POST", "/hook/x", &ping),
            ];
            calls.map(|(method, path, body)| {
                let (token, body) = (token.clone(), body.clone());
                std::thread::spawn(move || {
                    let began = Instant::now();
                    let status = send(port, method, path, &[("X-Auth-Token", &token), types], &body).status;
                    (path, status, began.elapsed())
                })
            })
        })
        .collect();
    for asked in asked {
        let (path, status, took) = asked.join().expect("no panic");
        assert!(status == 503 && took < A_SECOND, "{path}: {status} after {took:?}");
    }
    // Later ones too.
    for port in [remote.port, local] {
        let began = Instant::now();
        assert_eq!(send(port, "POST", "/", &[key, types], &ping).status, 503);
        assert!(began.elapsed() < A_SECOND, "{:?}", began.elapsed());
    }
    master.signal(Signal::CONT);
    wait_for("the session to go on", || {
        let reply = send(remote.port, "POST", "/hook/done", &[key, types], "{}");
        (reply.status == 200).then_some(())
    });
    stream.wait("salt/netapi/hook/done");
    let done: Vec<String> = events.all().into_iter().map(|(tag, _)| tag).collect();
    assert!(
        !done.iter().any(|tag| tag == "salt/netapi/hook/x" || tag.ends_with("/new")),
        "given up, and done: {done:?}"
    );
    assert!(!stream.text().contains("salt/netapi/hook/x"));
}

/// It needs no rights on its host, and no master's files.
#[test]
fn an_unprivileged_salt_api_needs_a_folder_of_its_own() {
    if !is_root() {
        return;
    }
    let there = Elsewhere::start("");
    let (folder, port) = Node::prepare("api1", keys::PEM[0], there.port, "user: nobody");
    let own = |path: &Path| chown(path, Some(65_534), Some(65_534)).expect("root");
    for path in ["", "conf", "conf/master", "pki", "pki/api.pem"] {
        own(&folder.path().join(path));
    }
    let conf = folder.path().join("conf").display().to_string();
    let api = program("salt-api").display().to_string();
    let words =
        ["--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs", &api, "-c", &conf, "-l", "debug"];
    let out = folder.path().join("out");
    let daemon = Daemon::start(Path::new("/usr/bin/setpriv"), &words, &out);
    wait_for("salt-api to listen", || std::net::TcpStream::connect(("127.0.0.1", port)).ok().map(drop));
    let node = Node { daemon, name: "api1".to_owned(), port, folder };
    there.accept(&node);
    assert_eq!(node.answers(), 401);
    assert!(node.folder.path().join("pki/api_master.pub").exists());
}
