//! Requests that readers understand differently: a proxy before salt-api must not take for a body what salt-api takes for
//! a request.

use std::sync::atomic::Ordering;

use crate::kit::{PASSWORD, Running, log_in, token};

/// What must never be read as a request: it would run something.
fn smuggled() -> String {
    let body = r#"{"client": "local_async", "tgt": "*", "fun": "test.ping"}"#;
    format!(
        "POST / HTTP/1.1\r\nHost: a\r\nX-Auth-Token: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        token(),
        body.len()
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn request_smuggling() {
    let api = Running::start("").await;
    let hidden = smuggled();
    let length = hidden.len();
    let head = "POST /login HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n";
    let shapes = [
        // A length and chunks: by the length, the rest is the body.
        format!("{head}Content-Length: {}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}", length + 5),
        format!("{head}Transfer-Encoding: chunked\r\nContent-Length: {}\r\n\r\n0\r\n\r\n{hidden}", length + 5),
        // Two lengths.
        format!("{head}Content-Length: 0\r\nContent-Length: {length}\r\n\r\n{hidden}"),
        format!("{head}Content-Length: {length}\r\nContent-Length: 0\r\n\r\n{hidden}"),
        format!("{head}Content-Length: 0, {length}\r\n\r\n{hidden}"),
        // Lengths that readers differ about.
        format!("{head}Content-Length: +0\r\n\r\n{hidden}"),
        format!("{head}Content-Length: 0x0\r\n\r\n{hidden}"),
        format!("{head}Content-Length: 0 0\r\n\r\n{hidden}"),
        format!("{head}Content-Length: -1\r\n\r\n{hidden}"),
        format!("{head}Content-Length:\r\n\r\n{hidden}"),
        // Encodings that readers differ about.
        format!("{head}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n{hidden}"),
        format!("{head}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n{hidden}"),
        format!("{head}Transfer-Encoding: identity\r\n\r\n{hidden}"),
        format!("{head}Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n{hidden}"),
        format!("{head}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n{hidden}"),
        format!("{head} Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}"),
        format!("{head}Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n{hidden}"),
        format!("{}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n{hidden}", head.replace("1.1", "1.0")),
        // Chunks that readers differ about.
        format!("{head}Transfer-Encoding: chunked\r\n\r\n0\n\r\n{hidden}"),
        format!("{head}Transfer-Encoding: chunked\r\n\r\n0x0\r\n\r\n{hidden}"),
        format!("{head}Transfer-Encoding: chunked\r\n\r\n-0\r\n\r\n{hidden}"),
        format!("{head}Transfer-Encoding: chunked\r\n\r\n10000000000000000\r\n\r\n{hidden}"),
        // A line that goes on in the next one, and lines with other ends.
        format!("{head}X: a\r\n Content-Length: 0\r\n\r\n{hidden}"),
        format!("{head}X: a\r\n\tb\r\n\r\n{hidden}"),
        format!("{head}X: a\rContent-Length: 0\r\n\r\n{hidden}"),
        format!("{head}X: a\0\r\n\r\n{hidden}"),
        format!("{head}: a\r\n\r\n{hidden}"),
        format!("{head}\rX: a\r\n\r\n{hidden}"),
        // Request lines.
        format!("POST /login HTTP/1.1 HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n{hidden}"),
        format!("POST  /login HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n{hidden}"),
        format!("POST /login HTTP/2.0\r\nHost: a\r\nContent-Length: 0\r\n\r\n{hidden}"),
        format!("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n{hidden}"),
    ];
    for shape in &shapes {
        let reply = api.raw(1, shape.as_bytes()).await;
        assert!(reply.matches("HTTP/1.1 ").count() <= 1, "{shape:?}: {reply}");
        assert!(reply.is_empty() || reply.starts_with("HTTP/1.1 4"), "{shape:?}: {reply}");
    }
    assert_eq!((api.master.calls.load(Ordering::SeqCst), api.master.tried()), (0, 0));
    // The test itself: behind a whole request, it is one.
    let reply = api
        .raw(
            1,
            format!(
                "{head}Content-Length: 2\r\n\r\n{{}}{}",
                smuggled().replace("Host: a", "Host: a\r\nConnection: close")
            )
            .as_bytes(),
        )
        .await;
    assert_eq!((reply.matches("HTTP/1.1 ").count(), api.master.calls.load(Ordering::SeqCst)), (2, 1), "{reply}");
}

/// A request in chunks is the last one of its connection: had it a length too, a proxy might have gone by that.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_in_chunks_is_the_last_one() {
    let api = Running::start("").await;
    let head =
        "POST /login HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
    let reply = api.raw(1, format!("{head}2\r\n{{}}\r\n0\r\n\r\n{}", smuggled()).as_bytes()).await;
    assert!(reply.starts_with("HTTP/1.1 401") && reply.matches("HTTP/1.1 ").count() == 1, "{reply}");
    assert_eq!(api.master.calls.load(Ordering::SeqCst), 0);
}

/// Bare LF ends a line, as RFC 9112 (2.2) allows: framing is then the same as with CRLF.
#[tokio::test(flavor = "multi_thread")]
async fn bare_lf_is_one_request() {
    let api = Running::start("").await;
    let hidden = smuggled();
    let shape =
        format!("POST /login HTTP/1.1\nHost: a\nConnection: close\nContent-Length: {}\n\n{hidden}", hidden.len());
    let reply = api.raw(1, shape.as_bytes()).await;
    assert_eq!(reply.matches("HTTP/1.1 ").count(), 1, "{reply}");
    assert_eq!(api.master.calls.load(Ordering::SeqCst), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_names_its_host_once() {
    let api = Running::start("").await;
    for (head, status) in [
        ("GET / HTTP/1.1\r\n", 400),
        ("GET / HTTP/1.0\r\n", 200),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a b\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: ann@a\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a/b\r\n", 400),
        ("GET http://a/ HTTP/1.1\r\nHost: b\r\n", 400),
        ("GET http://a/ HTTP/1.1\r\nHost: A\r\n", 200),
        ("GET http://a/ HTTP/1.1\r\n", 200),
        ("GET / HTTP/1.1\r\nHost: [::1]:8000\r\n", 200),
        ("CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n", 404),
    ] {
        let reply = api.raw(1, format!("{head}Connection: close\r\n\r\n").as_bytes()).await;
        let found = reply.split(' ').nth(1).and_then(|status| status.parse::<u16>().ok());
        assert!(found == Some(status) || status == 404 && found == Some(405), "{head:?}: {reply}");
    }
}

/// Requests that come at once are answered one after the other.
#[tokio::test(flavor = "multi_thread")]
async fn pipelined_requests_are_answered_in_order() {
    let api = Running::start("").await;
    let body = log_in("ann", PASSWORD);
    let first = format!(
        "POST /login HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let all = format!(
        "{first}GET /none HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n{first}"
    );
    let reply = api.raw(1, all.as_bytes()).await;
    let statuses: Vec<&str> = reply.split("HTTP/1.1 ").skip(1).map(|answer| &answer[..3]).collect();
    assert_eq!((statuses, api.master.tried()), (vec!["200", "404", "200"], 1), "nothing after the end");
}
