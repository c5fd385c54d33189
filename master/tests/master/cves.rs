//! Regression tests for classes of Salt's CVEs that concern a master, named by number.

use brine_protocol::value::{Value, ValueExt, empty_map, map};
use bytes::Bytes;
use rand_bytes::Noise;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::harness::*;

/// Reproducible noise.
mod rand_bytes {
    pub(crate) struct Noise(pub(crate) u64);

    impl Noise {
        pub(crate) fn byte(&mut self) -> u8 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0.to_le_bytes()[3]
        }

        pub(crate) fn bytes(&mut self, n: usize) -> Vec<u8> {
            (0..n).map(|_| self.byte()).collect()
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cve_2020_11651_methods_by_name() {
    let master = TestMaster::start("").await;
    let key = master.local_key();
    for cmd in [
        "_send_pub",
        "_prep_auth_info",
        "_prep_pub",
        "__init__",
        "__class__",
        "destroy",
        "run_func",
        "_update_aes",
        "key",
    ] {
        let reply = master.clear(map([("cmd", cmd), ("fun", "test.ping"), ("key", key.as_str())])).await;
        assert_eq!(reply, empty_map(), "{cmd}");
    }
    // The command that revealed the root key.
    let reply = master.clear(map([("cmd", "_prep_auth_info")])).await;
    assert!(!format!("{reply}").contains(&key));
}

#[tokio::test(flavor = "multi_thread")]
async fn cve_2020_11652_and_2024_22231_22232_traversal() {
    let master = TestMaster::start("file_recv: True").await;
    std::fs::write(master.path("secret"), "secret").unwrap();
    std::fs::write(master.path("files/ok"), "ok").unwrap();
    let minion = master.minion("web1", 1).await;
    let absolute = master.path("secret").display().to_string();
    for path in
        ["../secret", "x/../../secret", absolute.as_str(), "/etc/passwd", "..\\secret", "salt://../secret", "ok\0"]
    {
        for cmd in ["_serve_file", "_file_hash", "_file_hash_and_stat", "_file_find"] {
            let load =
                map([("cmd", Value::from(cmd)), ("path", path.into()), ("saltenv", "base".into()), ("loc", 0.into())]);
            let reply = minion.ask(&master, load).await;
            assert!(
                !format!("{reply}").contains("secret") && !format!("{reply}").contains("hsum"),
                "{cmd} {path}: {reply}"
            );
        }
    }
    for env in ["..", "../..", "base/..", "/"] {
        let load = map([
            ("cmd", Value::from("_serve_file")),
            ("path", "secret".into()),
            ("saltenv", env.into()),
            ("loc", 0.into()),
        ]);
        assert_eq!(minion.ask(&master, load).await.get_text("dest"), Some(""), "{env}");
        let load = map([("cmd", "_file_list"), ("saltenv", env), ("prefix", "../")]);
        assert_eq!(minion.ask(&master, load).await, Value::Array(Vec::new()));
    }
    for parts in [&["..", "..", "..", "x"][..], &["/x"], &["a", "..", "..", "..", "x"], &["../../../x"], &[]] {
        let path = Value::Array(parts.iter().map(|part| Value::from(*part)).collect());
        let load = map([("cmd", Value::from("_file_recv")), ("path", path), ("loc", 0.into()), ("data", "x".into())]);
        assert_eq!(minion.ask(&master, load).await, false.into(), "{parts:?}");
    }
    assert!(!master.path("x").exists() && !master.path("cache/x").exists());
}

/// Pillar replies are signed by the master and valid for one request; every encrypted reply is bound to its request.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2022_22934_pillar_is_signed_and_bound() {
    let master = TestMaster::start("").await;
    let minion = master.minion("web1", 1).await;
    let session = minion.session.as_ref().unwrap();
    let load = || map([("cmd", Value::from("_pillar")), ("grains", empty_map()), ("ver", "2".into())]);
    let (first, second) = (session.seal_request(load()).unwrap(), session.seal_request(load()).unwrap());
    let reply = master.raw(first.payload).await;
    assert_eq!(session.open_pillar_reply(&reply, &first.nonce).unwrap(), empty_map());
    assert!(session.open_pillar_reply(&reply, &second.nonce).is_err());
    // Another master's signature is refused.
    let mut fooled = minion.credentials.clone().unwrap();
    fooled.master = key(2).public().clone();
    let alg = (brine_protocol::keys::EncAlg::OaepSha1, brine_protocol::keys::SignAlg::Pkcs1v15Sha1);
    let other = brine_protocol::request::Session::new(&minion.id, minion.key.clone(), &fooled, alg.0, alg.1).unwrap();
    assert!(other.open_pillar_reply(&reply, &first.nonce).is_err());
    let load =
        map([("cmd", Value::from("_pillar")), ("id", "web1".into()), ("tok", "good".into()), ("ver", "2".into())]);
    let reply = decode(&master.raw(minion.envelope_as_is(load, "web1", 3)).await);
    assert_eq!(reply, map([("error", "Nonce not included in request")]));
}

/// Publications are signed and numbered; a minion drops repeated and changed ones.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2022_22936_publications_are_not_replayed() {
    let master = TestMaster::start("").await;
    let minion = master.minion("web1", 1).await;
    let mut publications = minion.subscribe(&master, &[""]).await;
    for _ in 0..3 {
        master.publish("web1", "glob", "test.ping", vec![]).await;
    }
    let mut seen = Vec::new();
    for _ in 0..3 {
        let frames = publications.frames().await;
        publications.open(&frames).unwrap();
        seen.push(frames);
    }
    for frames in seen {
        assert!(publications.open(&frames).is_err());
    }
}

