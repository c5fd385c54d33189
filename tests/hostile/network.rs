//! Connections: to other hosts and ports, in other ways, and to the addresses of names.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

use brine_protocol::value::Value;

use crate::asks::NOTHING;
use crate::rig::{AT_ONCE, Gets, Rig, fails, hostile, returns, text, texts};

fn failed(what: &str) -> Gets {
    fails(format!("…{what}…"))
}

const NO_HOST: &str = "the URL names no host, or an address in another form than a.b.c.d";
const CHARACTERS: &str = "the URL has characters that a URL cannot have; write them as %XX";

/// Answers every connection with this text. Returns the port and a receiver of the requests.
fn serve(answer: String) -> (u16, std::sync::mpsc::Receiver<String>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream = stream;
            let _ = stream.set_read_timeout(Some(Duration::from_millis(200)));
            let mut request = [0; 4096];
            let read = stream.read(&mut request).unwrap_or(0);
            if sender.send(String::from_utf8_lossy(&request[..read]).into_owned()).is_err() {
                return;
            }
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    (port, receiver)
}

fn redirect(to: &str) -> String {
    format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_beyond_the_grant() {
    let fine = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nfine";
    let (open, _seen) = serve(fine.to_owned());
    let (closed, closed_seen) = serve(fine.to_owned());
    let (elsewhere, _kept) = serve(redirect(&format!("http://127.0.0.1:{closed}/secret")));
    let (by_name, _kept2) = serve(redirect(&format!("http://localhost:{open}/secret")));
    let (scheme, _kept3) = serve(redirect("file:///etc/passwd"));
    let (endless, _kept4) =
        serve(format!("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n{}", "x".repeat(3 << 20)));
    let rules = [open, elsewhere, by_name, scheme, endless].map(|port| format!("\"127.0.0.1:{port}\"")).join(", ");
    let granted = NOTHING.replace("network: []", &format!("network: [{rules}, \"localhost:{closed}\"]"));
    let rig = Rig::start(&format!("  limits: {{wall: 5s}}\n  modules:\n    hostile: {granted}\n")).await;
    rig.install("hostile", &hostile()).await;
    let refused = || fails("connect: access-denied");
    for (op, address, port, gets) in [
        ("connect", "127.0.0.1", open, returns("connected")),
        ("connect", "127.0.0.1", closed, refused()),
        ("connect", "127.0.0.2", open, refused()),
        ("connect", "::1", open, refused()),
        ("connect", "::ffff:127.0.0.2", open, fails("connect: invalid-argument")),
        ("connect", "0.0.0.0", open, fails("connect: invalid-argument")),
        ("connect", "169.254.169.254", 80, refused()),
        ("connect", "127.0.0.1", 0, fails("connect: invalid-argument")),
        ("bind", "127.0.0.1", 0, fails("bind: access-denied")),
        ("listen", "0.0.0.0", 0, fails("bind: access-denied")),
        ("udp", "127.0.0.1", open, fails("create: access-denied")),
    ] {
        let args = vec![text(op), text(address), Value::from(port)];
        rig.attack("hostile.socket", args, AT_ONCE, &gets).await;
    }
    // A granted name that resolves to this host itself: the address is returned, because it was granted at other ports,
    // but connections by the name fail.
    for name in ["localhost", "localhost.", "LOCALHOST"] {
        let here = returns("[\"IpAddress::Ipv4((127, 0, 0, 1))\"]");
        rig.attack("hostile.resolve", vec![text(name)], AT_ONCE, &here).await;
        rig.attack("hostile.reach", vec![text(name), closed.into()], AT_ONCE, &refused()).await;
    }
    // A name that was not granted, and invalid names.
    let other = "hostile.resolve was stopped: ip-name-lookup was refused: module hostile may not look up other.example; the owner of \
                 this host grants it by this line under sandbox: modules: in the minion's configuration: hostile: {…}";
    rig.attack("hostile.resolve", vec![text("other.example")], AT_ONCE, &fails(other)).await;
    for name in ["2130706433", "0x7f.1", "127.1", "a b", "a\0b", "", &"a".repeat(300)] {
        rig.attack("hostile.resolve", vec![text(name)], AT_ONCE, &fails("resolve: invalid-argument")).await;
    }
    let at = |host: &str, port: u16| text(&format!("http://{host}:{port}/x"));
    for (url, gets) in [
        (at("127.0.0.1", open), returns("200: fine")),
        (at("127.0.0.1", closed), failed(&format!("may not reach 127.0.0.1:{closed}"))),
        (at("127.0.0.2", open), failed("may not reach 127.0.0.2")),
        (at("[::ffff:127.0.0.2]", open), failed("may not reach")),
        (at("2130706433", open), fails(NO_HOST)),
        (at("0x7f000001", open), fails(NO_HOST)),
        (at("127.1", open), fails(NO_HOST)),
        (at("127.0.0.1:80@127.0.0.2", open), fails("the URL has a user in it; write an Authorization header")),
        (at("127.0.0.2\\@127.0.0.1", open), fails(CHARACTERS)),
        (at("127.0.0.1#@127.0.0.2", open), failed("may not reach 127.0.0.1:80")),
        (text("file:///etc/passwd"), failed("does not begin with http")),
        (text("unix:///run/docker.sock"), failed("does not begin with http")),
        (text("http://127.0.0.1\r\nHost: x/"), fails(CHARACTERS)),
        (at("127.0.0.1", elsewhere), failed(&format!("may not reach 127.0.0.1:{closed}"))),
        (at("127.0.0.1", by_name), failed("may not reach localhost")),
        (at("127.0.0.1", scheme), failed("")),
        (at("localhost", closed), failed("this host itself")),
        (at("127.0.0.1", endless), failed("")),
    ] {
        rig.attack("hostile.http", vec![url], AT_ONCE, &gets).await;
    }
    let header = |name: &str, value: &str| Value::Array(vec![texts(&[name, value])]);
    for headers in [
        header("Host", "other.example"),
        header("X\r\nHost", "a"),
        header("X", "a\r\nHost: other"),
        header("Transfer-Encoding", "chunked"),
        header("Content-Length", "5"),
        header("Proxy-Authorization", "x"),
        header("", "x"),
    ] {
        let kwargs = vec![("headers".to_owned(), headers)];
        rig.attack_with("hostile.http", vec![at("127.0.0.1", open)], kwargs, AT_ONCE, &failed("header")).await;
    }
    for method in ["GET / HTTP/1.1\r\nX:", "CONNECT", "", "G T"] {
        let kwargs = vec![("method".to_owned(), text(method))];
        rig.attack_with("hostile.http", vec![at("127.0.0.1", open)], kwargs, AT_ONCE, &failed("the method")).await;
    }
    assert!(closed_seen.try_recv().is_err(), "what was not granted was reached");
    rig.end().await;
}
