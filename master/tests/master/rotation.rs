//! The publish key is replaced when a key is deleted (PROTOCOL.md §3.5).

use brine_kit::files::set_mode;
use brine_protocol::auth::AuthOutcome;
use brine_protocol::event::{Event, push};
use brine_protocol::value::{Value, ValueExt, map};

use super::harness::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_dropfile_replaces_the_publish_key() {
    let master = TestMaster::start("").await;
    let mut minion = master.minion("web1", 1).await;
    let _gone = master.minion("gone", 2).await;
    let mut publications = minion.subscribe(&master, &[""]).await;
    let mut events = master.events().await;
    let path = master.path("cache/.dfn");
    std::fs::remove_file(master.path("pki/minions/gone")).unwrap();
    // As salt-key writes it, with its event.
    std::fs::write(&path, "test_master").unwrap();
    set_mode(&path, 0o400);
    let told = Event::new("salt/key", map([("act", "delete"), ("id", "gone")]));
    push(&master.path("sock/master_event_pull.ipc"), &told).await.unwrap();
    let event = events.wait("key").await;
    assert_eq!(event.data.get_bool("rotate_aes_key"), Some(true));
    assert!(!path.exists());
    assert!(!master.path("cache/brine_sessions/gone").exists(), "the session went with its key");
    assert!(master.path("cache/brine_sessions/web1").exists());
    // As salt-key of 3006 writes it.
    std::fs::write(&path, "").unwrap();
    set_mode(&path, 0o400);
    events.wait("key").await;
    assert!(!path.exists());

    // New publications cannot be decrypted with the old key. After another authentication they can, and the serial
    // restarts.
    master.publish("*", "glob", "test.ping", vec![]).await;
    let frames = publications.frames().await;
    assert!(publications.open(&frames).unwrap_err().wants_reauth());
    let AuthOutcome::Accepted(credentials) = minion.authenticate(&master).await else { panic!() };
    let before = minion.credentials.clone().unwrap();
    assert_ne!(credentials.publish_key, before.publish_key);
    assert_eq!(credentials.session_key, before.session_key, "sessions are not rotated with it");
    publications.receiver.rekey(&credentials);
    assert_eq!(publications.open(&frames).unwrap().get_text("fun"), Some("test.ping"));
    minion.take(*credentials);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_exact_dropfile_counts_and_no_minion_can_ask() {
    let master = TestMaster::start("").await;
    let mut minion = master.minion("web1", 1).await;
    let before = minion.credentials.clone().unwrap().publish_key;
    let path = master.path("cache/.dfn");
    std::fs::write(&path, "another master").unwrap();
    set_mode(&path, 0o400);
    let mut events = master.events().await;
    for tag in ["key", "salt/key"] {
        let load = map([
            ("cmd", Value::from("_minion_event")),
            ("tag", tag.into()),
            ("data", map([("rotate_aes_key", true)])),
        ]);
        minion.ask(&master, load).await;
        assert_eq!(events.next().await.tag, "brine/refused/event/web1");
    }
    let told = Event::new("salt/key", map([("act", "delete")]));
    push(&master.path("sock/master_event_pull.ipc"), &told).await.unwrap();
    events.wait("salt/key").await;
    let AuthOutcome::Accepted(credentials) = minion.authenticate(&master).await else { panic!() };
    assert_eq!(credentials.publish_key, before);
    minion.take(*credentials);
    assert!(path.exists());
}

/// A key deleted by another program is invalid from the next request on.
#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_key_is_no_key_at_once() {
    let master = TestMaster::start("").await;
    let minion = master.minion("web1", 1).await;
    let load = || map([("cmd", "_file_envs"), ("id", "web1"), ("tok", "good")]);
    assert_ne!(decode(&master.raw(minion.envelope(load(), "web1", 3)).await), Value::from("bad load"));
    std::fs::remove_file(master.path("pki/minions/web1")).unwrap();
    assert_eq!(decode(&master.raw(minion.envelope(load(), "web1", 3)).await), Value::from("bad load"));
    let reply = master.publish("*", "glob", "test.ping", vec![]).await;
    assert_eq!(reply.get("load").unwrap().get("jid"), Some(&Value::Nil));
}

/// With `ping_on_rotate` a job follows at once that only the new key decrypts.
#[tokio::test(flavor = "multi_thread")]
async fn who_is_there_is_told_of_the_new_key() {
    for ping in [false, true] {
        // Without data of minions the master does not know the connected ones, so the job is for all.
        let master = TestMaster::start(&format!("ping_on_rotate: {ping}\nminion_data_cache: False")).await;
        let minion = master.minion("web1", 1).await;
        let mut publications = minion.subscribe(&master, &[""]).await;
        let mut events = master.events().await;
        let path = master.path("cache/.dfn");
        std::fs::write(&path, "test_master").unwrap();
        set_mode(&path, 0o400);
        events.wait("key").await;
        if !ping {
            // Without a ping, the next publication is the one that is published now.
            master.publish("*", "glob", "test.version", vec![]).await;
        }
        let frames = publications.frames().await;
        assert!(publications.open(&frames).unwrap_err().wants_reauth());
        let AuthOutcome::Accepted(credentials) = minion.authenticate(&master).await else { panic!() };
        publications.receiver.rekey(&credentials);
        let fun = if ping { "test.ping" } else { "test.version" };
        assert_eq!(publications.open(&frames).unwrap().get_text("fun"), Some(fun));
    }
}
