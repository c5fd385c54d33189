//! Pages of other sites, and headers that keep answers where they belong.

use crate::kit::{PASSWORD, Running, log_in, token};

const COOKIE: &str = "cookie";

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_has_its_headers() {
    let api = Running::start("").await;
    let token = token();
    for (method, path, body, status) in [
        ("GET", "/", "", 200),
        ("POST", "/login", &*log_in("ann", PASSWORD), 200),
        ("POST", "/login", &log_in("ann", "wrong"), 401),
        ("POST", "/", "{", 400),
        ("PUT", "/", "", 405),
        ("GET", "/none", "", 404),
        ("POST", "/logout", "", 200),
    ] {
        let reply = api.send(method, path, &[("X-Auth-Token", &token)], body).await;
        assert_eq!(reply.status, status, "{method} {path}");
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("cache-control", "private, no-store"),
            ("content-security-policy", "default-src 'none'; frame-ancestors 'none'"),
            ("x-frame-options", "DENY"),
            ("referrer-policy", "no-referrer"),
        ] {
            assert_eq!(reply.header(name), Some(value), "{method} {path}: {name}");
        }
        for name in ["server", "x-powered-by", "access-control-allow-origin", "access-control-allow-credentials"] {
            assert_eq!(reply.header(name), None, "{method} {path}: {name}");
        }
    }
}

/// An application of the operator's loads its own scripts, and no other page has it in a frame.
#[tokio::test(flavor = "multi_thread")]
async fn an_application_can_load_its_scripts() {
    let api = Running::start("").await;
    for (path, accept) in [
        ("/app", "*/*"),
        ("/app/x", "*/*"),
        ("/static/main.rs", "*/*"),
        ("/favicon.ico", "image/*"),
        ("/", "text/html"),
    ] {
        let reply = api.send("GET", path, &[("Accept", accept)], "").await;
        assert_eq!(
            (reply.status, reply.header("content-security-policy")),
            (200, Some("frame-ancestors 'none'")),
            "{path}"
        );
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"), "{path}");
    }
    for path in [
        "/static/../Cargo.toml",
        "/static/%2e%2e/%2e%2e/Cargo.toml",
        "/static/..%2f..%2fCargo.toml",
        "/static//etc/passwd",
        "/static/nothing",
    ] {
        let reply = api.send("GET", path, &[], "").await;
        assert!(reply.status == 404 && !reply.body.contains("[package]"), "{path}: {reply:?}");
        assert!(reply.body.contains("404 Not Found"), "{path}: {reply:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_another_site_cannot_use_the_cookie() {
    let api = Running::start("").await;
    let cookie = format!("session_id={}", token());
    let chunk = r#"{"client": "local_async", "tgt": "*", "fun": "test.ping"}"#;
    let status = async |path: &str, more: &[(&str, &str)]| {
        let mut headers = vec![(COOKIE, &*cookie), ("Host", "api.example:8000")];
        headers.extend(more);
        api.send("POST", path, &headers, chunk).await.status
    };
    for path in ["/", "/logout"] {
        for foreign in [("Origin", "https://evil.example"), ("Origin", "null"), ("Sec-Fetch-Site", "cross-site")] {
            assert_eq!(status(path, &[foreign]).await, 403, "{path} {foreign:?}");
        }
    }
    assert_eq!(api.master.calls.load(std::sync::atomic::Ordering::SeqCst), 0);
    assert_eq!(status("/", &[("Origin", "http://api.example:8000")]).await, 200);
    assert_eq!(status("/", &[]).await, 200, "a program");
    // Nor can it put its visitor into a session of its own.
    let log_in = log_in("ann", PASSWORD);
    let reply = api.send("POST", "/login", &[("Origin", "https://evil.example")], &log_in).await;
    assert_eq!((reply.status, reply.header("set-cookie")), (200, None));
    let reply = api.send("POST", "/login", &[("Origin", "http://api.example")], &log_in).await;
    assert!(reply.header("set-cookie").is_some_and(|cookie| cookie.contains("; HttpOnly; SameSite=Strict")));
}

#[tokio::test(flavor = "multi_thread")]
async fn cors_has_only_named_exceptions() {
    let asked = [("Access-Control-Request-Method", "POST"), ("Access-Control-Request-Headers", "x-auth-token")];
    let preflight = async |api: &Running, origin: &str| {
        let mut headers = asked.to_vec();
        headers.push(("Origin", origin));
        api.send("OPTIONS", "/login", &headers, "").await
    };
    let api = Running::start("").await;
    let reply = preflight(&api, "https://console.example").await;
    assert_eq!((reply.status, reply.header("access-control-allow-origin")), (403, None));
    let api = Running::start("cors_origins: ['https://console.example']").await;
    for foreign in ["https://evil.example", "http://console.example", "https://console.example.evil.example", "null"] {
        let reply = preflight(&api, foreign).await;
        assert_eq!((reply.status, reply.header("access-control-allow-origin")), (403, None), "{foreign}");
    }
    let reply = preflight(&api, "https://console.example").await;
    assert_eq!((reply.status, reply.header("vary")), (200, Some("Origin")));
    for (name, value) in [
        ("access-control-allow-origin", "https://console.example"),
        ("access-control-allow-credentials", "true"),
        ("access-control-allow-methods", "GET, POST"),
    ] {
        assert_eq!(reply.header(name), Some(value), "{name}");
    }
    assert!(reply.header("access-control-allow-headers").is_some_and(|names| names.contains("X-Auth-Token")));
    let reply = api.send("GET", "/", &[("Origin", "https://console.example")], "").await;
    assert_eq!(reply.header("access-control-allow-origin"), Some("https://console.example"));
    let plain = api.send("OPTIONS", "/", &[("Origin", "https://console.example")], "").await;
    assert_eq!((plain.status, plain.header("access-control-allow-origin")), (200, Some("https://console.example")));
    // Without an origin it is a method that is not there.
    assert_eq!(api.send("OPTIONS", "/login", &[], "").await.status, 405);
    let api = Running::start("cors_origins: ['*']").await;
    let reply = preflight(&api, "https://any.example").await;
    assert_eq!((reply.status, reply.header("access-control-allow-origin")), (200, Some("*")));
    assert_eq!(reply.header("access-control-allow-credentials"), None);
    let cookie = format!("session_id={}", token());
    let reply = api.send("POST", "/", &[("Origin", "https://any.example"), (COOKIE, &cookie)], "{}").await;
    assert_eq!(reply.status, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_sessions_there_is_no_log_in() {
    let api = Running::start("enable_sessions: False").await;
    for path in ["/login", "/logout", "/minions", "/minions/m1", "/jobs", "/login/"] {
        assert_eq!(api.send("POST", path, &[("X-Auth-Token", &token())], "{}").await.status, 404, "{path}");
    }
    let prefixed = Running::start("enable_sessions: False, root_prefix: /api").await;
    assert_eq!(prefixed.send("POST", "/api/login", &[], &log_in("ann", PASSWORD)).await.status, 404);
    let cookie = format!("session_id={}", token());
    assert_eq!(api.send("POST", "/", &[(COOKIE, &cookie)], "[]").await.status, 401);
    assert_eq!(api.send("POST", "/", &[("X-Auth-Token", &token())], "[]").await.status, 200);
}
