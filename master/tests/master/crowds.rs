//! Crowds of strangers: their requests do not block other peers.

use std::time::{Duration, Instant};

use brine_protocol::envelope::Envelope;
use brine_protocol::value::{Value, ValueExt, map, text};
use brine_zmtp::Requester;
use tokio::task::JoinSet;

use super::harness::*;

/// These requests once took from ten seconds to a minute. Now they take some milliseconds; the bound allows for a busy
/// machine.
const QUICK: Duration = Duration::from_secs(5);

const LOG_INS: &str = "sharedsecret: right
external_auth: {sharedsecret: {ann: ['.*', '@runner'], '*': [test.ping]}}";

fn log_in(cmd: &str, user: &str, password: &str) -> Value {
    map([
        ("cmd", text(cmd)),
        ("eauth", text("sharedsecret")),
        ("username", text(user)),
        ("password", text(password)),
        ("fun", text("jobs.list_jobs")),
    ])
}

/// Sends each load over its own connection, and waits until the master has answered the first one.
async fn crowd(master: &TestMaster, loads: impl IntoIterator<Item = Value>) -> JoinSet<()> {
    let mut crowd = JoinSet::new();
    for load in loads {
        let mut requester = master.requester();
        let payload = Envelope::clear(load).encode();
        crowd.spawn(async move { drop(requester.request(payload.into(), 4 * SOON).await) });
    }
    while crowd.len() > 1 && crowd.try_join_next().is_none() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    crowd
}

async fn timed<T>(what: &str, work: impl Future<Output = T>) -> T {
    let began = Instant::now();
    let done = work.await;
    let took = began.elapsed();
    assert!(took < QUICK, "{what} took {took:?}");
    done
}

/// Log-ins with thousands of values and a wrong password. They must not hold turns for such requests while they wait,
/// because only four a second fail.
#[tokio::test(flavor = "multi_thread")]
async fn log_ins_with_many_values_hold_up_nobody() {
    let master = TestMaster::start(LOG_INS).await;
    let minion = master.minion("web1", 1).await;
    let list = || Value::Array(vec![Value::from(1); 5_000]);
    let load = |n: usize| {
        let mut load = log_in(["mk_token", "runner", "wheel"][n % 3], &format!("user{n}"), "wrong");
        load.insert("arg", list());
        load
    };
    let crowd = crowd(&master, (0..300).map(load)).await;
    timed("a job for many minions", async {
        let ids = (0..5_000).map(|n| Value::from(format!("m{n}"))).collect();
        let mut load = master.publish_load("", "list", "test.ping", vec![]);
        load.insert("tgt", Value::Array(ids));
        assert!(master.clear(load).await.has("load"));
    })
    .await;
    timed("a minion's request", minion.ask(&master, map([("cmd", "_file_envs")]))).await;
    drop(crowd);
}

#[tokio::test(flavor = "multi_thread")]
async fn large_log_ins_hold_up_no_large_request() {
    let master = TestMaster::start(LOG_INS).await;
    let minion = master.minion("web1", 1).await;
    let load = |n: usize| {
        let mut load = log_in(["mk_token", "runner", "publish"][n % 3], &format!("user{n}"), "wrong");
        load.insert("arg", Value::Array(vec![Value::from("x".repeat(70_000))]));
        if n % 3 == 2 {
            load.insert("kwargs", log_in("", "user", "wrong"));
        }
        load
    };
    let crowd = crowd(&master, (0..150).map(load)).await;
    timed("a large event", async {
        let data = map([("x", "x".repeat(100_000))]);
        let load = map([("cmd", Value::from("_minion_event")), ("tag", "my/tag".into()), ("data", data)]);
        assert_eq!(minion.ask(&master, load).await, Value::Nil);
    })
    .await;
    drop(crowd);
}

/// After wrong log-ins in many names or in one name, right log-ins still work, even in the same name.
#[tokio::test(flavor = "multi_thread")]
async fn wrong_log_ins_of_this_host_lock_nobody_out() {
    for name in [|n: usize| format!("user{n}"), |_| "ann".to_owned()] {
        let master = TestMaster::start(LOG_INS).await;
        let crowd = crowd(&master, (0..90).map(|n| log_in("mk_token", &name(n), "wrong"))).await;
        for user in ["ann", "ben"] {
            let token = timed("a right log-in", master.clear(log_in("mk_token", user, "right"))).await;
            assert!(token.has("token"), "{user}: {token}");
        }
        drop(crowd);
    }
}

/// The address in a front end's request counts if the request has the master's key, and then only for that address.
#[tokio::test(flavor = "multi_thread")]
async fn an_address_behind_a_front_end_is_counted_for_itself() {
    let master = TestMaster::start(LOG_INS).await;
    let mut events = master.events().await;
    let ask = |address: &str, password: &str| {
        let mut load = log_in("mk_token", "ann", password);
        load.insert("front_end", map([("key", master.local_key()), ("address", address.to_owned())]));
        load
    };
    for _ in 0..15 {
        master.clear(ask("192.0.2.7", "wrong")).await;
        let event = events.wait("brine/refused/login").await;
        assert_eq!(event.data.get_text("address"), Some("local for 192.0.2.7"));
        assert!(!format!("{:?}", event.data).contains(&master.local_key()));
    }
    assert_eq!(master.clear(ask("192.0.2.7", "right")).await, text(""), "it has to wait");
    assert!(master.clear(ask("192.0.2.8", "right")).await.has("token"));
    assert!(master.clear(log_in("mk_token", "ann", "right")).await.has("token"));
    // Without the key, the address is ignored.
    let mut unproved = ask("192.0.2.7", "right");
    unproved.insert("front_end", map([("key", "x"), ("address", "192.0.2.7")]));
    assert!(master.clear(unproved).await.has("token"));
}

/// Only the proof in a stranger's request is decoded.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_large_is_read_for_callers_only() {
    let master = TestMaster::start(LOG_INS).await;
    let mut large = master.publish_load("*", "glob", "test.ping", vec![Value::Array(vec![Value::Nil; 200_000])]);
    assert!(master.clear(large.clone()).await.has("load"), "root's is read");
    // Within the limits for skipped values, and above those for decoding a small request.
    large.insert("key", "x");
    let refused = master.clear(large).await;
    assert_eq!(refused.get("error").and_then(|error| error.get_text("name")), Some("AuthenticationError"));
    let many = || Value::Array(vec![Value::Nil; 5_000]);
    for cmd in ["ping", "_auth"] {
        let reply = master.clear(map([("cmd", Value::from(cmd)), ("x", many())])).await;
        assert!(!reply.has("x"), "{cmd}: {reply}");
    }
}

/// A job that is too large is an error reply over the same connection, and one line in the log.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_is_too_large_is_an_error_and_not_a_lost_connection() {
    let master = TestMaster::start("max_return_size: 2000000").await;
    let _minion = master.minion("web1", 1).await;
    let mut requester: Requester = master.requester();
    for megabytes in [3, 20] {
        let load = master.publish_load("*", "glob", "test.echo", vec![Value::from("x".repeat(megabytes << 20))]);
        let reply = decode(&requester.request(Envelope::clear(load).encode().into(), SOON).await.unwrap());
        let message = reply.get("error").and_then(|error| error.get_text("message")).unwrap_or_default();
        assert!(message.contains("max_request_size"), "{megabytes}: {reply}");
    }
    let load = master.publish_load("*", "glob", "test.ping", vec![]);
    let reply = decode(&requester.request(Envelope::clear(load).encode().into(), SOON).await.unwrap());
    assert!(reply.get("load").is_some_and(|load| load.has("jid")), "{reply}");
}
