//! The load generator with a Brine master: sixty minions, some of which never return, through the events in the life of
//! a fleet.

use std::path::Path;
use std::time::Duration;

use brine_swarm::{Counts, Plan, Swarm, keys};
use brine_tests::salt::Master;

const DEADLINE: Duration = Duration::from_secs(60);
const ALL: u64 = 60;
/// A tenth never returns.
const ANSWER: u64 = 54;

/// Waits until the counters satisfy `enough`, and fails with a report otherwise.
async fn until(swarm: &Swarm, what: &str, enough: impl Fn(&Counts) -> bool) {
    assert!(swarm.wait(DEADLINE, enough).await.is_some(), "{what}: {}", swarm.report());
}

/// Publishes jobs for all until each has received one and the returns are in. The master may not have read a subscription yet, and
/// publications before that are lost.
async fn settle(master: &Master, swarm: &Swarm) {
    for _ in 0..10 {
        let before = swarm.counts();
        tokio::task::block_in_place(|| master.start_job(&["*", "test.ping"]));
        let all = |now: &Counts| {
            now.publications >= before.publications + ALL
                && now.returns_acknowledged == before.returns_acknowledged + ANSWER
        };
        if swarm.wait(Duration::from_secs(6), all).await.is_some() {
            return;
        }
    }
    panic!("not all are subscribed: {}", swarm.report());
}

/// Sends `test.ping` to all. Exactly the minions that return must be in the master's store.
async fn ping(master: &Master, swarm: &Swarm) {
    let before = swarm.counts();
    let jid = tokio::task::block_in_place(|| master.start_job(&["*", "test.ping"]));
    until(swarm, "returns", |now| {
        now.jobs >= before.jobs + ALL && now.returns_acknowledged == before.returns_acknowledged + ANSWER
    })
    .await;
    let stored = tokio::task::block_in_place(|| {
        master.command("salt-run", &["jobs.lookup_jid", &jid, "--out=json"]).exits(0).json()
    });
    let stored = stored.as_object().expect("a map of returns");
    assert_eq!(stored.len(), 54, "{stored:?}");
    assert!(stored.iter().all(|(id, value)| id.starts_with("swarm-000") && *value == true), "{stored:?}");
    // The six minions with the highest numbers are silent.
    assert!(stored.contains_key("swarm-00054") && !stored.contains_key("swarm-00055"), "{stored:?}");
}

fn all_ready(now: &Counts) -> bool {
    now.authenticated == ALL && now.connected == ALL
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_minions_come_answer_and_come_back() {
    let mut master = Master::start("auto_accept: True");
    let keys = keys::prepare(Path::new(env!("CARGO_TARGET_TMPDIR")).join("swarm-keys").as_path(), 1024, 60, |_| ());
    let plan = Plan {
        port: master.ret_port,
        silent: 0.1,
        slow: 0.1,
        slow_for: Duration::from_millis(300),
        reauth_over: Duration::from_millis(200),
        refused_wait: Duration::from_secs(1),
        reconnect: (Duration::from_millis(100), Duration::from_secs(1)),
        pillar: true,
        ..Plan::default()
    };
    let swarm = Swarm::start(plan, &keys.expect("keys")).expect("ids");
    until(&swarm, "first contact", all_ready).await;
    settle(&master, &swarm).await;
    ping(&master, &swarm).await;
    let calm = swarm.counts();
    assert_eq!((calm.auth_accepted, calm.auth_unanswered, calm.requests_unanswered), (ALL, 0, 0), "{}", swarm.report());
    assert_eq!(calm.publications_bad, 0);

    // Targets are resolved by the grains that the minions have sent.
    let before = swarm.counts();
    let jid = tokio::task::block_in_place(|| master.start_job(&["-G", "swarm_group:3", "test.ping"]));
    until(&swarm, "a job for a tenth", |now| now.returns_acknowledged == before.returns_acknowledged + 6).await;
    assert!(!jid.is_empty());
    assert_eq!(swarm.counts().publications, before.publications + 6, "the others got nothing");

    // A file of several chunks.
    let content: Vec<u8> = (0..600_000_u32).map(|number| number.to_le_bytes()[0]).collect();
    master.serve("swarm.bin", &content);
    let before = swarm.counts();
    tokio::task::block_in_place(|| {
        master.start_job(&["-L", "swarm-00001,swarm-00002", "swarm.fetch", "salt://swarm.bin"])
    });
    // Their returns come after the files. The next job counts returns, so it begins when they are in.
    until(&swarm, "files", |now| now.files_fetched == 2 && now.returns_acknowledged == before.returns_acknowledged + 2)
        .await;
    assert_eq!(swarm.counts().file_bytes, 1_200_000);

    // The publish key is replaced. The next job still reaches all minions.
    tokio::task::block_in_place(|| {
        let minions = master.path("pki/minions");
        std::fs::copy(minions.join("swarm-00001"), minions.join("gone")).expect("a key to delete");
        master.command("salt-key", &["-y", "-d", "gone"]).exits(0);
        master.daemon.as_ref().expect("it runs").wait_log("the publish key was replaced");
    });
    let before = swarm.counts();
    ping(&master, &swarm).await;
    let after = swarm.counts();
    assert_eq!(after.resumed, before.resumed + ALL, "all go on with their sessions: {}", swarm.report());
    assert_eq!(after.auth_accepted, before.auth_accepted, "{}", swarm.report());

    // All minions restart at once.
    let before = swarm.counts();
    swarm.storm();
    until(&swarm, "the restart storm", |now| now.auth_accepted >= before.auth_accepted + ALL && all_ready(now)).await;
    assert_eq!(swarm.counts().restarts, ALL);
    settle(&master, &swarm).await;
    ping(&master, &swarm).await;

    let before = swarm.counts();
    tokio::task::block_in_place(|| {
        master.stop();
        master.up();
    });
    // Sessions outlive the master. It may answer nobody for a moment, and who got no answer authenticates.
    until(&swarm, "the master's restart", |now| {
        now.resumed + now.auth_accepted >= before.resumed + before.auth_accepted + ALL && all_ready(now)
    })
    .await;
    assert!(swarm.counts().resumed > before.resumed, "{}", swarm.report());
    settle(&master, &swarm).await;
    ping(&master, &swarm).await;
    assert!(swarm.report().json()["counts"]["losses"].as_u64().is_some_and(|losses| losses >= ALL));
}
