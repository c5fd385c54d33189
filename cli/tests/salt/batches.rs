//! Jobs for some minions of a target: batches and subsets.

use brine_protocol::event::Event;
use brine_protocol::value::{Value, list, map};
use serde_json::json;

use super::fake_master::{FakeMaster, Subscriber, field, returned};
use super::{JID, PROBE, SALT};

/// Answers the ping of the target. Its subscription to the bus must outlive the ping.
async fn pinged(master: &mut FakeMaster, ids: &[&str]) -> Subscriber {
    let (mut bus, load) = master.job(JID, ids).await;
    assert_eq!(field(&load, "fun"), json!("test.ping"));
    for id in ids {
        bus.fire(&returned(JID, id, true, 0)).await;
    }
    bus
}

/// Answers the publish request for `ids` with the jid that the client chose.
async fn published(master: &mut FakeMaster, bus: &mut Subscriber, ids: &[&str]) -> String {
    let request = master.request().await;
    let load = request.load.clone();
    assert_eq!((field(&load, "tgt"), field(&load, "tgt_type")), (json!(ids), json!("list")));
    let jid = field(&load, "jid").as_str().expect("a jid").to_owned();
    assert_eq!(jid.len(), 20);
    // As the real master does; events for other waiters must not disturb a client.
    let data = map([("jid", Value::from(jid.as_str())), ("minions", list(ids.to_vec()))]);
    bus.fire(&Event::new(format!("salt/job/{jid}/new"), data)).await;
    request.published(&jid, ids).await;
    jid
}

#[tokio::test]
async fn the_next_minion_begins_when_one_returned() {
    let mut master = FakeMaster::start("").await;
    let salt = master.command(SALT, &["-b", "2", "*", "test.echo", "x"]);
    let _ping = pinged(&mut master, &["a", "b", "c"]).await;
    let mut bus = master.subscriber().await;
    let jid = published(&mut master, &mut bus, &["a", "b"]).await;
    bus.fire(&returned(&jid, "b", 2, 0)).await;
    assert_eq!(published(&mut master, &mut bus, &["c"]).await, jid, "a has not returned, and the jid is the same");
    bus.fire(&returned(&jid, "c", 3, 5)).await;
    bus.fire(&returned(&jid, "a", 1, 2)).await;
    let row = |id: &str, ret: i64, code: i64| format!("{id}:\n    {ret}\njid:\n    {jid}\nretcode:\n    {code}\n");
    let out = format!(
        "\nExecuting run on ['a', 'b']\n\n\nExecuting run on ['c']\n\n{}{}{}",
        row("b", 2, 0),
        row("c", 3, 5),
        row("a", 1, 2)
    );
    salt.await.unwrap().is(5, &out, "");
}

#[tokio::test]
async fn a_silent_minion_gives_its_place_away() {
    let mut master = FakeMaster::start("").await;
    let salt = master.command(SALT, &["-b", "1", "*", "test.echo", "x"]);
    for id in ["a", "b"] {
        std::fs::write(master.path("pki/minions").join(id), "").unwrap();
    }
    let _ping = pinged(&mut master, &["a", "b"]).await;
    let mut bus = master.subscriber().await;
    let jid = published(&mut master, &mut bus, &["a"]).await;
    let probe = master.request().await;
    assert_eq!((field(&probe.load, "fun"), field(&probe.load, "arg")), (json!("saltutil.find_job"), json!([jid])));
    probe.published(PROBE, &["a"]).await;
    published(&mut master, &mut bus, &["b"]).await;
    bus.fire(&returned(&jid, "b", 2, 0)).await;
    let done = salt.await.unwrap();
    assert!(done.code == 0 && done.stdout.contains("b:\n    2\n") && !done.stdout.contains("a:"), "{done:?}");
    assert!(done.stderr.contains("a did not return"), "{done:?}");
}

#[tokio::test]
async fn nobody_begins_after_a_failure() {
    let mut master = FakeMaster::start("").await;
    let salt = master.command(SALT, &["-b", "1", "--failhard", "*", "test.echo", "x"]);
    let _ping = pinged(&mut master, &["a", "b"]).await;
    let mut bus = master.subscriber().await;
    let jid = published(&mut master, &mut bus, &["a"]).await;
    bus.fire(&returned(&jid, "a", 1, 9)).await;
    let done = salt.await.unwrap();
    assert!(done.code == 9 && done.stderr.contains("Batch run stopped due to failhard"), "{done:?}");
}

#[tokio::test]
async fn a_batch_in_one_piece_and_one_for_nobody() {
    let mut master = FakeMaster::start("").await;
    let salt =
        master.command(SALT, &["-b", "100%", "--static", "--out=json", "--out-indent=-1", "*", "test.echo", "x"]);
    let _ping = pinged(&mut master, &["a", "b"]).await;
    let mut bus = master.subscriber().await;
    let jid = published(&mut master, &mut bus, &["a", "b"]).await;
    bus.fire(&returned(&jid, "b", 2, 0)).await;
    bus.fire(&returned(&jid, "a", 1, 0)).await;
    salt.await.unwrap().is(0, "{\"b\": 2, \"a\": 1}\n", "");

    let salt = master.command(SALT, &["-b", "1", "nobody", "test.ping"]);
    let _bus = master.job("", &[]).await;
    let out =
        "No minions matched the target. No command was sent, no jid was assigned.\nNo minions matched the target.\n";
    salt.await.unwrap().is(2, out, "ERROR: No return received\n");
}

#[tokio::test]
async fn a_batch_of_a_subset() {
    let mut master = FakeMaster::start("").await;
    let salt = master.command(SALT, &["-b", "1", "--subset", "1", "*", "x.y"]);
    let (mut list_bus, _) = master.job(PROBE, &["a", "b"]).await;
    for (id, functions) in [("a", &["x.z"][..]), ("b", &["x.y"])] {
        list_bus.fire(&returned(PROBE, id, list(functions.to_vec()), 0)).await;
    }
    let _ping = pinged(&mut master, &["b"]).await;
    let mut bus = master.subscriber().await;
    let jid = published(&mut master, &mut bus, &["b"]).await;
    bus.fire(&returned(&jid, "b", 2, 0)).await;
    let done = salt.await.unwrap();
    assert!(done.code == 0 && done.stdout.contains("b:\n    2\n"), "{done:?}");
}

#[tokio::test]
async fn a_subset_is_of_those_that_have_the_function() {
    let mut master = FakeMaster::start("").await;
    let salt = master.command(SALT, &["--subset", "2", "*", "x.y"]);
    let (mut bus, load) = master.job(PROBE, &["a", "b", "c", "d"]).await;
    assert_eq!(field(&load, "fun"), json!("sys.list_functions"));
    for (id, functions) in [("a", &["x.y"][..]), ("b", &["x.z"]), ("c", &["x.y", "x.z"])] {
        bus.fire(&returned(PROBE, id, list(functions.to_vec()), 0)).await;
    }
    bus.fire(&returned(PROBE, "d", "no such function", 1)).await;
    let (mut bus, load) = master.job(JID, &["a", "c"]).await;
    let mut ids: Vec<String> = serde_json::from_value(field(&load, "tgt")).unwrap();
    ids.sort();
    assert_eq!((ids, field(&load, "tgt_type")), (vec!["a".to_owned(), "c".to_owned()], json!("list")));
    for id in ["a", "c"] {
        bus.fire(&returned(JID, id, true, 0)).await;
    }
    salt.await.unwrap().is(0, "a:\n    True\nc:\n    True\n", "");
}
