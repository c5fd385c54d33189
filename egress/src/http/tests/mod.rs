//! Tests with servers on loopback, which is granted by address. Names resolve as each test defines.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use brine_kit::wait::Deadline;
use brine_kit_sandbox::job;
use brine_protocol::value::ValueExt;
use brine_sandbox::{Capability, Grant, Grants, JobContext, LogLevel, NetworkRule, RefusedCall, Remedy};
use futures_util::future::BoxFuture;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::*;
use crate::names::Found;

/// A deadline far beyond the duration of every step, and shorter than the time limit of requests.
const DEADLINE: Duration = Duration::from_secs(20);

/// Answers each look-up with the next list of addresses; the last list is repeated.
#[derive(Default)]
struct Scripted {
    answers: Mutex<Vec<(&'static str, Vec<IpAddr>)>>,
    /// This host's addresses.
    own: Vec<IpAddr>,
    asked: AtomicUsize,
}

impl Resolver for Scripted {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Found>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let mut answers = self.answers.lock().unwrap();
        let at = answers.iter().position(|(known, _)| *known == name);
        let more = at.is_some_and(|at| answers[at + 1..].iter().any(|(known, _)| *known == name));
        let found = at.map(|at| if more { answers.remove(at).1 } else { answers[at].1.clone() });
        let own = self.own.iter().copied().collect();
        Box::pin(async move {
            let addresses = found.ok_or_else(|| io::Error::other("no such name"))?;
            Ok(Found { addresses, own })
        })
    }
}

/// A server whose connections behave as the test defines. Returns the head of each request and the beginning of its
/// body.
struct Server {
    at: SocketAddr,
    requests: mpsc::UnboundedReceiver<String>,
    _tasks: JoinSet<()>,
}

impl Server {
    async fn start<F, T>(serve: F) -> Self
    where
        F: Fn(String, TcpStream) -> T + Send + Sync + 'static,
        T: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let (seen, requests) = mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        let serve = Arc::new(serve);
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                let (seen, serve) = (seen.clone(), Arc::clone(&serve));
                connections.spawn(async move {
                    let Some(request) = read_request(&mut stream).await else { return };
                    let _ = seen.send(request.clone());
                    serve(request, stream).await;
                });
            }
        });
        Self { at, requests, _tasks: tasks }
    }

    /// The same response for every request.
    async fn says(answer: impl Into<Vec<u8>>) -> Self {
        let answer = Arc::new(answer.into());
        Self::start(move |_, mut stream| {
            let answer = Arc::clone(&answer);
            async move {
                let _ = stream.write_all(&answer).await;
                let _ = stream.shutdown().await;
                // Waits until the client has read the response and left.
                let _ = stream.read(&mut [0; 1]).await;
            }
        })
        .await
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.at)
    }

    fn seen(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.requests.try_recv().ok()).collect()
    }
}

async fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut text = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let n = stream.read(&mut buffer).await.ok().filter(|n| *n > 0)?;
        text.extend_from_slice(&buffer[..n]);
        let shown = String::from_utf8_lossy(&text).to_lowercase();
        let Some(head) = shown.find("\r\n\r\n") else { continue };
        let length =
            shown[..head].lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
        if text.len() >= head + 4 + length.unwrap_or(0) {
            return Some(shown);
        }
    }
}

fn redirect(status: u16, to: &str) -> String {
    format!("HTTP/1.1 {status} x\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n")
}

const GOOD: &str = "HTTP/1.1 200 OK\r\nX-A: b\r\nContent-Length: 5\r\n\r\nhello";

fn caller(granted: &[(&str, u16)]) -> Caller {
    let mut grants = Grants::default();
    let rule = |(host, port): &(&str, u16)| NetworkRule { host: (*host).to_owned(), ports: (*port, *port) };
    grants.direct.network = granted.iter().map(rule).collect();
    brine_kit_sandbox::caller(job("20261120134740245008", "m.f"), "m", grants)
}

fn get(url: &str) -> HttpRequest {
    HttpRequest { method: "GET".into(), url: url.into(), max_redirects: 5, ..HttpRequest::default() }
}

