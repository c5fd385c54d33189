//! The publish key changes and the master restarts: jobs continue, and no return is lost. A master that stops signing
//! is no longer trusted.

use std::os::unix::fs::PermissionsExt;

use brine_kit::process::run;
use brine_kit::wait::wait_for;
use brine_tests::salt::{Kind, Master, Minion, python};
use serde_json::json;

/// Requests a new key like `salt-key`. In 3006 the file does not name the master.
const DROPFILE: &str = r#"
import os, sys
import salt.config, salt.crypt
opts = salt.config.master_config(os.path.join(sys.argv[1], "master"))
names = salt.crypt.dropfile.__code__.co_varnames[: salt.crypt.dropfile.__code__.co_argcount]
salt.crypt.dropfile(*[opts["cachedir"], opts["user"], opts["id"]][: len(names)])
"#;

#[test]
fn keys_change_and_masters_restart() {
    // The maintenance process, which changes the key, runs every `loop_interval` seconds.
    let mut master =
        Master::start_kind(Kind::Python, "worker_threads: 3\ntimeout: 15\ngather_job_timeout: 3\nloop_interval: 1");
    let minion = master.minion_kind(Kind::Brine, "brine", "");
    let mut gone = master.minion_kind(Kind::Brine, "gone", "");
    let serial = minion.path("cache/serial");
    let key_of = || std::fs::read(&serial).expect("the minion keeps it")[..32].to_vec();
    let ping = |master: &Master| assert_eq!(master.json("brine", &["test.ping"]), json!(true));

    ping(&master);
    let before = key_of();
    let events = master.events();
    run(&python(), &["-W", "ignore", "-c", DROPFILE, &master.conf()]).exits(0);
    let dropfile = std::fs::metadata(master.path("cache/.dfn"));
    assert!(dropfile.map_or(true, |file| file.permissions().mode() & 0o777 == 0o400));
    events.wait_tag("key");
    ping(&master);
    assert_ne!(key_of(), before, "the same publish key");

    // Another minion's key is deleted. That minion must not be able to read later publications.
    let (before, events) = (key_of(), master.events());
    master.command("salt-key", &["-y", "-d", "gone"]).exits(0);
    events.wait_tag("key");
    assert_eq!(master.salt(&["--out=json", "--static", "*", "test.ping"]).exits(0).json(), json!({"brine": true}));
    assert_ne!(key_of(), before, "the same publish key");
    // Its publish key is outdated. It requests the new one, and waits for an operator again.
    events.wait("the deleted minion to wait for acceptance", |tag, data| {
        tag == "salt/auth" && data["id"] == "gone" && data["act"] == "pend"
    });
    gone.stop();

    idle(&mut master, &minion);
    busy(&mut master, &minion);
    unsigned(&mut master, &minion);
}

fn idle(master: &mut Master, minion: &Minion) {
    master.stop();
    minion.running().wait_log("not connected to the master's publications");
    master.up();
    let events = master.events();
    // A subscriber to the bus of a master that has just started may have missed the event.
    wait_for("the minion to answer again", || {
        (master.salt(&["-t", "2", "--out=json", "--static", "brine", "test.ping"]).stdout.contains("true"))
            .then_some(())
    });
    assert!(events.count("salt/minion/brine/start") <= 1);
}

/// A job that ends while its master is away: the return stays on the minion's disk until the master has received it.
fn busy(master: &mut Master, minion: &Minion) {
    let jid = master.start_job(&["brine", "test.sleep", "4"]);
    wait_for("the job to run", || minion.path(&format!("cache/proc/{jid}")).exists().then_some(()));
    let lasting = master.start_job(&["brine", "test.sleep", "30"]);
    wait_for("the other job to run", || minion.path(&format!("cache/proc/{lasting}")).exists().then_some(()));
    master.stop();
    let spooled = || std::fs::read_dir(minion.path("cache/spool")).expect("the spool").count();
    wait_for("the return to wait in the spool", || (spooled() == 1).then_some(()));
    assert!(minion.path(&format!("cache/proc/{lasting}")).exists(), "the other job does not run on");
    master.up();
    for jid in [jid, lasting] {
        let returned = wait_for("the return in the job cache", || {
            let output = master.command("salt-run", &["--out=json", "jobs.lookup_jid", &jid]);
            output.json().get("brine").cloned()
        });
        assert_eq!(returned, json!(true));
    }
    wait_for("the spool to be empty", || (spooled() == 0).then_some(()));
}

/// Salt's minions accept unsigned publications by default. Brine's never do.
fn unsigned(master: &mut Master, minion: &Minion) {
    master.stop();
    std::fs::create_dir_all(master.path("conf/master.d")).expect("our own folder");
    std::fs::write(master.path("conf/master.d/test.conf"), "sign_pub_messages: False\n").expect("our own folder");
    master.up();
    let events = master.events();
    let jid = wait_for("a publication to be dropped", || {
        let jid = master.start_job(&["brine", "test.ping"]);
        minion.running().log_text().contains("not signed by the master's key").then_some(jid)
    });
    minion.running().wait_log("a publication was dropped: a publication is not signed by the master's key");
    assert_eq!(events.count(&format!("salt/job/{jid}/ret/brine")), 0);
}
