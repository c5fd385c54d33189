//! The answers to invalid requests (PROTOCOL.md §4.2, §6.1, §7).

use brine_protocol::msgpack::encode_network;
use brine_protocol::value::{Value, ValueExt, empty_map, map};
use bytes::Bytes;

use super::harness::*;

fn text(text: &str) -> Value {
    Value::from(text)
}

#[tokio::test(flavor = "multi_thread")]
async fn envelopes() {
    let master = TestMaster::start("").await;
    let routing = map([("error", "Routing error")]);
    for rubbish in
        [&b""[..], b"\xc1", b"\x82\xa3enc", b"\xdd\xff\xff\xff\xff", b"\xdf\xff\xff\xff\xff\xa1a", &[0x91; 5_000]]
    {
        assert_eq!(decode(&master.raw(Bytes::copy_from_slice(rubbish)).await), routing, "{rubbish:?}");
    }
    let clear = |load: Value| map([("enc", text("clear")), ("load", load), ("version", Value::from(3))]);
    let ping = || map([("cmd", "ping")]);
    for (envelope, expected) in [
        (Value::from(7), text("bad load")),
        (Value::Nil, text("bad load")),
        (Value::Array(vec![]), text("bad load")),
        (empty_map(), text("bad load")),
        (map([("enc", "clear")]), text("bad load")),
        (map([("load", ping())]), text("bad load")),
        (map([("enc", text("pub")), ("load", ping()), ("version", 3.into())]), text("bad load")),
        (map([("enc", text("")), ("load", ping()), ("version", 3.into())]), text("bad load")),
        (map([("enc", 7.into()), ("load", ping()), ("version", 3.into())]), text("bad load")),
        (map([("enc", text("clear")), ("load", ping())]), text("bad load")),
        (map([("enc", text("clear")), ("load", ping()), ("version", "x".into())]), text("bad load")),
        (map([("enc", text("clear")), ("load", ping()), ("version", 2.into())]), text("bad load")),
        (map([("enc", text("aes")), ("load", 7.into()), ("version", 3.into())]), text("bad load")),
        (map([("enc", text("aes")), ("load", Value::Binary(vec![9; 100])), ("version", 3.into())]), text("bad load")),
        (clear(Value::Array(vec![])), text("payload and load must be a dict")),
        (clear(empty_map()), empty_map()),
        (clear(map([("cmd", 7)])), empty_map()),
        (clear(ping()), ping()),
        (map([("enc", text("clear")), ("load", ping()), ("version", "3".into())]), ping()),
    ] {
        assert_eq!(decode(&master.raw(encode_network(&envelope)).await), expected, "{envelope}");
    }
}

/// Many small values in a stranger's request, which decoding would multiply, are refused.
#[tokio::test(flavor = "multi_thread")]
async fn a_bomb_of_small_values_is_refused() {
    let master = TestMaster::start("").await;
    let bomb = map([("enc", text("clear")), ("load", Value::Array(vec![Value::Nil; 900_000])), ("version", 3.into())]);
    assert_eq!(decode(&master.raw(encode_network(&bomb)).await), map([("error", "Routing error")]));
    let mut deep = vec![0x91_u8; 100_000];
    deep.push(0xc0);
    assert_eq!(decode(&master.raw(deep).await), map([("error", "Routing error")]));
}

