//! The publications that become jobs.

use std::sync::atomic::Ordering;

use brine_protocol::crypticle::Crypticle;
use brine_protocol::ids::{Jid, MinionId};
use brine_protocol::keys::{PrivateOps, SignAlg};
use brine_protocol::msgpack::{self, Limits};
use brine_protocol::publication;
use brine_protocol::value::{Value, ValueExt, map};
use bytes::Bytes;

use crate::master::{Master, Seen, Verdict, job, key};
use crate::running::{ID, begin, emptied, ready};

/// Publishes a last job, waits for its return, and returns the jids that returned before it.
async fn returned_before_a_ping(master: &mut Master) -> Vec<String> {
    let last = master.publish("test.ping", vec![]);
    let mut before = Vec::new();
    master
        .expect("the last job's return", |seen| match seen {
            Seen::Request { cmd, load } if cmd == "_return" => {
                let jid = load.get_text("jid").unwrap().to_owned();
                if jid == last.as_str() {
                    return Some(());
                }
                before.push(jid);
                None
            }
            _ => None,
        })
        .await;
    before
}

#[tokio::test(flavor = "multi_thread")]
async fn a_publication_that_the_master_did_not_sign_is_dropped() {
    let (_dir, mut master, minion) = begin("").await;

    // A publication with the right key and no signature; one signed with another key; one with a signature of other
    // content.
    let sealed = msgpack::decode(&master.seal(&job(&Jid::now(), "test.ping", vec![])), &Limits::PUBLICATION).unwrap();
    let mut unsigned = sealed.clone();
    let _ = unsigned.remove("sig");
    let _ = unsigned.remove("sig_algo");
    master.send(vec![msgpack::encode_network(&unsigned).into()]);
    master.send(vec![master.seal_by(&job(&Jid::now(), "test.ping", vec![]), &key(2))]);
    let mut swapped =
        msgpack::decode(&master.seal(&job(&Jid::now(), "test.ping", vec![])), &Limits::PUBLICATION).unwrap();
    swapped.insert("sig", sealed.get("sig").unwrap().clone());
    master.send(vec![msgpack::encode_network(&swapped).into()]);

    assert!(returned_before_a_ping(&mut master).await.is_empty());
    assert_eq!(minion.functions.calls.load(Ordering::Relaxed), 1);
    minion.end().await.unwrap();
}

/// A publication must be encrypted and have a serial.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_encrypted_or_has_no_serial_is_dropped() {
    let (_dir, mut master, minion) = begin("").await;
    let load = || job(&Jid::now(), "test.ping", vec![]);
    let send = |envelope: &Value| master.send(vec![msgpack::encode_network(envelope).into()]);
    let alg = SignAlg::Pkcs1v15Sha1;
    let signed = |enc: Option<&str>, load: Vec<u8>| {
        let sig = master.key.sign(alg, &load).unwrap();
        let mut envelope =
            map([("load", Value::Binary(load)), ("sig", Value::Binary(sig)), ("sig_algo", Value::from(alg.as_str()))]);
        if let Some(enc) = enc {
            envelope.insert("enc", enc);
        }
        envelope
    };
    // An unencrypted load, as text or as a map, with the master's own signature.
    for enc in [Some("clear"), Some("pub"), Some(""), None] {
        send(&signed(enc, msgpack::encode_network(&load())));
    }
    send(&map([("enc", Value::from("clear")), ("load", load())]));
    // Encrypted and signed, but under another field name.
    let sealed = |load: Value| Crypticle::new(&master.script().publish_key).seal(&load, None);
    let mut counted = load();
    counted.insert("serial", 1000);
    for enc in [Some("clear"), Some("AES"), None] {
        send(&signed(enc, sealed(counted.clone())));
    }
    // Without a serial, or with an invalid one.
    for serial in [Value::Nil, Value::from(-1), Value::from("7"), Value::from(0)] {
        let mut load = load();
        if !serial.is_nil() {
            load.insert("serial", serial);
        }
        send(&signed(Some("aes"), sealed(load)));
    }
    assert!(returned_before_a_ping(&mut master).await.is_empty());
    assert_eq!(minion.functions.calls.load(Ordering::Relaxed), 1);
    minion.end().await.unwrap();
}

