//! The minion's work: functions, their arguments and returns, events, modules of the master.

use brine_tests::salt::{Kind, Master, line};
use serde_json::json;

#[test]
fn functions_events_and_modules() {
    let master = Master::start("timeout: 30\nmax_event_size: 100000");
    let minion = master.minion_kind(Kind::Python, "python", "");
    let json = |args: &[&str]| master.json("python", args);

    assert_eq!(json(&["test.ping"]), json!(true));
    assert_eq!(master.salt(&["*", "test.ping"]).exits(0).stdout, "python:\n    True\n");
    assert!(json(&["test.version"]).as_str().expect("text").starts_with(&line().to_string()));
    let nested = "{a: [1, 2.5, {b: ünïcödé}], c: null}";
    assert_eq!(json(&["test.echo", nested]), json!({"a": [1, 2.5, {"b": "ünïcödé"}], "c": null}));
    let arg = json(&["test.arg", "1", "{a: [b]}", "key=value"]);
    assert_eq!((&arg["args"], &arg["kwargs"]["key"]), (&json!([1, {"a": ["b"]}]), &json!("value")));
    let raised = master.salt(&["python", "test.exception", "told"]).exits(1);
    assert!(raised.stdout.contains("told"), "{raised:?}");
    let unknown = master.salt(&["python", "test.pingg"]).exits(1);
    assert!(unknown.stdout.contains("'test.pingg' is not available."), "{unknown:?}");
    let several = master.salt(&["--out=json", "--static", "python", "test.ping,test.echo", ",hi"]).exits(0).json();
    assert_eq!(several["python"], json!({"test.ping": true, "test.echo": "hi"}));

    assert_eq!(json(&["cmd.run", "echo out; echo ünïcödé"]), json!("out\nünïcödé"));
    assert_eq!(json(&["cmd.retcode", "exit 3"]), json!(3));
    let grains = json(&["grains.items"]);
    assert_eq!((&grains["id"], &grains["kernel"]), (&json!("python"), &json!("Linux")));
    assert_eq!(json(&["grains.get", "id"]), json!("python"));
    // The pillar is empty, because there is no source of pillar here.
    assert_eq!(json(&["pillar.items"]), json!({}));
    assert_eq!(json(&["saltutil.refresh_pillar"]), json!(true));

    let path = minion.path("a file.txt").display().to_string();
    assert!(json(&["file.write", &path, "one\ntwo"]).as_str().expect("text").contains("Wrote"));
    assert_eq!(json(&["file.read", &path]), json!("one\ntwo\n"));
    assert_eq!(json(&["file.stats", &path])["size"], json!(8));
    assert_eq!(json(&["file.remove", &path]), json!(true));
    assert_eq!(json(&["file.file_exists", &path]), json!(false));

    // A running job can be found and killed.
    let events = master.events();
    let jid = master.start_job(&["python", "test.sleep", "60"]);
    brine_kit::wait::wait_for("the job to run", || {
        let found = master.json("python", &["saltutil.find_job", &jid]);
        (found["fun"] == "test.sleep").then_some(())
    });
    let running = json(&["saltutil.running"]);
    assert!(running.as_array().expect("a list").iter().any(|job| job["jid"] == jid.as_str()), "{running}");
    let ended = json(&["saltutil.kill_job", &jid]);
    assert!(ended.as_str().expect("text").contains(&jid), "{ended}");
    assert!(json(&["saltutil.find_job", &jid]) == json!({}));

    // Events: a minion may fire its own, and none in the name of another.
    assert_eq!(json(&["event.send", "my/tag", "{a: b}"]), json!(true));
    let event = events.wait_tag("my/tag");
    assert_eq!((&event["id"], &event["data"]["a"]), (&json!("python"), &json!("b")));
    assert_eq!(json(&["event.fire_master", "{a: c}", "my/other"]), json!(true));
    assert_eq!(events.wait_tag("my/other")["data"]["a"], json!("c"));
    for tag in ["salt/key", "salt/job/20261120134740245008/new", "salt/minion/another/start"] {
        json(&["event.send", tag, "{}"]);
        events.wait(tag, |told, data| told == "brine/refused/event/python" && data["tag"] == tag);
        assert_eq!(events.count(tag), 0);
    }

    // A return larger than the bound on events: whole in the job store and for `salt`, truncated on the bus.
    let large = json(&["cmd.run", "head -c 300000 /dev/zero | tr '\\0' x"]);
    assert_eq!(large.as_str().map(str::len), Some(300_000));
    events.wait("a cut return", |tag, data| tag.contains("/ret/python") && data["return"] == "VALUE_TRIMMED");

    // Python modules served by this master.
    master.serve("_modules/greet.py", b"def hello(name='you'):\n    return 'hello ' + name\n");
    master.serve("_grains/own.py", b"def own():\n    return {'own': 'grain'}\n");
    let synced = json(&["saltutil.sync_all"]);
    assert_eq!((&synced["modules"], &synced["grains"]), (&json!(["modules.greet"]), &json!(["grains.own"])));
    assert_eq!(json(&["greet.hello", "there"]), json!("hello there"));
    assert_eq!(json(&["grains.get", "own"]), json!("grain"));
    master.serve("_modules/greet.py", b"def hello(name='you'):\n    return 'bye ' + name\n");
    assert_eq!(json(&["saltutil.sync_modules"]), json!(["modules.greet"]));
    json(&["sys.reload_modules"]);
    assert_eq!(json(&["greet.hello", "there"]), json!("bye there"));
    assert_eq!(json(&["sys.list_functions", "greet"]), json!(["greet.hello"]));

    // A call by salt-call is a separate job.
    let called = minion.salt_call(&["--out=json", "test.echo", "called"]).exits(0).json();
    assert_eq!(called["local"], json!("called"));
    let event = events.wait("what salt-call returned", |tag, data| {
        tag.ends_with("/ret/python") && data["fun"] == "test.echo" && data["return"] == "called"
    });
    let jid = event["jid"].as_str().expect("a jid");
    let job = master.command("salt-run", &["--out=json", "jobs.lookup_jid", jid]).exits(0).json();
    assert_eq!(job["python"], json!("called"));
}

