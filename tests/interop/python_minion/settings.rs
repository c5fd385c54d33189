//! A Python minion with every setting that protects it against forged messages, and its own activities.

use brine_tests::salt::{Kind, Master, Minion};
use serde_json::json;

#[test]
fn every_signature_is_checked_on_both_sides() {
    let master = Master::start(
        "timeout: 30\nmaster_sign_pubkey: True\nzmq_filtering: True\npublish_signing_algorithm: PKCS1v15-SHA224\n\
         require_minion_sign_messages: True\nrequest_server_ttl: 60",
    );
    let keys = master.command("salt-key", &["--out=json", "-f", "master.pub"]).exits(0).json();
    let finger = keys["local"]["master.pub"].as_str().expect("a fingerprint").to_owned();
    let config = format!(
        "verify_master_pubkey_sign: True\nalways_verify_signature: True\nmaster_finger: '{finger}'\n\
         sign_pub_messages: True\nzmq_filtering: True\nminion_sign_messages: True\n\
         encryption_algorithm: OAEP-SHA224\nsigning_algorithm: PKCS1v15-SHA224\n\
         schedule:\n  kept: {{function: test.echo, args: [scheduled], seconds: 3}}\n  \
         not_kept: {{function: test.echo, args: [passing], seconds: 3, return_job: nocache}}"
    );
    let mut minion = Minion::prepare(Kind::Python, "careful", master.ret_port, &config);
    std::fs::create_dir_all(minion.path("pki")).expect("our own folder");
    std::fs::copy(master.path("pki/master_sign.pub"), minion.path("pki/master_sign.pub")).expect("the signing key");
    let events = master.events();
    minion.up();
    events.wait("careful to wait", super::act("careful", "pend"));
    master.command("salt-key", &["-y", "-a", "careful"]).exits(0);
    events.wait_tag("salt/minion/careful/start");
    assert_eq!(master.json("careful", &["test.echo", "{a: [ünï, 1.5]}"]), json!({"a": ["ünï", 1.5]}));
    // Topics are for ids. Publications for grain targets go to all minions.
    assert_eq!(master.salt(&["--out=json", "-G", "id:careful", "test.ping"]).exits(0).json(), json!({"careful": true}));
    assert_eq!(master.salt(&["--out=json", "-L", "careful", "test.ping"]).exits(0).json(), json!({"careful": true}));
    assert_eq!(master.json("careful", &["cp.get_file_str", "salt://none"]), json!(false));
    assert_eq!(master.json("careful", &["pillar.items"]), json!({}));

    // A scheduled job is a separate job, or one that is not stored.
    let kept = events.wait("a scheduled job", |tag, data| {
        tag.ends_with("/ret/careful") && data["return"] == "scheduled" && data["jid"] != "req"
    });
    let jid = kept["jid"].as_str().expect("a jid");
    let found = master.command("salt-run", &["--out=json", "jobs.lookup_jid", jid]).exits(0).json();
    assert_eq!(found["careful"], json!("scheduled"));
    assert_eq!(events.wait_tag("salt/job/nocache/ret/careful")["return"], json!("passing"));
}
