//! Authentication.

use brine_protocol::keys::PublicKey;
use brine_protocol::value::ValueExt;

use crate::master::{Master, Seen, Verdict, key};
use crate::running::{ID, start};

#[tokio::test(flavor = "multi_thread")]
async fn a_pending_key_is_asked_for_until_it_is_accepted() {
    let dir = tempfile::tempdir().unwrap();
    let mut master = Master::start().await;
    master.script().verdicts.extend([Verdict::Pending, Verdict::Pending, Verdict::Full]);
    let minion = start(dir.path(), &master, "").await;
    master.expect_auth(Verdict::Pending).await;
    master.expect_auth(Verdict::Pending).await;
    master.expect_auth(Verdict::Full).await;
    master.expect_auth(Verdict::Accept).await;
    let pillar = master.expect_request("_pillar").await;
    assert_eq!(pillar.get("grains").unwrap().get_text("id"), Some(ID));
    let legacy = master.expect_request("_minion_event").await;
    assert_eq!(legacy.get_text("tag"), Some("minion_start"));
    let start = master.expect_start().await;
    assert!(start.get_text("data").unwrap().starts_with("Minion m1 started at "), "{start}");
    let trusted = PublicKey::load(&dir.path().join("pki/minion_master.pub")).unwrap();
    assert_eq!(&trusted, master.key.public());
    minion.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejected_minion_ends_with_77_unless_it_is_to_retry() {
    let dir = tempfile::tempdir().unwrap();
    let mut master = Master::start().await;
    master.script().verdicts.push_back(Verdict::Reject);
    let mut minion = start(dir.path(), &master, "").await;
    let error = minion.result().await.unwrap_err();
    assert_eq!(error.exit_code(), 77);
    assert!(error.to_string().contains("salt-key -d m1"), "{error}");

    master.script().verdicts.extend([Verdict::Reject, Verdict::Reject]);
    let minion = start(dir.path(), &master, "rejected_retry: True").await;
    master.expect_start().await;
    minion.end().await.unwrap();
}

/// CVE-2022-22934, CVE-2022-22935.
#[tokio::test(flavor = "multi_thread")]
async fn a_master_with_another_key_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let mut master = Master::start().await;
    let minion = start(dir.path(), &master, "").await;
    master.expect_start().await;
    minion.end().await.unwrap();
    let path = dir.path().join("pki/minion_master.pub");
    let before = std::fs::read(&path).unwrap();

    let mut impostor = Master::start().await;
    impostor.stop().await;
    impostor.key = key(2);
    impostor.listen().await;
    let mut minion = start(dir.path(), &impostor, "").await;
    let error = minion.result().await.unwrap_err();
    assert_eq!(error.exit_code(), 42);
    assert!(error.to_string().contains("minion_master.pub"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert!(!impostor.drain().iter().any(|seen| matches!(seen, Seen::Request { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_master_without_the_configured_fingerprint_is_refused_at_first_contact() {
    let dir = tempfile::tempdir().unwrap();
    let mut master = Master::start().await;
    let wrong = format!("master_finger: '{}'", key(2).public().fingerprint());
    let error = start(dir.path(), &master, &wrong).await.result().await.unwrap_err();
    assert_eq!(error.exit_code(), 42);
    assert!(!dir.path().join("pki/minion_master.pub").exists());

    let right = format!("master_finger: '{}'", master.key.public().fingerprint());
    let minion = start(dir.path(), &master, &right).await;
    master.expect_start().await;
    minion.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_master_that_is_not_there_yet_is_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let mut master = Master::start().await;
    master.stop().await;
    let minion = start(dir.path(), &master, "auth_timeout: 0.2\nauth_tries: 1").await;
    master.listen().await;
    master.expect_start().await;
    minion.end().await.unwrap();
}
