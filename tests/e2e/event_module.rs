//! `event.send` of jobs: what the owner and the master keep a module from telling.

use std::time::{Duration, Instant};

use brine_kit::wait::Deadline;
use brine_tests::salt::{Kind, Master};
use serde_json::json;

#[test]
fn a_job_tells_its_master_what_it_may() {
    let master = Master::start("");
    let _minion = master.minion_kind(Kind::Brine, "m1", "grains: {role: web}");
    let _other =
        master.minion_kind(Kind::Brine, "m2", "sandbox: {modules: {event: {events: ['deploy/*'], pillar: []}}}");
    let events = master.events();
    assert_eq!(master.json("m1", &["event.send", "deploy/web/done", "version=1.4"]), json!(true));
    let told = events.wait_tag("deploy/web/done");
    assert_eq!((&told["id"], &told["data"]["version"]), (&json!("m1"), &json!(1.4)));
    assert_eq!(master.json("m1", &["event.send", "x", "with_grains=[role]"]), json!(true));
    assert_eq!(events.wait_tag("x")["data"]["grains"], json!({"role": "web"}));

    // Tags of the master and of other minions are refused before anything is sent.
    for tag in ["salt/auth", "salt/minion/m2/start", "salt/job/20261120134740245008/ret/m2", "minion_start", "a\nb"] {
        let refused = master.salt(&["m1", "event.send", tag]).exits(1);
        assert!(refused.stdout.contains("event") || refused.stdout.contains("tag"), "{tag}: {refused:?}");
        assert_eq!(events.count(tag), 0, "{tag}");
    }
    // What the owner says instead of the grants that come with the module.
    assert_eq!(master.json("m2", &["event.send", "deploy/a"]), json!(true));
    let refused = master.salt(&["m2", "event.send", "other/a"]).exits(1);
    assert!(refused.stdout.contains("fire the event other/a"), "{refused:?}");
    // Of the pillar, it may have no key.
    assert_eq!(master.json("m2", &["event.send", "deploy/b", "with_pillar=True"]), json!(true));
    assert_eq!(events.wait_tag("deploy/b")["data"]["pillar"], json!({}));
    assert_eq!(events.count("other/a"), 0);
    // There is no bus on the minion, and nothing is said to have been fired.
    let local = master.salt(&["m1", "event.fire", "{a: b}", "deploy/c"]).exits(1);
    assert!(local.stdout.contains("has no bus of its own"), "{local:?}");
    let preload = master.salt(&["m1", "event.send", "deploy/d", "preload={id: m2}"]).exits(1);
    assert!(preload.stdout.contains("preload is not offered"), "{preload:?}");
    assert_eq!(events.count("deploy/d"), 0);
}

/// Jobs that wait for runners of the master keep no other job from telling it something.
#[test]
fn events_do_not_wait_for_runners() {
    const RUNS: u64 = 90;
    let master = Master::start("peer_run: {m1: [test.sleep]}\n");
    let _minion = master.minion_kind(Kind::Brine, "m1", "");
    let events = master.events();
    for _ in 0..2 {
        master.start_job(&["m1", "publish.runner", "test.sleep", &RUNS.to_string(), &format!("timeout={RUNS}")]);
    }
    let begun = || events.all().iter().filter(|(tag, _)| tag.starts_with("salt/run/") && tag.ends_with("/new")).count();
    Duration::from_secs(60).wait_for("both runners run", || (begun() == 2).then_some(()));
    let since = Instant::now();
    assert_eq!(master.json("m1", &["event.send", "beside/runners"]), json!(true));
    assert!(since.elapsed() < Duration::from_secs(RUNS / 3), "{:?}", since.elapsed());
}