/// A repeated request or an old one has no effect.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2022_22936_and_2024_38823_requests_are_not_replayed() {
    let master = TestMaster::start("").await;
    let minion = master.minion("web1", 1).await;
    let mut events = master.events().await;
    let sealed =
        minion.session.as_ref().unwrap().seal_request(map([("cmd", "_minion_event"), ("tag", "my/tag")])).unwrap();
    master.raw(sealed.payload.clone()).await;
    events.wait("my/tag").await;
    assert_eq!(decode(&master.raw(sealed.payload.clone()).await), Value::from("bad load"));
    assert_eq!(events.next().await.tag, "brine/refused/replay/web1");
    // Also after other requests in the session, and over another connection.
    minion.ask(&master, map([("cmd", "_file_envs")])).await;
    assert_eq!(decode(&master.raw(sealed.payload).await), Value::from("bad load"));
    assert_eq!(events.next().await.tag, "brine/refused/replay/web1");
}

/// Requests without a valid nonce and time could be replayed. No Salt minion sends such requests, and every command
/// refuses them.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2022_22936_requests_that_cannot_be_told_from_replays_are_refused() {
    let master = TestMaster::start("").await;
    let minion = master.minion("web1", 1).await;
    let mut events = master.events().await;
    let nonce = |n: u32| Value::from(format!("{n:032x}"));
    let bad_ts =
        [Value::Nil, "1000".into(), 1000.5.into(), true.into(), u64::MAX.into(), Value::Array(vec![1000.into()])];
    let mut lacking: Vec<(Option<Value>, Option<Value>)> =
        vec![(None, None), (None, Some(now().into())), (Some(nonce(1)), None)];
    lacking.extend(bad_ts.into_iter().map(|ts| (Some(nonce(2)), Some(ts))));
    for (n, (nonce, ts)) in lacking.into_iter().enumerate() {
        for cmd in ["_minion_event", "_return", "_mine", "_file_envs", "_master_opts", "_file_recv", "no_such_command"]
        {
            let mut load = map([
                ("cmd", Value::from(cmd)),
                ("id", "web1".into()),
                ("tok", "good".into()),
                ("tag", "my/tag".into()),
                ("data", map([("a", 1)])),
            ]);
            for (key, value) in [("nonce", &nonce), ("ts", &ts)] {
                if let Some(value) = value {
                    load.insert(key, value.clone());
                }
            }
            let sent = minion.envelope_as_is(load, "web1", 3);
            assert_eq!(decode(&master.raw(sent).await), Value::from("bad load"), "{cmd} {n}");
        }
    }
    let load = map([("cmd", "_minion_event"), ("tag", "my/other"), ("id", "web1"), ("tok", "good")]);
    let whole = minion.envelope(load, "web1", 3);
    master.raw(whole.clone()).await;
    assert_eq!(events.next().await.tag, "brine/refused/replay/web1");
    loop {
        match events.next().await.tag.as_str() {
            "my/other" => break,
            tag => assert_eq!(tag, "brine/refused/replay/web1", "nothing else came of them"),
        }
    }
    assert_eq!(decode(&master.raw(whole).await), Value::from("bad load"));
}

