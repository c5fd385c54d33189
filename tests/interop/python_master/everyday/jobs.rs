//! Jobs that run for a while, jobs in batches, and later look-ups of jobs.

use brine_kit::wait::wait_for;
use brine_tests::salt::line;
use serde_json::{Value, json};

use super::super::client::{answers, call, calls};
use super::Fleet;

pub(super) fn check(fleet: &Fleet) {
    control(fleet);
    batches(fleet);
    later(fleet);
    own(fleet);
    receipts(fleet);
    peers(fleet);
    // A job longer than the timeout: the client calls find_job and continues to wait.
    assert_eq!(fleet.master.json("brine1", &["-t", "1", "test.sleep", "3"]), json!(true));
}

fn control(fleet: &Fleet) {
    let master = &fleet.master;
    let events = master.events();
    for (end, signal) in [("saltutil.kill_job", 9), ("saltutil.term_job", 15)] {
        let jid = master.start_job(&["brine1", "test.sleep", "50"]);
        let made = [
            call("brine1", "saltutil.find_job", json!([jid])),
            call("brine1", "saltutil.running", json!([])),
            call("brine1", "saltutil.is_running", json!(["test.sl*p"])),
        ];
        // The publications are delivered one after the other.
        let [found, running, is_running] = calls(master, &made).try_into().expect("three");
        let found = &found["brine1"];
        assert_eq!((&found["jid"], &found["fun"], &found["arg"]), (&json!(jid), &json!("test.sleep"), &json!([50])));
        assert_eq!(found["pid"], json!(fleet.first.running().pid()));
        assert_eq!((&running["brine1"], &is_running["brine1"]), (&json!([found]), &json!([found])));
        let said = format!("Signal {signal} sent to job {jid} at pid {}", found["pid"]);
        answers(master, "brine1", &[(end, json!([jid]), json!(said))]);
        let event = events.wait_return(&jid, "brine1");
        assert_eq!((&event["success"], &event["retcode"]), (&json!(false), &json!(1)), "{event}");
        assert!(event["return"].as_str().is_some_and(|text| text.contains("killed")), "{event}");
        answers(
            master,
            "brine1",
            &[("saltutil.find_job", json!([jid]), json!({})), ("saltutil.running", json!([]), json!([]))],
        );
    }
}

/// 3008 publishes each batch under the jid of the first one.
fn batches(fleet: &Fleet) {
    for (size, executions) in [("1", 3), ("2", 2), ("50%", 3)] {
        let output = fleet.master.salt(&["-b", size, "*", "test.arg", "1", "key=2"]).exits(0);
        assert_eq!(output.stdout.matches("Executing run on").count(), executions, "{output:?}");
        for id in ["brine1", "brine2", "python"] {
            assert!(output.stdout.contains(&format!("\n{id}:\n")), "{id}: {output:?}");
        }
    }
    let failed = fleet.master.salt(&["-b", "1", "brine*", "test.retcode", "3"]).exits(3);
    assert_eq!(failed.stdout.matches("retcode:\n    3").count(), 2, "{failed:?}");
}

fn later(fleet: &Fleet) {
    let master = &fleet.master;
    let jid = master.start_job(&["*", "test.echo", "later"]);
    let looked_up = wait_for("the three returns in the job cache", || {
        let output = master.command("salt-run", &["--out=json", "jobs.lookup_jid", &jid]).exits(0).json();
        (output.as_object().map(serde_json::Map::len) == Some(3)).then_some(output)
    });
    assert_eq!(looked_up, json!({"brine1": "later", "brine2": "later", "python": "later"}));
    let listed: Value = master.command("salt-run", &["--out=json", "jobs.list_job", &jid]).exits(0).json();
    assert_eq!(listed["Result"]["brine1"]["retcode"], json!(0), "{listed}");
}

/// `publish.*` of a Brine minion and of a Python one, at a master that permits both the same.
fn peers(fleet: &Fleet) {
    let calls: [&[&str]; 7] = [
        &["publish.publish", "*", "test.ping"],
        &["publish.publish", "brine*", "test.arg", "['1', 'a=b', '[x]']"],
        &["publish.full_data", "brine2", "test.echo", "text"],
        &["publish.publish", "*", "cmd.run", "id"],
        &["publish.publish", "nobody", "test.ping"],
        &["publish.runner", "test.arg", "[a, 1]"],
        &["publish.runner", "manage.up"],
    ];
    for call in calls {
        let [mut ours, mut salts] = ["brine1", "python"].map(|id| fleet.master.json(id, call));
        // Salt tells functions of their job.
        for answer in [&mut ours, &mut salts].into_iter().filter_map(Value::as_object_mut) {
            for kwargs in answer.values_mut().filter_map(|one| one.get_mut("kwargs")?.as_object_mut()) {
                kwargs.retain(|name, _| !name.starts_with("__pub_"));
            }
        }
        assert_eq!(ours, salts, "{call:?}");
    }
}

/// The receipt is one more field of a return: Python's job cache keeps it, and shows the return as any other.
fn receipts(fleet: &Fleet) {
    let master = &fleet.master;
    let events = master.events();
    let jid = master.start_job(&["brine1", "test.echo", "with a receipt"]);
    let event = events.wait_return(&jid, "brine1");
    assert!(event["receipt"].as_str().is_some_and(|text| text.len() < 2048), "{event}");
    assert_eq!((&event["return"], &event["success"]), (&json!("with a receipt"), &json!(true)));
    let kept = wait_for("the return in the job cache", || {
        let kept = master.command("salt-run", &["--out=json", "jobs.list_job", &jid]).exits(0).json();
        kept["Result"]["brine1"].is_object().then_some(kept)
    });
    assert_eq!(kept["Result"]["brine1"]["return"], json!("with a receipt"), "{kept}");
    let said = master.command("salt-run", &["jobs.lookup_jid", &jid]).exits(0).stdout;
    assert!(said.contains("with a receipt") && !said.contains("receipt:"), "{said}");
    let shown = fleet.first.salt_call(&["--local", "--out=json", "receipts.show", &jid]).exits(0).json();
    assert_eq!(shown["local"][0]["outcome"], json!("ran"), "{shown}");
}

/// Jobs of the host itself are reported to the master, which assigns a jid. The caller learns that a job has begun.
fn own(fleet: &Fleet) {
    let master = &fleet.master;
    let events = master.events();
    let output = fleet.first.salt_call(&["test.echo", "from the host"]).exits(0);
    assert_eq!(output.stdout, "local:\n    from the host\n");
    let event = events.wait("the return of salt-call", |tag, data| {
        tag.starts_with("salt/job/") && tag.ends_with("/ret/brine1") && data["return"] == "from the host"
    });
    assert_eq!((&event["fun"], &event["fun_args"]), (&json!("test.echo"), &json!(["from the host"])));
    if line() >= 3008 {
        let jid = master.start_job(&["--start-event", "brine1", "test.ping"]);
        let event = events.wait_tag(&format!("salt/job/{jid}/start/brine1"));
        assert_eq!((&event["id"], &event["data"]["fun"]), (&json!("brine1"), &json!("test.ping")), "{event}");
    }
}
