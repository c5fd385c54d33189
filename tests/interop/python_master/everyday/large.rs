//! Returns larger than the bound on events (`max_event_size`, 1 MiB by default): the master stores them whole and
//! truncates the event.

use serde_json::{Value, json};

use super::super::client::answers;
use super::Fleet;

const SIZE: usize = 20_000_000;

pub(super) fn check(fleet: &Fleet) {
    let master = &fleet.master;
    let events = master.events();
    let jid = master.start_job(&["brine1", "large.text", &SIZE.to_string()]);
    let event = events.wait_return(&jid, "brine1");
    assert_eq!((&event["return"], &event["success"]), (&json!("VALUE_TRIMMED"), &json!(true)));
    let output = master.command("salt-run", &["--out=json", "jobs.lookup_jid", &jid]).exits(0);
    let Value::String(kept) = &output.json()["brine1"] else { panic!("no text in the job cache") };
    assert_eq!(kept.len(), SIZE);
    // The owner of the other host allows no such return: the job fails with a message, and the minion continues.
    answers(master, "brine2", &[("saltutil.sync_modules", json!(["dev"]), json!(["modules.large"]))]);
    let jid = master.start_job(&["brine2", "large.text", &SIZE.to_string()]);
    let event = events.wait_return(&jid, "brine2");
    assert_eq!(event["success"], json!(false));
    assert!(event["return"].as_str().is_some_and(|text| text.contains("limit")), "{event}");
    answers(master, "brine2", &[("test.ping", json!([]), json!(true))]);
    answers(master, "brine1", &[("test.ping", json!([]), json!(true))]);
}
