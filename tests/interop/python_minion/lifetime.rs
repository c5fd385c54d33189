//! Events in the life of Python minions: restarts, deleted keys, changed keys, required signatures.

use brine_kit::wait::wait_for;
use brine_tests::salt::{Kind, Master};
use serde_json::json;

use super::{act, publish_port, restart_with, wait_until_back, wait_until_connected};

#[test]
fn restarts_deleted_keys_and_rotation() {
    let mut master =
        Master::start("timeout: 30\ngather_job_timeout: 2\nloop_interval: 1\nrequire_minion_sign_messages: True");
    let config = publish_port(&master) + "minion_sign_messages: True";
    let mut minion = master.minion_kind(Kind::Python, "python", &config);
    let unsigned = master.minion_kind(Kind::Python, "unsigned", "");
    assert_eq!(master.json("python", &["test.echo", "{a: [1, 2.5, ünï, null]}"])["a"], json!([1, 2.5, "ünï", null]));
    assert_eq!(
        master.json("python", &["cmd.run", "echo žluť; printf '\\377'"]).as_str().map(|t| t.starts_with("žluť")),
        Some(true)
    );

    // The wire changes a signed value: bytes that are text arrive as text.
    let events = master.events();
    master.serve("_modules/raw.py", b"def plain():\n    return b'plain'\n");
    assert_eq!(master.json("python", &["saltutil.sync_modules"]), json!(["modules.raw"]));
    let jid = master.start_job(&["python", "raw.plain"]);
    events.wait("the refusal", |tag, data| tag == "brine/refused/return/python" && data["jid"] == jid.as_str());

    // Unsigned messages are refused, so the job has no return.
    let jid = master.start_job(&["unsigned", "test.ping"]);
    events.wait("the refusal", |tag, data| tag == "brine/refused/return/unsigned" && data["jid"] == jid.as_str());
    let found = master.command("salt-run", &["--out=json", "jobs.lookup_jid", &jid]).exits(0).json();
    assert_eq!(found, json!({}));

    // A key is deleted, which replaces the publish key. A minion with an accepted key reconnects by itself.
    drop(unsigned);
    master.command("salt-key", &["-y", "-d", "unsigned"]).exits(0);
    events.wait_tag("key");
    assert_eq!(master.json("python", &["test.ping"]), json!(true));
    events.wait("python to authenticate again", act("python", "accept"));

    // The minion restarts.
    minion.stop();
    let events = master.events();
    minion.up();
    events.wait_tag("salt/minion/python/start");
    assert_eq!(master.json("python", &["test.ping"]), json!(true));
    // The master restarts, with a new publish key and an unchanged job store.
    let events = restart_with(&mut master, "drop_messages_signature_fail: False\n");
    wait_until_back(&master, &events, "python");
    assert_eq!(master.json("python", &["raw.plain"]), json!("plain"));

    // The minion's own key is deleted during a job. The return is refused until the key is accepted again.
    let events = master.events();
    let jid = master.start_job(&["python", "test.sleep", "3"]);
    let runs = minion.path("cache/proc").join(&jid);
    wait_for("the job to run", || runs.exists().then_some(()));
    master.command("salt-key", &["-y", "-d", "python"]).exits(0);
    events.wait("python to wait for acceptance", act("python", "pend"));
    wait_for("the job to end", || (!runs.exists()).then_some(()));
    let found = master.command("salt-run", &["--out=json", "jobs.lookup_jid", &jid]).exits(0).json();
    assert_eq!(found, json!({}), "nobody without a key returns anything");
    master.command("salt-key", &["-y", "-a", "python"]).exits(0);
    events.wait("python to be accepted", act("python", "accept"));
    wait_until_connected(&master, "python");
}
