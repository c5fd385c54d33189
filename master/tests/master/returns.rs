//! Refused returns, and the settings for signatures (§6.3).

use brine_protocol::keys::{PrivateOps, SignAlg};
use brine_protocol::msgpack;
use brine_protocol::value::{Value, ValueExt, map};

use super::harness::*;

/// Makes a signed return like `minion_sign_messages`, and changes a field after signing.
fn signed(minion: &TestMinion, jid: &str, alg: SignAlg, change: Option<(&str, Value)>) -> Value {
    let mut load = minion.return_load(jid, "signed");
    load.insert("ts", now());
    let signature = minion.key.sign(alg, &msgpack::encode_disk(&load)).unwrap();
    load.insert("sig", Value::Binary(signature));
    if let Some((name, value)) = change {
        load.insert(name, value);
    }
    load.insert("tok", "good");
    load
}

/// Sends a return. Returns the tag of its event.
async fn sent(master: &TestMaster, minion: &TestMinion, load: Value, events: &mut Events) -> String {
    assert_eq!(minion.opened(&master.raw(minion.envelope(load, minion.id.as_str(), 3)).await), Value::Nil);
    events.next().await.tag
}

#[tokio::test(flavor = "multi_thread")]
async fn signatures_are_required_where_the_operator_says_so() {
    let sha1 = SignAlg::Pkcs1v15Sha1;
    let jid = "20261120134740245008";
    let (kept, refused) = (format!("salt/job/{jid}/ret/web1"), "brine/refused/return/web1".to_owned());
    for (settings, unsigned, altered) in [
        ("", &kept, &refused),
        ("require_minion_sign_messages: True", &refused, &refused),
        ("require_minion_sign_messages: True\ndrop_messages_signature_fail: True", &refused, &refused),
        // As in Salt: a signature must be there, but may be wrong.
        ("require_minion_sign_messages: True\ndrop_messages_signature_fail: False", &refused, &kept),
    ] {
        let other_value = ("return", Value::from("altered"));
        let other_signature = ("sig", Value::Binary(vec![7; 256]));
        for (change, expect) in [(Some(other_value), altered), (Some(other_signature), altered), (None, &kept)] {
            let master = TestMaster::start(settings).await;
            let minion = master.minion("web1", 1).await;
            let mut events = master.events().await;
            let load = signed(&minion, jid, sha1, change);
            assert_eq!(&sent(&master, &minion, load, &mut events).await, expect, "{settings:?}");
        }
        let master = TestMaster::start(settings).await;
        let minion = master.minion("web1", 1).await;
        let mut events = master.events().await;
        let mut load = minion.return_load(jid, true);
        load.insert("tok", "good");
        assert_eq!(&sent(&master, &minion, load, &mut events).await, unsigned, "{settings:?}");
    }
}

/// A minion cannot add a return to a job that was sent to others.
#[tokio::test(flavor = "multi_thread")]
async fn a_return_for_a_job_of_others_is_refused() {
    let master = TestMaster::start("").await;
    let (one, two) = (master.minion("web1", 1).await, master.minion("web2", 2).await);
    let mut events = master.events().await;
    for (tgt, kind) in [("web1", "glob"), ("web1", "list"), ("web1$", "pcre")] {
        let reply = master.publish(tgt, kind, "test.ping", vec![]).await;
        let jid = reply.get("load").unwrap().get_text("jid").unwrap().to_owned();
        events.wait(&format!("salt/job/{jid}/publish")).await;
        two.ask(&master, two.return_load(&jid, true)).await;
        assert_eq!(events.next().await.tag, "brine/refused/return/web2", "{kind}");
        one.ask(&master, one.return_load(&jid, true)).await;
        assert_eq!(events.next().await.tag, format!("salt/job/{jid}/ret/web1"));
        two.ask(&master, two.return_load(&jid, true)).await;
        assert_eq!(events.next().await.tag, "brine/refused/return/web2", "{kind}: also when the job is remembered");
    }
    // A batch of 3008 publishes one jid again, to other minions.
    let reply = master.publish("web1", "list", "test.ping", vec![]).await;
    let jid = reply.get("load").unwrap().get_text("jid").unwrap().to_owned();
    one.ask(&master, one.return_load(&jid, true)).await;
    let mut again = master.publish_load("web2", "list", "test.ping", vec![]);
    again.insert("jid", jid.as_str());
    master.clear(again).await;
    two.ask(&master, two.return_load(&jid, true)).await;
    events.wait(&format!("salt/job/{jid}/ret/web2")).await;
}

