//! The return of a finished job is not lost.

use brine_kit::wait::Deadline;
use brine_protocol::ids::Jid;
use brine_protocol::job::split_returns;
use brine_protocol::keys::PublicKey;
use brine_protocol::msgpack;
use brine_protocol::value::{Value, ValueExt, map};
use brine_receipts::{Series, Vouched};

use crate::master::{DEADLINE, Master, OnReturn, Seen, Verdict};
use crate::running::{begin, emptied, ready, spooled, start};

#[tokio::test(flavor = "multi_thread")]
async fn a_return_has_salts_fields_and_what_was_used() {
    let (dir, mut master, minion) = begin("").await;
    let jid = Jid::now();
    let mut load = crate::master::job(&jid, "test.echo", vec![Value::from("text")]);
    load.insert("metadata", map([("ticket", "7")]));
    load.insert("master_id", "the master");
    master.send(vec![master.seal(&load)]);
    let load = master.expect_return(&jid).await;
    for (key, expected) in [
        ("id", Value::from("m1")),
        ("fun", Value::from("test.echo")),
        ("fun_args", Value::Array(vec![Value::from("text")])),
        ("return", Value::from("text")),
        ("retcode", Value::from(0)),
        ("success", Value::from(true)),
        ("user", Value::from("root")),
        ("metadata", map([("ticket", "7")])),
        ("master_id", Value::from("the master")),
    ] {
        assert_eq!(load.get(key), Some(&expected), "{key}");
    }
    let usage = load.get("usage").unwrap();
    assert_eq!(usage.get_u64("wall_us"), Some(12));
    assert_eq!(usage.get_text("sha256"), Some("07".repeat(32).as_str()));
    let failed = master.publish("test.fail", vec![]);
    let load = master.expect_return(&failed).await;
    assert_eq!(load.get_i64("retcode"), Some(1));
    assert_eq!(load.get_bool("success"), Some(false));
    assert_eq!(load.get_text("out"), Some("nested"));
    emptied(dir.path()).await;
    minion.end().await.unwrap();
}

