//! The schedule of a minion: what fires, whose rights it has, where it is kept, and what a restart does to it.

use brine_kit::files::set_mode;
use brine_kit::wait::Deadline;
use brine_protocol::msgpack;
use brine_protocol::value::{Value, ValueExt, list, map};
use brine_sandbox::{ByteBuf, Grants, HostOp, ScheduleChange, ScheduleOp, SchedulePlace};

use crate::master::{DEADLINE, Master, Seen};
use crate::running::{Running, begin, ready};

const JID: &str = "20261120134740245008";

/// The next return of a job of this name of the schedule.
async fn fired(master: &mut Master, name: &str) -> Value {
    master
        .expect(&format!("a return of {name}"), |seen| match seen {
            Seen::Request { cmd, load } if cmd == "_return" && load.get_text("schedule") == Some(name) => {
                Some(load.clone())
            }
            _ => None,
        })
        .await
}

/// The event about firings that were lost.
async fn missed(master: &mut Master) -> Value {
    master
        .expect("the event of what was missed", |seen| match seen {
            Seen::Request { cmd, load }
                if cmd == "_minion_event" && load.get_text("tag") == Some("salt/minion/m1/schedule/missed") =>
            {
                load.get("data").cloned()
            }
            _ => None,
        })
        .await
}

async fn ask(minion: &Running, op: ScheduleOp) -> Result<Value, String> {
    minion.functions.ask(JID, Grants::default(), HostOp::Schedule(op)).await
}

async fn update(minion: &Running, change: ScheduleChange, persist: bool) -> Result<Value, String> {
    ask(minion, ScheduleOp::Update { change, persist }).await
}

fn jobs(value: &Value) -> ByteBuf {
    msgpack::encode_disk(value).into()
}