/// A schedule's return that is not to be stored: subscribers get its event, the job store does not have it.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_to_be_cached_is_not() {
    let master = TestMaster::start("").await;
    let minion = master.minion("web1", 1).await;
    let mut events = master.events().await;
    minion.ask(&master, minion.return_load("nocache", "hi")).await;
    let event = events.next().await;
    assert_eq!((event.tag.as_str(), event.data.get_text("return")), ("salt/job/nocache/ret/web1", Some("hi")));
    let load = map([("cmd", "runner"), ("fun", "jobs.list_jobs"), ("key", &master.local_key())]);
    master.clear(load).await;
    events.wait("salt/run/").await;
    assert_eq!(events.wait("salt/run/").await.data.get("return"), Some(&brine_protocol::value::empty_map()));
}

/// A state's name is the minion's text, and so is the tag that Salt makes from it. The tag is restricted like all tags
/// of the minion.
#[tokio::test(flavor = "multi_thread")]
async fn events_of_failed_states_are_bound_to_their_minion() {
    let master = TestMaster::start("").await;
    let minion = master.minion("web1", 1).await;
    let mut events = master.events().await;
    let jid = "20261120134740245008";
    let chunk = || map([("result", Value::from(false)), ("id", Value::from("db1")), ("jid", Value::from("x"))]);
    let mut load = minion.return_load(jid, true);
    for (name, value) in [("fun", Value::from("state.sls")), ("retcode", 2.into()), ("tok", "good".into())] {
        load.insert(name, value);
    }
    let chunks = [
        "pkg_|-a_|-a_|-installed",
        "salt/key_|-x",
        "salt/job/20261120134740245009/ret/db1_|-x",
        "key/_|-a",
        "\n\n_|-a",
    ];
    load.insert("return", map(chunks.map(|name| (name, chunk()))));
    assert_eq!(sent(&master, &minion, load, &mut events).await, format!("salt/job/{jid}/ret/web1"));
    let own = format!("salt/job/{jid}/sub/web1/error/state.sls");
    master.server().bus().fire("test/end", map([("n", 1)]));
    let (mut tags, mut first) = (Vec::new(), None);
    loop {
        let event = events.next().await;
        if event.tag == "test/end" {
            break;
        }
        if event.tag == own && first.is_none() {
            first = Some(event.data);
        }
        tags.push(event.tag);
    }
    assert_eq!(tags.iter().filter(|tag| **tag == own).count(), chunks.len());
    assert_eq!(tags.iter().filter(|tag| **tag != own).collect::<Vec<_>>(), ["pkg.installed"]);
    let first = first.unwrap();
    assert_eq!((first.get_text("id"), first.get_text("jid")), (Some("web1"), Some(jid)), "whatever the chunk says");
}

/// The master writes to the returners in `--return`. A minion cannot name others.
#[tokio::test(flavor = "multi_thread")]
async fn a_minion_names_no_returner_that_its_job_did_not() {
    // No server is there, so records for it stay in the outbox.
    let master = TestMaster::start("returner.postgres.host: 127.0.0.1\nreturner.postgres.port: 1").await;
    let minion = master.minion("web1", 1).await;
    let waiting = || {
        let store = rusqlite::Connection::open(master.path("cache/jobs.db")).unwrap();
        let mut query = store.prepare("select jid, returner from outbox order by id").unwrap();
        let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        rows.collect::<Result<Vec<(String, String)>, _>>().unwrap()
    };
    let publish = async |ret: &str| {
        let mut load = master.publish_load("web1", "glob", "test.ping", vec![]);
        load.insert("ret", ret);
        let reply = master.clear(load).await;
        reply.get("load").unwrap().get_text("jid").unwrap().to_owned()
    };
    let (plain, asked) = (publish("").await, publish("postgres,mysql").await);
    let mut events = master.events().await;
    for jid in [plain.as_str(), asked.as_str(), "20261120134740245008", "req"] {
        let mut load = minion.return_load(jid, true);
        load.insert("ret", "postgres");
        assert_eq!(minion.ask(&master, load).await, Value::Nil);
        // Skips the events of the publication, which may arrive late.
        let event = loop {
            let event = events.wait("salt/job/").await;
            if event.tag.contains("/ret/") {
                break event;
            }
        };
        assert!(!event.data.has("ret"), "{jid}: it is no field of Salt's");
    }
    assert_eq!(waiting(), [(asked.clone(), "postgres".to_owned())]);
    // With the caller's options the master would send its password to a server of the caller's choice.
    let mut load = master.publish_load("web1", "glob", "test.ping", vec![]);
    load.insert("ret", "postgres");
    load.insert("kwargs", map([("ret_kwargs", map([("host", "elsewhere")]))]));
    let reply = master.clear(load).await;
    let jid = reply.get("load").unwrap().get_text("jid").unwrap().to_owned();
    let mut load = minion.return_load(&jid, true);
    load.insert("ret", "postgres");
    minion.ask(&master, load).await;
    events.wait("salt/job/").await;
    assert_eq!(waiting().len(), 1, "return_kwargs are not taken");
    // A Python minion sends no such field, because it writes to the returner itself.
    let asked_of_python = publish("postgres").await;
    minion.ask(&master, minion.return_load(&asked_of_python, true)).await;
    events.wait("salt/job/").await;
    assert_eq!(waiting().len(), 1);
}