/// It has a receipt of the series of such returns, which may be lost without being a gap.
#[tokio::test(flavor = "multi_thread")]
async fn a_return_that_the_spool_cannot_take_is_sent_once() {
    let (dir, mut master, minion) = begin("").await;
    let spool = dir.path().join("cache/spool");
    let key = PublicKey::from_pem(&std::fs::read_to_string(dir.path().join("pki/minion.pub")).unwrap()).unwrap();
    let fingerprint = key.fingerprint().parse().unwrap();
    std::fs::remove_dir_all(&spool).unwrap();
    // Too large for a slot.
    let large = "x".repeat(5000);
    for series in [Series::Direct, Series::Spooled] {
        let jid = master.publish("test.echo", vec![Value::from(large.as_str())]);
        let load = master.expect_return(&jid).await;
        assert_eq!(load.get_text("return"), Some(large.as_str()));
        let receipt = Vouched::from_text(load.get_text("receipt").unwrap(), fingerprint).unwrap().receipt;
        assert_eq!((receipt.receipt().series, receipt.receipt().number), (series, 1));
        let _ = std::fs::create_dir(&spool);
    }
    emptied(dir.path()).await;
    minion.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_return_outlives_its_master() {
    let (dir, mut master, minion) = begin("").await;
    let jid = master.publish("test.wait", vec![]);
    minion.functions.waiting.subscribe().wait_for(|n| *n == 1).await.unwrap();
    master.stop().await;
    minion.functions.gate.add_permits(1);
    DEADLINE.until("the return is kept", || spooled(dir.path()) > 0).await;
    master.listen().await;
    let load = master.expect_return(&jid).await;
    assert_eq!(load.get_text("return"), Some("waited"));
    emptied(dir.path()).await;
    minion.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_return_outlives_its_minion() {
    let (dir, mut master, minion) = begin("").await;
    master.script().on_return = OnReturn::Silence;
    let jids: Vec<Jid> = (0..3).map(|_| master.publish("test.ping", vec![])).collect();
    for jid in &jids {
        master.expect_return(jid).await;
    }
    assert_eq!(spooled(dir.path()), 3);
    minion.kill().await;
    master.script().on_return = OnReturn::Acknowledge;
    let minion = start(dir.path(), &master, "").await;
    let mut left: Vec<String> = jids.iter().map(ToString::to_string).collect();
    master
        .expect("all returns again", |seen| match seen {
            Seen::Request { cmd, load } if cmd == "_return" => {
                left.retain(|jid| Some(jid.as_str()) != load.get_text("jid"));
                left.is_empty().then_some(())
            }
            _ => None,
        })
        .await;
    emptied(dir.path()).await;
    minion.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_return_that_the_master_does_not_acknowledge_is_sent_again() {
    let (dir, mut master, minion) = begin("").await;
    master.script().on_return = OnReturn::EmptyText;
    let jid = master.publish("test.ping", vec![]);
    master.expect_return(&jid).await;
    master.expect_return(&jid).await;
    assert_eq!(spooled(dir.path()), 1);
    // It does not delay another return.
    master.script().on_return = OnReturn::Acknowledge;
    let next = master.publish("test.ping", vec![]);
    master.expect_return(&next).await;
    emptied(dir.path()).await;
    minion.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_load_leads_to_one_authentication_and_the_request_again() {
    let (dir, mut master, minion) = begin("").await;
    master.drain();
    master.script().bad_loads = 1;
    let jid = master.publish("test.ping", vec![]);
    master.expect("the refusal", |seen| matches!(seen, Seen::Refused(_)).then_some(())).await;
    master.expect_auth(Verdict::Accept).await;
    master.expect_return(&jid).await;
    emptied(dir.path()).await;

    // The master lost the session: the first reply does not open, and the second try uses the new key.
    master.script().session_key = brine_protocol::crypticle::AesKey::generate();
    let jid = master.publish("test.ping", vec![]);
    master.expect_auth(Verdict::Accept).await;
    master.expect_return(&jid).await;
    emptied(dir.path()).await;
    minion.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_replies_are_survived() {
    let (dir, mut master, minion) = begin("").await;
    for reply in [&b""[..], b"\xc1", b"\xdf\xff\xff\xff\xff", &[0xff; 5000], b"\x80", b"\xc0"] {
        master.script().next_reply = Some(reply.to_vec());
        let jid = master.publish("test.ping", vec![]);
        master.expect_return(&jid).await;
        master.expect_return(&jid).await; // the garbage was no acknowledgement
    }
    emptied(dir.path()).await;
    minion.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_the_minion_did_not_survive_is_answered_for() {
    let dir = tempfile::tempdir().unwrap();
    let mut master = Master::start().await;
    let jid = Jid::now();
    let proc_dir = dir.path().join("cache/proc");
    std::fs::create_dir_all(&proc_dir).unwrap();
    let mut load = crate::master::job(&jid, "test.wait", vec![]);
    load.insert("pid", u32::MAX);
    std::fs::write(proc_dir.join(jid.as_str()), msgpack::encode_network(&load)).unwrap();
    let minion = start(dir.path(), &master, "").await;
    let load = master.expect_return(&jid).await;
    assert!(load.get_text("return").unwrap().contains("ended while this job ran"));
    assert_eq!(load.get_bool("success"), Some(false));
    emptied(dir.path()).await;
    minion.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn ending_waits_for_jobs_then_ends_them_and_every_return_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let mut master = Master::start().await;
    let minion = start(dir.path(), &master, "drain_timeout: 0.1").await;
    master.expect_start().await;
    master.subscribed().await;
    let jid = master.publish("test.wait", vec![]);
    minion.functions.waiting.subscribe().wait_for(|n| *n == 1).await.unwrap();
    minion.end().await.unwrap();
    let load = master.expect_return(&jid).await;
    assert_eq!(load.get_text("return"), Some("killed"));
    assert_eq!(spooled(dir.path()), 0);
}

/// A return of an earlier version names no master and goes to the minion's present one. A return for another master is
/// not sent to this one: it stays, does not delay the end of the minion, and makes room for this master's returns when
/// the spool is full.
#[tokio::test(flavor = "multi_thread")]
async fn a_return_goes_only_to_the_master_that_asked() {
    let dir = tempfile::tempdir().unwrap();
    let mut master = Master::start().await;
    let (old, foreign) = (Jid::now(), Jid::now());
    let spool = dir.path().join("cache/spool");
    std::fs::create_dir_all(&spool).unwrap();
    let load = |jid: &Jid| map([("cmd", Value::from("_return")), ("id", Value::from("m1")), ("jid", Value::from(jid))]);
    let put = |n: usize, jid: &Jid, content: &Value| {
        std::fs::write(spool.join(format!("{n:020}-{jid}")), msgpack::encode_network(content)).unwrap();
    };
    put(0, &old, &load(&old));
    put(
        1,
        &foreign,
        &map([("master", Value::from(crate::master::key(2).public().fingerprint())), ("load", load(&foreign))]),
    );
    let minion = start(dir.path(), &master, "").await;
    master.expect_return(&old).await;
    master.subscribed().await;
    let own = master.publish("test.ping", vec![]);
    master.expect_return(&own).await;
    let began = std::time::Instant::now();
    minion.end().await.unwrap();
    assert!(began.elapsed() < std::time::Duration::from_secs(3), "it waited for the foreign return");
    assert_eq!(spooled(dir.path()), 1);

    let minion = start(dir.path(), &master, "spool_max_count: 1").await;
    master.subscribed().await;
    let sent =
        |seen: &Seen| matches!(seen, Seen::Request { load, .. } if load.get_text("jid") == Some(foreign.as_str()));
    loop {
        let jid = master.publish("test.ping", vec![]);
        let (own, before) = master.expect_return_after(&jid).await;
        assert!(!before.iter().any(sent));
        if own.get("return") == Some(&Value::from(true)) {
            break;
        }
        // The minion had not yet examined the foreign return.
        assert!(own.get_text("return").unwrap().contains("spool is full"));
    }
    emptied(dir.path()).await;
    minion.end().await.unwrap();
}

/// The jids of the returns in one request.
fn jids(seen: Seen) -> Option<Vec<String>> {
    let Seen::Request { cmd, mut load } = seen else { return None };
    let loads = match split_returns(&mut load) {
        None => vec![load],
        Some(loads) => loads.unwrap(),
    };
    (cmd == "_return").then(|| loads.iter().map(|load| load.get_text("jid").unwrap().to_owned()).collect())
}

const MANY: u32 = 20;

/// Many jobs that end at once, at a master that takes its time. The requests until it has seen them all, or `enough` of them.
async fn many_returns(seals: bool, change: impl FnOnce(&mut crate::master::Script), enough: usize) -> Vec<Vec<String>> {
    let (dir, mut master) = (tempfile::tempdir().unwrap(), Master::start().await);
    master.script().seals = seals;
    let more = format!("process_count_max: {}", 2 * MANY);
    let minion = ready(&mut master, dir.path(), &more).await;
    master.script().pause = std::time::Duration::from_millis(60);
    change(&mut master.script());
    let mut left = std::collections::BTreeSet::new();
    for _ in 0..MANY {
        let jid = if seals { master.publish_sealed("test.wait", vec![]) } else { master.publish("test.wait", vec![]) };
        left.insert(jid.to_string());
    }
    minion.functions.waiting.subscribe().wait_for(|n| *n == MANY as usize).await.unwrap();
    minion.functions.gate.add_permits(MANY as usize);
    let mut requests: Vec<Vec<String>> = Vec::new();
    while !left.is_empty() || requests.iter().flatten().count() < enough {
        let request = master.expect("returns", |seen| jids(seen.clone())).await;
        left.retain(|jid| !request.contains(jid));
        requests.push(request);
    }
    master.script().on_return = OnReturn::Acknowledge;
    emptied(dir.path()).await;
    minion.end().await.unwrap();
    requests
}

/// A request for each would be twenty of them.
#[tokio::test(flavor = "multi_thread")]
async fn returns_that_wait_go_together_to_a_brine_master() {
    let requests = many_returns(true, |script| script.together = true, MANY as usize).await;
    assert!(requests.len() <= 12, "{requests:?}");
    assert!(requests.iter().any(|request| request.len() > 2), "{requests:?}");
    assert_eq!(requests.iter().flatten().count(), MANY as usize, "none twice: {requests:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn to_another_master_each_return_goes_alone() {
    let requests = many_returns(false, |_| (), MANY as usize).await;
    assert!(requests.iter().all(|request| request.len() == 1), "{requests:?}");
    // The same where each is signed.
    let (dir, mut master) = (tempfile::tempdir().unwrap(), Master::start().await);
    master.script().seals = true;
    let minion = ready(&mut master, dir.path(), "minion_sign_messages: True\nprocess_count_max: 40").await;
    master.script().pause = std::time::Duration::from_millis(10);
    for _ in 0..MANY {
        master.publish_sealed("test.wait", vec![]);
    }
    minion.functions.waiting.subscribe().wait_for(|n| *n == MANY as usize).await.unwrap();
    minion.functions.gate.add_permits(MANY as usize);
    for _ in 0..MANY {
        let request = master.expect("a return", |seen| jids(seen.clone())).await;
        assert_eq!(request.len(), 1);
    }
    emptied(dir.path()).await;
    minion.end().await.unwrap();
}

/// Whether it failed on all of them or never knew more than one.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_not_acknowledged_comes_again_alone() {
    let failing = |script: &mut crate::master::Script| {
        script.together = true;
        script.on_return = OnReturn::EmptyText;
    };
    let one_at_a_time = |_: &mut crate::master::Script| ();
    for (requests, failed) in [
        (many_returns(true, failing, 3 * MANY as usize).await, true),
        (many_returns(true, one_at_a_time, MANY as usize + 5).await, false),
    ] {
        let mut seen = std::collections::BTreeSet::new();
        let mut again = 0;
        for request in &requests {
            for jid in request {
                if !seen.insert(jid.clone()) {
                    again += 1;
                    assert_eq!(request.len(), 1, "{failed}: {requests:?}");
                }
            }
        }
        assert!(requests.iter().any(|request| request.len() > 1) && again > 0, "{failed}: {requests:?}");
    }
}
