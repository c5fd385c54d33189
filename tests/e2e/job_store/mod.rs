//! The job store of a real master that is killed repeatedly, and of one whose disk is full.

mod full_disk;
mod peer;

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use brine_kit::wait::{DEADLINE, until, wait_for};
use brine_kit_peer::Minion;
use brine_protocol::ids::Jid;
use brine_protocol::msgpack;
use brine_protocol::value::ValueExt;
use brine_tests::salt::Master;
use peer::Connected;
use rusqlite::{Connection, OpenFlags};

/// Returns the number of rounds: `BRINE_CRASH_ROUNDS`, or else a few.
fn rounds() -> u64 {
    std::env::var("BRINE_CRASH_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(4)
}

/// Opens the store beside the master, like an operator.
fn look(path: &Path) -> Connection {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).expect("a database");
    connection.busy_timeout(DEADLINE).expect("a setting");
    connection
}

fn sound(store: &Connection) {
    let said: String = store.pragma_query_value(None, "integrity_check", |row| row.get(0)).expect("an answer");
    assert_eq!(said, "ok");
}

fn count(store: &Connection, table: &str) -> i64 {
    store.query_row(&format!("select count(*) from {table}"), [], |row| row.get(0)).expect("a number")
}

/// Returns the stored value of a return.
fn stored(store: &Connection, jid: &Jid, minion: &str) -> Option<String> {
    let mut query = store.prepare_cached("select load from returns where jid = ?1 and minion = ?2").expect("a query");
    let load: Vec<u8> = query.query_row([jid.as_str(), minion], |row| row.get(0)).ok()?;
    let load = msgpack::decode(&load, &msgpack::Limits::EVENT).expect("a load");
    load.get_text("return").map(str::to_owned)
}

/// For many rounds:
/// `BRINE_CRASH_ROUNDS=200 cargo nextest run -p brine-tests --test e2e -E 'test(no_acknowledged_return_is_lost)'`
#[tokio::test(flavor = "multi_thread")]
async fn no_acknowledged_return_is_lost_by_kill_9() {
    let mut master = Master::start("");
    let peers = [("web1", 1), ("web2", 2)];
    peers.iter().for_each(|(id, key_no)| Minion::new(id, *key_no).accept(&master.path("pki")));
    let acknowledged: Arc<Mutex<Vec<(Jid, String, String)>>> = Arc::default();
    let (mut checked, mut seed) = (0, 0x9e37_79b9_u64);
    for round in 0..rounds() {
        let mut tasks = tokio::task::JoinSet::new();
        let before = acknowledged.lock().expect("no panic holds it").len();
        for (id, key_no) in peers {
            let connected = Connected::new(id, key_no, master.ret_port).await;
            for task in 0..8 {
                let (connected, acknowledged) = (connected.clone(), Arc::clone(&acknowledged));
                tasks.spawn(async move {
                    let mut requester = connected.requester();
                    for n in 0.. {
                        let jid = Jid::now();
                        let value = format!("{round} {task} {n} {}", "x".repeat(n % 900));
                        if connected.give(&mut requester, &jid, &value).await {
                            let new = (jid, connected.id().to_string(), value);
                            acknowledged.lock().expect("no panic holds it").push(new);
                        }
                    }
                });
            }
        }
        // After the first acknowledgement of this round, and then at a random time within half a second.
        until("an acknowledgement", || acknowledged.lock().expect("no panic holds it").len() > before).await;
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        tokio::time::sleep(Duration::from_micros((seed >> 33) % 500_000)).await;
        master.kill();
        // Returns received before the kill were acknowledged.
        tasks.shutdown().await;

        master.up();
        let store = look(&master.path("cache/jobs.db"));
        sound(&store);
        let all = acknowledged.lock().expect("no panic holds it");
        for (jid, minion, value) in &all[checked..] {
            assert_eq!(stored(&store, jid, minion).as_ref(), Some(value), "round {round}: {minion} for {jid}");
        }
        checked = all.len();
    }
    // All of them must be there at the end. One is looked up like an operator does.
    let store = look(&master.path("cache/jobs.db"));
    let all = acknowledged.lock().expect("no panic holds it").clone();
    for (jid, minion, value) in &all {
        assert_eq!(stored(&store, jid, minion).as_ref(), Some(value), "{minion} for {jid}");
    }
    let (jid, minion, value) = &all[all.len() / 2];
    let shown = master.command("salt-run", &["jobs.lookup_jid", jid.as_str(), "--out=json"]).exits(0).json();
    assert_eq!(shown[minion], serde_json::json!(value));
    println!("{} rounds, {} acknowledged returns, {} stored", rounds(), all.len(), count(&store, "returns"));
}

/// A master killed while it deletes old jobs continues after its restart, and recent jobs stay.
#[tokio::test(flavor = "multi_thread")]
async fn a_clean_up_that_is_killed_goes_on() {
    let mut master = Master::start("keep_jobs_seconds: 3600");
    Minion::new("web1", 1).accept(&master.path("pki"));
    let connected = Connected::new("web1", 1, master.ret_port).await;
    let young = Jid::now();
    assert!(connected.give(&mut connected.requester(), &young, "young").await);
    master.stop();
    let path = master.path("cache/jobs.db");
    let mut store = Connection::open(&path).expect("a database");
    let transaction = store.transaction().expect("a transaction");
    for job in 0..300 {
        let jid = format!("20200101000000{job:06}");
        transaction
            .execute("insert into jobs values (?1, 'test.ping', 'root', '*', 'glob', ?2, x'90', x'80')", (&jid, job))
            .expect("a job");
        for minion in 0..100 {
            let minion = format!("m{minion}");
            transaction
                .execute(
                    "insert into returns values (?1, ?2, 'test.ping', ?3, 0, 1, zeroblob(600))",
                    (&jid, minion, job),
                )
                .expect("a return");
        }
    }
    transaction.commit().expect("a commit");
    let full = count(&store, "returns");
    drop(store);
    let size = || std::fs::metadata(&path).expect("a file").len();
    let large = size();

    let mut interrupted = 0;
    for _ in 0..100 {
        master.up();
        let store = look(&path);
        let begun = count(&store, "returns");
        sound(&store);
        wait_for("a step of the clean-up", || (count(&store, "returns") < begun.max(2)).then_some(()));
        master.kill();
        let left = count(&look(&path), "returns");
        assert_eq!(stored(&look(&path), &young, "web1").as_deref(), Some("young"));
        if left == 1 {
            break;
        }
        interrupted += 1;
    }
    assert!(interrupted > 0, "it was killed in the middle at least once");
    master.up();
    let store = look(&path);
    wait_for("the rest to be forgotten", || {
        (count(&store, "jobs") == 0 && count(&store, "returns") == 1).then_some(())
    });
    wait_for("free pages to be given back", || {
        let free: i64 = store.pragma_query_value(None, "freelist_count", |row| row.get(0)).expect("a number");
        (free <= 1_024).then_some(())
    });
    sound(&store);
    drop(store);
    wait_for("the file to get shorter", || (size() < large / 3).then_some(()));
    master.stop();
    assert!(size() < large / 3, "{} of {large} bytes are left of {full} returns", size());
}
