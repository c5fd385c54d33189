//! A Brine master drives Python salt-minions. Every command here is Brine's. A Python minion takes seconds to start, so each test
//! starts one or two and does with them all that belongs together.

mod files;
mod keys;
mod lifetime;
mod peers;
mod settings;
mod states;
mod work;

use brine_tests::events::Events;
use brine_tests::salt::{Master, line};
use serde_json::Value;

/// The event of a minion's authentication.
fn act(id: &'static str, act: &'static str) -> impl Fn(&str, &Value) -> bool {
    move |tag, data| tag == "salt/auth" && data["id"] == id && data["act"] == act
}

/// Starts the master again with more settings; nothing but the process is new. Its events from then on.
fn restart_with(master: &mut Master, settings: &str) -> Events {
    let folder = master.path("conf/master.d");
    std::fs::create_dir_all(&folder).expect("our own folder");
    std::fs::write(folder.join("more.conf"), settings).expect("our own folder");
    master.stop();
    master.up();
    master.events()
}

/// What a minion has to know that is to survive a restart of its master: 3007 and 3008 look then whether they are connected to the port
/// 4505 unless told another, and connect anew every second as long as they think that they are not.
fn publish_port(master: &Master) -> String {
    format!("publish_port: {}\n", master.publish_port)
}

/// Waits until a minion takes jobs again after [`restart_with`]. 3007 and 3008 see the connection end, authenticate and tell that they
/// have started; a job that comes before makes them authenticate twice at once, which their own code does not always survive
/// (`InvalidStateError` in `salt.crypt`). 3006 sees nothing: there it is the job.
fn wait_until_back(master: &Master, events: &Events, id: &str) {
    if line() >= 3007 {
        events.wait_tag(&format!("salt/minion/{id}/start"));
    }
    wait_until_connected(master, id);
}

/// Waits until a minion takes jobs: what is published while it is not connected is lost, as with Salt.
fn wait_until_connected(master: &Master, id: &str) {
    brine_tests::wait_for(&format!("{id} to take jobs"), || {
        let answer = master.salt(&["-t", "2", "--out=json", "--static", id, "test.ping"]);
        answer.stdout.contains("true").then_some(())
    });
}
