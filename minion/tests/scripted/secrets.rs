//! CVE-2021-25284 for a minion's secrets: its log at `trace` contains no key, no pillar value and no credential.

use brine_kit::logs::Log;
use brine_protocol::value::{Value, map};

use crate::master::{Master, Verdict};
use crate::running::{emptied, start};

const PILLAR: &str = "planted-pillar-value";
const PILLAR_KEY: &str = "planted-pillar-value-of-a-list";
const GRAIN: &str = "planted-autosign-secret";

#[tokio::test(flavor = "multi_thread")]
async fn cve_2021_25284_a_minion_logs_no_key_and_no_pillar() {
    // This applies to everything that this process logs from now on, including other tests in the same process.
    let log = Log::capture(tracing::Level::TRACE);
    let dir = tempfile::tempdir().unwrap();
    let mut master = Master::start().await;
    master.script().pillar =
        map([("password", Value::from(PILLAR)), ("users", Value::Array(vec![map([("token", PILLAR_KEY)])]))]);
    std::fs::create_dir_all(dir.path().join("conf")).unwrap();
    let more = format!("autosign_grains: [secret_token]\ngrains: {{secret_token: {GRAIN}}}");
    let minion = start(dir.path(), &master, &more).await;
    master.expect_start().await;
    master.subscribed().await;
    let mut keys = Vec::new();
    for _ in 0..3 {
        let jid = master.publish("test.echo", vec![Value::from("shown")]);
        master.expect_return(&jid).await;
        keys.push(master.script().publish_key.clone());
        keys.push(master.script().session_key.clone());
        // The secrets change, and the old ones become invalid.
        master.rotate();
        master.script().session_key = brine_protocol::crypticle::AesKey::generate();
        let jid = master.publish("saltutil.refresh_pillar", vec![]);
        master.expect_auth(Verdict::Accept).await;
        master.expect_return(&jid).await;
    }
    master.script().next_reply = Some(b"\xc1".to_vec());
    let jid = master.publish("test.fail", vec![]);
    master.expect_return(&jid).await;
    master.expect_return(&jid).await;
    emptied(dir.path()).await;
    minion.end().await.unwrap();

    let log = log.text();
    assert!(log.contains("DEBUG") && log.contains("signed in"), "not all is logged:\n{log}");
    for secret in [PILLAR, PILLAR_KEY, GRAIN] {
        assert!(!log.contains(secret), "{secret} is in the log");
    }
    for key in keys {
        let text = key.text().expose();
        assert!(!log.contains(text.as_str()) && !log.contains(&text[..20]), "a key is in the log");
    }
    let private = std::fs::read_to_string(dir.path().join("pki/minion.pem")).unwrap();
    let lines: Vec<&str> = private.lines().filter(|line| line.len() == 64).skip(1).collect();
    assert!(lines.len() > 10);
    assert!(!lines.iter().any(|line| log.contains(line)), "the minion's private key is in the log");
}
