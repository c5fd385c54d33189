//! The load generator's minions under a Python master.

use std::path::Path;
use std::time::Duration;

use brine_swarm::{Plan, Swarm, keys};
use brine_tests::salt::{Kind, Master};

const DEADLINE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn a_python_master_takes_the_swarm_for_minions() {
    let master = Master::start_kind(Kind::Python, "auto_accept: True\nworker_threads: 3");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("swarm-keys");
    let keys = keys::prepare(&folder, 2048, 5, |_| ()).expect("keys");
    let plan = Plan { port: master.ret_port, silent: 0.2, pillar: true, ..Plan::default() };
    let swarm = Swarm::start(plan, &keys).expect("ids");
    assert!(swarm.wait_ready(DEADLINE).await.is_some(), "{}", swarm.report());
    // Publications before the master has read a subscription are lost, so a job for the silent minion is published
    // until all have received it.
    for round in 0.. {
        let before = swarm.counts().publications;
        tokio::task::block_in_place(|| master.start_job(&["swarm-00005", "test.ping"]));
        if swarm.wait(Duration::from_secs(10), |now| now.publications >= before + 5).await.is_some() {
            break;
        }
        assert!(round < 6, "{}", swarm.report());
    }
    let before = swarm.counts();
    let jid = tokio::task::block_in_place(|| master.start_job(&["*", "test.ping"]));
    let done = swarm.wait(DEADLINE, |now| now.jobs >= before.jobs + 5 && now.returns_acknowledged == 4).await;
    assert!(done.is_some(), "{jid}: {}", swarm.report());
    tokio::task::block_in_place(|| {
        let output = master.command("salt-run", &["jobs.lookup_jid", &jid, "--out=json"]).exits(0).json();
        let ids: Vec<&String> = output.as_object().expect("returns").keys().collect();
        assert_eq!(ids.len(), 4, "{output}");
    });
    assert_eq!((swarm.counts().publications_bad, swarm.counts().auth_unanswered), (0, 0), "{}", swarm.report());
}
