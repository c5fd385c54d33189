//! Functions that run in the master for its own user: runners, the wheel, the event bus.

use brine_tests::salt::{Kind, Minion};

use super::{minions, script, start};

#[test]
fn runners_wheel_and_events() {
    let master = start("sharedsecret: front-end-secret");
    let _minions = minions(&master);
    master.serve("folder/served.txt", b"content");
    let events = master.events();
    let mut new = Minion::prepare(Kind::Brine, "new", master.ret_port, "");
    new.up();
    events.wait("a pending key", |tag, data| tag == "salt/auth" && data["id"] == "new" && data["act"] == "pend");
    // Otherwise the minion would come back when its key is deleted.
    new.stop();
    script(&master, "runner_wheel", &[]);
    script(&master, "events", &[]);
}