#[tokio::test(flavor = "multi_thread")]
async fn encrypted_loads() {
    let master = TestMaster::start("").await;
    let minion = master.minion("web1", 1).await;
    let other = master.minion("web2", 2).await;
    let good = || {
        map([
            ("cmd", text("_file_envs")),
            ("id", text("web1")),
            ("tok", text("good")),
            ("nonce", text("0123456789abcdef0123456789abcdef")),
        ])
    };
    let with = |name: &str, value: Value| {
        let mut load = good();
        load.insert(name, value);
        load
    };
    let without = |name: &str| {
        let mut load = good();
        load.remove(name);
        load
    };
    let others_token = {
        use brine_protocol::keys::PrivateOps;
        Value::Binary(other.key.x931_sign(b"salt").unwrap())
    };
    let bad = || text("bad load");
    for (what, load, expected) in [
        ("a list", Value::Array(vec![]), text("payload and load must be a dict")),
        ("no id", without("id"), bad()),
        ("an id with NUL", with("id", text("we\0b1")), text("bad load: id contains a null byte")),
        ("an id that is a number", with("id", 7.into()), text("bad load: id 7 is not a string")),
        ("another minion's id", with("id", text("web2")), bad()),
        ("no token", without("tok"), bad()),
        ("an empty token", with("tok", text("")), bad()),
        ("a token of another key", with("tok", others_token), bad()),
        ("a token that is a number", with("tok", 7.into()), bad()),
    ] {
        let reply = decode(&master.raw(minion.envelope(load, "web1", 3)).await);
        assert_eq!(reply, expected, "{what}");
    }
    // An accepted key alone gives no session; sessions start with authentication.
    std::fs::copy(master.path("pki/minions/web1"), master.path("pki/minions/web3")).unwrap();
    for outer in ["web2", "web3", "unknown", "..", "a/b", ""] {
        let reply = decode(&master.raw(minion.envelope(with("id", text(outer)), outer, 3)).await);
        assert_eq!(reply, bad(), "an envelope of {outer:?} under web1's session");
        let reply = decode(&master.raw(minion.envelope(good(), outer, 3)).await);
        assert_eq!(reply, bad(), "an envelope of {outer:?} around web1's load");
    }
    let sessions: Vec<_> =
        std::fs::read_dir(master.path("cache/brine_sessions")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(sessions.len(), 2, "no request made a session: {sessions:?}");
    assert_eq!(
        minion.ask(&master, map([("cmd", "_file_envs")])).await,
        Value::Array(vec![text("base")]),
        "it works on"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn old_requests_with_a_ttl() {
    let master = TestMaster::start("request_server_ttl: 30").await;
    let minion = master.minion("web1", 1).await;
    let now = i64::try_from(std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs()).unwrap();
    for (ts, refused) in [(now - 100, true), (now, false), (now + 100, false)] {
        let load = map([("cmd", text("_file_envs")), ("id", text("web1")), ("tok", text("good")), ("ts", ts.into())]);
        let reply = decode(&master.raw(minion.envelope(load, "web1", 3)).await);
        assert_eq!(reply == text("bad load"), refused, "{ts}");
    }
}

/// A minion writes only its own data, whatever the load says.
#[tokio::test(flavor = "multi_thread")]
async fn the_mine_is_each_minions_own() {
    let master = TestMaster::start("").await;
    let (one, two) = (master.minion("web1", 1).await, master.minion("web2", 2).await);
    let put =
        |id: &str, value: &str| map([("cmd", Value::from("_mine")), ("id", id.into()), ("data", map([("ip", value)]))]);
    let get = map([("cmd", "_mine_get"), ("tgt", "*"), ("fun", "ip")]);
    assert_eq!(one.ask(&master, put("web1", "1")).await, true.into());
    assert_eq!(two.ask(&master, put("web2", "2")).await, true.into());
    two.ask(&master, put("web1", "forged")).await;
    two.ask(&master, put("../web1", "forged")).await;
    let shown = one.ask(&master, get.clone()).await;
    assert_eq!(shown.get_text("web1"), Some("1"));
    let delete = map([("cmd", "_mine_delete"), ("id", "web1"), ("fun", "ip")]);
    two.ask(&master, delete).await;
    assert_eq!(one.ask(&master, get).await, map([("web1", "1")]));
    let mut events = master.events().await;
    let wrong = map([("cmd", Value::from("_mine")), ("data", map([("a\nb", 1)]))]);
    assert_eq!(one.ask(&master, wrong).await, false.into());
    assert_eq!(events.next().await.tag, "brine/refused/mine/web1");
}

/// Each command of the table is answered, with its fields and without any.
#[tokio::test(flavor = "multi_thread")]
async fn every_command_is_answered() {
    let master = TestMaster::start("").await;
    let minion = master.minion("web1", 1).await;
    let (nil, none, empty) = (Value::Nil, empty_map(), text(""));
    let list = || Value::Array(Vec::new());
    for (cmd, expected) in [
        ("_return", nil.clone()),
        ("_minion_event", nil),
        ("_file_envs", Value::Array(vec![text("base")])),
        ("_file_list", list()),
        ("_dir_list", list()),
        ("_file_list_emptydirs", list()),
        ("_symlink_list", none.clone()),
        ("_file_find", map([("path", ""), ("rel", "")])),
        ("_file_hash", empty.clone()),
        ("_file_hash_and_stat", Value::Array(vec![text(""), Value::Nil])),
        ("_serve_file", map([("data", ""), ("dest", "")])),
        ("_file_recv", false.into()),
        ("_register_resources", true.into()),
        ("_master_tops", none.clone()),
        ("_mine", false.into()),
        ("_mine_get", none.clone()),
        ("_mine_delete", false.into()),
        ("_mine_flush", true.into()),
        ("minion_runner", none.clone()),
        ("minion_pub", none.clone()),
        ("minion_publish", none.clone()),
        ("pub_ret", none.clone()),
        ("_syndic_return", none.clone()),
        ("verify_minion", empty),
        ("_ext_nodes", none.clone()),
        ("__init__", none.clone()),
        ("publish", none.clone()),
        ("_auth", none.clone()),
        ("", none),
    ] {
        assert_eq!(minion.ask(&master, map([("cmd", cmd)])).await, expected, "{cmd}");
    }
    let opts = minion.ask(&master, map([("cmd", "_master_opts")])).await;
    assert_eq!(opts.get("file_roots"), Some(&map([("base", list())])));
    assert_eq!(opts.get_text("state_top"), Some("salt://top.sls"));
    let opts = minion.ask(&master, map([("cmd", Value::from("_master_opts")), ("env_only", true.into())])).await;
    assert_eq!(opts.entries().unwrap().len(), 4);
    assert_eq!(minion.pillar(&master).await, empty_map());
    assert_eq!(mode(master.path("cache/grains/web1.p")), 0o600);
    assert_eq!(mode(master.path("cache/grains")), 0o700);
}

#[tokio::test(flavor = "multi_thread")]
async fn files_come_in_chunks() {
    let master = TestMaster::start("file_buffer_size: 5").await;
    std::fs::write(master.path("files/a.txt"), b"hello \xff world").unwrap();
    let minion = master.minion("web1", 1).await;
    let mut whole = Vec::new();
    loop {
        let load = map([
            ("cmd", text("_serve_file")),
            ("path", "a.txt".into()),
            ("saltenv", "base".into()),
            ("loc", whole.len().into()),
        ]);
        let reply = minion.ask(&master, load).await;
        assert_eq!(reply.get_text("dest"), Some("a.txt"));
        match reply.get_bytes("data").unwrap() {
            [] => break,
            chunk => whole.extend_from_slice(chunk),
        }
    }
    assert_eq!(whole, b"hello \xff world");
    let load = map([("cmd", text("_file_find")), ("path", "a.txt".into()), ("saltenv", "base".into())]);
    let found = minion.ask(&master, load).await;
    assert_eq!((found.get_text("path"), found.get_text("rel")), (Some("a.txt"), Some("a.txt")), "no path of this host");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_minion_may_give_up_its_own_key_and_is_nobody_then() {
    let master = TestMaster::start("").await;
    let minion = master.minion("web1", 1).await;
    let _other = master.minion("web2", 2).await;
    let mut events = master.events().await;
    assert_eq!(minion.ask(&master, map([("cmd", "revoke_auth"), ("id", "web2")])).await, true.into());
    assert!(!master.key_in("minions", "web1") && master.key_in("minions", "web2"));
    assert!(!master.path("cache/brine_sessions/web1").exists());
    assert_eq!(events.wait("key").await.data.get_bool("rotate_aes_key"), Some(true));
    let load = map([("cmd", text("_file_envs")), ("id", text("web1")), ("tok", text("good"))]);
    assert_eq!(decode(&master.raw(minion.envelope(load, "web1", 3)).await), text("bad load"));
}

#[tokio::test(flavor = "multi_thread")]
async fn local_callers_need_the_key() {
    let master = TestMaster::start("").await;
    let _minion = master.minion("web1", 1).await;
    let mut events = master.events().await;
    let error = |name: &str, message: &str| map([("error", map([("name", name), ("message", message)]))]);
    let denied = error("AuthenticationError", "Authentication error occurred.");
    let mut right = master.local_key();
    for wrong in ["".to_owned(), "x".to_owned(), right.split_off(75), format!("{}x", master.local_key())] {
        let mut load = master.publish_load("*", "glob", "test.ping", vec![]);
        load.insert("key", wrong.as_str());
        load.insert("jid", "20261120134740245008");
        assert_eq!(master.clear(load).await, denied, "{wrong:?}");
        let event = events.wait("salt/job/error").await;
        assert_eq!(event.tag, "salt/job/error", "a stranger ends nobody's wait for a job");
        assert!(!event.data.has("key"), "the event shows what was tried, and no key");
        assert_eq!(event.data.get_text("fun"), Some("test.ping"));
    }
    for (secret, name) in [("token", "TokenAuthenticationError"), ("eauth", "EauthAuthenticationError")] {
        let mut load = map([
            ("cmd", "runner"),
            ("fun", "jobs.list_jobs"),
            (secret, "pam"),
            ("username", "joe"),
            ("password", "p"),
        ]);
        let reply = master.clear(load.clone()).await;
        assert_eq!(reply.get("error").and_then(|e| e.get_text("name")), Some(name));
        load.insert("cmd", "publish");
        load.insert("jid", "");
        assert_eq!(master.clear(load).await, denied);
        let event = events.wait("salt/job/error").await;
        assert!(
            !event.data.has("password") && !event.data.has("token") && !event.data.has("eauth"),
            "{:?}",
            event.data
        );
    }
    for cmd in ["runner", "wheel"] {
        let reply = master.clear(map([("cmd", cmd), ("fun", "key.list_all")])).await;
        assert_eq!(reply.get("error").and_then(|e| e.get_text("name")), Some("UserAuthenticationError"));
    }
    assert_eq!(master.clear(map([("cmd", "get_token")])).await, false.into());
    assert_eq!(master.clear(map([("cmd", "get_token"), ("token", "ab")])).await, empty_map());
    assert_eq!(master.clear(map([("cmd", "mk_token"), ("eauth", "pam")])).await, text(""));
}
