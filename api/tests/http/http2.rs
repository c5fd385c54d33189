//! HTTP/2 under TLS, and clients that misuse it.

use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::http::{Request, Version};
use h2::client::{self, SendRequest};
use tokio_rustls::rustls::version::{TLS12, TLS13};

use crate::kit::{PASSWORD, Running, SECOND, log_in, token};

async fn connect(api: &Running) -> (SendRequest<Bytes>, tokio::task::JoinHandle<Result<(), h2::Error>>) {
    let stream = api.connect_tls(&[b"h2"], &[&TLS13]).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let (send, connection) = client::handshake(stream).await.unwrap();
    (send, tokio::spawn(connection))
}

fn post(path: &str) -> axum::http::request::Builder {
    Request::post(format!("https://api.example{path}"))
        .version(Version::HTTP_2)
        .header("content-type", "application/json")
}

async fn answer(
    send: &mut SendRequest<Bytes>,
    request: Request<()>,
    body: Option<String>,
) -> Result<(u16, String), h2::Error> {
    let (response, mut stream) = send.clone().ready().await?.send_request(request, body.is_none())?;
    if let Some(body) = body {
        // Who is refused before its body is read may find the stream closed.
        let _ = stream.send_data(body.into(), true);
    }
    let response = response.await?;
    let status = response.status().as_u16();
    let mut body = response.into_body();
    let mut text = String::new();
    while let Some(piece) = body.data().await {
        let Ok(piece) = piece else { break };
        text += &String::from_utf8_lossy(&piece);
        body.flow_control().release_capacity(piece.len())?;
    }
    Ok((status, text))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_chooses_the_protocol() {
    let api = Running::start_with("", true).await;
    for (alpn, chosen) in
        [(&[&b"h2"[..], b"http/1.1"][..], Some(&b"h2"[..])), (&[b"http/1.1"], Some(b"http/1.1")), (&[], None)]
    {
        for version in [&TLS13, &TLS12] {
            let stream = api.connect_tls(alpn, &[version]).await.unwrap();
            assert_eq!(stream.get_ref().1.alpn_protocol(), chosen, "{alpn:?}");
        }
    }
    assert!(api.connect_tls(&[b"spdy/3"], &[&TLS13]).await.is_err());
    let (mut send, _task) = connect(&api).await;
    let (status, text) =
        answer(&mut send, post("/login").body(()).unwrap(), Some(log_in("ann", PASSWORD))).await.unwrap();
    assert_eq!((status, text.contains(&token())), (200, true), "{text}");
    api.log_in_at_once(1).await;
}

/// `:authority` is the host that an origin is compared with.
#[tokio::test(flavor = "multi_thread")]
async fn the_authority_is_the_host() {
    let api = Running::start_with("", true).await;
    let (mut send, _task) = connect(&api).await;
    let mut status = async |origin: &str, host: Option<&str>| {
        let mut request = post("/").header("cookie", "a=b").header("cookie", format!("session_id={}", token()));
        request = request.header("origin", origin);
        if let Some(host) = host {
            request = request.header("host", host);
        }
        answer(&mut send, request.body(()).unwrap(), Some("[]".to_owned())).await.map(|(status, _)| status).ok()
    };
    assert_eq!(status("https://api.example", None).await, Some(200));
    assert_eq!(status("https://api.example:443", Some("api.example")).await, Some(200));
    assert_eq!(status("https://evil.example", None).await, Some(403));
    assert_eq!(status("http://api.example", None).await, Some(403), "a page without TLS");
    assert_ne!(status("https://evil.example", Some("evil.example")).await, Some(200));
}

#[tokio::test(flavor = "multi_thread")]
async fn bounds_hold_for_http2() {
    let api = Running::start_with("", true).await;
    let (mut send, _task) = connect(&api).await;
    // A head.
    let long = post("/").header("x", "x".repeat(20 << 10)).body(()).unwrap();
    let refused = answer(&mut send, long, None).await.map(|(status, _)| status);
    assert!(!matches!(refused, Ok(..=430 | 432..)), "{refused:?}");
    // A body, whatever length it says.
    let (mut send, _task) = connect(&api).await;
    let (response, mut stream) =
        send.clone().ready().await.unwrap().send_request(post("/login").body(()).unwrap(), false).unwrap();
    let sending = async {
        for _ in 0..40 {
            stream.reserve_capacity(32 << 10);
            while stream.capacity() < 32 << 10 {
                match std::future::poll_fn(|cx| stream.poll_capacity(cx)).await {
                    Some(Ok(_)) => {}
                    _ => return,
                }
            }
            if stream.send_data(vec![b'x'; 32 << 10].into(), false).is_err() {
                return;
            }
        }
        std::future::pending::<()>().await;
    };
    let status = tokio::select! {
        response = response => response.map(|response| response.status().as_u16()).ok(),
        () = sending => None,
    };
    assert!(matches!(status, Some(413) | None), "{status:?}");
    // Streams: of a hundred that wait, 64 are worked on. The first answer comes after the server's settings, by which the client then goes:
    // without them it would open all, and those above the bound would be refused.
    let (mut send_, task) = connect(&api).await;
    answer(&mut send_, post("/login").body(()).unwrap(), Some(log_in("ann", PASSWORD))).await.unwrap();
    let before = api.master.tried();
    let mut waiting = Vec::new();
    for _ in 0..100 {
        let mut send = send_.clone();
        waiting.push(tokio::spawn(async move {
            let _ = answer(&mut send, post("/login").body(()).unwrap(), Some(log_in("slow", "x"))).await;
        }));
    }
    let all = async {
        while api.master.tried() - before < 64 {
            tokio::time::sleep(SECOND / 100).await;
        }
    };
    tokio::time::timeout(20 * SECOND, all).await.expect("64 of them");
    // A further one would come at once.
    tokio::time::sleep(SECOND / 2).await;
    assert_eq!(api.master.tried() - before, 64);
    task.abort();
    let _ = answer(&mut send, post("/login").body(()).unwrap(), Some(log_in("ann", PASSWORD))).await;
}

/// CVE-2023-44487: a client that opens streams and gives them up at once gets a bounded number of them.
#[tokio::test(flavor = "multi_thread")]
async fn rapid_resets_are_bounded() {
    let api = Running::start_with("", true).await;
    for wait in [false, true] {
        let before = api.master.tried();
        let (send, task) = connect(&api).await;
        let mut opened = 0;
        // Far more than a client can write before it hears that the connection has ended.
        while opened < 100_000 {
            let Ok(mut send) = send.clone().ready().await else { break };
            let Ok((_, mut stream)) = send.send_request(post("/login").body(()).unwrap(), false) else { break };
            opened += 1;
            if stream.send_data(log_in("slow", "x").into(), true).is_err() {
                break;
            }
            // With and without the time in which a request reaches the master.
            let tried = api.master.tried();
            let began = Instant::now();
            while wait && api.master.tried() == tried && !task.is_finished() && began.elapsed() < SECOND {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            stream.send_reset(h2::Reason::CANCEL);
        }
        assert!(opened < 50_000, "{opened} streams, wait: {wait}");
        let tried = api.master.tried() - before;
        assert!(tried < 200, "{tried} log-ins, wait: {wait}");
        let ended = tokio::time::timeout(10 * SECOND, task).await.expect("the connection ends");
        println!("wait: {wait}: {opened} streams, {tried} log-ins, {ended:?}");
    }
    api.log_in_at_once(1).await;
}

/// A client that holds its connection without a request, or sends half a one, is out of time.
#[tokio::test(flavor = "multi_thread")]
async fn a_first_request_comes_within_ten_seconds() {
    let api = Running::start_with("", true).await;
    let began = Instant::now();
    let (_send, task) = connect(&api).await;
    let _ = tokio::time::timeout(Duration::from_secs(12), task).await.expect("the connection ends");
    assert!(began.elapsed() > Duration::from_secs(9));
}
