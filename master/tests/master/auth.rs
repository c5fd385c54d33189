//! Authentication over the wire, in every state a key can be in (PROTOCOL.md §3).

use brine_protocol::auth::AuthOutcome;
use brine_protocol::envelope::Envelope;
use brine_protocol::value::{Value, ValueExt, map};

use super::harness::*;

fn name(outcome: &AuthOutcome) -> &'static str {
    match outcome {
        AuthOutcome::Accepted(_) => "accepted",
        AuthOutcome::Pending { .. } => "pending",
        AuthOutcome::Rejected => "rejected",
        AuthOutcome::Full => "full",
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_pending_accepted_denied_and_rejected() {
    let master = TestMaster::start("").await;
    let mut events = master.events().await;
    let mut minion = TestMinion::new("web1", 1);
    assert_eq!(name(&minion.authenticate(&master).await), "pending");
    let event = events.wait("salt/auth").await;
    assert_eq!((event.data.get_text("act"), event.data.get_text("id")), (Some("pend"), Some("web1")));
    assert!(event.data.get_text("pub").unwrap().starts_with("-----BEGIN PUBLIC KEY-----"));
    assert_eq!(mode(master.path("pki/minions_pre/web1")), 0o600);
    assert!(!master.path("cache/brine_sessions/web1").exists(), "nothing is kept for a key that nobody accepted");

    master.accept("web1");
    let AuthOutcome::Accepted(credentials) = minion.authenticate(&master).await else { panic!() };
    assert_eq!(events.wait("salt/auth").await.data.get_text("act"), Some("accept"));
    assert_eq!(mode(master.path("cache/brine_sessions/web1")), 0o600);
    let session_key = credentials.session_key.clone();
    assert_eq!(Some(credentials.publish_port), master.server().publish_endpoint().port());
    minion.take(*credentials);
    // With the master's key known, both sides check the token; the session stays.
    let AuthOutcome::Accepted(again) = minion.authenticate(&master).await else { panic!() };
    assert_eq!(again.session_key, session_key);

    // A reinstalled host has a new key, and a new session key unknown to the holder of the old key.
    let old = std::fs::read(master.path("pki/minions/web1")).unwrap();
    std::fs::remove_file(master.path("pki/minions/web1")).unwrap();
    let reinstalled = master.minion("web1", 2).await;
    assert_ne!(reinstalled.credentials.as_ref().unwrap().session_key, session_key);
    std::fs::write(master.path("pki/minions/web1"), old).unwrap();
    assert_eq!(events.wait("salt/auth").await.data.get_text("act"), Some("accept"), "the one with the token");
    assert_eq!(events.wait("salt/auth").await.data.get_text("act"), Some("accept"), "the reinstalled one");

    let impostor = TestMinion::new("web1", 2);
    assert_eq!(name(&impostor.authenticate(&master).await), "rejected");
    assert_eq!(events.wait("salt/auth").await.data.get_text("act"), Some("denied"));
    assert!(master.key_in("minions_denied", "web1"));

    std::fs::rename(master.path("pki/minions/web1"), master.path("pki/minions_rejected/web1")).unwrap();
    assert_eq!(name(&minion.authenticate(&master).await), "rejected");
    assert_eq!(events.wait("salt/auth").await.data.get_text("act"), Some("reject"));
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_let_in_and_keep_out() {
    let open = TestMaster::start("open_mode: True").await;
    for key_no in [1, 2] {
        assert_eq!(name(&TestMinion::new("a", key_no).authenticate(&open).await), "accepted");
    }
    let full = TestMaster::start("auto_accept: True\nmax_minions: 1").await;
    for (id, expected) in [("a", "accepted"), ("b", "accepted"), ("c", "full"), ("a", "accepted")] {
        assert_eq!(name(&TestMinion::new(id, 1).authenticate(&full).await), expected, "{id}");
    }
    assert!(!full.key_in("minions", "c"));
}

fn auth_load(pairs: &[(&str, Value)]) -> Value {
    let mut load = map([
        ("cmd", Value::from("_auth")),
        ("id", Value::from("web1")),
        ("nonce", Value::from("0123456789abcdef0123456789abcdef")),
        ("pub", Value::from(key(1).public().clean_pem())),
        ("enc_algo", Value::from("OAEP-SHA1")),
        ("sig_algo", Value::from("PKCS1v15-SHA1")),
    ]);
    for (name, value) in pairs {
        if value.is_nil() {
            load.remove(name);
        } else {
            load.insert(name, value.clone());
        }
    }
    load
}

/// Every malformed request gets a reply, and none leaves a file in the key folders.
#[tokio::test(flavor = "multi_thread")]
async fn malformed_requests_are_answered_and_leave_nothing() {
    let master = TestMaster::start("").await;
    let fault = Value::from("Some exception handling minion payload");
    let long = "x".repeat(300);
    for pairs in [
        &[("nonce", Value::Nil)][..],
        &[("id", Value::Nil)],
        &[("pub", Value::Nil)],
        &[("nonce", Value::from(7))],
        &[("pub", Value::from(7))],
    ] {
        assert_eq!(master.clear(auth_load(pairs)).await, fault, "{pairs:?}");
    }
    for (pairs, text) in [
        (&[("sig_algo", Value::from("md5"))][..], "bad sig algo"),
        (&[("enc_algo", Value::from("none")), ("token", Value::Binary(vec![1; 256]))], "bad enc algo"),
    ] {
        let reply = master.clear(auth_load(pairs)).await;
        assert_eq!(reply.get("load").and_then(|load| load.get_text("ret")), Some(text));
    }
    for id in ["", ".", "..", "a/b", "../../etc/passwd", "a\\b", "a\nb", &long, ".key_cache"] {
        let reply = master.clear(auth_load(&[("id", Value::from(id))])).await;
        let load = decode(reply.get_bytes("load").unwrap());
        assert_eq!(load.get_bool("ret"), Some(false), "{id:?}");
        let signature = reply.get_bytes("sig").unwrap();
        let alg = brine_protocol::keys::SignAlg::Pkcs1v15Sha1;
        assert!(key(0).public().verify(alg, reply.get_bytes("load").unwrap(), signature), "refusals are signed too");
    }
    let reply = master.clear(auth_load(&[("id", Value::from("a\0b"))])).await;
    assert_eq!(reply, Value::from("bad load: id contains a null byte"));
    for pem in ["", "rubbish", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----"] {
        let reply = master.clear(auth_load(&[("pub", Value::from(pem))])).await;
        assert_eq!(decode(reply.get_bytes("load").unwrap()).get_bool("ret"), Some(false), "{pem:?}");
    }
    // A token that cannot be decrypted does not change the answer.
    for token in [vec![], vec![0; 256], vec![7; 10_000]] {
        let reply = master.clear(auth_load(&[("token", Value::Binary(token))])).await;
        assert!(reply.has("load") || reply == fault);
    }
    for folder in ["minions", "minions_rejected", "minions_denied"] {
        assert_eq!(std::fs::read_dir(master.path("pki").join(folder)).unwrap().count(), 0, "{folder}");
    }
    assert_eq!(std::fs::read_dir(master.path("pki/minions_pre")).unwrap().count(), 1, "web1, with its good key");
    assert_eq!(std::fs::read_dir(master.path("cache/brine_sessions")).unwrap().count(), 0);
}

/// The master signs the accept reply for this request (CVE-2022-22935).
#[tokio::test(flavor = "multi_thread")]
async fn replies_are_signed_and_bound_to_their_request() {
    let master = TestMaster::start("auto_accept: True").await;
    let first = master.clear(auth_load(&[])).await;
    let load = first.get_bytes("load").unwrap();
    let alg = brine_protocol::keys::SignAlg::Pkcs1v15Sha1;
    assert!(key(0).public().verify(alg, load, first.get_bytes("sig").unwrap()));
    assert_eq!(decode(load).get_text("nonce"), Some("0123456789abcdef0123456789abcdef"));
    let sha224 =
        master.clear(auth_load(&[("sig_algo", "PKCS1v15-SHA224".into()), ("enc_algo", "OAEP-SHA224".into())])).await;
    let alg = brine_protocol::keys::SignAlg::Pkcs1v15Sha224;
    assert!(key(0).public().verify(alg, sha224.get_bytes("load").unwrap(), sha224.get_bytes("sig").unwrap()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signed_master_key_is_offered_when_configured() {
    let master = TestMaster::start("auto_accept: True\nmaster_sign_pubkey: True").await;
    let reply = master.clear(auth_load(&[])).await;
    assert!(decode(reply.get_bytes("load").unwrap()).get_text("pub_sig").unwrap().ends_with('\n'));
    assert_eq!(mode(master.path("pki/master_sign.pem")), 0o400);
}

/// Old protocol versions, in which a payload could name any sender, are refused by default (CVE-2025-62349).
#[tokio::test(flavor = "multi_thread")]
async fn cve_2025_62349_downgrade() {
    let master = TestMaster::start("auto_accept: True").await;
    let minion = master.minion("web1", 1).await;
    for version in [0, 1, 2] {
        let envelope = Envelope::Clear { load: auth_load(&[("id", "other".into())]), version };
        assert_eq!(decode(&master.raw(envelope.encode()).await), Value::from("bad load"), "version {version}");
        let load = map([("cmd", Value::from("_master_opts")), ("id", "web1".into()), ("tok", "good".into())]);
        assert_eq!(decode(&master.raw(minion.envelope(load, "web1", version)).await), Value::from("bad load"));
    }
    assert!(!master.key_in("minions", "other"));
}

#[tokio::test(flavor = "multi_thread")]
async fn auth_events_tell_autosign_grains_of_the_acts_that_the_setting_names() {
    let nested = || map([("autosign_key", map([("a", map([("b", "grain")]))]))]);
    for (setting, told) in
        [("auth_events_autosign_grains: [pend]", true), ("auth_events_autosign_grains: [reject]", false), ("", false)]
    {
        let master = TestMaster::start(setting).await;
        let mut events = master.events().await;
        master.clear(auth_load(&[("autosign_grains", nested())])).await;
        let event = events.wait("salt/auth").await;
        assert_eq!(event.data.get_text("act"), Some("pend"));
        assert_eq!(event.data.get("autosign_grains"), told.then(nested).as_ref(), "{setting}");
        // Minions that send no autosign grains, or no map.
        for odd in [Value::Nil, Value::from("x"), map::<&str, Value>([])] {
            master.clear(auth_load(&[("autosign_grains", odd)])).await;
            assert!(!events.wait("salt/auth").await.data.has("autosign_grains"));
        }
        assert_eq!(mode(master.path("cache/tokens")), 0o700, "programs look for it before there is a token");
    }
}