/// What `event.send` and its like put on the bus, from a Python minion and from a Brine one.
#[test]
fn events_of_both_minions_are_equal() {
    let master = Master::start("timeout: 30");
    let grains = "grains: {role: web, site: north}";
    let _python = master.minion_kind(Kind::Python, "python", grains);
    let _brine = master.minion_kind(Kind::Brine, "brine", grains);
    let events = master.events();
    let calls: [&[&str]; 7] = [
        &["event.send", "deploy/1"],
        &["event.send", "deploy/2", "{a: b, n: [1, 2.5, null]}"],
        &["event.send", "deploy/3", "version=1.4", "good=True"],
        &["event.send", "deploy/4", "{version: 2}", "version=1", "more=x"],
        &["event.send", "deploy/5", "with_grains=[role, site, none]", "with_env=[NONE]"],
        &["event.send", "deploy/6", "with_env_opts=True", "with_pillar=True"],
        &["event.fire_master", "{a: {b: c}}", "deploy/7"],
    ];
    for (number, call) in calls.iter().enumerate() {
        let told = |minion: &str| {
            assert_eq!(master.json(minion, call), json!(true), "{minion} {call:?}");
            let tag = format!("deploy/{}", number + 1);
            let mut data = events.wait(&tag, |seen, data| seen == tag && data["id"] == minion);
            let fields = data.as_object_mut().expect("a dict");
            // By run and by minion.
            for field in ["_stamp", "id", "ts"] {
                fields.remove(field);
            }
            // What Salt tells each function of its job.
            if let Some(own) = fields["data"].as_object_mut() {
                own.retain(|field, _| !field.starts_with("__pub_"));
            }
            data
        };
        assert_eq!(told("brine"), told("python"), "{call:?}");
    }
    for minion in ["python", "brine"] {
        let sls = "deploy/state:\n  event.send:\n    - data: {half: way}\nquiet/state:\n  event.send:\n    - data: {x: 1}\n    - show_changed: False\n";
        master.serve("told.sls", sls.as_bytes());
        for dry in [true, false] {
            let args: &[&str] = if dry { &["state.apply", "told", "test=True"] } else { &["state.apply", "told"] };
            let results = master.json(minion, args);
            let of = |id: &str| results[format!("event_|-{id}_|-{id}_|-send")].clone();
            let (loud, quiet) = (of("deploy/state"), of("quiet/state"));
            let comment = if dry { "Event would have been fired" } else { "Event fired" };
            let result = if dry { json!(null) } else { json!(true) };
            assert_eq!((&loud["comment"], &loud["result"]), (&json!(comment), &result), "{minion} {results}");
            assert_eq!(loud["changes"], json!({"tag": "deploy/state", "data": {"half": "way"}}), "{minion}");
            assert_eq!((&quiet["comment"], &quiet["changes"]), (&json!(comment), &json!({})), "{minion}");
        }
        assert_eq!(
            events.wait("the state's event", |tag, data| tag == "deploy/state" && data["id"] == minion)["data"]["half"],
            json!("way")
        );
    }
    assert_eq!(events.count("quiet/state"), 2, "a dry run fires none");
}
