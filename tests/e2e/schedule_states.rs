//! The states of the module `schedule`: what a minion does by itself, described in an SLS file.

use brine_tests::salt::{Kind, Master};
use serde_json::{Value, json};

/// The one result of a run of one state.
fn single(master: &Master, args: &[&str]) -> Value {
    let run = master.json("web1", &[&["state.single"], args].concat());
    let results = run.as_object().unwrap_or_else(|| panic!("{run}"));
    results.values().next().expect("one state").clone()
}

#[test]
fn a_job_of_the_schedule_is_there_as_described_and_goes() {
    let master = Master::start("");
    let _minion = master.minion_kind(Kind::Brine, "web1", "");
    let listed = || master.json("web1", &["schedule.list", "show_all=True", "return_yaml=False"]);
    let present = ["schedule.present", "name=report", "function=test.ping", "seconds=86000"];
    let job = |args: &[&str], comment: &str, changes: Value| {
        let result = single(&master, args);
        assert_eq!((&result["result"], &result["comment"]), (&json!(true), &json!(comment)), "{result}");
        assert_eq!(result["changes"], changes, "{result}");
    };
    let with = |more: &'static str| [&present[..], &[more]].concat();
    job(&with("test=True"), "Job: report would be added to schedule.", json!({"report": "added"}));
    assert_eq!(listed().get("report"), None);
    job(&present, "Adding new job report to schedule", json!({"report": "added"}));
    assert_eq!(listed()["report"]["seconds"], json!(86_000));
    job(&present, "Job report in correct state", json!({}));
    let changed = single(&master, &["schedule.present", "name=report", "function=test.ping", "seconds=3600"]);
    assert_eq!(changed["comment"], json!("Modifying job report in schedule"), "{changed}");
    assert_eq!(changed["changes"]["report"]["new"]["seconds"], json!(3_600), "{changed}");
    job(&["schedule.disabled", "name=report"], "Disabled job report from schedule", json!({}));
    assert_eq!(listed()["report"]["enabled"], json!(false));
    job(&["schedule.enabled", "name=report"], "Enabled job report from schedule", json!({}));
    job(&["schedule.absent", "name=report"], "Removed job report from schedule", json!({"report": "removed"}));
    job(&["schedule.absent", "name=report"], "Job report not present in schedule", json!({}));
    assert_eq!(listed().get("report"), None);
    // What cannot be is said as the function says it.
    let wrong = single(&master, &["schedule.present", "name=x", "function=test.ping", "seconds=1", "cron=* * * * *"]);
    assert_eq!(wrong["result"], json!(false), "{wrong}");
    assert!(wrong["comment"].as_str().is_some_and(|why| why.contains("Unable to use")), "{wrong}");
}
