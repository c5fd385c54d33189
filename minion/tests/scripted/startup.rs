//! What a minion starts by itself, and when a blackout keeps it from that.

use brine_protocol::msgpack;
use brine_protocol::value::{Value, ValueExt, list, map};

use crate::master::{Master, Seen};
use crate::running::{begin, emptied, opts, start, start_with};

/// The return of a job that nobody published.
async fn expect_own(master: &mut Master) -> Value {
    master
        .expect("the return of the minion's own job", |seen| match seen {
            Seen::Request { cmd, load } if cmd == "_return" && load.get_text("jid") == Some("req") => {
                Some(load.clone())
            }
            _ => None,
        })
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_states_of_the_start_run_once_and_return() {
    for (more, fun, args) in [
        ("startup_states: highstate", "state.highstate", list::<Value>([])),
        ("startup_states: sls\nsls_list: [a, b]", "state.sls", list([list(["a", "b"])])),
        ("startup_states: top\ntop_file: other.sls", "state.top", list(["other.sls"])),
    ] {
        let (dir, mut master, minion) = begin(more).await;
        let load = expect_own(&mut master).await;
        assert_eq!((load.get_text("fun"), load.get("fun_args")), (Some(fun), Some(&args)));
        assert_eq!((load.get_text("id"), load.get_u64("pid")), (Some("m1"), Some(u64::from(std::process::id()))));
        assert!(load.get("as_jid").is_none() && load.get("user").is_none());
        emptied(dir.path()).await;
        assert_eq!(std::fs::read_dir(dir.path().join("cache/proc")).unwrap().count(), 0);
        minion.end().await.unwrap();
    }
}

/// The master hears of a job that was killed with the minion.
#[tokio::test(flavor = "multi_thread")]
async fn a_job_of_its_own_that_was_cut_off_is_said_to_be() {
    let (dir, mut master) = (tempfile::tempdir().unwrap(), Master::start().await);
    let jid = "20261120134740245008";
    let load = map([
        ("fun", Value::from("test.ping")),
        ("arg", list::<Value>([])),
        ("fun_args", list::<Value>([])),
        ("jid", Value::from(jid)),
        ("tgt", Value::from("m1")),
        ("schedule", Value::from("job1")),
        ("return_job", Value::from("req")),
        ("pid", Value::from(u32::MAX)),
    ]);
    let proc_dir = dir.path().join("cache/proc");
    std::fs::create_dir_all(&proc_dir).unwrap();
    std::fs::write(proc_dir.join(jid), msgpack::encode_network(&load)).unwrap();
    let minion = start(dir.path(), &master, "").await;
    let load = expect_own(&mut master).await;
    assert_eq!((load.get_text("fun"), load.get_text("schedule")), (Some("test.ping"), Some("job1")));
    assert!(load.get_text("return").unwrap().starts_with("The minion ended while this job ran"));
    minion.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blackout_refuses_what_is_not_listed() {
    let dir = tempfile::tempdir().unwrap();
    let mut master = Master::start().await;
    let more = "grains: {minion_blackout: true, minion_blackout_whitelist: [test.echo]}\nstartup_states: highstate";
    let minion = start_with(opts(dir.path(), &master, more)).await;
    let load = expect_own(&mut master).await;
    assert!(load.get_text("return").unwrap().contains("Minion in blackout mode"), "{load}");
    master.subscribed().await;
    for (fun, refused) in [("test.ping", true), ("test.echo", false)] {
        let jid = master.publish(fun, if refused { vec![] } else { vec![Value::from("said")] });
        let load = master.expect_return(&jid).await;
        let text = load.get_text("return").unwrap_or_default();
        assert_eq!(text.starts_with(&format!("ERROR executing '{fun}': Minion in blackout")), refused, "{load}");
        assert_eq!(load.get_i64("retcode"), Some(i64::from(refused)));
    }
    minion.end().await.unwrap();
}
