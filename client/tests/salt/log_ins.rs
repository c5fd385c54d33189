//! `salt -a`: a name and a password, or a token that stands for them.

use std::os::unix::fs::PermissionsExt as _;

use brine_protocol::value::{Value, map};
use serde_json::json;

use super::fake_master::{FakeMaster, KEY, field, returned};
use super::{JID, SALT};

const LOG_IN: [&str; 5] = ["-a", "file", "--username=fred", "--password", "fred-secret"];

fn who(load: &Value) -> serde_json::Value {
    let kwargs = field(load, "kwargs");
    json!([field(load, "key"), kwargs["eauth"], kwargs["username"], kwargs["password"], kwargs["token"]])
}

async fn ping(master: &mut FakeMaster, args: &[&str]) -> serde_json::Value {
    let salt = master.command(SALT, &[args, &["*", "test.ping"]].concat());
    let (mut bus, load) = master.job(JID, &["web1"]).await;
    bus.fire(&returned(JID, "web1", true, 0)).await;
    salt.await.unwrap().is(0, "web1:\n    True\n", "");
    who(&load)
}

#[tokio::test]
async fn a_name_and_a_password_take_the_place_of_the_key() {
    let mut master = FakeMaster::start("").await;
    assert_eq!(ping(&mut master, &[]).await, json!([KEY, null, null, null, null]));
    assert_eq!(ping(&mut master, &LOG_IN).await, json!(["", "file", "fred", "fred-secret", null]));
}

#[tokio::test]
async fn a_token_is_made_kept_and_used() {
    let mut master = FakeMaster::start("").await;
    let args = [&LOG_IN[..], &["-T", "*", "test.ping"]].concat();
    let salt = master.command(SALT, &args);
    let request = master.request().await;
    assert_eq!(field(&request.load, "cmd"), json!("mk_token"));
    assert_eq!(field(&request.load, "username"), json!("fred"));
    request.answer(&map([("token", "0123abcd"), ("name", "fred")])).await;
    let (mut bus, load) = master.job(JID, &["web1"]).await;
    assert_eq!(who(&load), json!(["", null, null, null, "0123abcd"]));
    bus.fire(&returned(JID, "web1", true, 0)).await;
    salt.await.unwrap().is(0, "web1:\n    True\n", "");
    let kept = master.path("salt_token");
    assert_eq!(std::fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o600);

    // Who can read the master's key uses that, as with Salt; others use the token.
    assert_eq!(ping(&mut master, &[]).await[0], json!(KEY));
    std::fs::remove_file(master.path("cache/.root_key")).unwrap();
    assert_eq!(ping(&mut master, &[]).await, json!(["", null, null, null, "0123abcd"]));
}

#[tokio::test]
async fn a_log_in_that_fails_is_the_masters_refusal() {
    let mut master = FakeMaster::start("").await;
    let args = [&LOG_IN[..], &["-T", "*", "test.ping"]].concat();
    let salt = master.command(SALT, &args);
    master.request().await.answer(&Value::from("")).await;
    let _bus = master.subscriber().await;
    let error = map([("name", "AuthenticationError"), ("message", "Authentication error occurred.")]);
    master.request().await.answer(&map([("error", error)])).await;
    salt.await.unwrap().is(0, "Authentication error occurred.\n", "");
    assert!(!master.path("salt_token").exists());
}
