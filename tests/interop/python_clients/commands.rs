//! Python's commands with the configuration of a Brine master: `salt`, `salt-key`, `salt-run`.

use brine_kit::process::{Daemon, Output};
use brine_kit::wait::wait_for;
use brine_tests::fits;
use brine_tests::salt::{Kind, Master, Minion, line};
use serde_json::json;

use super::{RETURNERS, minions, start};

/// Runs one of Python's commands.
fn python(master: &Master, name: &str, args: &[&str]) -> Output {
    master.command_of(Kind::Python, name, args)
}

#[test]
fn commands() {
    // With the returner, Python's programs read the job store and need no job files.
    let config = format!(
        "master_job_cache: brine\nreturner_dirs: [{RETURNERS}]\npython_job_files: False\nnodegroups: {{web: 'G@role:web'}}\n\
         sharedsecret: front-end-secret\nexternal_auth: {{sharedsecret: {{fred: [test.ping]}}}}"
    );
    let master = start(&config);
    let _minions = minions(&master);
    salt(&master);
    salt_run(&master);
    salt_key(&master);
}

fn salt(master: &Master) {
    let json = |args: &[&str]| {
        let mut all = vec!["--out=json", "--static"];
        all.extend(args);
        python(master, "salt", &all).exits(0).json()
    };
    let both = json!({"one": true, "two": true});
    assert_eq!(python(master, "salt", &["one", "test.ping"]).exits(0).stdout, "one:\n    True\n");
    assert_eq!(json(&["*", "test.ping"]), both);
    assert_eq!(json(&["-L", "one,two", "test.ping"]), both);
    assert_eq!(json(&["-E", "(one|two)$", "test.ping"]), both);
    assert_eq!(json(&["-G", "role:web", "test.ping"]), json!({"one": true}));
    assert_eq!(json(&["-C", "two or G@role:web", "test.ping"]), both);
    assert_eq!(json(&["-N", "web", "test.ping"]), json!({"one": true}));
    assert_eq!(json(&["one", "test.arg", "1", "key=[a, 2]"])["one"]["kwargs"]["key"], json!(["a", 2]));
    let batch = python(master, "salt", &["-b", "1", "*", "test.ping"]).exits(0).stdout;
    assert!(batch.contains("one:\n    True") && batch.contains("two:\n    True"), "{batch}");
    let wrong = python(master, "salt", &["one", "test.pingg"]).exits(1);
    assert!(wrong.stdout.contains("'test.pingg' is not available."), "{wrong:?}");
    let nobody = python(master, "salt", &["nobody", "test.ping"]).exits(2);
    assert!(nobody.stdout.contains("No minions matched the target."), "{nobody:?}");

    let log_in = |password: &str, fun: &str| {
        let with = ["-a", "sharedsecret", "--username", "fred", "--password", password, "one", fun];
        python(master, "salt", &with).stdout
    };
    assert_eq!(log_in("front-end-secret", "test.ping"), "one:\n    True\n");
    assert!(log_in("wrong", "test.ping").contains("Authentication error occurred."));
    assert!(log_in("front-end-secret", "test.version").contains("Authorization error occurred."));
}

