//! Keys of Python minions in every state.

use brine_tests::salt::{Kind, Master, Minion};
use serde_json::json;

use super::{act, publish_port, restart_with, wait_until_back, wait_until_connected};

#[test]
fn a_key_in_every_state() {
    let mut master = Master::prepare(Kind::Brine, "timeout: 30\ngather_job_timeout: 2");
    std::fs::create_dir_all(master.path("conf/master.d")).expect("our own folder");
    let autosign = master.path("conf/autosign");
    std::fs::write(&autosign, "auto*\n").expect("our own folder");
    let setting = format!("autosign_file: {}\n", autosign.display());
    std::fs::write(master.path("conf/master.d/more.conf"), setting).expect("our own folder");
    master.up();
    let keys = |master: &Master| master.command("salt-key", &["--out=json", "-L"]).exits(0).json();
    let port = master.ret_port;
    let config = publish_port(&master) + "rejected_retry: True";
    let prepare = |id: &str| Minion::prepare(Kind::Python, id, port, &config);
    let events = master.events();

    // The key is pending until it is accepted. The minion retries by itself.
    let mut one = prepare("one");
    one.up();
    events.wait("one to wait", act("one", "pend"));
    assert_eq!(keys(&master)["minions_pre"], json!(["one"]));
    let nobody = master.salt(&["one", "test.ping"]);
    assert!(nobody.stdout.contains("No minions matched the target."), "{nobody:?}");
    master.command("salt-key", &["-y", "-a", "one"]).exits(0);
    events.wait_tag("salt/minion/one/start");
    assert_eq!(master.json("one", &["test.ping"]), json!(true));
    let finger = |id: &str| master.command("salt-key", &["--out=json", "-f", id]).exits(0).json();
    assert_eq!(finger("one")["minions"]["one"], master.json("one", &["key.finger"]));
    assert_eq!(finger("master.pub")["local"]["master.pub"], master.json("one", &["key.finger_master"]));

    // Another minion with the same id is denied, and the first continues.
    let mut twin = prepare("one");
    twin.up();
    events.wait("the twin to be denied", act("one", "denied"));
    twin.kill();
    assert_eq!(keys(&master)["minions_denied"], json!(["one"]));
    assert_eq!(master.json("one", &["test.ping"]), json!(true));

    // Accepted automatically by its name.
    let mut auto = prepare("auto1");
    auto.up();
    events.wait_tag("salt/minion/auto1/start");
    assert_eq!(events.count("salt/minion/auto1/start"), 1);
    auto.stop();

    // Rejected, and later accepted.
    let mut late = prepare("late");
    late.up();
    events.wait("late to wait", act("late", "pend"));
    master.command("salt-key", &["-y", "-r", "late"]).exits(0);
    events.wait("late to be rejected", act("late", "reject"));
    assert_eq!(keys(&master)["minions_rejected"], json!(["late"]));
    master.command("salt-key", &["-y", "-a", "late", "--include-rejected"]).exits(0);
    events.wait_tag("salt/minion/late/start");
    assert_eq!(master.json("late", &["test.ping"]), json!(true));
    // The rejection replaced the publish key, which this minion notices with the next job. It should authenticate now
    // and not while the master restarts, because its code does not always survive two simultaneous authentications.
    wait_until_connected(&master, "one");

    // No room for another minion; then room, and all minions are accepted.
    let events = restart_with(&mut master, "max_minions: 1\nauto_accept: True\n");
    for id in ["one", "late"] {
        wait_until_back(&master, &events, id);
    }
    let mut more = prepare("more");
    more.up();
    events.wait("more to find no room", act("more", "full"));
    let events = restart_with(&mut master, "auto_accept: True\n");
    events.wait_tag("salt/minion/more/start");
    assert_eq!(master.json("more", &["test.ping"]), json!(true));
}
