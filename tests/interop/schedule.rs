//! The schedule of a Brine minion beside that of a Python minion at the same master: jobs of the configuration, `schedule.*`, and the
//! states of the schedule.

use brine_kit::wait::wait_for;
use brine_tests::events::Events;
use brine_tests::salt::{Kind, Master};
use serde_json::{Value, json};

/// Jobs that return: their name and what they are.
const FIRES: [(&str, &str); 8] = [
    ("interval", "{function: test.ping, seconds: 2}"),
    ("arguments", "{function: test.arg, seconds: 2, args: [a, 1, [b]], kwargs: {c: 2, d: {e: f}}}"),
    ("metadata", "{function: test.ping, seconds: 2, metadata: {ticket: 7, by: [x]}}"),
    ("splayed", "{function: test.echo, seconds: 2, splay: 1, args: [splayed]}"),
    ("between", "{function: test.echo, seconds: 2, splay: {start: 0, end: 1}, args: [between]}"),
    ("at_start", "{function: test.echo, hours: 1, run_on_start: true, args: [started]}"),
    ("later", "{function: test.echo, seconds: 2, after: '2020-01-01T00:00:00', args: [later]}"),
    ("bounded", "{function: test.echo, seconds: 2, maxrunning: 1, jid_include: true, args: [bounded]}"),
];

/// Jobs that never return.
const SILENT: [(&str, &str); 3] = [
    ("disabled", "{function: test.ping, seconds: 1, enabled: false}"),
    ("kept", "{function: test.ping, seconds: 1, return_job: false}"),
    ("once_past", "{function: test.ping, once: '2020-01-01T00:00:00'}"),
];

/// An interval beside dates, which is refused here. Salt means to ignore such a job too, but its check finds none: it runs.
const BOTH: (&str, &str) = ("both", "{function: test.ping, seconds: 1, cron: '0 0 1 1 *'}");

