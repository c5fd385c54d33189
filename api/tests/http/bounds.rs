//! What a stranger can take: connections, time, bytes.

use std::time::{Duration, Instant};

use brine_kit::process::resident;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::kit::{PASSWORD, Running, SECOND, exchange, log_in, request, token};

/// Two thousand connections from twenty addresses that send nothing, or a piece of what they promise, and wait.
async fn loris(api: &Running, piece: &str) -> Vec<TcpStream> {
    let mut held = Vec::new();
    for n in 0..2_000_u32 {
        let mut stream = api.connect_from(u8::try_from(2 + n % 20).unwrap()).await;
        stream.write_all(piece.as_bytes()).await.unwrap();
        held.push(stream);
    }
    held
}

/// Whether the other side closes all of these within a time.
async fn are_closed(held: Vec<TcpStream>, within: Duration) -> bool {
    let read = async {
        for mut stream in held {
            let mut rest = Vec::new();
            let _ = stream.read_to_end(&mut rest).await;
        }
    };
    tokio::time::timeout(within, read).await.is_ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_loris_keeps_nobody_out() {
    let api = Running::start("").await;
    let body =
        "POST /login HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"user";
    let mut held = Vec::new();
    for piece in ["", "POST /login HTTP/1.1\r\nHost: a\r\nX: "] {
        // Both kinds together have less than the connections that an address may have.
        held.extend(loris(&api, piece).await);
        api.log_in_at_once(1).await;
        api.log_in_at_once(2).await;
    }
    assert!(api.server.connections() >= 4_000);
    // The last ones were accepted just now, and a busy machine is late.
    assert!(are_closed(held, Duration::from_secs(25)).await, "a head comes within ten seconds of accept");
    // More bodies than requests may be worked on.
    let held = loris(&api, body).await;
    api.log_in_at_once(1).await;
    api.log_in_at_once(2).await;
    assert_eq!(api.master.tried(), 6);
    drop(held);
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_loris_before_tls_keeps_nobody_out() {
    let api = Running::start_with("", true).await;
    // A part of a ClientHello.
    let held = loris(&api, "\x16\x03\x01").await;
    api.log_in_at_once(1).await;
    assert!(are_closed(held, Duration::from_secs(25)).await);
}

/// A client that sends a byte now and then is out of time too, as time counts from accept.
#[tokio::test(flavor = "multi_thread")]
async fn a_drop_now_and_then_does_not_help() {
    let api = Running::start("").await;
    let mut stream = api.connect_from(2).await;
    let began = Instant::now();
    stream.write_all(b"GET / HTTP/1.1\r\nX: ").await.unwrap();
    let mut rest = [0; 64];
    loop {
        tokio::select! {
            read = stream.read(&mut rest) => if matches!(read, Ok(0) | Err(_)) { break },
            () = tokio::time::sleep(SECOND / 4) => {
                let _ = stream.write_all(b"x").await;
            }
        }
        assert!(began.elapsed() < Duration::from_secs(25), "the head has no end");
    }
    assert!(began.elapsed() > Duration::from_secs(9));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_has_256_connections() {
    let api = Running::start("trusted_proxies: [127.0.0.3]").await;
    let mut held = Vec::new();
    for last in [1, 2, 3] {
        for _ in 0..256 {
            held.push(api.connect_from(last).await);
        }
    }
    let request = request("GET", "/", &[], "");
    assert_eq!(api.raw(2, request.as_bytes()).await, "", "the next one is closed");
    for others in [1, 3, 4] {
        assert!(api.raw(others, request.as_bytes()).await.starts_with("HTTP/1.1 200"), "127.0.0.{others}");
    }
    drop(held);
    let again = async {
        while api.raw(2, request.as_bytes()).await.is_empty() {
            tokio::time::sleep(SECOND / 10).await;
        }
    };
    tokio::time::timeout(10 * SECOND, again).await.expect("those that are gone do not count");
}

#[tokio::test(flavor = "multi_thread")]
async fn heads_are_bounded() {
    let api = Running::start("").await;
    let status = async |headers: &[(&str, &str)], path: &str| {
        let reply = api.raw(1, request("GET", path, headers, "").as_bytes()).await;
        reply.split(' ').nth(1).and_then(|status| status.parse::<u16>().ok())
    };
    assert_eq!(status(&[("X", &"x".repeat(15 << 10))], "/").await, Some(200));
    assert_eq!(status(&[("X", &"x".repeat(17 << 10))], "/").await, Some(431));
    assert_eq!(status(&[], &format!("/{}", "x".repeat(17 << 10))).await, Some(431));
    assert_eq!(status(&vec![("X", "x"); 200], "/").await, Some(431));
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_are_bounded() {
    let api = Running::start("").await;
    let token = token();
    let paths = ["/login", "/run", "/"];
    for path in paths {
        let long = "x".repeat((1 << 20) + 1);
        let reply = api.send("POST", path, &[("X-Auth-Token", &token)], &long).await;
        assert_eq!(reply.status, 413, "{path}: {reply:?}");
        // It counts what comes, and believes no length.
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: a\r\nX-Auth-Token: {token}\r\nContent-Type: application/json\r\n\
             Transfer-Encoding: chunked\r\n\r\n"
        );
        let chunks = format!("10000\r\n{}\r\n", "x".repeat(0x10000)).repeat(17);
        let reply = api.raw(1, (head.clone() + &chunks).as_bytes()).await;
        assert!(reply.starts_with("HTTP/1.1 413"), "{path}: {reply}");
        // A length that nothing follows.
        let head = head.replace("Transfer-Encoding: chunked", "Content-Length: 18446744073709551615");
        let reply = api.raw(1, head.as_bytes()).await;
        assert!(reply.starts_with("HTTP/1.1 4"), "{path}: {reply}");
        for bomb in ["[".repeat(500_000), format!("[{}]", "1,".repeat(400_000) + "1"), "{\"a\":".repeat(100_000)] {
            let reply = api.send("POST", path, &[("X-Auth-Token", &token)], &bomb).await;
            assert_eq!(reply.status, 400, "{path}: {reply:?}");
        }
    }
    assert_eq!((api.master.tried(), api.master.calls.load(std::sync::atomic::Ordering::SeqCst)), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_comes_within_thirty_seconds() {
    let api = Running::start("").await;
    let mut stream = api.connect_from(2).await;
    let began = Instant::now();
    let head = "POST /login HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let (mut read, mut write) = stream.into_split();
    let drip = tokio::spawn(async move {
        while write.write_all(b" ").await.is_ok() {
            tokio::time::sleep(SECOND / 2).await
        }
    });
    let mut reply = [0; 12];
    read.read_exact(&mut reply).await.unwrap();
    assert_eq!(&reply, b"HTTP/1.1 408");
    assert!((29..33).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    drip.abort();
}

/// Log-ins that the master does not answer fill an address's share of the work, and no more.
#[tokio::test(flavor = "multi_thread")]
async fn requests_that_are_worked_on_are_bounded() {
    let api = Running::start("trusted_proxies: [127.0.0.1]").await;
    let slow = request("POST", "/login", &[("X-Forwarded-For", "192.0.2.9")], &log_in("slow", "x"));
    let mut held = Vec::new();
    for n in 1..=256 {
        let mut stream = api.connect_from(1).await;
        stream.write_all(slow.as_bytes()).await.unwrap();
        held.push(stream);
        while api.master.tried() < n {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    let status = async |address: &str| {
        let headers = [("X-Forwarded-For", address)];
        let reply = api.send("POST", "/login", &headers, &log_in("ann", PASSWORD)).await;
        (reply.status, reply.header("retry-after").map(str::to_owned))
    };
    assert_eq!(status("192.0.2.9").await, (503, Some("1".to_owned())));
    assert_eq!(status("192.0.2.10").await, (200, None));
    drop(held);
    let again = async {
        while status("192.0.2.9").await.0 != 200 {
            tokio::time::sleep(SECOND / 10).await;
        }
    };
    tokio::time::timeout(10 * SECOND, again).await.expect("those that are gone do not count");
}

/// Refused requests leave nothing behind. `BRINE_SOAK_REQUESTS` is their number.
#[tokio::test(flavor = "multi_thread")]
async fn refused_requests_do_not_grow_memory() {
    let api = Running::start("").await;
    let count = std::env::var("BRINE_SOAK_REQUESTS").map_or(100_000, |count| count.parse().expect("a number"));
    let wrong = log_in("ann", "wrong-horse-battery");
    let requests = [
        request("POST", "/", &[("X-Auth-Token", "00")], "{}"),
        request("POST", "/", &[("Cookie", "session_id=00"), ("Origin", "http://evil.example")], "{}"),
        request("POST", "/login", &[], &wrong),
        request("POST", "/login", &[], "{\"a\": [1, 2"),
        request("GET", "/none", &[], ""),
        request("GET", "/?token=x", &[], ""),
        request("PUT", "/login", &[("Content-Type", "text/html")], "x"),
        request(
            "POST",
            "/run",
            &[],
            "{\"client\": \"local_async\", \"tgt\": \"*\", \"fun\": \"test.ping\", \"token\": \"00\"}",
        ),
    ]
    .map(|request| request.replace("Connection: close\r\n", ""));
    let round = async |rounds: usize| {
        let batch = requests.concat().repeat(25);
        let ends = request("GET", "/", &[], "");
        for _ in 0..rounds {
            let reply = exchange(api.connect_from(1).await, (batch.clone() + &ends).as_bytes()).await;
            assert_eq!(reply.matches("HTTP/1.1 ").count(), 25 * requests.len() + 1);
            api.master.log_ins.lock().unwrap().clear();
        }
    };
    let per_round = 25 * requests.len();
    round(10_000 / per_round).await;
    let before = resident(std::process::id());
    round(count / per_round).await;
    let after = resident(std::process::id());
    println!("{count} refused requests: {before} bytes before, {after} after");
    assert!(after < before + (8 << 20), "{before} bytes before, {after} after");
}
