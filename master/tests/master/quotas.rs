//! Bounds on the data that one accepted minion can make the master store, and the handling of requests beyond them.

use std::time::{Duration, Instant};

use brine_protocol::value::{Value, ValueExt, map};

use super::harness::*;

const JID: &str = "20261120134740";

fn stored(master: &TestMaster) -> i64 {
    let store = rusqlite::Connection::open(master.path("cache/jobs.db")).unwrap();
    store.query_row("select count(*) from returns", [], |row| row.get(0)).unwrap()
}

async fn publish(master: &TestMaster) -> String {
    let reply = master.publish("web1", "list", "test.ping", vec![]).await;
    reply.get("load").unwrap().get_text("jid").unwrap().to_owned()
}

/// Returns under invented jids or none cannot fill the disk, and returns of the master's own jobs are still accepted.
#[tokio::test(flavor = "multi_thread")]
async fn a_minion_has_a_quota_of_returns() {
    for setting in ["minion_return_quota: 1000000", "minion_return_quota_count: 10"] {
        let master = TestMaster::start(setting).await;
        let minion = master.minion("web1", 1).await;
        let mut events = master.events().await;
        let text = "x".repeat(90_000);
        let mut taken = 0;
        for n in 0..12 {
            let jid = if n % 2 == 0 { "req".to_owned() } else { format!("{JID}{n:06}") };
            let reply = minion.ask(&master, minion.return_load(&jid, text.as_str())).await;
            if reply.is_nil() {
                taken += 1;
            } else {
                // Not an acknowledgement, so a minion that keeps its returns sends it again. The text names the
                // setting.
                let setting = setting.split_once(':').unwrap().0;
                assert!(reply.text().unwrap().contains(setting), "{reply}");
                let event = events.wait("brine/refused/quota/web1").await;
                assert_eq!(event.data.get_text("setting"), Some(setting));
            }
        }
        assert!((4..=6).contains(&taken), "{taken} with {setting}");
        assert_eq!(stored(&master), taken);
        // The other half is for jobs of this master.
        let jid = publish(&master).await;
        assert_eq!(minion.ask(&master, minion.return_load(&jid, text.as_str())).await, Value::Nil);
        assert_eq!(stored(&master), taken + 1);
        // Another minion has its own quota.
        let other = master.minion("web2", 2).await;
        assert_eq!(other.ask(&master, other.return_load("req", text.as_str())).await, Value::Nil);
    }
}

/// A master that sends many jobs gets their returns at full rate, because the jobs bound their number.
#[tokio::test(flavor = "multi_thread")]
async fn returns_that_were_asked_for_are_not_counted() {
    let master = TestMaster::start("minion_rate: 1\nminion_return_quota_count: 2").await;
    let minion = master.minion("web1", 1).await;
    for _ in 0..40 {
        let jid = publish(&master).await;
        assert_eq!(minion.ask(&master, minion.return_load(&jid, true)).await, Value::Nil);
    }
    assert_eq!(stored(&master), 40);
}

/// A repeated return is not charged again.
#[tokio::test(flavor = "multi_thread")]
async fn the_same_return_again_costs_no_quota() {
    let master = TestMaster::start("minion_return_quota_count: 10").await;
    let minion = master.minion("web1", 1).await;
    let jid = publish(&master).await;
    for _ in 0..30 {
        assert_eq!(minion.ask(&master, minion.return_load(&jid, true)).await, Value::Nil);
    }
    assert_eq!(stored(&master), 1);
}

/// An honest minion with many returns is slowed down and loses nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_return_that_meets_the_rate_waits_and_is_kept() {
    let master = TestMaster::start("minion_rate: 1").await;
    let minion = master.minion("web1", 1).await;
    let mut events = master.events().await;
    let began = Instant::now();
    let mut session = master.requester();
    for n in 0..11 {
        let sealed =
            minion.session.as_ref().unwrap().seal_request(minion.return_load(&format!("{JID}{n:06}"), true)).unwrap();
        let reply = session.request(sealed.payload.into(), SOON).await.unwrap();
        assert_eq!(minion.session.as_ref().unwrap().open_reply(&reply, &sealed.nonce).unwrap(), Value::Nil);
    }
    // The first eight returns use the half of the bucket that they may. The other three wait a second each, even on a
    // slow machine.
    assert!(began.elapsed() > Duration::from_secs(1), "{:?}", began.elapsed());
    assert_eq!(stored(&master), 11);
    let slowed = events.wait("brine/slowed/web1").await;
    assert_eq!(slowed.data.get_text("cmd"), Some("_return"));
    // Events have a rate of their own.
    let own = map([("cmd", Value::from("_minion_event")), ("tag", "my/tag".into())]);
    assert_eq!(minion.ask(&master, own).await, Value::Nil);
    events.wait("my/tag").await;
}

