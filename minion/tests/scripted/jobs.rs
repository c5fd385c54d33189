//! Jobs: admission, several functions, listing and ending them.

use std::collections::HashSet;

use brine_minion::minion::Local;
use brine_protocol::ids::Jid;
use brine_protocol::value::{Value, ValueExt, list, map};

use crate::master::{Master, OnReturn, Seen, job};
use crate::running::{begin, opts, ready, scripted};

#[tokio::test(flavor = "multi_thread")]
async fn a_job_with_several_functions_returns_maps() {
    let (_dir, mut master, minion) = begin("").await;
    let jid = Jid::now();
    let mut load = job(&jid, "", vec![]);
    load.insert("fun", list(["test.ping", "test.echo", "test.fail"]));
    load.insert("arg", list([list::<Value>([]), list(["text"]), list::<Value>([])]));
    master.send(vec![master.seal(&load)]);
    let load = master.expect_return(&jid).await;
    assert_eq!(
        load.get("return"),
        Some(&map([
            ("test.ping", Value::from(true)),
            ("test.echo", Value::from("text")),
            ("test.fail", Value::from("it failed")),
        ]))
    );
    assert_eq!(load.get("retcode").unwrap().get_i64("test.fail"), Some(1));
    assert_eq!(load.get("success").unwrap().get_bool("test.ping"), Some(true));
    assert_eq!(load.get_list("usage").unwrap().len(), 3);
    minion.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn keywords_reach_the_function_and_test_reaches_the_job() {
    let (_dir, mut master, minion) = begin("").await;
    let kwargs = |entries: &[(&str, Value)]| {
        let mut kwargs = map([("__kwarg__", true)]);
        entries.iter().for_each(|(k, v)| kwargs.insert(k, v.clone()));
        vec![kwargs]
    };
    let jid = master.publish("test.kwargs", kwargs(&[("a", Value::from(1)), ("test", Value::from(true))]));
    let load = master.expect_return(&jid).await;
    assert_eq!(load.get("return"), Some(&map([("a", Value::from(1)), ("test", Value::from(true))])));
    for (value, expected) in [(true, true), (false, false)] {
        let jid = master.publish("test.mode", kwargs(&[("test", Value::from(value))]));
        assert_eq!(master.expect_return(&jid).await.get("return"), Some(&Value::from(expected)));
    }
    minion.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_minion_can_still_be_asked_and_told_to_end_a_job() {
    let (_dir, mut master, minion) = begin("process_count_max: 1").await;
    let first = master.publish("test.wait", vec![]);
    minion.functions.waiting.subscribe().wait_for(|n| *n == 1).await.unwrap();
    let second = master.publish("test.ping", vec![]); // waits for its turn
    let find = master.publish("saltutil.find_job", vec![Value::from(&first)]);
    let found = master.expect_return(&find).await;
    let found = found.get("return").unwrap();
    assert_eq!(found.get_text("fun"), Some("test.wait"));
    assert_eq!(found.get_u64("pid"), Some(u64::from(std::process::id())));
    let kill = master.publish("saltutil.kill_job", vec![Value::from(&first)]);
    master
        .expect("three returns", {
            let mut left = vec![first.to_string(), second.to_string(), kill.to_string()];
            move |seen| {
                if let crate::master::Seen::Request { cmd, load } = seen
                    && cmd == "_return"
                {
                    left.retain(|jid| Some(jid.as_str()) != load.get_text("jid"));
                }
                left.is_empty().then_some(())
            }
        })
        .await;
    let gone = master.publish("saltutil.find_job", vec![Value::from(&first)]);
    assert_eq!(master.expect_return(&gone).await.get("return"), Some(&Value::Map(vec![])));
    minion.end().await.unwrap();
}

/// With `process_count_max`, waiting jobs count too, but jobs that are expected to be short do not. Without it, the
/// sandbox decides which jobs wait.
#[tokio::test(flavor = "multi_thread")]
async fn a_short_job_does_not_wait_for_those_that_take_all_slots() {
    for (configured, waiting) in [("process_count_max: 1", 1), ("sandbox: {max_running: 1}", 40)] {
        let dir = tempfile::tempdir().unwrap();
        let mut master = Master::start().await;
        let minion = ready(&mut master, dir.path(), configured).await;
        for _ in 0..40 {
            master.publish("test.wait", vec![]);
        }
        minion.functions.waiting.subscribe().wait_for(|n| *n == waiting).await.unwrap();
        let short = master.publish("test.short", vec![]);
        assert_eq!(master.expect_return(&short).await.get("return"), Some(&Value::from(true)), "{configured}");
        assert_eq!(*minion.functions.waiting.subscribe().borrow(), waiting, "{configured}");
        minion.functions.gate.add_permits(40);
        minion.end().await.unwrap();
    }
}

/// A job that waits for its turn has no instance to end, and a job of several functions continues with the next one.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_is_ended_while_it_waits_and_between_its_functions() {
    let (_dir, mut master, minion) = begin("process_count_max: 1").await;
    let first = Jid::now();
    let mut load = job(&first, "", vec![]);
    load.insert("fun", list(["test.wait", "test.ping"]));
    load.insert("arg", list([list::<Value>([]), list::<Value>([])]));
    master.send(vec![master.seal(&load)]);
    minion.functions.waiting.subscribe().wait_for(|n| *n == 1).await.unwrap();
    let second = master.publish("test.ping", vec![]);
    let kill = |jid: &Jid| vec![Value::from(jid)];
    master.publish("saltutil.kill_job", kill(&second));
    let returned = master.expect_return(&second).await;
    assert_eq!(returned.get_text("return"), Some("The job was stopped before it began: it was killed."));
    assert_eq!(returned.get("success"), Some(&Value::from(false)));
    master.publish("saltutil.kill_job", kill(&first));
    let returned = master.expect_return(&first).await;
    let returned = returned.get("return").unwrap();
    assert_eq!(returned.get_text("test.wait"), Some("killed"));
    assert_eq!(returned.get_text("test.ping"), Some("test.ping was stopped before it began: it was killed"));
    // The ended job did not run; later jobs do.
    let third = master.publish("test.ping", vec![]);
    assert_eq!(master.expect_return(&third).await.get("return"), Some(&Value::from(true)));
    minion.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_minion_without_room_for_returns_refuses_jobs_and_says_so() {
    let (_dir, mut master, minion) = begin("spool_max_count: 1").await;
    let first = master.publish("test.wait", vec![]);
    minion.functions.waiting.subscribe().wait_for(|n| *n == 1).await.unwrap();
    let refused = master.publish("test.ping", vec![]);
    let load = master.expect_return(&refused).await;
    assert!(load.get_text("return").unwrap().contains("spool is full"), "{load}");
    assert_eq!(load.get_bool("success"), Some(false));
    minion.functions.gate.add_permits(1);
    master.expect_return(&first).await;
    minion.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn every_job_of_a_crowd_is_answered_though_there_is_no_room_for_it() {
    const CROWD: usize = 1000;
    let dir = tempfile::tempdir().unwrap();
    let mut master = Master::start().await;
    let more = "process_count_max: 1\nsandbox: {max_queued: 0, max_waiting: 0}";
    let minion = ready(&mut master, dir.path(), more).await;
    master.publish("test.wait", vec![]);
    minion.functions.waiting.subscribe().wait_for(|n| *n == 1).await.unwrap();
    let mut left: HashSet<String> = (0..CROWD).map(|_| master.publish("test.ping", vec![]).to_string()).collect();
    let (mut busy, gate) = (0, &minion.functions.gate);
    master
        .expect("an answer for each job", |seen| {
            if let Seen::Request { cmd, load } = seen
                && cmd == "_return"
            {
                left.remove(load.get_text("jid").unwrap());
                let said = load.get_text("return").unwrap_or_default();
                busy +=
                    usize::from(said.starts_with("The minion is busy: ") && load.get_bool("success") == Some(false));
            }
            // The others were admitted into the places reserved for control jobs, and wait for their turn.
            if left.len() == 4 && gate.available_permits() == 0 {
                gate.add_permits(1);
            }
            left.is_empty().then_some(())
        })
        .await;
    assert_eq!(busy, CROWD - 4);
    minion.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_master_is_told_how_many_jobs_got_no_answer() {
    let dir = tempfile::tempdir().unwrap();
    let mut master = Master::start().await;
    let more = "process_count_max: 1\nsandbox: {max_queued: 0}\nspool_max_count: 1\nrequest_channel_timeout: 0.2";
    let minion = ready(&mut master, dir.path(), more).await;
    let first = master.publish("test.wait", vec![]);
    minion.functions.waiting.subscribe().wait_for(|n| *n == 1).await.unwrap();
    master.script().on_return = OnReturn::Silence;
    let mut refused: Vec<String> = (0..3).map(|_| master.publish("test.ping", vec![]).to_string()).collect();
    let mut told = (0, Vec::new());
    master
        .expect("the event about all of them", |seen| {
            if let Seen::Request { cmd, load } = seen
                && cmd == "_minion_event"
                && load.get_text("tag") == Some("salt/minion/m1/jobs/unanswered")
            {
                let data = load.get("data").unwrap();
                told.0 += data.get_u64("number").unwrap();
                told.1.extend(data.get_list("jids").unwrap().iter().map(|jid| jid.text().unwrap().to_owned()));
            }
            (told.0 == 3).then_some(())
        })
        .await;
    refused.sort();
    told.1.sort();
    assert_eq!(told.1, refused);
    master.script().on_return = OnReturn::Acknowledge;
    minion.functions.gate.add_permits(1);
    master.expect_return(&first).await;
    minion.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_event_is_sent_when_it_is_asked_for() {
    let (_dir, mut master, minion) = begin("").await;
    let jid = Jid::now();
    let mut load = job(&jid, "test.ping", vec![]);
    load.insert("start_event", true);
    master.send(vec![master.seal(&load)]);
    let event = master.expect_request("_minion_event").await;
    assert_eq!(event.get_text("tag"), Some(format!("salt/job/{jid}/start/m1").as_str()));
    minion.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_of_too_many_functions_is_refused() {
    let (_dir, mut master, minion) = begin("").await;
    let jid = Jid::now();
    let mut load = job(&jid, "", vec![]);
    load.insert("fun", list((0..1000).map(|_| "test.ping")));
    load.insert("arg", list((0..1000).map(|_| list::<Value>([]))));
    master.send(vec![master.seal(&load)]);
    let load = master.expect_return(&jid).await;
    assert!(load.get_text("return").unwrap().contains("at most 256 functions"), "{load}");
    assert_eq!(load.get_i64("retcode"), Some(1));
    minion.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_of_the_minion_is_a_failed_return_and_the_minion_goes_on() {
    let (_dir, mut master, minion) = begin("process_count_max: 1").await;
    for _ in 0..2 {
        let jid = master.publish("test.panic", vec![]);
        let load = master.expect_return(&jid).await;
        assert!(load.get_text("return").unwrap().starts_with("The minion itself failed on this job"), "{load}");
        assert_eq!((load.get_bool("success"), load.get_i64("retcode")), (Some(false), Some(1)));
    }
    let jid = master.publish("test.ping", vec![]);
    assert_eq!(master.expect_return(&jid).await.get("return"), Some(&Value::from(true)));
    minion.end().await.unwrap();
}

/// A call on this host needs no master and always gets an outcome, even if the minion itself fails. It has a record
/// while it runs.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_without_a_master_is_answered_and_leaves_no_record() {
    let dir = tempfile::tempdir().unwrap();
    let master = Master::start().await;
    let opts = opts(dir.path(), &master, "");
    let (make, made) = scripted(&opts);
    let local = Local::prepare(opts, make).await.unwrap();
    let functions = made.await.unwrap().functions;
    let called = local.call("test.echo", vec![Value::from("text")]).await;
    assert_eq!((called.outcome.value, called.ran), (Value::from("text"), true));
    let called = local.call("test.panic", vec![]).await;
    assert!(called.outcome.value.text().unwrap().starts_with("The minion itself failed"));
    assert_eq!((called.outcome.retcode, called.ran), (1, false));
    let records = || std::fs::read_dir(dir.path().join("cache/proc")).unwrap().count();
    let (called, ()) = tokio::join!(local.call("test.wait", vec![]), async {
        functions.waiting.subscribe().wait_for(|n| *n == 1).await.unwrap();
        assert_eq!(records(), 1);
        functions.gate.add_permits(1);
    });
    assert_eq!((called.outcome.value, records()), (Value::from("waited"), 0));
}
