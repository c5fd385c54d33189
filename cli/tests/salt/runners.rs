//! `salt-run`.

use brine_protocol::event::Event;
use brine_protocol::value::map;
use serde_json::json;

use super::fake_master::{FakeMaster, KEY, field};
use super::{JID, PROBE, SALT_RUN};

#[tokio::test]
async fn runners_return() {
    for (ret, args, code, stdout) in [
        (json!({"success": true, "return": {"web1": true}}), &["jobs.lookup_jid", JID][..], 0, "web1:\n    True\n"),
        (
            json!({"success": true, "return": {"web1": true}}),
            &["jobs.lookup_jid", JID, "--out=json", "--out-indent=-1"],
            0,
            "{\"web1\": true}\n",
        ),
        (json!({"success": true, "return": {"outputter": "txt", "data": {"a": [1]}}}), &["x.y"], 0, "a: [1]\n"),
        (json!({"success": true, "return": {}}), &["jobs.lookup_jid", JID], 0, ""),
        (json!({"success": false, "return": "'x.y' is not available."}), &["x.y"], 1, "'x.y' is not available.\n"),
        (json!({"success": true, "return": "r", "retcode": 9}), &["x.y"], 9, "r\n"),
        (json!({"success": true, "return": "r"}), &["-q", "x.y"], 0, ""),
    ] {
        let mut master = FakeMaster::start("").await;
        let run = master.command(SALT_RUN, args);
        let mut bus = master.subscriber().await;
        let request = master.request().await;
        assert_eq!((field(&request.load, "cmd"), field(&request.load, "key")), (json!("runner"), json!(KEY)));
        let tag = format!("salt/run/{PROBE}");
        let data = brine_protocol::value::from_json(&ret);
        // the result of another runner, and this one's before the reply
        bus.fire(&Event { tag: "salt/run/20261120134741000009/ret".to_owned(), data: map([("return", "wrong")]) })
            .await;
        bus.fire(&Event { tag: format!("{tag}/new"), data: map([("return", "wrong")]) }).await;
        bus.fire(&Event { tag: format!("{tag}/ret"), data }).await;
        request.answer(&map([("tag", tag.as_str()), ("jid", PROBE)])).await;
        let done = run.await.unwrap();
        assert_eq!((done.code, done.stdout.as_str(), done.stderr.as_str()), (code, stdout, ""), "{args:?} {ret}");
    }
}

#[tokio::test]
async fn runner_arguments_are_packed() {
    let mut master = FakeMaster::start("").await;
    let run = master.command(SALT_RUN, &["--async", "jobs.lookup_jid", JID, "missing=True"]);
    let _bus = master.subscriber().await;
    let request = master.request().await;
    assert_eq!(field(&request.load, "fun"), json!("jobs.lookup_jid"));
    assert_eq!(field(&request.load, "kwarg"), json!({"arg": [JID], "kwarg": {"missing": true}}));
    request.answer(&map([("tag", "salt/run/1"), ("jid", "1")])).await;
    let done = run.await.unwrap();
    assert_eq!((done.code, done.stdout.as_str()), (0, ""));
    assert!(
        done.stderr.contains("Running in asynchronous mode.") && done.stderr.contains("salt/run/1"),
        "{}",
        done.stderr
    );
}

#[tokio::test]
async fn a_runner_that_takes_too_long_and_a_master_that_stops() {
    let mut master = FakeMaster::start("").await;
    let run = master.command(SALT_RUN, &["-t", "1", "x.y"]);
    let bus = master.subscriber().await;
    master.request().await.answer(&map([("tag", "salt/run/1"), ("jid", "1")])).await;
    let done = run.await.unwrap();
    assert!(done.code == 1 && done.stderr.starts_with("no result within 1 seconds"), "{done:?}");
    drop(bus);
    let run = master.command(SALT_RUN, &["x.y"]);
    let bus = master.subscriber().await;
    master.request().await.answer(&map([("tag", "salt/run/1"), ("jid", "1")])).await;
    drop(bus);
    let done = run.await.unwrap();
    assert!(done.code == 1 && done.stderr.contains("the master closed its event bus"), "{done:?}");
}
