//! `salt -a`: logs in with a name and a password, or with a token.

use brine_kit::files::mode;
use brine_protocol::value::{Value, ValueExt as _, map};
use serde_json::json;

use super::fake_master::{FakeMaster, KEY, field, returned};
use super::{JID, SALT, SALT_KEY, SALT_RUN};

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
    assert_eq!(mode(&kept), 0o600);

    // As in Salt, a user that can read the master's key uses the key; others use the token.
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

/// Answers a request for a password with the master's refusal.
async fn refuse(master: &mut FakeMaster) {
    let said = "Authentication failure of type \"eauth\" occurred for user fred.";
    let error = map([("name", "EauthAuthenticationError"), ("message", said)]);
    let request = master.request().await;
    assert_eq!(field(&request.load, "username"), json!("fred"));
    request.answer(&map([("error", error)])).await;
}

#[tokio::test]
async fn a_log_in_that_fails_is_told_in_salts_sentence_by_salt_run_and_salt_key() {
    let mut master = FakeMaster::start("").await;
    let said = "Authentication failure of type \"eauth\" occurred for user fred.\n";
    let run = master.command(SALT_RUN, &[&LOG_IN[..], &["test.arg", "x"]].concat());
    let bus = master.subscriber().await;
    refuse(&mut master).await;
    run.await.unwrap().is(0, said, "");
    drop(bus);
    let key = ["--eauth", "file", "--username=fred", "--password", "wrong"];
    for action in [&["-l", "acc"][..], &["-y", "-a", "web*"], &["-p", "web1"], &["-f", "*"]] {
        let salt_key = master.command(SALT_KEY, &[&key[..], action].concat());
        refuse(&mut master).await;
        salt_key.await.unwrap().is(0, said, "");
    }
    // The output for programs.
    let salt_key = master.command(SALT_KEY, &[&key[..], &["-l", "acc", "--out=json"]].concat());
    refuse(&mut master).await;
    salt_key.await.unwrap().is(0, &format!("{}\n", json!(said.trim_end())), "");
}

#[tokio::test]
async fn a_system_that_no_master_has_is_told_as_salt_tells_it() {
    let master = FakeMaster::start("").await;
    let said =
        "The specified external authentication system \"wrongeauth\" is not available\nAvailable eauth types: auto, ";
    for (program, words, code) in
        [(SALT, &["*", "test.ping"][..], 2), (SALT_RUN, &["test.arg"], 0), (SALT_KEY, &["-l", "acc"], 0)]
    {
        let args = [&["--eauth", "wrongeauth", "--username=fred", "--password=x"], words].concat();
        let done = master.command(program, &args).await.unwrap();
        assert!(done.code == code && done.stdout.starts_with(said), "{program}: {done:?}");
    }
}

#[tokio::test]
async fn keys_are_decided_about_by_the_masters_wheel_for_who_logs_in() {
    let mut master = FakeMaster::start("").await;
    let wheel = async |master: &mut FakeMaster, fun: &str, kwarg: serde_json::Value, ret: Value| {
        let request = master.request().await;
        assert_eq!((field(&request.load, "cmd"), field(&request.load, "fun")), (json!("wheel"), json!(fun)));
        assert_eq!((field(&request.load, "kwarg"), field(&request.load, "eauth")), (kwarg, json!("file")));
        assert_eq!(field(&request.load, "key"), json!(null));
        let data = map([("return", ret), ("success", Value::from(true))]);
        request.answer(&map([("tag", Value::from("salt/wheel/1")), ("data", data)])).await;
    };
    let ids = |folder: &str, ids: &[&str]| map([(folder, brine_protocol::value::list(ids.to_vec()))]);
    let log_in = ["--eauth", "file", "--username=fred", "--password", "fred-secret"];
    let list = master.command(SALT_KEY, &[&log_in[..], &["-l", "acc"]].concat());
    wheel(&mut master, "key.list", json!({"match": "accepted"}), ids("minions", &["db1"])).await;
    list.await.unwrap().is(0, "Accepted Keys:\ndb1\n", "");

    let accept = master.command(SALT_KEY, &[&log_in[..], &["-y", "-a", "web*"]].concat());
    let mut found = ids("minions_pre", &["web1", "web2"]);
    found.insert("minions", brine_protocol::value::list(["web0"]));
    wheel(&mut master, "key.glob_match", json!({"match": "web*"}), found).await;
    let kwarg = json!({"include_rejected": false, "include_denied": false, "match": {"minions_pre": ["web1", "web2"]}});
    let mut now = ids("minions", &["web0", "web1"]);
    now.insert("minions_pre", brine_protocol::value::list(["web2"]));
    wheel(&mut master, "key.accept_dict", kwarg, now).await;
    let done = accept.await.unwrap();
    let said =
        "The following keys are going to be accepted:\nUnaccepted Keys:\nweb1\nweb2\nKey for minion web1 accepted.\n";
    done.is(0, said, "The master did not accept the key of web2.\n");

    let none = master.command(SALT_KEY, &[&log_in[..], &["-y", "-d", "x*"]].concat());
    wheel(&mut master, "key.glob_match", json!({"match": "x*"}), brine_protocol::value::empty_map()).await;
    none.await.unwrap().is(0, "The key glob 'x*' does not match any unaccepted keys.\n", "");
    let made = master.command(SALT_KEY, &[&log_in[..], &["--gen-keys=x"]].concat()).await.unwrap();
    assert!(made.code == 64 && made.stderr.contains("go without --auth"), "{made:?}");
}
