//! Headers: whose token a request has, which page sent it, from where it comes, and what it wants.
#![no_main]

use std::net::IpAddr;
use std::path::Path;
use std::sync::LazyLock;

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::Response;
use brine_api::address::{Networks, of_caller};
use brine_api::answer::Format;
use brine_api::cors::Origin;
use brine_api::credentials;
use brine_api::rules::{self, Rules};
use brine_protocol::config::{Config, Role};

const NAMES: [&str; 9] = [
    "host",
    "origin",
    "cookie",
    "authorization",
    "x-auth-token",
    "sec-fetch-site",
    "x-forwarded-for",
    "accept",
    "access-control-request-method",
];

fn rules(yaml: &str) -> Rules {
    let yaml = format!("rest_cherrypy: {{{yaml}}}");
    let config = Config::from_yaml(&yaml, Path::new("/etc/salt/master"), Role::Master).expect("our own text");
    Rules::from_config(&config).expect("our own text")
}

static PLAIN: LazyLock<Rules> = LazyLock::new(|| rules(""));
static STAR: LazyLock<Rules> = LazyLock::new(|| rules("cors_origins: ['*', 'https://console.example']"));

libfuzzer_sys::fuzz_target!(|input: (bool, [u8; 4], Vec<(u8, Vec<u8>)>)| {
    let (tls, peer, given) = input;
    let mut headers = HeaderMap::new();
    for (name, value) in &given {
        let name = HeaderName::from_static(NAMES[usize::from(*name) % NAMES.len()]);
        if let Ok(value) = HeaderValue::from_bytes(value) {
            headers.append(name, value);
        }
    }
    let by_cookie = !headers.contains_key("x-auth-token") && !headers.contains_key("authorization");
    for rules in [&*PLAIN, &*STAR] {
        if let Ok(token) = credentials::token(&headers, rules, tls) {
            let token = token.secret().expose();
            assert!((1..=128).contains(&token.len()) && token.bytes().all(|byte| byte.is_ascii_hexdigit()));
            // With a cookie, every origin is the request's own, or named.
            for origin in headers.get_all("origin").iter().filter(|_| by_cookie) {
                let origin = rules::origin(origin.to_str().expect("an origin")).expect("an origin");
                let (scheme, authority) = origin.split_once("://").expect("an origin");
                let host = headers.get("host").and_then(|host| rules::host(host.to_str().ok()?, scheme));
                assert!(host.as_deref() == Some(authority) || origin == "https://console.example", "{headers:?}");
            }
        }
        if let Some(origin) = Origin::of(&headers, rules) {
            let mut response = Response::default();
            origin.allow(&mut response);
            let headers = response.headers();
            let is_star = headers.get("access-control-allow-origin").is_some_and(|origin| origin == "*");
            assert!(!is_star || !headers.contains_key("access-control-allow-credentials"));
        }
    }
    let peer = IpAddr::from(peer);
    assert_eq!(of_caller(peer, &headers, &Networks::default()).0, peer);
    let proxies = Networks::parse(["0.0.0.0/1", "::/1"]).expect("networks");
    let caller = of_caller(peer, &headers, &proxies).0;
    assert!(caller == peer || proxies.contains(peer));
    let _ = Format::wanted(&headers);
});
