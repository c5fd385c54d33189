//! A Brine master drives Python salt-minions. Every command here is Brine's. A Python minion takes seconds to start, so
//! each test starts one or two and runs all related checks with them.

mod file_states;
mod files;
mod keys;
mod lifetime;
mod peers;
mod pillar;
mod settings;
mod states;
mod work;

use brine_tests::events::Events;
use brine_tests::salt::{Master, line};
use serde_json::Value;

/// Matches the event of a minion's authentication.
fn act(id: &'static str, act: &'static str) -> impl Fn(&str, &Value) -> bool {
    move |tag, data| tag == "salt/auth" && data["id"] == id && data["act"] == act
}

/// Restarts the master with additional settings. Returns its events from then on.
fn restart_with(master: &mut Master, settings: &str) -> Events {
    let folder = master.path("conf/master.d");
    std::fs::create_dir_all(&folder).expect("our own folder");
    std::fs::write(folder.join("more.conf"), settings).expect("our own folder");
    master.stop();
    master.up();
    master.events()
}

/// Returns the setting that a minion needs to survive a restart of its master: without it, 3007 and 3008 check their
/// connection to port 4505, and reconnect every second while they find none.
fn publish_port(master: &Master) -> String {
    format!("publish_port: {}\n", master.publish_port)
}

/// Waits until a minion accepts jobs again after [`restart_with`]. 3007 and 3008 notice the end of the connection,
/// authenticate and fire a start event. An earlier job would make them authenticate twice at once, which their code
/// does not always survive (`InvalidStateError` in `salt.crypt`). 3006 notices nothing until the next job.
fn wait_until_back(master: &Master, events: &Events, id: &str) {
    if line() >= 3007 {
        events.wait_tag(&format!("salt/minion/{id}/start"));
    }
    wait_until_connected(master, id);
}

/// Waits until a minion accepts jobs: publications while it is not connected are lost, as in Salt.
fn wait_until_connected(master: &Master, id: &str) {
    brine_kit::wait::wait_for(&format!("{id} to take jobs"), || {
        let answer = master.salt(&["-t", "2", "--out=json", "--static", id, "test.ping"]);
        answer.stdout.contains("true").then_some(())
    });
}
