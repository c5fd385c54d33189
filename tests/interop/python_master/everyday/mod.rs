//! Everyday use of Salt with a master in its default configuration: two Brine minions and a Python one.

mod arguments;
mod facts;
mod functions;
mod jobs;
mod large;
mod modules;
mod targets;

use brine_tests::salt::{Kind, Master, Minion};
use serde_json::json;

use super::client::{call, calls};

/// The master with its minions.
struct Fleet {
    master: Master,
    /// `brine1`, with grains and limits of its own.
    first: Minion,
    _others: [Minion; 2],
}

type Check = fn(&Fleet);

const GRAINS: &str = "grains: {role: web, nested: {tier: [front, x]}, num: 5}";
/// The limits for a return of 20 MB.
const LIMITS: &str = "sandbox: {limits: {output: 30MiB, memory: 128MiB}}";
/// A minion chooses the algorithms of its connection.
const SHA224: &str = "encryption_algorithm: OAEP-SHA224\nsigning_algorithm: PKCS1v15-SHA224";

fn fleet() -> Fleet {
    let mut master = Master::prepare(Kind::Python, "worker_threads: 3\ntimeout: 15\ngather_job_timeout: 15");
    let srv = master.path("srv").display().to_string();
    for folder in ["srv/dev/_modules", "srv/pillar", "conf/master.d"] {
        std::fs::create_dir_all(master.path(folder)).expect("our own folder");
    }
    // Python's file server caches its list for 20 s, but modules that a test adds must be visible at once.
    let config = format!(
        "file_roots: {{base: [{srv}/salt], dev: [{srv}/dev]}}\npillar_roots: {{base: [{srv}/pillar]}}\n\
         fileserver_list_cache_time: 0\n\
         peer: {{brine1: [test.*], python: [test.*]}}\npeer_run: {{brine1: [test.arg], python: [test.arg]}}\n\
         nodegroups: {{brines: 'L@brine1,brine2', nested: 'N@brines and not brine2', grainy: 'G@role:web or python'}}\n"
    );
    std::fs::write(master.path("conf/master.d/test.conf"), config).expect("our own folder");
    facts::pillar(&master, "v1");
    master.up();
    let first = master.minion_kind(Kind::Brine, "brine1", &format!("{GRAINS}\n{LIMITS}"));
    let others = [(Kind::Brine, "brine2", SHA224), (Kind::Python, "python", "")]
        .map(|(kind, id, config)| master.minion_kind(kind, id, config));
    Fleet { master, first, _others: others }
}

#[test]
fn a_python_master_drives_brine_minions_beside_its_own() {
    let fleet = fleet();
    let all = json!({"brine1": true, "brine2": true, "python": true});
    assert_eq!(calls(&fleet.master, &[call("*", "test.ping", json!([]))]), [all]);
    assert_eq!(fleet.master.salt(&["brine1", "test.ping"]).exits(0).stdout, "brine1:\n    True\n");

    // Each check reports its findings, and a failed check does not hide those of others.
    let ideas: [(&str, Check); 7] = [
        ("arguments", arguments::check),
        ("functions", functions::check),
        ("targets", targets::check),
        ("facts", facts::check),
        ("modules", modules::check),
        ("jobs", jobs::check),
        ("large", large::check),
    ];
    let failed = |check: Check| std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(&fleet))).is_err();
    let failed: Vec<&str> = ideas.into_iter().filter(|(_, check)| failed(*check)).map(|(name, _)| name).collect();
    assert!(failed.is_empty(), "what failed is above: {failed:?}");
}
