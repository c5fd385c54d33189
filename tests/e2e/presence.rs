//! `presence_events`: minions that are connected, that connect, and that disconnect.

use std::collections::BTreeSet;

use brine_tests::salt::Master;
use serde_json::Value;

fn ids(data: &Value, key: &str) -> BTreeSet<String> {
    let ids = data[key].as_array().unwrap_or_else(|| panic!("a list {key}: {data}"));
    ids.iter().map(|id| id.as_str().expect("an id").to_owned()).collect()
}

#[test]
fn minions_that_come_and_go() {
    let master = Master::start("presence_events: True\nloop_interval: 1");
    let events = master.events();
    let change = |key: &'static str, id: &'static str| {
        events.wait(&format!("{id} is {key}"), move |tag, data| {
            tag == "salt/presence/change" && ids(data, key).contains(id)
        })
    };
    let present = |who: &'static [&'static str]| {
        let who: BTreeSet<String> = who.iter().map(|id| (*id).to_owned()).collect();
        events.wait("who is there", move |tag, data| tag == "salt/presence/present" && ids(data, "present") == who);
    };
    present(&[]);
    let mut web1 = master.minion("web1");
    let data = change("new", "web1");
    assert_eq!((ids(&data, "new"), ids(&data, "lost")), (["web1".to_owned()].into(), BTreeSet::new()));
    present(&["web1"]);
    // The minion must be the only one at this host's addresses, or it would still seem connected.
    web1.stop();
    let data = change("lost", "web1");
    assert_eq!((ids(&data, "new"), ids(&data, "lost")), (BTreeSet::new(), ["web1".to_owned()].into()));
    present(&[]);
}
