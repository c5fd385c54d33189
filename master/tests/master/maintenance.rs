//! Expired data that a master removes, at the start and every minute.

use std::time::{SystemTime, UNIX_EPOCH};

use brine_protocol::msgpack;
use brine_protocol::value::{Value, map};

use super::harness::{Deadline, SOON, TestMaster};

#[tokio::test(flavor = "multi_thread")]
async fn what_is_over_is_forgotten() {
    let mut master = TestMaster::start("").await;
    let _minion = master.minion("web1", 1).await;
    master.stop().await;
    // Tokens as Python's salt-api and this master write them.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
    std::fs::create_dir_all(master.path("cache/tokens")).unwrap();
    let token = |name: &str, expire: f64| {
        let text = name.repeat(64);
        let data = map([("name", Value::from("a")), ("eauth", Value::from("file")), ("expire", Value::from(expire))]);
        for suffix in ["", ".p"] {
            let path = master.path(&format!("cache/tokens/{text}{suffix}"));
            std::fs::write(path, msgpack::encode_disk(&data)).unwrap();
        }
        move |master: &TestMaster, suffix: &str| master.path(&format!("cache/tokens/{text}{suffix}")).exists()
    };
    let (over, good) = (token("a", now - 1.0), token("b", now + 3_600.0));
    // The session of a minion whose key was deleted while the master was down.
    std::fs::copy(master.path("cache/brine_sessions/web1"), master.path("cache/brine_sessions/gone")).unwrap();
    master.start_again().await;
    SOON.until("expired tokens go", || !over(&master, "") && !over(&master, ".p")).await;
    SOON.until("sessions of minions that are gone go", || !master.path("cache/brine_sessions/gone").exists()).await;
    assert!(good(&master, "") && good(&master, ".p"), "what is good stays");
    assert!(master.path("cache/brine_sessions/web1").exists(), "what is good stays");
}