/// A minion whose clock was set back authenticates again and gets a new session.
#[tokio::test(flavor = "multi_thread")]
async fn a_clock_set_back_costs_one_authentication() {
    let master = TestMaster::start("").await;
    let mut minion = master.minion("web1", 1).await;
    let load = |ts: i64, nonce: &str| {
        map([
            ("cmd", Value::from("_file_envs")),
            ("id", "web1".into()),
            ("tok", "good".into()),
            ("ts", ts.into()),
            ("nonce", nonce.repeat(32).into()),
        ])
    };
    assert_ne!(decode(&master.raw(minion.envelope(load(10_000, "1"), "web1", 3)).await), Value::from("bad load"));
    assert_eq!(decode(&master.raw(minion.envelope(load(5_000, "2"), "web1", 3)).await), Value::from("bad load"));
    let brine_protocol::auth::AuthOutcome::Accepted(credentials) = minion.authenticate(&master).await else { panic!() };
    assert_ne!(credentials.session_key, minion.credentials.as_ref().unwrap().session_key);
    let before = minion.envelope(load(10_000, "1"), "web1", 3);
    minion.take(*credentials);
    assert_ne!(decode(&master.raw(minion.envelope(load(5_000, "3"), "web1", 3)).await), Value::from("bad load"));
    assert_eq!(decode(&master.raw(before).await), Value::from("bad load"), "what was captured under the old session");
}

/// Number of malformed requests in the soak; `make soak` sends a million.
fn soak_requests() -> usize {
    let asked = std::env::var("BRINE_SOAK_REQUESTS").ok();
    asked.map_or(3_200, |number| number.parse().expect("BRINE_SOAK_REQUESTS is a number"))
}

/// Returns the resident memory of this process in bytes. The master is part of it.
fn resident() -> u64 {
    brine_kit::process::resident(std::process::id())
}