#[test]
fn jobs_of_the_schedule_return_what_salts_return() {
    let master = Master::start("peer: {\".*\": [schedule.add]}");
    let mut schedule = "schedule:\n".to_owned();
    for (name, job) in FIRES.iter().chain(&SILENT).chain([&BOTH]) {
        schedule.push_str(&format!("  {name}: {job}\n"));
    }
    let events = master.events();
    let _brine = master.minion_kind(Kind::Brine, "brine", &schedule);
    let _python = master.minion_kind(Kind::Python, "python", &schedule);
    let mut wrong = Vec::new();
    for (name, _) in FIRES {
        let [ours, salts] = ["brine", "python"].map(|id| returned(&events, id, name));
        if ours != salts {
            wrong.push(format!("{name}:\n  Brine {ours}\n  Salt  {salts}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Once `interval` has returned three times, these were due more often.
    let returns = |id: &str, name: &str| {
        let suffix = format!("/ret/{id}");
        events.all().iter().filter(|(tag, data)| tag.ends_with(&suffix) && data["schedule"] == json!(name)).count()
    };
    for id in ["brine", "python"] {
        wait_for("three returns of an interval", || (returns(id, "interval") >= 3).then_some(()));
        for (name, _) in SILENT {
            assert_eq!(returns(id, name), 0, "{name} at {id}");
        }
    }
    assert_eq!(returns("brine", BOTH.0), 0);
    commands(&master);
    sends(&master);
}

/// The first return of a job, without what differs from run to run.
fn returned(events: &Events, id: &str, name: &str) -> Value {
    let suffix = format!("/ret/{id}");
    let what = format!("the return of {name} from {id}");
    let mut data = events.wait(&what, |tag, data| tag.ends_with(&suffix) && data["schedule"] == json!(name));
    let entries = data.as_object_mut().expect("a dict");
    for key in ["_stamp", "jid", "pid", "usage", "receipt", "id", "user", "plan", "ts"] {
        entries.remove(key);
    }
    // Salt's times of the metadata, and what Salt tells functions of their job.
    for (at, prefix) in [("/metadata", "_T"), ("/return/kwargs", "__pub_")] {
        if let Some(entries) = data.pointer_mut(at).and_then(Value::as_object_mut) {
            entries.retain(|key, _| !key.starts_with(prefix));
        }
    }
    data
}

/// Calls of `schedule.*` and of its states, in their order.
fn commands(master: &Master) {
    let calls: [&[&str]; 39] = [
        &["schedule.purge", "test=True"],
        &["schedule.purge"],
        &["schedule.list"],
        &["schedule.list", "return_yaml=False"],
        &["schedule.add", "one", "function=test.ping", "seconds=86000", "test=True"],
        &["schedule.add", "one", "function=test.ping", "seconds=86000"],
        &["schedule.add", "one", "function=test.ping", "seconds=86000"],
        &[
            "schedule.add",
            "two",
            "function=test.echo",
            "job_args=['x', 2]",
            "hours=12",
            "splay=10",
            "metadata={'a': 1}",
        ],
        &["schedule.add", "wrong", "function=test.ping", "seconds=1", "cron='* * * * *'"],
        &["schedule.list", "show_all=True", "return_yaml=False"],
        &["schedule.list"],
        &["schedule.modify", "one", "function=test.ping", "seconds=86000"],
        &["schedule.modify", "one", "function=test.ping", "seconds=80000", "test=True"],
        &["schedule.modify", "one", "function=test.ping", "seconds=80000"],
        &["schedule.modify", "nothing", "function=test.ping", "seconds=1"],
        &["schedule.disable_job", "one", "test=True"],
        &["schedule.disable_job", "one"],
        &["schedule.is_enabled", "one"],
        &["schedule.list", "show_disabled=False", "return_yaml=False"],
        &["schedule.enable_job", "one"],
        &["schedule.disable_job", "nothing"],
        &["schedule.run_job", "nothing"],
        &["schedule.build_schedule_item", "b", "function=test.ping", "minutes=5", "enabled=False", "maxrunning=2"],
        &["schedule.build_schedule_item", "b", "function=test.ping", "when='2120-01-01T00:00:00'"],
        &["schedule.build_schedule_item", "b", "function=test.ping", "seconds=1", "when='noon'"],
        &["schedule.build_schedule_item", "b", "function=test.ping", "seconds=1", "splay={'start': 1, 'end': 2}"],
        &["schedule.show_next_fire_time", "nothing"],
        &["schedule.job_status", "nothing"],
        &["schedule.disable"],
        &["schedule.is_enabled"],
        &["schedule.enable"],
        &["schedule.delete", "two", "test=True"],
        &["schedule.delete", "two"],
        &["schedule.delete", "two"],
        &["schedule.save"],
        &["state.single", "schedule.present", "name=three", "function=test.ping", "seconds=86000"],
        &["state.single", "schedule.disabled", "name=three"],
        &["state.single", "schedule.absent", "name=three"],
        &["schedule.list", "show_all=True", "return_yaml=False"],
    ];
    let mut wrong = Vec::new();
    for call in calls {
        let [ours, salts] = ["brine", "python"].map(|id| plain(master.json(id, call)));
        if ours != salts {
            wrong.push(format!("{call:?}:\n  Brine {ours}\n  Salt  {salts}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).expect("it was JSON before")
}

/// Entries that one minion gives to the other.
fn sends(master: &Master) {
    let others = [("brine", "python"), ("python", "brine")];
    let both = |what: &str, call: &[&str]| {
        let [ours, salts] = others.map(|(id, other)| {
            let call: Vec<&str> = call.iter().map(|word| if *word == "OTHER" { other } else { *word }).collect();
            let answer = plain(master.json(id, &call)).to_string();
            parsed(&answer.replace(&format!("\"{other}\""), "\"other\""))
        });
        assert_eq!(ours, salts, "{what}");
    };
    both("purged", &["schedule.purge"]);
    both("nothing to move", &["schedule.move", "given", "OTHER"]);
    for (id, name) in [("brine", "of_brine"), ("python", "of_python")] {
        let added = master.json(id, &["schedule.add", name, "function=test.echo", "seconds=86000", "job_args=['a b']"]);
        assert_eq!(added["result"], json!(true), "{added}");
    }
    let send = |how: &str| {
        let [ours, salts] = others.map(|(id, other)| {
            let answer = master.json(id, &[&format!("schedule.{how}"), &format!("of_{id}"), other]);
            parsed(&answer.to_string().replace(other, "OTHER").replace(id, "ID"))
        });
        assert_eq!(ours, salts, "{how}");
    };
    send("copy");
    let list =
        |id: &str, name: &str| master.json(id, &["schedule.list", "show_all=True", "return_yaml=False"])[name].clone();
    for (id, other) in others {
        let name = format!("of_{id}");
        let (own, copied) = (list(id, &name), list(other, &name));
        assert_eq!((&copied["function"], &copied["seconds"]), (&own["function"], &own["seconds"]), "{own}\n{copied}");
        master.json(other, &["schedule.delete", &name]);
    }
    send("move");
    for (id, other) in others {
        let name = format!("of_{id}");
        assert_eq!((&list(id, &name), &list(other, &name)["function"]), (&Value::Null, &json!("test.echo")));
    }
    both("nobody", &["schedule.copy", "of_nobody", "nobody"]);
}

/// An answer without what differs from run to run: times of states, and what Salt adds to `schedule.list` for itself.
fn plain(mut answer: Value) -> Value {
    if let Some(results) = answer.as_object_mut() {
        for result in results.values_mut().filter_map(Value::as_object_mut) {
            for key in ["duration", "start_time", "__saltfunc__"] {
                result.remove(key);
            }
        }
    }
    answer
}