/// The waiting requests are bounded; further ones are refused.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_wait_is_refused_and_gets_through_later() {
    let master = TestMaster::start("minion_rate: 16").await;
    let minion = master.minion("web1", 1).await;
    let session = minion.session.clone().unwrap();
    let mut events = master.events().await;
    let mut left: Vec<String> = (0..200).map(|n| format!("{JID}{n:06}")).collect();
    let (deadline, mut was_refused) = (Instant::now() + 2 * SOON, false);
    // Sends again what was not acknowledged, like a minion.
    while !left.is_empty() {
        assert!(Instant::now() < deadline, "{left:?}");
        let mut tasks = tokio::task::JoinSet::new();
        for jid in std::mem::take(&mut left) {
            let (session, mut requester) = (session.clone(), master.requester());
            let load = minion.return_load(&jid, true);
            tasks.spawn(async move {
                let sealed = session.seal_request(load).unwrap();
                let reply = requester.request(sealed.payload.into(), SOON).await.unwrap();
                (jid, session.open_reply(&reply, &sealed.nonce).unwrap())
            });
        }
        for (jid, reply) in tasks.join_all().await {
            if !reply.is_nil() {
                assert!(reply.text().unwrap().contains("minion_rate"), "{reply}");
                left.push(jid);
                was_refused = true;
            }
        }
    }
    assert_eq!(stored(&master), 200);
    if was_refused {
        events.wait("brine/refused/quota/web1").await;
    }
}

/// Requests that take long do not let one minion have the places of all: beyond its share they wait, and beyond that they are refused.
#[tokio::test(flavor = "multi_thread")]
async fn one_minion_has_its_share_of_the_requests_in_work() {
    const AT_ONCE: usize = 500;
    const FILES: usize = 12_000;
    let master = TestMaster::start("").await;
    let (minion, other) = (master.minion("web1", 1).await, master.minion("web2", 2).await);
    for n in 0..FILES {
        let folder = master.path(&format!("files/{}", n % 40));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(n.to_string()), "").unwrap();
    }
    let list = || map([("cmd", "_file_list"), ("saltenv", "base")]);
    let mut events = master.events().await;
    let session = minion.session.clone().unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..AT_ONCE {
        let (session, mut requester) = (session.clone(), master.requester());
        tasks.spawn(async move {
            let sealed = session.seal_request(list()).unwrap();
            let reply = requester.request(sealed.payload.into(), 4 * SOON).await.unwrap();
            session.open_reply(&reply, &sealed.nonce).is_ok()
        });
    }
    events.wait("brine/refused/busy/web1").await;
    assert_eq!(other.ask(&master, map([("cmd", "_file_envs")])).await, Value::Array(vec!["base".into()]));
    let answers = tasks.join_all().await;
    let answered = answers.iter().filter(|answered| **answered).count();
    assert!((64..AT_ONCE).contains(&answered), "{answered} lists of {AT_ONCE}");
    assert_eq!(minion.ask(&master, list()).await.list().map(<[Value]>::len), Some(FILES));
}

/// The size of one file is bounded, and so is that of all files together.
#[tokio::test(flavor = "multi_thread")]
async fn files_that_a_minion_pushes_have_a_quota() {
    let master = TestMaster::start("file_recv: True\nfile_recv_quota: 1\nfile_recv_quota_count: 20").await;
    let minion = master.minion("web1", 1).await;
    let mut events = master.events().await;
    let push = async |name: &str, bytes: usize| {
        let load = map([
            ("cmd", Value::from("_file_recv")),
            ("path", Value::Array(name.split('/').map(Value::from).collect())),
            ("loc", 0.into()),
            ("size", bytes.into()),
            ("data", Value::Binary(vec![7; bytes])),
        ]);
        minion.ask(&master, load).await == Value::from(true)
    };
    let mut taken = Vec::new();
    for n in 0..8 {
        taken.push(push(&format!("large{n}"), 300_000).await);
    }
    assert_eq!(taken, [true, true, true, false, false, false, false, false]);
    let event = events.wait("brine/refused/file/web1").await;
    assert!(event.data.get_text("error").unwrap().contains("file_recv_quota "), "{:?}", event.data);
    assert!(push("large0", 300_000).await, "it is no further one");
    let small = async |n: usize| push(&format!("a{n}/b/c"), 1).await;
    assert!(small(0).await && small(1).await && small(2).await && small(3).await && small(4).await);
    assert!(!small(5).await, "folders count too");
    assert!(!master.path("cache/minions/web1/files/a5").exists(), "nothing is left of what was refused");
}

/// Events go to subscribers and into databases.
#[tokio::test(flavor = "multi_thread")]
async fn events_of_one_minion_have_a_rate() {
    let master = TestMaster::start("minion_rate: 1").await;
    let minion = master.minion("web1", 1).await;
    let mut events = master.events().await;
    let batch = |count: usize| {
        let one = || map([("tag", Value::from("my/tag")), ("data", map([("n", 1)]))]);
        map([("cmd", Value::from("_minion_event")), ("events", Value::Array((0..count).map(|_| one()).collect()))])
    };
    assert_eq!(minion.ask(&master, batch(200)).await, Value::Nil);
    assert_eq!(minion.ask(&master, batch(1)).await, Value::from(false));
    assert_eq!(events.wait("brine/refused/quota/web1").await.data.get_text("cmd"), Some("_minion_event"));
    // Returns have a rate of their own.
    assert_eq!(minion.ask(&master, minion.return_load("req", true)).await, Value::Nil);
}