fn http(names: &[(&'static str, &str)]) -> (Http, Arc<Scripted>) {
    let resolver = Arc::new(scripted(names));
    (Http::new(Arc::clone(&resolver) as Arc<dyn Resolver>), resolver)
}

fn scripted(names: &[(&'static str, &str)]) -> Scripted {
    let answers = names.iter().map(|(name, all)| (*name, all.split(' ').map(|a| a.parse().unwrap()).collect()));
    let own = ["198.51.100.7", "2001:db8::7"].map(|address| address.parse().unwrap()).to_vec();
    Scripted { answers: Mutex::new(answers.collect()), own, ..Scripted::default() }
}

/// Takes note of what was refused, with whether a line would grant it.
#[derive(Default)]
struct Owner(Mutex<Vec<(String, Option<String>)>>);

impl Broker for Owner {
    fn host_call<'a>(&'a self, _: &'a Caller, op: brine_sandbox::HostOp) -> BoxFuture<'a, Result<Value, HostError>> {
        panic!("{op:?}")
    }

    fn log(&self, _: &JobContext, _: LogLevel, _: &str) {}

    fn refused(&self, refused: &RefusedCall<'_>) {
        self.0.lock().unwrap().push((refused.what.to_owned(), (refused.line)()));
    }
}

/// Writes grants of hosts down.
#[derive(Debug)]
struct Line;

impl Remedy for Line {
    fn sentence(&self, _: Capability, _: Grant) -> String {
        String::new()
    }

    fn line(&self, _: Capability, grant: Grant) -> Option<String> {
        let Grant::Network(rules) = grant else { return None };
        Some(rules.iter().map(|rule| format!("{}:{}", rule.host, rule.ports.0)).collect::<Vec<_>>().join(" "))
    }
}

async fn send(http: &Http, caller: &Caller, request: HttpRequest) -> Result<Value, String> {
    send_told(http, caller, request).await.0
}

/// Sends a request. Returns what the owner is told besides.
async fn send_told(
    http: &Http,
    caller: &Caller,
    request: HttpRequest,
) -> (Result<Value, String>, Vec<(String, Option<String>)>) {
    let owner = Owner::default();
    let caller = caller.clone().with_remedy(Arc::new(Line));
    let answer = http.answer(&owner, &caller, HttpOp::Request(Box::new(request)));
    let answer = DEADLINE.within(answer).await.map_err(|e| e.to_string());
    (answer, owner.0.into_inner().unwrap())
}

#[tokio::test]
async fn a_request_and_its_answer() {
    let mut server = Server::says(GOOD).await;
    let (http, _) = http(&[]);
    let caller = caller(&[("127.0.0.1", server.at.port())]);
    let headers = vec![("X-Token".into(), "t".into()), ("Accept".into(), "text/plain".into())];
    let request = HttpRequest {
        method: "POST".into(),
        headers,
        body: Some(b"body".to_vec().into()),
        ..get(&server.url("/a?b#c"))
    };
    let answer = send(&http, &caller, request).await.unwrap();
    assert_eq!(answer.get_u64("status"), Some(200));
    assert_eq!(answer.get("body"), Some(&Value::Binary(b"hello".to_vec())));
    assert_eq!(answer.get_text("url"), Some(server.url("/a?b").as_str()));
    let pair = list(["x-a", "b"]);
    assert!(answer.get_list("headers").unwrap().contains(&pair), "{answer}");
    let seen = server.seen().remove(0);
    assert!(seen.starts_with("post /a?b http/1.1\r\n") && seen.ends_with("\r\n\r\nbody"), "{seen}");
    for line in
        [format!("host: {}", server.at), "x-token: t".into(), "accept: text/plain".into(), "content-length: 4".into()]
    {
        assert!(seen.contains(&format!("\r\n{line}\r\n")), "{line} in {seen}");
    }
    assert!(!seen.contains("accept-encoding"), "{seen}");
}

#[tokio::test]
async fn what_decides_about_the_message_is_not_the_modules() {
    let mut server = Server::says(GOOD).await;
    let (http, _) = http(&[]);
    let caller = caller(&[("127.0.0.1", server.at.port())]);
    for (name, value) in [
        ("Host", "other"),
        ("content-length", "3"),
        ("Transfer-Encoding", "chunked"),
        ("Connection", "x"),
        ("Upgrade", "h2c"),
        ("Proxy-Authorization", "x"),
        ("X\r\nY", "z"),
        ("X", "a\r\nHost: b"),
        ("X", "a\0"),
        ("", "x"),
        ("X y", "z"),
        ("Expect", "x"),
    ] {
        let request = HttpRequest { headers: vec![(name.into(), value.into())], ..get(&server.url("/")) };
        let error = send(&http, &caller, request).await.unwrap_err();
        assert!(error.contains("header") && !error.contains(['\r', '\n']), "{error}");
    }
    let many = |n: usize, text: &str| (0..n).map(|n| (format!("x-{n}"), text.to_owned())).collect::<Vec<_>>();
    for headers in [many(101, "x"), many(2, &"x".repeat(20_000))] {
        assert!(send(&http, &caller, HttpRequest { headers, ..get(&server.url("/")) }).await.is_err());
    }
    for method in ["CONNECT", "TRACE", "G T", "", "GET\r\n", &"X".repeat(33)] {
        let request = HttpRequest { method: method.into(), ..get(&server.url("/")) };
        assert!(send(&http, &caller, request).await.unwrap_err().contains("method"), "{method}");
    }
    assert_eq!(server.seen().len(), 0);
}

#[tokio::test]
async fn redirects_are_followed_to_what_was_granted_and_nowhere_else() {
    let mut other = Server::says(GOOD).await;
    let to_other = format!("http://b.example:{}/x", other.at.port());
    let mut first = Server::says(redirect(302, &to_other)).await;
    let (a, b) = (first.at.port(), other.at.port());
    let (http, resolver) = http(&[("a.example", "127.0.0.1"), ("b.example", "127.0.0.1")]);
    let url = format!("http://a.example:{a}/");
    // The address is granted, but the second name is not.
    let granted = [("a.example", a), ("127.0.0.1", a), ("127.0.0.1", b)];
    let (refused, told) = send_told(&http, &caller(&granted), get(&url)).await;
    let line = format!("127.0.0.1:{} 127.0.0.1:{} a.example:{a} b.example:{b}", a.min(b), a.max(b));
    assert_eq!(told, [(format!("reach b.example:{b}"), Some(line))]);
    let error = refused.unwrap_err();
    assert!(error.contains(&format!("b.example:{b}")), "{error}");
    assert_eq!((other.seen().len(), resolver.asked.load(Ordering::Relaxed)), (0, 1));
    // Another port of the same host is not granted either.
    assert!(send(&http, &caller(&[("a.example", a), ("b.example", a), ("127.0.0.1", a)]), get(&url)).await.is_err());
    let all = caller(&[("a.example", a), ("b.example", b), ("127.0.0.1", a), ("127.0.0.1", b)]);
    let secret = vec![
        ("Authorization".to_owned(), "secret".to_owned()),
        ("Cookie".to_owned(), "secret".to_owned()),
        ("X-Vault-Token".to_owned(), "secret".to_owned()),
        ("Accept".to_owned(), "text/x".to_owned()),
    ];
    let answer = send(&http, &all, HttpRequest { headers: secret, ..get(&url) }).await.unwrap();
    assert_eq!(answer.get_text("url"), Some(to_other.as_str()));
    let seen = other.seen().remove(0);
    assert!(!seen.contains("secret") && seen.contains("accept: text/x"), "{seen}");
    assert!(first.seen().pop().unwrap().contains("secret"));
    // A module that handles the redirect itself.
    let answer = send(&http, &all, HttpRequest { max_redirects: 0, ..get(&url) }).await.unwrap();
    assert_eq!(answer.get_u64("status"), Some(302));
}

#[tokio::test]
async fn redirects_end() {
    let mut server = Server::says(redirect(307, "/again")).await;
    let (http, _) = http(&[]);
    let caller = caller(&[("127.0.0.1", server.at.port())]);
    let error = send(&http, &caller, get(&server.url("/"))).await.unwrap_err();
    assert!(error.contains("more than 5 redirects"), "{error}");
    assert_eq!(server.seen().len(), 6);
    let endless = HttpRequest { max_redirects: u32::MAX, ..get(&server.url("/")) };
    assert!(send(&http, &caller, endless).await.unwrap_err().contains("more than 20 redirects"));
    for to in ["ftp://127.0.0.1/", "http://user@127.0.0.1/", "file:///etc/passwd", "http://\u{e9}/", "\\\\x"] {
        let server = Server::says(redirect(302, to)).await;
        let error =
            send(&http, &self::caller(&[("127.0.0.1", server.at.port())]), get(&server.url("/"))).await.unwrap_err();
        assert!(error.contains("redirect"), "{to}: {error}");
    }
    let two = Server::says("HTTP/1.1 302 x\r\nLocation: /a\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n").await;
    assert!(send(&http, &self::caller(&[("127.0.0.1", two.at.port())]), get(&two.url("/"))).await.is_err());
}

#[tokio::test]
async fn redirects_change_the_method_as_everywhere() {
    for (status, method, then, body) in [
        (301, "POST", "get", false),
        (302, "POST", "get", false),
        (303, "PUT", "get", false),
        (303, "HEAD", "head", false),
        (307, "POST", "post", true),
        (308, "PUT", "put", true),
        (302, "PUT", "put", true),
    ] {
        let mut server = Server::start(move |request, mut stream| async move {
            let answer = if request.contains(" /next ") { GOOD.to_owned() } else { redirect(status, "next") };
            let _ = stream.write_all(answer.as_bytes()).await;
        })
        .await;
        let (http, _) = http(&[]);
        let caller = caller(&[("127.0.0.1", server.at.port())]);
        let headers = vec![("Content-Type".into(), "text/x".into())];
        let request = HttpRequest {
            method: method.into(),
            headers,
            body: Some(b"text".to_vec().into()),
            ..get(&server.url("/"))
        };
        let _ = send(&http, &caller, request).await;
        let second = server.seen().remove(1);
        assert!(second.starts_with(&format!("{then} /next ")), "{status} {method}: {second}");
        assert_eq!(second.ends_with("text"), body || then == "head", "{status} {method}: {second}");
    }
}

/// The first result of the look-up is checked and used for the connection. A later result has no effect, and a result
/// that leads to an internal address is refused.
#[tokio::test]
async fn names_that_lead_inward_are_refused() {
    let mut server = Server::says(GOOD).await;
    let port = server.at.port();
    let url = format!("http://evil.example:{port}/");
    for inward in [
        "127.0.0.1",
        "127.1.2.3",
        "::1",
        "::ffff:127.0.0.1",
        "169.254.169.254",
        "fe80::1",
        "0.0.0.0",
        "::",
        "224.0.0.1",
        "ff02::1",
        "255.255.255.255",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "::127.0.0.1",
        "100.100.100.200",
        "168.63.129.16",
        "fd00:ec2::254",
        "0.1.2.3",
        "240.0.0.1",
        "fec0::1",
        "192.0.0.192",
        "fd20:ce::254",
        // Addresses of this host's interfaces.
        "198.51.100.7",
        "2001:db8::7",
        "::ffff:198.51.100.7",
        "64:ff9b::c633:6407",
        "2002:c633:6407::1",
    ] {
        let (http, _) = http(&[("evil.example", inward)]);
        let (refused, told) = send_told(&http, &caller(&[("evil.example", port)]), get(&url)).await;
        let error = refused.unwrap_err();
        assert!(
            matches!(&told[..], [(what, Some(line))] if what.starts_with("reach ") && line.contains(" evil.example:")
            || line.starts_with("evil.example")),
            "{inward}: {told:?}"
        );
        assert!(
            error.contains("evil.example resolves to") && error.contains("only where the address itself"),
            "{inward}: {error}"
        );
    }
    assert_eq!(server.seen().len(), 0);
    // A list with a permitted and a forbidden address: only the permitted one is used.
    let (http, resolver) = http(&[("evil.example", "127.0.0.2 127.0.0.1"), ("evil.example", "127.0.0.2")]);
    let granted = caller(&[("evil.example", port), ("127.0.0.1", port)]);
    let (answer, told) = send_told(&http, &granted, get(&url)).await;
    assert_eq!((answer.is_ok(), told), (true, Vec::new()), "what was reached is no refusal");
    assert_eq!((server.seen().len(), resolver.asked.load(Ordering::Relaxed)), (1, 1));
    // Rebinding: a second look-up of the name returns another address.
    assert!(send(&http, &granted, get(&url)).await.is_err());
    assert_eq!(server.seen().len(), 0);
}

/// An owner who grants an address of this host literally keeps it, at the ports of that grant.
#[tokio::test]
async fn this_hosts_own_address_is_reached_where_it_is_granted() {
    let resolver = scripted(&[("self.example", "198.51.100.7 192.0.2.1")]);
    let owner = Owner::default();
    let found = |granted: &[(&str, u16)], port| {
        let (caller, resolver, owner) = (caller(granted), &resolver, &owner);
        async move { names::addresses(owner, resolver, &caller, "self.example", port).await.unwrap() }
    };
    let shown = |addresses: Vec<IpAddr>| addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let by_name = [("self.example", 8080)];
    assert_eq!(shown(found(&by_name, Some(8080)).await), "192.0.2.1");
    assert_eq!(shown(found(&by_name, None).await), "192.0.2.1");
    let both = [("self.example", 8080), ("198.51.100.7", 8080)];
    assert_eq!(shown(found(&both, Some(8080)).await), "198.51.100.7 192.0.2.1");
    assert_eq!(shown(found(&both, None).await), "198.51.100.7 192.0.2.1");
    let network = [("self.example", 8080), ("198.51.100.0/24", 8080)];
    assert_eq!(shown(found(&network, Some(8080)).await), "198.51.100.7 192.0.2.1");
    // An executor takes an address of a name for good at all ports of the name.
    let elsewhere = [("self.example", 8080), ("198.51.100.7", 22)];
    assert_eq!(shown(found(&elsewhere, Some(8080)).await), "192.0.2.1");
    assert_eq!(shown(found(&elsewhere, None).await), "192.0.2.1");
    // An address that the request itself names was granted as such.
    let literal = names::addresses(&owner, &resolver, &caller(&both), "198.51.100.7", Some(8080)).await.unwrap();
    assert_eq!(shown(literal), "198.51.100.7");
}

#[tokio::test]
async fn redirects_to_this_hosts_own_address_are_refused() {
    let server = Server::says(redirect(302, "http://self.example:8080/")).await;
    let (http, _) = http(&[("self.example", "198.51.100.7")]);
    let granted = caller(&[("127.0.0.1", server.at.port()), ("self.example", 8080)]);
    let refused = send(&http, &granted, get(&server.url("/"))).await.unwrap_err();
    assert!(refused.contains("self.example resolves to 198.51.100.7, which is this host itself"), "{refused}");
}

#[tokio::test]
async fn answers_are_bounded() {
    let (http, _) = http(&[]);
    let announced = "HTTP/1.1 200 OK\r\nContent-Length: 5000000000\r\n\r\n".to_owned();
    let unannounced = format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(2000));
    let chunked = format!(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{}",
        "64\r\n".to_owned() + &"x".repeat(100) + "\r\n"
    )
    .repeat(1)
        + &format!("64\r\n{}\r\n", "x".repeat(100)).repeat(20);
    for (answer, why) in [
        (announced, "larger than 1000 bytes"),
        (unannounced, "larger than 1000 bytes"),
        (chunked, "larger than 1000 bytes"),
        (format!("HTTP/1.1 200 OK\r\n{}\r\n", "X: y\r\n".repeat(10_000)), ""),
        (format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "y".repeat(200_000)), ""),
        ("X".repeat(300_000), ""),
        ("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort".to_owned(), ""),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx".to_owned(), ""),
        (String::new(), ""),
    ] {
        let server = Server::says(answer.clone()).await;
        let caller = caller(&[("127.0.0.1", server.at.port())]);
        let request = HttpRequest { max_body: Some(1000), ..get(&server.url("/")) };
        let error = send(&http, &caller, request).await.unwrap_err();
        assert!(error.contains(why) && !error.contains('\n'), "{why}: {error}");
    }
    // A head without a body may state the body's length.
    let server = Server::says("HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n").await;
    let head = HttpRequest { method: "HEAD".into(), max_body: Some(10), ..get(&server.url("/")) };
    assert!(send(&http, &caller(&[("127.0.0.1", server.at.port())]), head).await.is_ok());
}

/// A server may send informational responses, but not for ever: otherwise the client would read until its timeout.
#[tokio::test]
async fn informational_answers_are_bounded() {
    let (http, _) = http(&[]);
    let go_on = "HTTP/1.1 100 Continue\r\n\r\n";
    let hints = |bytes: usize| format!("HTTP/1.1 103 Early Hints\r\nLink: {}\r\n\r\n", "x".repeat(bytes));
    for few in [go_on.repeat(16), hints(9_000).repeat(7), format!("{go_on}{}", hints(20))] {
        let server = Server::says(few + GOOD).await;
        let answer = send(&http, &caller(&[("127.0.0.1", server.at.port())]), get(&server.url("/"))).await.unwrap();
        assert_eq!(answer.get_u64("status"), Some(200));
    }
    for (endless, of_all) in [(go_on.to_owned(), 17), (hints(9_000), 8)] {
        let first = endless.repeat(of_all);
        let (gone, mut left) = mpsc::unbounded_channel();
        let server = Server::start(move |_, mut stream| {
            let (first, endless, gone) = (first.clone(), endless.clone(), gone.clone());
            async move {
                let _ = stream.write_all(first.as_bytes()).await;
                while stream.write_all(endless.as_bytes()).await.is_ok() {}
                let _ = gone.send(());
            }
        })
        .await;
        let request = HttpRequest { timeout_ms: Some(u64::MAX), ..get(&server.url("/")) };
        let error = send(&http, &caller(&[("127.0.0.1", server.at.port())]), request).await.unwrap_err();
        assert!(error.contains("more than 16 informational answers"), "{error}");
        // The connection is closed too.
        DEADLINE.within(left.recv()).await.unwrap();
    }
}

/// The request's timeout, and the end of the job, end a response whose bytes arrive one by one, and a head that never
/// ends.
#[tokio::test]
async fn slow_servers_do_not_outlast_their_time() {
    let (gone, mut left) = mpsc::unbounded_channel();
    let server = Server::start(move |request, mut stream| {
        let gone = gone.clone();
        async move {
            let head: &[u8] =
                if request.contains("/head") { b"HTTP/1.1 200 OK\r\nX: " } else { b"HTTP/1.1 200 OK\r\n\r\n" };
            let _ = stream.write_all(head).await;
            while stream.write_all(b"x").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(5)).await; // this pause is the slow sending itself
            }
            let _ = gone.send(());
        }
    })
    .await;
    let (http, _) = http(&[]);
    let mut caller = caller(&[("127.0.0.1", server.at.port())]);
    for path in ["/head", "/body"] {
        let request = HttpRequest { timeout_ms: Some(100), ..get(&server.url(path)) };
        let error = send(&http, &caller, request).await.unwrap_err();
        assert!(error.contains("not done in its time, 100ms"), "{error}");
        // The connection is closed too.
        DEADLINE.within(left.recv()).await.unwrap();
    }
    caller.ends = Instant::now() + Duration::from_millis(100);
    let begun = Instant::now();
    let request = HttpRequest { timeout_ms: Some(u64::MAX), ..get(&server.url("/body")) };
    assert!(send(&http, &caller, request).await.is_err());
    assert!(begun.elapsed() < Duration::from_secs(10));
    DEADLINE.within(left.recv()).await.unwrap();
}

/// The end of a job ends its requests.
#[tokio::test]
async fn a_dropped_request_is_over() {
    let (gone, mut left) = mpsc::unbounded_channel();
    let mut server = Server::start(move |_, mut stream| {
        let gone = gone.clone();
        async move {
            let _ = stream.read(&mut [0; 1]).await;
            let _ = gone.send(());
        }
    })
    .await;
    let (http, _) = http(&[]);
    let caller = caller(&[("127.0.0.1", server.at.port())]);
    let op = HttpOp::Request(Box::new(get(&server.url("/"))));
    let owner = Owner::default();
    tokio::select! {
        _ = http.answer(&owner, &caller, op) => panic!("nobody answers"),
        request = server.requests.recv() => assert!(request.is_some()),
    }
    DEADLINE.within(left.recv()).await.unwrap();
}

mod certificates;
