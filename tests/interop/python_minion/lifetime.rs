//! What happens over the life of Python minions: restarts, keys that go, keys that change, signatures that are required.

use brine_tests::salt::{Kind, Master};
use brine_tests::wait_for;
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

    // What the wire changes after it was signed: bytes that are text arrive as text.
    let events = master.events();
    master.serve("_modules/raw.py", b"def plain():\n    return b'plain'\n");
    assert_eq!(master.json("python", &["saltutil.sync_modules"]), json!(["modules.raw"]));
    let jid = master.start_job(&["python", "raw.plain"]);
    events.wait("the refusal", |tag, data| tag == "brine/refused/return/python" && data["jid"] == jid.as_str());

    // Who does not sign is not believed; its job has no return.
    let jid = master.start_job(&["unsigned", "test.ping"]);
    events.wait("the refusal", |tag, data| tag == "brine/refused/return/unsigned" && data["jid"] == jid.as_str());
    let found = master.command("salt-run", &["--out=json", "jobs.lookup_jid", &jid]).exits(0).json();
    assert_eq!(found, json!({}));

    // A key that is deleted: the publish key is replaced, and who has one still comes back by itself.
    drop(unsigned);
    master.command("salt-key", &["-y", "-d", "unsigned"]).exits(0);
    events.wait_tag("key");
    assert_eq!(master.json("python", &["test.ping"]), json!(true));
    events.wait("python to authenticate again", act("python", "accept"));

    // The minion ends and starts.
    minion.stop();
    let events = master.events();
    minion.up();
    events.wait_tag("salt/minion/python/start");
    assert_eq!(master.json("python", &["test.ping"]), json!(true));
    // The master ends and starts: a new publish key, and the job store as it was.
    let events = restart_with(&mut master, "drop_messages_signature_fail: False\n");
    wait_until_back(&master, &events, "python");
    assert_eq!(master.json("python", &["raw.plain"]), json!("plain"));

    // Its own key is deleted while it works: what it returns is refused until it is accepted again.
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
