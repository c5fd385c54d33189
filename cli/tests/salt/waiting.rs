//! The minions that `salt` waits for, and the length of the wait.

use brine_client::ClientError;
use brine_protocol::event::{Framing, frame};
use brine_protocol::value::{Value, map};
use serde_json::json;

use super::fake_master::{FakeMaster, field, published, returned};
use super::{JID, NO_RESPONSE, PROBE, SALT, client, ping};

#[tokio::test]
async fn events_before_the_reply_count() {
    let mut master = FakeMaster::start("").await;
    let salt = master.command(SALT, &["web1", "test.ping"]);
    let mut bus = master.subscriber().await;
    let request = master.request().await;
    bus.fire(&returned(JID, "web1", true, 0)).await;
    request.published(JID, &["web1"]).await;
    salt.await.unwrap().is(0, "web1:\n    True\n", "");
}

#[tokio::test]
async fn both_framings_of_the_bus_in_pieces() {
    for framing in [Framing::Bare, Framing::Prefixed] {
        let mut master = FakeMaster::start("").await;
        let salt = master.command(SALT, &["*", "test.ping", "--out=txt"]);
        let (mut bus, _) = master.job(JID, &["web1", "web2"]).await;
        let mut bytes = frame(&returned(JID, "web1", "x".repeat(70_000), 0), framing);
        bytes.extend(frame(&returned(JID, "web2", true, 0), framing));
        for piece in bytes.chunks(997) {
            bus.send(piece).await;
        }
        let done = salt.await.unwrap();
        assert_eq!(done.stdout, format!("web1: {}\nweb2: True\n", "x".repeat(70_000)), "{framing:?}");
    }
}

#[tokio::test]
async fn nothing_matched() {
    for (args, stdout, stderr) in [
        (&["nobody", "test.ping"][..], "", "ERROR: No return received\n"),
        (&["nobody", "test.ping", "--out=json"], "{}\n", "ERROR: No return received\n"),
        (&["nobody", "sys.doc"], "", "No minions found to gather docs from\n"),
    ] {
        let mut master = FakeMaster::start("").await;
        let salt = master.command(SALT, args);
        let _bus = master.subscriber().await;
        let error = "Master could not resolve minions for target nobody";
        let load = map([("jid", Value::Nil), ("minions", Value::Array(vec![])), ("error", Value::from(error))]);
        master.request().await.answer(&map([("enc", Value::from("clear")), ("load", load)])).await;
        let text = "No minions matched the target. No command was sent, no jid was assigned.\n";
        salt.await.unwrap().is(2, &format!("{text}{stdout}"), stderr);
    }
}

#[tokio::test]
async fn a_silent_minion_is_asked_and_then_reported() {
    let mut master = FakeMaster::start("").await;
    std::fs::write(master.path("pki/minions/web1"), "").unwrap();
    std::fs::write(master.path("pki/minions/web2"), "").unwrap();
    let salt = master.command(SALT, &["*", "test.ping"]);
    let (mut bus, _) = master.job(JID, &["web1", "web2"]).await;
    bus.fire(&returned(JID, "web1", true, 0)).await;
    let probe = master.request().await;
    for (name, expect) in [
        ("fun", json!("saltutil.find_job")),
        ("arg", json!([JID])),
        ("tgt", json!(["web2"])),
        ("tgt_type", json!("list")),
    ] {
        assert_eq!(field(&probe.load, name), expect, "{name}");
    }
    probe.published(PROBE, &["web2"]).await;
    let done = salt.await.unwrap();
    let stdout = format!("web1:\n    True\nweb2:\n{NO_RESPONSE}");
    done.is(1, &stdout, "ERROR: Minions returned with non-zero exit code\n");
}

#[tokio::test]
async fn a_minion_that_still_runs_the_job_is_waited_for() {
    let mut master = FakeMaster::start("").await;
    let salt = master.command(SALT, &["*", "test.sleep", "3"]);
    let (mut bus, _) = master.job(JID, &["web1"]).await;
    for probe in ["20261120134741000001", "20261120134742000002"] {
        master.request().await.published(probe, &["web1"]).await;
        bus.fire(&returned(probe, "web1", map([("jid", JID), ("fun", "test.sleep")]), 0)).await;
    }
    let last = master.request().await;
    last.published("20261120134743000003", &["web1"]).await;
    bus.fire(&returned(JID, "web1", true, 0)).await;
    salt.await.unwrap().is(0, "web1:\n    True\n", "");
}

#[tokio::test]
async fn ids_that_no_minion_has_are_reported_without_a_wait() {
    let mut master = FakeMaster::start("").await;
    let salt = master.command(SALT, &["-L", "web1,zz", "test.ping"]);
    let mut bus = master.subscriber().await;
    let request = master.request().await;
    assert_eq!((field(&request.load, "tgt"), field(&request.load, "tgt_type")), (json!(["web1", "zz"]), json!("list")));
    request.answer(&published(JID, &["web1"], &["zz"])).await;
    bus.fire(&returned(JID, "web1", true, 0)).await;
    let stdout = format!("web1:\n    True\nzz:\n{NO_RESPONSE}");
    salt.await.unwrap().is(1, &stdout, "ERROR: Minions returned with non-zero exit code\n");
}

#[tokio::test]
async fn hidden_timeouts_are_not_shown() {
    let mut master = FakeMaster::start("").await;
    let salt = master.command(SALT, &["--hide-timeout", "-L", "web1,zz", "test.ping"]);
    let mut bus = master.subscriber().await;
    master.request().await.answer(&published(JID, &["web1"], &["zz"])).await;
    bus.fire(&returned(JID, "web1", true, 0)).await;
    salt.await.unwrap().is(0, "web1:\n    True\n", "");
}

#[tokio::test]
async fn node_groups_are_sent_as_compound_targets() {
    let mut master = FakeMaster::start("nodegroups:\n  web: web*\n").await;
    let done = master.command(SALT, &["-N", "nosuch", "test.ping"]).await.unwrap();
    done.is(0, &format!("Node group nosuch unavailable in {}\n", master.path("conf/master").display()), "");
    let salt = master.command(SALT, &["-N", "web", "test.ping"]);
    let (mut bus, load) = master.job(JID, &["web1"]).await;
    assert_eq!((field(&load, "tgt"), field(&load, "tgt_type")), (json!("web*"), json!("compound")));
    bus.fire(&returned(JID, "web1", true, 0)).await;
    assert_eq!(salt.await.unwrap().stdout, "web1:\n    True\n");
}

#[tokio::test]
async fn the_library_gives_returns_and_errors() {
    let mut master = FakeMaster::start("").await;
    let client = client(&master);
    let job = ping();
    let (all, ()) = tokio::join!(client.cmd(&job), async {
        let (mut bus, _) = master.job(JID, &["web1", "web2"]).await;
        bus.fire(&returned(JID, "web1", 1, 0)).await;
        bus.fire(&returned(JID, "web2", 2, 0)).await;
    });
    assert_eq!(all.unwrap(), [("web1".to_owned(), Value::from(1)), ("web2".to_owned(), Value::from(2))]);
    let (published, ()) = tokio::join!(client.cmd_async(&job), async {
        let _bus = master.subscriber().await;
        master.request().await.published(JID, &["web1"]).await;
    });
    assert_eq!(published.unwrap().jid, JID);
    std::fs::remove_file(master.path("sock/master_event_pub.ipc")).unwrap();
    assert!(matches!(client.cmd_async(&job).await, Err(ClientError::MasterDown { .. })));
}
