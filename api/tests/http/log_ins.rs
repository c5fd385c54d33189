//! Log-ins, and the addresses that they come from.

use std::sync::atomic::Ordering;
use std::time::Instant;

use crate::kit::{PASSWORD, Running, SECOND, log_in, token};

#[tokio::test(flavor = "multi_thread")]
async fn refused_log_ins_have_their_status() {
    let api = Running::start("").await;
    for (body, status, retry) in [
        (log_in("ann", PASSWORD), 200, None),
        (log_in("ann", "wrong"), 401, None),
        (log_in("many", PASSWORD), 429, Some("17")),
        ("{}".to_owned(), 401, None),
        (r#"{"username": "ann", "password": "x"}"#.to_owned(), 401, None),
        (r#"{"username": "ann", "password": 1, "eauth": "pam"}"#.to_owned(), 401, None),
        (r#"{"username": ["ann"], "password": "x", "eauth": "pam"}"#.to_owned(), 401, None),
        (r#"[["ann"]]"#.to_owned(), 401, None),
    ] {
        let reply = api.send("POST", "/login", &[], &body).await;
        assert_eq!((reply.status, reply.header("retry-after")), (status, retry), "{body}");
        assert!(!reply.body.contains(PASSWORD), "{body}");
    }
    let run = format!(r#"{{"client": "local_async", "tgt": "*", "fun": "test.ping", {}"#, &log_in("many", "x")[1..]);
    let reply = api.send("POST", "/run", &[], &run).await;
    assert_eq!((reply.status, reply.header("retry-after")), (429, Some("17")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_master_that_is_away_is_503_within_a_second() {
    let api = Running::start("").await;
    api.master.is_away.store(true, Ordering::SeqCst);
    let token = token();
    let run = format!(r#"{{"client": "local_async", "tgt": "*", "fun": "test.ping", "token": "{token}"}}"#);
    for (path, body) in
        [("/login", log_in("ann", PASSWORD)), ("/", "[]".to_owned()), ("/run", run), ("/logout", String::new())]
    {
        let began = Instant::now();
        let reply = api.send("POST", path, &[("X-Auth-Token", &token)], &body).await;
        assert_eq!((reply.status, reply.header("retry-after")), (503, Some("1")), "{path}");
        assert!(began.elapsed() < SECOND, "{path} took {:?}", began.elapsed());
    }
}

/// The address that log-ins count for is the connection's, unless a trusted proxy names another one.
#[tokio::test(flavor = "multi_thread")]
async fn log_ins_count_for_the_callers_address() {
    let api = Running::start("trusted_proxies: [127.0.0.9]").await;
    for (last, line, address) in [
        (1, None, "127.0.0.1"),
        (2, Some("203.0.113.5"), "127.0.0.2"),
        (9, Some("203.0.113.5"), "203.0.113.5"),
        (9, Some("192.0.2.1, 203.0.113.5"), "203.0.113.5"),
        (9, Some("garbage"), "127.0.0.9"),
        (9, None, "127.0.0.9"),
    ] {
        let headers: Vec<_> = line.iter().map(|line| ("X-Forwarded-For", *line)).collect();
        for path in ["/login", "/run"] {
            let chunk = r#"{"client": "local_async", "tgt": "*", "fun": "test.ping", "#;
            let body = log_in("ann", "wrong");
            let body = if path == "/run" { format!("{chunk}{}", &body[1..]) } else { body };
            assert_eq!(api.send_from(last, "POST", path, &headers, &body).await.status, 401);
            let (_, from) = api.master.log_ins.lock().unwrap().pop().expect("a log-in");
            assert_eq!(from.to_string(), address, "{path} from 127.0.0.{last} with {line:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn other_addresses_are_403() {
    let api = Running::start("authorized_ips: [127.0.0.1, 203.0.113.0/24], trusted_proxies: [127.0.0.9]").await;
    assert_eq!(api.send_from(1, "GET", "/", &[], "").await.status, 200);
    let reply = api.send_from(2, "GET", "/", &[], "").await;
    assert_eq!((reply.status, reply.body.contains("Bad IP")), (403, true));
    assert_eq!(api.send_from(2, "GET", "/", &[("X-Forwarded-For", "127.0.0.1")], "").await.status, 403);
    assert_eq!(api.send_from(9, "GET", "/", &[("X-Forwarded-For", "203.0.113.5")], "").await.status, 200);
    assert_eq!(api.send_from(9, "GET", "/", &[("X-Forwarded-For", "192.0.2.1")], "").await.status, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn api_acl_is_for_log_ins_and_for_tokens() {
    let api = Running::start("api_acl: {users: {ann: [127.0.0.1], '*': [127.0.0.2]}}").await;
    let token = token();
    let with = |more: &str| format!(r#"{{"client": "local_async", "tgt": "*", "fun": "test.ping", {}"#, &more[1..]);
    let own = format!(r#"{{"token": "{token}"}}"#);
    for (last, status) in [(1, 200), (2, 401), (3, 401)] {
        for (path, headers, body) in [
            ("/login", &[][..], log_in("ann", PASSWORD)),
            ("/run", &[], with(&log_in("ann", PASSWORD))),
            ("/run", &[], with(&own)),
            ("/", &[("X-Auth-Token", &*token)], "[]".to_owned()),
            ("/logout", &[("X-Auth-Token", &token)], String::new()),
        ] {
            let reply = api.send_from(last, "POST", path, headers, &body).await;
            assert_eq!(reply.status, status, "{path} from 127.0.0.{last}: {body}");
        }
    }
    let (tried, calls) = (api.master.tried(), api.master.calls.load(Ordering::SeqCst));
    assert_eq!((tried, calls), (2, 2), "no password was checked for others, and nothing ran");
}