/// Malformed requests block no worker: after a soak the master answers over the same connections, and its memory has
/// not grown.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2023_20897_malformed_requests_soak() {
    let master = TestMaster::start("").await;
    let minion = master.minion("web1", 1).await;
    let (rounds, before) = (soak_requests() / 8, resident());
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..8_u64 {
        let mut requester = master.requester();
        let good = minion.envelope(map([("cmd", "_file_envs"), ("id", "web1"), ("tok", "good")]), "web1", 3);
        tasks.spawn(async move {
            let mut noise = Noise(0x9e37_79b9_7f4a_7c15 ^ (task + 1));
            for round in 0..rounds {
                let payload = match round % 4 {
                    0 => noise.bytes(round % 64),
                    1 => {
                        // A valid request with changed bytes.
                        let mut bytes = good.clone();
                        for _ in 0..=round % 5 {
                            let at = usize::from(noise.byte()) * 7 % bytes.len();
                            bytes[at] = noise.byte();
                        }
                        bytes
                    }
                    2 => good[..usize::from(noise.byte()) % good.len()].to_vec(),
                    _ => {
                        let load = map([
                            ("cmd", Value::from("_auth")),
                            ("id", Value::Binary(noise.bytes(8))),
                            ("pub", Value::Nil),
                        ]);
                        brine_protocol::envelope::Envelope::clear(load).encode()
                    }
                };
                requester.request(Bytes::from(payload), SOON).await.expect("every request has a reply");
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    assert_eq!(minion.ask(&master, map([("cmd", "_file_envs")])).await, Value::Array(vec!["base".into()]));
    let grown = resident().saturating_sub(before) >> 20;
    println!("{} malformed requests, {grown} MiB more in memory", rounds * 8);
    // Buffers and the allocator's arenas. A leak in a million requests would be larger.
    assert!(grown < 64, "{grown} MiB were kept");
}

/// Bytes that are no ZMTP, silent connections and frames with a wrong length do not affect other peers.
#[tokio::test(flavor = "multi_thread")]
async fn strangers_on_the_ports_disturb_nobody() {
    let master = TestMaster::start("").await;
    let minion = master.minion("web1", 1).await;
    let mut noise = Noise(42);
    for endpoint in [master.server().request_endpoint(), master.server().publish_endpoint()] {
        let mut silent = Vec::new();
        for n in 0..50 {
            let mut stream = dial(endpoint).await;
            if n % 2 == 0 {
                silent.push(stream);
                continue;
            }
            let _ = stream.write_all(&noise.bytes(300)).await;
            let _ = stream.shutdown().await;
            let mut rest = Vec::new();
            // It must be cut off.
            let _ = SOON.within(stream.read_to_end(&mut rest)).await;
        }
        assert_eq!(minion.ask(&master, map([("cmd", "_file_envs")])).await, Value::Array(vec!["base".into()]));
    }
}

/// A request counts for the minion of its channel, whatever its payload says (also CVE-2013-4439).
#[tokio::test(flavor = "multi_thread")]
async fn cve_2024_38822_identity_is_the_channels() {
    let master = TestMaster::start("").await;
    let minion = master.minion("web1", 1).await;
    let _victim = master.minion("web2", 2).await;
    let mut events = master.events().await;
    for cmd in
        ["_return", "_minion_event", "_pillar", "_mine", "revoke_auth", "_file_recv", "pub_ret", "_syndic_return"]
    {
        let load = map([
            ("cmd", Value::from(cmd)),
            ("id", "web2".into()),
            ("tok", "good".into()),
            ("jid", "20261120134740245008".into()),
            ("return", true.into()),
            ("tag", "my/tag".into()),
        ]);
        assert_eq!(decode(&master.raw(minion.envelope(load, "web1", 3)).await), Value::from("bad load"), "{cmd}");
    }
    assert!(master.key_in("minions", "web2"));
    // 3008's resources may replace an id; a Brine master ignores `resource_id`.
    let mut load = minion.return_load("20261120134740245008", true);
    load.insert("resource_id", "web2");
    minion.ask(&master, load).await;
    let event = events.wait("salt/job/").await;
    assert_eq!(
        (event.tag.as_str(), event.data.get_text("id")),
        ("salt/job/20261120134740245008/ret/web1", Some("web1"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn cve_2025_22238_ids_are_names() {
    let master = TestMaster::start("auto_accept: True").await;
    for id in ["../minions_pre/x", "..", "x/../../y", "/etc/passwd", "a\\..\\b"] {
        let load = map([
            ("cmd", Value::from("_auth")),
            ("id", id.into()),
            ("nonce", "0".repeat(32).into()),
            ("pub", key(1).public().clean_pem().into()),
        ]);
        let reply = master.clear(load).await;
        assert_eq!(decode(reply.get_bytes("load").unwrap()).get_bool("ret"), Some(false), "{id:?}");
    }
    for folder in ["pki/minions", "pki/minions_pre", "cache/brine_sessions"] {
        assert_eq!(std::fs::read_dir(master.path(folder)).unwrap().count(), 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cve_2025_22239_tags_belong_to_their_senders() {
    let master = TestMaster::start("").await;
    let minion = master.minion("web1", 1).await;
    let mut events = master.events().await;
    let spoofed = [
        "salt/job/20261120134740245008/new",
        "salt/job/20261120134740245008/ret/web2",
        "salt/key",
        "key",
        "salt/auth",
        "salt/run/20261120134740245008/ret",
        "salt/minion/web2/start",
        "a\n\nb",
    ];
    for tag in spoofed {
        let single = map([
            ("cmd", Value::from("_minion_event")),
            ("tag", tag.into()),
            ("data", empty_map()),
            ("pretag", Value::Nil),
        ]);
        assert_eq!(minion.ask(&master, single).await, Value::from(false));
        let one = map([("tag", Value::from(tag)), ("data", empty_map())]);
        let batch = map([("cmd", Value::from("_minion_event")), ("events", Value::Array(vec![one]))]);
        assert_eq!(minion.ask(&master, batch).await, Value::Nil);
        for _ in 0..2 {
            let event = events.next().await;
            assert_eq!(event.tag, "brine/refused/event/web1", "{tag}");
        }
    }
    // A `pretag` does not bypass the check, neither in the prefix nor in the tag.
    let one = map([("tag", Value::from("job/20261120134740245008/new")), ("data", empty_map())]);
    let batch =
        map([("cmd", Value::from("_minion_event")), ("pretag", "salt".into()), ("events", Value::Array(vec![one]))]);
    minion.ask(&master, batch).await;
    assert_eq!(events.next().await.tag, "brine/refused/event/web1");
    assert_eq!(events.next().await.tag, "job/20261120134740245008/new", "a tag of the operator's own");
    for tag in ["salt/minion/web1/start", "minion_start", "my/own"] {
        let data = map([("id", Value::from("web2")), ("x", 1.into())]);
        let single = map([("cmd", Value::from("_minion_event")), ("tag", tag.into()), ("data", data.clone())]);
        minion.ask(&master, single).await;
        let event = events.next().await;
        assert_eq!((event.tag.as_str(), event.data.get_text("id")), (tag, Some("web1")));
        let one = map([("tag", Value::from(tag)), ("data", data)]);
        minion.ask(&master, map([("cmd", Value::from("_minion_event")), ("events", Value::Array(vec![one]))])).await;
        let event = events.next().await;
        assert_eq!(
            (event.tag.as_str(), event.data.get_text("id")),
            (tag, Some("web1")),
            "a batch cannot lie about its sender"
        );
    }
    // A minion cannot make a client wait for further minions: only the master sets a job's minions.
    let tag = "salt/job/20261120134740245008/prog/web1/1";
    let data = map([("minions", Value::Array(vec!["web2".into()])), ("x", 1.into())]);
    let one = map([("tag", Value::from(tag)), ("data", data)]);
    minion.ask(&master, map([("cmd", Value::from("_minion_event")), ("events", Value::Array(vec![one]))])).await;
    let event = events.next().await;
    assert_eq!((event.tag.as_str(), event.data.has("minions"), event.data.has("x")), (tag, false, true));
}

/// A jid from outside is never used as a path.
#[tokio::test(flavor = "multi_thread")]
async fn cve_2025_22242_jids_are_jids() {
    let master = TestMaster::start("").await;
    let minion = master.minion("web1", 1).await;
    let mut events = master.events().await;
    for jid in ["../../x", "20261120134740245008/..", "", "x", "2026112013474024500", "req/../x"] {
        assert_eq!(minion.ask(&master, minion.return_load(jid, true)).await, Value::Nil, "{jid:?}");
        assert_eq!(events.next().await.tag, "brine/refused/return/web1");
        let mut load = master.publish_load("*", "glob", "test.ping", vec![]);
        load.insert("jid", jid);
        if !jid.is_empty() {
            assert_eq!(master.clear(load).await, map([("error", "Master failed to assign jid")]), "{jid:?}");
        }
    }
}