/// CVE-2022-22936, CVE-2024-38823.
#[tokio::test(flavor = "multi_thread")]
async fn a_replayed_publication_is_dropped_also_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let mut master = Master::start().await;
    // The jid queue has a size of 1, so only the serial prevents the replay.
    let minion = ready(&mut master, dir.path(), "minion_jid_queue_hwm: 1").await;
    let jid = Jid::now();
    let recorded = master.seal(&job(&jid, "test.ping", vec![]));
    master.send(vec![recorded.clone()]);
    master.expect_return(&jid).await;
    let other = master.publish("test.ping", vec![]);
    master.expect_return(&other).await;
    master.send(vec![recorded.clone()]);
    assert!(returned_before_a_ping(&mut master).await.is_empty());
    assert_eq!(minion.functions.calls.load(Ordering::Relaxed), 3);
    emptied(dir.path()).await; // otherwise its returns would come again
    minion.kill().await;

    let minion = ready(&mut master, dir.path(), "").await;
    master.send(vec![recorded]);
    assert!(returned_before_a_ping(&mut master).await.is_empty());
    assert_eq!(minion.functions.calls.load(Ordering::Relaxed), 1);
    minion.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_is_published_twice_runs_once() {
    let (_dir, mut master, minion) = begin("").await;
    let jid = Jid::now();
    for _ in 0..2 {
        master.send(vec![master.seal(&job(&jid, "test.ping", vec![]))]);
    }
    master.expect_return(&jid).await;
    assert!(returned_before_a_ping(&mut master).await.is_empty());
    assert_eq!(minion.functions.calls.load(Ordering::Relaxed), 2);
    minion.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotated_key_leads_to_one_authentication_and_the_job_runs() {
    let (_dir, mut master, minion) = begin("").await;
    master.drain();
    master.rotate();
    let jid = master.publish("test.ping", vec![]);
    master.expect_auth(Verdict::Accept).await;
    let load = master.expect_return(&jid).await;
    assert_eq!(load.get("return"), Some(&Value::from(true)));
    let next = master.publish("test.ping", vec![]);
    let (_, before) = master.expect_return_after(&next).await;
    assert!(!before.iter().any(|seen| matches!(seen, Seen::Auth(_))), "{before:?}");
    minion.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn old_publications_do_not_make_a_minion_storm_its_master() {
    let (_dir, mut master, minion) = begin("").await;
    let old: Vec<Bytes> = (0..20).map(|_| master.seal(&job(&Jid::now(), "test.ping", vec![]))).collect();
    master.rotate();
    let first = master.publish("test.ping", vec![]);
    master.expect_return(&first).await;
    master.drain();
    for recorded in old {
        master.send(vec![recorded]);
    }
    let last = master.publish("test.ping", vec![]);
    let mut authentications = 0;
    master
        .expect("the last return", |seen| match seen {
            Seen::Auth(_) => {
                authentications += 1;
                None
            }
            Seen::Request { cmd, load } if cmd == "_return" => {
                assert_eq!(load.get_text("jid"), Some(last.as_str()));
                Some(())
            }
            _ => None,
        })
        .await;
    assert!(authentications <= 3, "{authentications}");
    minion.end().await.unwrap();
}

/// CVE-2023-20897, CVE-2025-22242: a malformed job, or a path as jid, has no effect.
#[tokio::test(flavor = "multi_thread")]
async fn malformed_messages_are_survived() {
    let (_dir, mut master, minion) = begin("").await;
    let good = master.seal(&job(&Jid::now(), "test.ping", vec![]));
    for frames in [
        vec![Bytes::new()],
        vec![Bytes::from_static(b"\xc1")],
        vec![Bytes::from_static(b"\xdf\xff\xff\xff\xff")],
        vec![Bytes::from(vec![0xff; 100_000])],
        vec![Bytes::new(), Bytes::new(), Bytes::new()],
        vec![Bytes::from_static(b"broadcast"), Bytes::from_static(b"junk")],
        vec![Bytes::from_static(b"someone else"), good.clone()],
        vec![good.slice(..good.len() - 1)],
        vec![msgpack::encode_network(&Value::from("bad load")).into()],
        vec![msgpack::encode_network(&map([("enc", "clear")])).into()],
    ] {
        master.send(frames);
    }
    // Signed and encrypted, but not a job.
    for load in [
        Value::from("text"),
        map([("fun", "test.ping")]),
        map([("fun", "test.ping"), ("tgt", "*"), ("jid", "../../etc/passwd"), ("arg", "x")]),
        {
            let mut load = job(&Jid::now(), "test.ping", vec![]);
            load.insert("fun", 7);
            load
        },
        {
            let mut load = job(&Jid::now(), "test.ping", vec![]);
            load.insert("tgt_type", "no such type");
            load
        },
        {
            let mut load = job(&Jid::now(), "test.ping", vec![]);
            load.insert("tgt_type", "pcre");
            load.insert("tgt", "(((");
            load
        },
    ] {
        let mut script = master.script();
        script.serial += 1;
        let crypticle = Crypticle::new(&script.publish_key);
        let serial = script.serial;
        drop(script);
        if let Ok(sealed) = publication::seal(load, serial, &crypticle, &master.key, SignAlg::Pkcs1v15Sha1) {
            master.send(vec![sealed]);
        }
    }
    assert!(returned_before_a_ping(&mut master).await.is_empty());
    assert_eq!(minion.functions.calls.load(Ordering::Relaxed), 1);
    minion.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn targets_decide_and_topics_are_checked_whole() {
    let (_dir, mut master, minion) = begin("zmq_filtering: True").await;
    let own = Bytes::from(publication::topic(&ID.parse::<MinionId>().unwrap()));
    let longer = Bytes::from([&own[..], b"0"].concat());
    let send = |topic: &Bytes, tgt: Value, tgt_type: &str| {
        let jid = Jid::now();
        let mut load = job(&jid, "test.ping", vec![]);
        load.insert("tgt", tgt);
        load.insert("tgt_type", tgt_type);
        master.send(vec![topic.clone(), master.seal(&load)]);
        jid
    };
    let broadcast = Bytes::from_static(b"broadcast");
    let list = |ids: &[&str]| Value::Array(ids.iter().map(|id| Value::from(*id)).collect());
    let wanted = [
        send(&own, Value::from("m*"), "glob"),
        send(&broadcast, list(&["other", ID]), "list"),
        send(&own, Value::from("m[0-9]"), "pcre"),
    ];
    send(&longer, Value::from("*"), "glob");
    send(&own, Value::from("n*"), "glob");
    send(&own, list(&["other"]), "list");
    let last = send(&own, Value::from("*"), "glob");
    let mut returned = Vec::new();
    master
        .expect("the last return", |seen| match seen {
            Seen::Request { cmd, load } if cmd == "_return" => {
                returned.push(load.get_text("jid").unwrap().to_owned());
                (returned.len() == 4).then_some(())
            }
            _ => None,
        })
        .await;
    returned.sort();
    let mut expected: Vec<String> = wanted.iter().chain([&last]).map(ToString::to_string).collect();
    expected.sort();
    assert_eq!(returned, expected);
    minion.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_master_that_restarts_is_found_again() {
    let (_dir, mut master, minion) = begin("").await;
    master.stop().await;
    master.drain();
    master.rotate();
    master.script().pillar = map([("role", "new")]);
    master.listen().await;
    master.expect_auth(Verdict::Accept).await;
    master.expect_request("_pillar").await;
    master.expect_start().await;
    let jid = master.publish("test.ping", vec![]);
    master.expect_return(&jid).await;
    minion.end().await.unwrap();
}