fn salt_run(master: &Master) {
    let json = |args: &[&str]| {
        let mut all = vec!["--out=json"];
        all.extend(args);
        python(master, "salt-run", &all).exits(0).json()
    };
    let started = python(master, "salt", &["--async", "one", "test.echo", "later"]).exits(0).stdout;
    assert!(fits(&started, "Executed command with job ID: …\n"), "{started}");
    let jid = started.trim().rsplit(' ').next().expect("a jid");
    let looked_up = || json(&["jobs.lookup_jid", jid]);
    assert_eq!(
        wait_for("the return", || Some(looked_up()).filter(|found| *found != json!({}))),
        json!({"one": "later"})
    );
    let job = json(&["jobs.list_job", jid]);
    assert_eq!((&job["Function"], &job["Minions"]), (&json!("test.echo"), &json!(["one"])));
    assert_eq!(json(&["jobs.list_jobs"])[jid]["User"], json!("root"));
    assert_eq!(json(&["jobs.active"]), json!({}));
    let mut up = json(&["manage.up"]);
    up.as_array_mut().expect("a list").sort_by_key(ToString::to_string);
    assert_eq!(up, json!(["one", "two"]));
    // Read from the master's files: 3008 finds them where Brine keeps them, earlier lines use another place.
    let roles = if line() >= 3008 { json!({"one": "web", "two": "db"}) } else { json!({}) };
    let grains = json(&["cache.grains", "*"]);
    let found = grains.as_object().into_iter().flatten().filter(|(_, grains)| !grains["role"].is_null());
    let found: serde_json::Map<_, _> = found.map(|(id, grains)| (id.clone(), grains["role"].clone())).collect();
    assert_eq!(serde_json::Value::from(found), roles, "{grains}");

    // A program that reads the bus until it has seen one event: both print the same, except for the time.
    let printed = [Kind::Python, Kind::Brine].map(|kind| {
        let conf = master.conf();
        let watch = ["-c", &conf, "state.event", "deploy/(done|failed)", "count=1", "pretty=True"];
        let log = master.path(&format!("watch-{kind:?}.out"));
        let mut watching = Daemon::start(&kind.program("salt-run"), &watch, &log);
        wait_for("salt-run state.event to see an event", || {
            // The program does not report when it begins to listen.
            master
                .command("salt-run", &["event.send", "deploy/done", "data={n: 1, a: [x, {b: ünï, c: null}], d: {}}"])
                .exits(0);
            watching.log_text().contains("\"n\": 1").then_some(())
        });
        assert!(watching.wait_exit().success());
        let text = watching.log_text();
        let event = text.lines().skip_while(|line| !line.starts_with("deploy/done\t{"));
        // Python warns about resources that it leaves open.
        let own = event.filter(|line| !line.contains("\"_stamp\": ") && !line.contains("unclosed"));
        own.map(str::to_owned).collect::<Vec<_>>()
    });
    assert_eq!(printed[0], printed[1]);
    assert_eq!(printed[1].last().map(String::as_str), Some("None"), "{printed:?}");
}

fn salt_key(master: &Master) {
    let events = master.events();
    let mut new = Minion::prepare(Kind::Brine, "new", master.ret_port, "");
    new.up();
    events.wait("a pending key", |tag, data| tag == "salt/auth" && data["id"] == "new" && data["act"] == "pend");
    let list = || python(master, "salt-key", &["--out=json", "-L"]).exits(0).json();
    let listed = list();
    assert_eq!((&listed["minions"], &listed["minions_pre"]), (&json!(["one", "two"]), &json!(["new"])));
    let text = python(master, "salt-key", &["-L"]).exits(0).stdout;
    assert_eq!(text, "Accepted Keys:\none\ntwo\nDenied Keys:\nUnaccepted Keys:\nnew\nRejected Keys:\n");

    // Python's command edits the folders, and the master notices.
    let accepted = python(master, "salt-key", &["-y", "-a", "new"]).exits(0);
    assert!(accepted.stdout.contains("Key for minion new accepted."), "{accepted:?}");
    events.wait_tag("salt/minion/new/start");
    assert_eq!(python(master, "salt", &["new", "test.ping"]).exits(0).stdout, "new:\n    True\n");
    let fingers = python(master, "salt-key", &["--out=json", "-f", "one"]).exits(0).json();
    assert_eq!(fingers["minions"]["one"].as_str().map(str::len), Some(95), "{fingers}");

    python(master, "salt-key", &["-y", "-d", "new"]).exits(0);
    events.wait("the event of the deletion", |tag, data| {
        tag == "salt/key" && data["id"] == "new" && data["act"] == "delete"
    });
    // The command writes the dropfile, because the removed minion still knows the publish key.
    events.wait("the publish key's rotation", |tag, data| tag == "key" && data["rotate_aes_key"] == true);
    python(master, "salt", &["new", "test.ping"]).exits(2);
    new.stop();
    assert_eq!(list()["minions"], json!(["one", "two"]));
    let both = python(master, "salt", &["--out=json", "--static", "*", "test.ping"]).exits(0).json();
    assert_eq!(both, json!({"one": true, "two": true}), "who stays goes on with the new key");
}