/// Each is judged as if it had come alone, and the answers are in their order.
#[tokio::test(flavor = "multi_thread")]
async fn returns_that_come_together_are_judged_one_by_one() {
    let master = TestMaster::start("").await;
    let (one, two) = (master.minion("web1", 1).await, master.minion("web2", 2).await);
    let mut events = master.events().await;
    let mut jids = Vec::new();
    for tgt in ["web1", "web2", "web1"] {
        let reply = master.publish(tgt, "glob", "test.ping", vec![]).await;
        jids.push(reply.get("load").unwrap().get_text("jid").unwrap().to_owned());
        events.wait(&format!("salt/job/{}/publish", jids.last().unwrap())).await;
    }
    let ours = |jid: &str, said: &str| one.return_load(jid, said);
    let mut other = ours(&jids[2], "third");
    other.insert("id", "web2");
    let mut load = ours(&jids[0], "first");
    // The second is for another minion's job, the third claims to be of another minion, the last is none.
    load.insert("also", Value::Array(vec![ours(&jids[1], "stolen"), other, map([("jid", "x")])]));
    let reply = one.ask(&master, load.clone()).await;
    assert_eq!(reply, Value::Array(vec![Value::Nil; 4]), "all are settled, the refused ones too");
    let mut tags = Vec::new();
    for _ in 0..4 {
        let event = events.next().await;
        if let Some(said) = event.data.get_text("return") {
            assert_eq!(event.data.get_text("id"), Some("web1"), "{said}");
            assert!(!event.data.has("also") && event.data.has("_stamp"), "{said}");
        }
        tags.push(event.tag);
    }
    tags.sort();
    let refused = "brine/refused/return/web1".to_owned();
    let mut kept = vec![format!("salt/job/{}/ret/web1", jids[0]), format!("salt/job/{}/ret/web1", jids[2])];
    kept.sort();
    assert_eq!(tags, [vec![refused.clone(), refused], kept].concat());
    // A second time: acknowledged, and told nobody.
    assert_eq!(one.ask(&master, load).await, Value::Array(vec![Value::Nil; 4]));
    two.ask(&master, two.return_load(&jids[1], true)).await;
    let mut next = events.next().await.tag;
    while next == "brine/refused/return/web1" {
        next = events.next().await.tag;
    }
    assert_eq!(next, format!("salt/job/{}/ret/web2", jids[1]));
}

/// None of these is stored, and none is acknowledged.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_odd_further_returns_is_refused_as_a_whole() {
    let master = TestMaster::start("").await;
    let minion = master.minion("web1", 1).await;
    let mut events = master.events().await;
    let jid = "20261120134740245008";
    let load = || minion.return_load(jid, true);
    let mut large = load();
    large.insert("return", "x".repeat(70_000));
    let mut nested = load();
    nested.insert("also", Value::Array(vec![load()]));
    for also in [
        Value::from("x"),
        Value::Array(vec![Value::from(7)]),
        Value::Array(vec![load(); 32]),
        Value::Array(vec![nested]),
        // It would hold one of the few turns for large requests while it waits for its quota.
        Value::Array(vec![large]),
    ] {
        let mut together = load();
        together.insert("also", also);
        let reply = minion.ask(&master, together).await;
        assert!(reply.text().is_some_and(|text| text.starts_with("it") || text.starts_with("one")), "{reply}");
    }
    minion.ask(&master, load()).await;
    assert_eq!(events.next().await.tag, format!("salt/job/{jid}/ret/web1"));
}

/// A signature is over one return: those beside it have none.
#[tokio::test(flavor = "multi_thread")]
async fn a_signature_covers_no_further_returns() {
    let master = TestMaster::start("require_minion_sign_messages: True").await;
    let minion = master.minion("web1", 1).await;
    let mut events = master.events().await;
    let (first, second) = ("20261120134740245008", "20261120134740245009");
    let mut load = signed(&minion, first, SignAlg::Pkcs1v15Sha1, None);
    load.insert("also", Value::Array(vec![minion.return_load(second, true)]));
    let reply = minion.opened(&master.raw(minion.envelope(load, minion.id.as_str(), 3)).await);
    assert_eq!(reply, Value::Array(vec![Value::Nil; 2]));
    let mut tags = [events.next().await.tag, events.next().await.tag];
    tags.sort();
    assert_eq!(tags, ["brine/refused/return/web1".to_owned(), format!("salt/job/{first}/ret/web1")]);
}