fn every(function: &str, seconds: u64) -> Value {
    map([("function", Value::from(function)), ("seconds", seconds.into())])
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_fires_and_its_return_is_salts() {
    let config = "schedule: {job1: {function: test.kwargs, seconds: 1, args: [], kwargs: {a: 1}, metadata: {tag: x}}}";
    let (dir, mut master, minion) = begin(config).await;
    let load = fired(&mut master, "job1").await;
    assert_eq!((load.get_text("jid"), load.get_text("fun")), (Some("req"), Some("test.kwargs")));
    assert_eq!(load.get("return"), Some(&map([("a", 1)])));
    assert_eq!(load.get("fun_args"), Some(&list([map([("a", 1)])])));
    assert_eq!((load.get_i64("retcode"), load.get_bool("success")), (Some(0), Some(true)));
    let metadata = load.get("metadata").unwrap();
    assert_eq!(metadata.get_text("tag"), Some("x"));
    assert!(["_TOS", "_TS", "_TT"].iter().all(|key| metadata.get_text(key).is_some()), "{metadata}");
    // It comes again, within its time.
    fired(&mut master, "job1").await;
    let status = ask(&minion, ScheduleOp::Status { name: "job1".into(), time_format: "%Y".into() }).await.unwrap();
    assert_eq!(status.get_text("_next_fire_time").unwrap().len(), 4);
    assert_eq!((status.get_i64("_seconds"), status.get_i64("maxrunning")), (Some(1), Some(1)));
    minion.end().await.unwrap();
    assert_eq!(std::fs::read_dir(dir.path().join("cache/proc")).unwrap().count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_master_is_told_as_the_entry_says() {
    let config = "schedule: {quiet: {function: test.ping, seconds: 1, return_job: false}, \
                  loud: {function: test.fail, hours: 1, return_job: nocache}, \
                  kept: {function: test.ping, hours: 1, returner: [a, b], return_config: c, return_kwargs: {d: 1}}}";
    let (_dir, mut master, minion) = begin(config).await;
    let mut left = vec!["loud", "kept"];
    while !left.is_empty() {
        let load = master
            .expect("the returns", |seen| match seen {
                Seen::Request { cmd, load } if cmd == "_return" => Some(load.clone()),
                _ => None,
            })
            .await;
        let name = load.get_text("schedule").unwrap().to_owned();
        left.retain(|known| *known != name);
        match name.as_str() {
            "loud" => assert_eq!((load.get_text("jid"), load.get_bool("success")), (Some("nocache"), Some(false))),
            "kept" => {
                assert!(load.get_text("jid").unwrap().parse::<brine_protocol::ids::Jid>().is_ok());
                assert_eq!((load.get_text("ret_config"), load.get("ret_kwargs")), (Some("c"), Some(&map([("d", 1)]))));
            }
            other => panic!("{other}"),
        }
    }
    minion.end().await.unwrap();
}

/// What a master configured can never do more than that master's jobs.
#[tokio::test(flavor = "multi_thread")]
async fn an_entry_has_the_rights_of_who_wrote_it() {
    let (dir, mut master) = (tempfile::tempdir().unwrap(), Master::start().await);
    let saved = "schedule:\n  back: {function: test.origin, hours: 1}\n  owners: {function: test.origin, hours: 1, enabled: true}\n  \
                 changed: {function: test.origin, hours: 2}\n";
    std::fs::create_dir(dir.path().join("minion.d")).unwrap();
    std::fs::write(dir.path().join("minion.d/_schedule.conf"), saved).unwrap();
    set_mode(dir.path().join("minion.d/_schedule.conf"), 0o600);
    master.script().pillar = map([("schedule", map([("of-pillar", every("test.origin", 3_600))]))]);
    let config = "schedule: {owners: {function: test.origin, hours: 1}, changed: {function: test.origin, hours: 1}}";
    let minion = ready(&mut master, dir.path(), config).await;
    let mut left = vec![("of-pillar", true), ("back", true), ("owners", false), ("changed", true)];
    let mut fingerprint = None;
    while !left.is_empty() {
        let load = master
            .expect("the returns", |seen| match seen {
                Seen::Request { cmd, load } if cmd == "_return" => Some(load.clone()),
                _ => None,
            })
            .await;
        let name = load.get_text("schedule").unwrap();
        let at = left.iter().position(|(known, _)| *known == name).unwrap();
        let (_, of_master) = left.remove(at);
        let origin = load.get_list("return").unwrap()[0].clone();
        assert_eq!(!origin.is_nil(), of_master, "{name}: {origin}");
        if of_master {
            assert_eq!(*fingerprint.get_or_insert(origin.clone()), origin);
        }
    }
    // What `schedule.add` adds has the master's rights too.
    let new = map([("added", every("test.origin", 3_600))]);
    update(&minion, ScheduleChange::Add(jobs(&new)), false).await.unwrap();
    assert!(!fired(&mut master, "added").await.get_list("return").unwrap()[0].is_nil());
    minion.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_neither_runs_a_job_again_in_its_period_nor_loses_it() {
    let (dir, mut master) = (tempfile::tempdir().unwrap(), Master::start().await);
    let config = "schedule: {job1: {function: test.ping, hours: 1}, long: {function: test.wait, hours: 1}, \
                  past: {function: test.ping, once: '2026-01-01T00:00:00'}}";
    let minion = ready(&mut master, dir.path(), config).await;
    fired(&mut master, "job1").await;
    minion.functions.waiting.subscribe().wait_for(|n| *n == 1).await.unwrap();
    minion.kill().await;
    let minion = ready(&mut master, dir.path(), config).await;
    let lost = missed(&mut master).await;
    assert_eq!(lost.get_u64("number"), Some(1));
    let lost = &lost.get_list("jobs").unwrap()[0];
    assert_eq!((lost.get_text("name"), lost.get_text("why")), (Some("long"), Some("the minion ended while it ran")));
    let status = ask(&minion, ScheduleOp::Status { name: "job1".into(), time_format: "%s".into() }).await.unwrap();
    assert!(status.get("_last_run").is_none(), "it ran again: {status}");
    assert_eq!(minion.functions.calls.load(std::sync::atomic::Ordering::Relaxed), 0);
    minion.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_kept_and_hostile_ones_refused() {
    let (dir, mut master, minion) = begin("").await;
    let file = dir.path().join("minion.d/_schedule.conf");
    let new = map([("../../evil", every("test.echo", 3_600)), ("job1", every("test.ping", 3_600))]);
    let all = update(&minion, ScheduleChange::Add(jobs(&new)), true).await.unwrap();
    assert!(all.get("../../evil").is_some());
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!(
        text,
        "schedule:\n  ../../evil:\n    enabled: true\n    function: test.echo\n    seconds: 3600\n  job1:\n    enabled: true\n    \
         function: test.ping\n    seconds: 3600\n"
    );
    fired(&mut master, "job1").await;
    for bad in [
        map([("a\nb", every("test.ping", 5))]),
        Value::from(5),
        Value::Map((0..100_000).map(|n| (Value::from(format!("job{n}")), Value::from(n))).collect()),
    ] {
        let error = update(&minion, ScheduleChange::Add(jobs(&bad)), true).await.unwrap_err();
        assert!(
            error.contains("name of a job") || error.contains("type dict") || error.contains("at most 10000"),
            "{error}"
        );
    }
    // An entry that cannot be used says why, and does no harm.
    let odd = map([("odd", map([("function", "test.ping"), ("seconds", "0")])), ("none", Value::from(1))]);
    let error = update(&minion, ScheduleChange::Add(jobs(&odd)), false).await;
    assert!(error.is_ok());
    let read = async {
        loop {
            let op = ScheduleOp::Status { name: "odd".into(), time_format: "%Y".into() };
            let status = ask(&minion, op).await.unwrap();
            if let Some(why) = status.get_text("_error") {
                return why.to_owned();
            }
        }
    };
    assert!(DEADLINE.within(read).await.contains("An interval is from 1 second"));
    update(&minion, ScheduleChange::EnableJob("job1".into(), false), true).await.unwrap();
    update(&minion, ScheduleChange::Delete("../../evil".into()), true).await.unwrap();
    let listed = ask(&minion, ScheduleOp::List { place: SchedulePlace::Opts }).await.unwrap();
    assert_eq!((listed.get("../../evil"), listed.get("job1").unwrap().get_bool("enabled")), (None, Some(false)));
    // By order, and with the rights of who asks; a disabled job runs too.
    update(&minion, ScheduleChange::Run("job1".into()), false).await.unwrap();
    fired(&mut master, "job1").await;
    minion.end().await.unwrap();
}

/// A schedule that is refused whole leaves the minion as it is.
#[tokio::test(flavor = "multi_thread")]
async fn a_pillar_with_too_many_entries_schedules_none() {
    let (dir, mut master) = (tempfile::tempdir().unwrap(), Master::start().await);
    let many = Value::Map((0..10_001).map(|n| (Value::from(format!("job{n}")), every("test.ping", 3_600))).collect());
    master.script().pillar = map([("schedule", many)]);
    let minion =
        ready(&mut master, dir.path(), "schedule: {job: {function: test.echo, args: [x], seconds: 3600}}").await;
    fired(&mut master, "job").await;
    let listed = ask(&minion, ScheduleOp::List { place: SchedulePlace::All }).await.unwrap();
    assert_eq!(listed.entries().unwrap().len(), 1);
    minion.end().await.unwrap();
}
