//! Publications for the minion alone, and sessions that go on.

use std::sync::atomic::Ordering;

use brine_protocol::auth::{RESUME, resumed};
use brine_protocol::crypticle::AesKey;
use brine_protocol::ids::Jid;
use brine_protocol::value::{Value, map};
use bytes::Bytes;
use tempfile::TempDir;

use crate::master::{Master, Seen, Verdict, epoch, job, key, offer};
use crate::running::{ID, Running, ready, start};

/// A Brine master, and a minion that is connected and signed in.
async fn begin(more: &str) -> (TempDir, Master, Running) {
    let (dir, mut master) = (tempfile::tempdir().unwrap(), Master::start().await);
    master.script().seals = true;
    let minion = ready(&mut master, dir.path(), &format!("random_reauth_delay: 0\n{more}")).await;
    master.drain();
    (dir, master, minion)
}

fn number(seen: &[Seen], is: impl Fn(&Seen) -> bool) -> usize {
    seen.iter().filter(|seen| is(seen)).count()
}

fn is_auth(seen: &Seen) -> bool {
    matches!(seen, Seen::Auth(_))
}

fn is_resume(seen: &Seen) -> bool {
    matches!(seen, Seen::Request { cmd, .. } if cmd == RESUME)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sealed_job_runs_once_and_one_for_all_minions_still_does() {
    let (_dir, mut master, minion) = begin("").await;
    let jid = Jid::now();
    let frames = master.seal_for(&ID.parse().unwrap(), &job(&jid, "test.ping", vec![]));
    master.send(frames.clone());
    master.expect_return(&jid).await;
    // The same again, under another topic, and for another minion with this minion's session.
    let other = master.seal_for(&"m2".parse().unwrap(), &job(&Jid::now(), "test.ping", vec![]));
    let own = frames[0].clone();
    master.send(frames);
    master.send(other.clone());
    master.send(vec![own, other[1].clone(), other[2].clone()]);
    let shared = master.publish("test.ping", vec![]);
    let (_, before) = master.expect_return_after(&shared).await;
    assert_eq!(minion.functions.calls.load(Ordering::Relaxed), 2, "{before:?}");
    minion.end().await.unwrap();
}

/// A restarted minion remembers the serials of both forms.
#[tokio::test(flavor = "multi_thread")]
async fn a_recording_is_not_played_back_to_a_restarted_minion() {
    let (dir, mut master, minion) = begin("").await;
    let jid = Jid::now();
    let frames = master.seal_for(&ID.parse().unwrap(), &job(&jid, "test.ping", vec![]));
    master.send(frames.clone());
    master.expect_return(&jid).await;
    minion.end().await.unwrap();
    let minion = ready(&mut master, dir.path(), "").await;
    master.send(frames);
    let next = master.publish_sealed("test.ping", vec![]);
    master.expect_return(&next).await;
    assert_eq!(minion.functions.calls.load(Ordering::Relaxed), 1);
    minion.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_minion_that_insists_takes_nothing_that_others_can_read() {
    let (_dir, mut master, minion) = begin("require_sealed: True").await;
    master.publish("test.ping", vec![]);
    let jid = master.publish_sealed("test.ping", vec![]);
    master.expect_return(&jid).await;
    assert_eq!(minion.functions.calls.load(Ordering::Relaxed), 1);
    minion.end().await.unwrap();

    // A master that makes none, as Python's.
    let dir = tempfile::tempdir().unwrap();
    let master = Master::start().await;
    let mut minion = start(dir.path(), &master, "require_sealed: True").await;
    let error = minion.result().await.unwrap_err().to_string();
    assert!(error.contains("require_sealed") && error.contains("publications: shared"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_rotation_the_minion_goes_on_with_its_session() {
    let (_dir, mut master, minion) = begin("").await;
    for form in [Master::publish_sealed, Master::publish] {
        master.rotate();
        let jid = form(&master, "test.ping", vec![]);
        let (_, before) = master.expect_return_after(&jid).await;
        assert_eq!((number(&before, is_resume), number(&before, is_auth)), (1, 0), "{before:?}");
    }
    // After the master was away too.
    master.rotate();
    master.stop().await;
    master.listen().await;
    master.expect(RESUME, |seen| is_resume(seen).then_some(())).await;
    master.subscribed().await;
    let jid = master.publish_sealed("test.ping", vec![]);
    let (_, before) = master.expect_return_after(&jid).await;
    assert_eq!(number(&before, is_auth), 0, "{before:?}");
    minion.end().await.unwrap();
}

/// Answers that are not the master's, or of a master that does not know the session: the minion authenticates.
#[tokio::test(flavor = "multi_thread")]
async fn where_the_session_does_not_go_on_the_minion_authenticates() {
    let (_dir, mut master, minion) = begin("").await;
    let (port, own) = (master.publish_port, offer(&master.key));
    let forged = AesKey::generate();
    let good = epoch(&forged, &master.key);
    let answers = [
        map([("aes", "x")]),
        Value::from("bad load"),
        // A publish key, an Ed25519 key and a port that are not the master's.
        resumed(&forged, &epoch(&AesKey::generate(), &master.key), port, &own, None),
        resumed(&forged, &epoch(&forged, &key(2)), port, &own, None),
        resumed(&forged, &epoch(&forged, &key(2)), port, &offer(&key(2)), None),
        resumed(&forged, &good, 0, &own, None),
    ];
    for answer in answers {
        master.rotate();
        master.script().next_resumed = Some(answer.clone());
        let jid = master.publish_sealed("test.ping", vec![]);
        let (_, before) = master.expect_return_after(&jid).await;
        assert_eq!((number(&before, is_resume), number(&before, is_auth)), (1, 1), "{answer}: {before:?}");
    }
    // The master has another session by now.
    master.rotate();
    master.script().session_key = AesKey::generate();
    let jid = master.publish_sealed("test.ping", vec![]);
    let (_, before) = master.expect_return_after(&jid).await;
    assert_eq!(number(&before, is_auth), 1, "{before:?}");
    minion.end().await.unwrap();
}

/// Anybody on the network can send these.
#[tokio::test(flavor = "multi_thread")]
async fn made_up_epochs_lead_to_no_question() {
    let (_dir, mut master, minion) = begin("").await;
    let frames = master.seal_for(&ID.parse().unwrap(), &job(&Jid::now(), "test.ping", vec![]));
    for n in 0..50_u8 {
        let mut header = frames[1].to_vec();
        header[1] ^= n + 1;
        master.send(vec![frames[0].clone(), header.into(), frames[2].clone()]);
        master.send(vec![frames[0].clone(), Bytes::from(vec![n; 137]), Bytes::from(vec![n; 100])]);
    }
    let jid = master.publish_sealed("test.ping", vec![]);
    let (_, before) = master.expect_return_after(&jid).await;
    assert_eq!(number(&before, |seen| is_auth(seen) || is_resume(seen)), 0, "{before:?}");
    minion.end().await.unwrap();
}

/// Python's master answers an unknown command with an empty map, and makes no offer in the first place.
#[tokio::test(flavor = "multi_thread")]
async fn with_a_python_master_all_is_as_before() {
    let (dir, mut master) = (tempfile::tempdir().unwrap(), Master::start().await);
    let minion = ready(&mut master, dir.path(), "random_reauth_delay: 0").await;
    master.drain();
    master.rotate();
    let jid = master.publish("test.ping", vec![]);
    let (_, before) = master.expect_return_after(&jid).await;
    assert_eq!((number(&before, is_resume), number(&before, is_auth)), (0, 1));
    // Sealed publications of a master that was asked for none.
    master.publish_sealed("test.ping", vec![]);
    let jid = master.publish("test.ping", vec![]);
    master.expect_return(&jid).await;
    assert_eq!(minion.functions.calls.load(Ordering::Relaxed), 2);
    minion.end().await.unwrap();

    // A Brine master in the place of a Python one, and back, with the same key.
    master.script().seals = true;
    let minion = ready(&mut master, dir.path(), "").await;
    let jid = master.publish_sealed("test.ping", vec![]);
    master.expect_return(&jid).await;
    master.script().seals = false;
    master.rotate();
    let jid = master.publish("test.ping", vec![]);
    master.expect_auth(Verdict::Accept).await;
    master.expect_return(&jid).await;
    minion.end().await.unwrap();
}
