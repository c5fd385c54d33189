//! Masters, minions and executors that die at a bad moment.

use brine_kit::process::kill;
use brine_kit::programs::example;
use brine_kit::wait::wait_for;
use brine_tests::salt::{Master, Minion};
use serde_json::json;

fn until_running(master: &Master, jid: &str) {
    wait_for("the job to run", || (master.json("web1", &["saltutil.find_job", jid])["jid"] == jid).then_some(()));
}

fn lookup(master: &Master, jid: &str) -> Option<serde_json::Value> {
    let output = master.command("salt-run", &["jobs.lookup_jid", jid, "--out=json"]);
    serde_json::from_str::<serde_json::Value>(&output.stdout).ok()?.get("web1").cloned()
}

/// Looks for the return of this job in the minion's spool, where the return of another job may wait too.
fn spooled(minion: &Minion, jid: &str) -> Option<()> {
    let mut files = std::fs::read_dir(minion.path("cache/spool")).ok()?.flatten();
    files.any(|file| file.file_name().to_string_lossy().ends_with(jid)).then_some(())
}

#[test]
fn a_master_that_dies_between_publish_and_return_gets_the_return() {
    let mut master = Master::start("");
    let minion = master.minion("web1");
    let jid = master.start_job(&["*", "test.sleep", "2"]);
    until_running(&master, &jid);
    master.kill();
    wait_for("the return on the minion's disk", || spooled(&minion, &jid));
    master.up();
    assert_eq!(wait_for("the return", || lookup(&master, &jid)), json!(true));
    let spool = minion.path("cache/spool");
    wait_for("the spool to be empty", || std::fs::read_dir(&spool).ok()?.next().is_none().then_some(()));
}

#[test]
fn a_minion_that_dies_after_the_job_ended_still_returns_it() {
    let mut master = Master::start("");
    let mut minion = master.minion("web1");
    let jid = master.start_job(&["*", "test.sleep", "2"]);
    until_running(&master, &jid);
    master.kill();
    wait_for("the return on the minion's disk", || spooled(&minion, &jid));
    minion.kill();
    master.up();
    minion.up();
    assert_eq!(wait_for("the return", || lookup(&master, &jid)), json!(true));
}

#[test]
fn an_executor_that_dies_fails_only_its_running_jobs() {
    let master = Master::start("");
    let minion = master.minion("web1");
    let events = master.events();
    let jid = master.start_job(&["*", "test.sleep", "50"]);
    until_running(&master, &jid);
    kill(minion.executor());
    let event = events.wait_return(&jid, "web1");
    let text = event["return"].as_str().expect("an error text");
    assert!(text.contains("executor") && !text.contains('\n'), "{text}");
    assert_eq!(event["success"], json!(false));
    assert_eq!(master.json("web1", &["test.ping"]), json!(true));
}

#[test]
fn minions_come_back_after_the_master_restarted() {
    let mut master = Master::start("");
    let _minion = master.minion("web1");
    master.stop();
    master.up();
    let events = master.events();
    events.wait_tag("salt/minion/web1/start");
    assert_eq!(master.json("web1", &["test.ping"]), json!(true));
}

#[test]
fn a_master_that_serves_a_bomb_costs_the_minion_nothing() {
    let master = Master::start("");
    let _minion = master.minion("web1");
    // Not WebAssembly, and larger than the limit for modules.
    master.serve("_modules/huge.wasm", &vec![0; 40 << 20]);
    master.serve("_modules/hello.wasm", &std::fs::read(example("hello")).expect("an example"));
    let output = master.salt(&["*", "saltutil.sync_modules", "-t", "30"]);
    assert!(output.stdout.contains("huge"), "{output:?}");
    assert!(master.json("web1", &["hello.world"]).is_string());
}
