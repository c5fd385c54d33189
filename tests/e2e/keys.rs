//! The states of a minion's key.

use brine_kit::files::set_mode;
use brine_tests::events::Events;
use brine_tests::salt::{Kind, Master, Minion};

#[test]
fn a_rejected_minion_ends_with_salts_exit_code() {
    let master = Master::start("");
    let events = master.events();
    let mut minion = Minion::prepare(Kind::Brine, "web1", master.ret_port, "");
    minion.up();
    events.wait("pending", |tag, data| tag == "salt/auth" && data["act"] == "pend");
    master.command("salt-key", &["-y", "-r", "web1"]).exits(0);
    events.wait("rejected", |tag, data| tag == "salt/auth" && data["act"] == "reject");
    let status = minion.daemon.take().expect("it ran").wait_exit();
    assert_eq!(status.code(), Some(77));
}

#[test]
fn another_key_for_an_accepted_id_is_denied() {
    let master = Master::start("");
    let events = master.events();
    let first = master.minion("web1");
    let mut imposter = Minion::prepare(Kind::Brine, "web1", master.ret_port, "");
    imposter.up();
    events.wait("denied", |tag, data| tag == "salt/auth" && data["id"] == "web1" && data["act"] == "denied");
    let keys = master.command("salt-key", &["-L", "--out=json"]).exits(0).json();
    assert_eq!(keys["minions_denied"], serde_json::json!(["web1"]));
    assert_eq!(keys["minions"], serde_json::json!(["web1"]));
    assert_eq!(master.salt(&["*", "test.ping"]).exits(0).stdout, "web1:\n    True\n");
    drop(first);
}

#[test]
fn a_minion_refuses_a_master_whose_key_changed() {
    let mut master = Master::start("auto_accept: True");
    let mut minion = master.minion("web1");
    minion.stop();
    master.stop();
    for name in ["master.pem", "master.pub"] {
        std::fs::remove_file(master.path("pki").join(name)).expect("the master's key");
    }
    master.up();
    minion.up();
    minion.running().wait_log("minion_master.pub");
}

/// Starts two minions and deletes the key of one, which replaces the publish key.
fn web1_after_web2_left(master: &Master) -> (Events, Minion) {
    let events = master.events();
    let minion = master.minion("web1");
    master.minion("web2").stop();
    master.command("salt-key", &["-y", "-d", "web2"]).exits(0);
    events.wait("the rotation", |tag, data| tag == "key" && data["rotate_aes_key"] == true);
    (events, minion)
}

#[test]
fn deleting_a_minion_rotates_the_key_and_others_follow() {
    let master = Master::start("loop_interval: 1");
    let (_events, _minion) = web1_after_web2_left(&master);
    assert_eq!(master.salt(&["*", "test.ping"]).exits(0).stdout, "web1:\n    True\n");
}

#[test]
fn ping_on_rotate_has_others_fetch_the_key_at_once() {
    let master = Master::start("ping_on_rotate: True");
    let (events, _minion) = web1_after_web2_left(&master);
    let job = events.wait("the ping", |tag, data| {
        tag.starts_with("salt/job/") && tag.ends_with("/new") && data["fun"] == "test.ping"
    });
    // Determined from the addresses of connections.
    assert_eq!(job["minions"], serde_json::json!(["web1"]), "{job}");
    events.wait_return(job["jid"].as_str().expect("a jid"), "web1");
}

#[test]
fn autosign_file_accepts_by_glob() {
    let mut master = Master::prepare(Kind::Brine, "");
    let list = master.path("autosign.conf");
    std::fs::write(&list, "# ours\nweb*\n").expect("our own folder");
    set_mode(&list, 0o600);
    let conf = master.path("conf/master");
    let text = std::fs::read_to_string(&conf).expect("just written");
    std::fs::write(&conf, format!("{text}autosign_file: {}\n", list.display())).expect("our own folder");
    master.up();
    let events = master.events();
    let mut web = Minion::prepare(Kind::Brine, "web1", master.ret_port, "");
    web.up();
    events.wait_tag("salt/minion/web1/start");
    let mut db = Minion::prepare(Kind::Brine, "db1", master.ret_port, "");
    db.up();
    events.wait("pending", |tag, data| tag == "salt/auth" && data["id"] == "db1" && data["act"] == "pend");
}

#[test]
fn a_minion_tells_the_fingerprints_that_salt_key_shows() {
    let master = Master::start("");
    let minion = master.minion("web1");
    let shown = |id: &str, at: &str| master.command("salt-key", &["--out=json", "-f", id]).json().pointer(at).cloned();
    let own = master.json("web1", &["key.finger"]);
    assert_eq!(Some(&own), shown("web1", "/minions/web1").as_ref());
    assert_eq!(Some(master.json("web1", &["key.finger_master"])), shown("master.pub", "/local/master.pub"));
    assert_eq!(minion.salt_call(&["--local", "--out=json", "key.finger"]).json()["local"], own);
    let short = master.json("web1", &["key.finger", "hash_type=md5"]);
    assert_eq!(short.as_str().map(|text| text.split(':').count()), Some(16), "{short}");
    master.salt(&["web1", "key.finger", "none"]).exits(1);
}
