//! The owner's way from a refusal to a grant and back, and that nobody else can go it.

use brine_kit::wait::wait_for;
use brine_tests::salt::{Kind, Master, Minion};
use rustix::process::Signal;
use serde_json::{Value, json};

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("not text: {value}"))
}

/// Calls a function on the minion's host, as its owner.
fn own(minion: &Minion, args: &[&str]) -> Value {
    let line = [&["--local", "--out=json"], args].concat();
    minion.salt_call(&line).exits(0).json()["local"].clone()
}

#[test]
fn what_was_refused_is_granted_by_its_line_and_taken_back() {
    let master = Master::start("");
    let conf = "# what this host permits\nsandbox:\n  modules:\n    # nothing but grains\n    cmd: {grains: true}   # for cmd.run\n  learn: true\n";
    let minion = master.minion_kind(Kind::Brine, "web1", conf);
    for _ in 0..2 {
        assert!(text(&master.json("web1", &["cmd.run", "id -u"])).contains("may not run"));
    }
    // The running minion writes once a second.
    let listed = wait_for("the refusals", || {
        let all = own(&minion, &["sandbox.refusals"]);
        (all[0]["times"] == json!(2)).then_some(all)
    });
    let (line, jid) = (text(&listed[0]["line"]), text(&listed[0]["jid"]));
    assert!(line.starts_with("cmd: {process: [") && line.ends_with("/id]}"), "{line}");
    assert_eq!((listed[0]["function"].as_str(), listed[0]["master"].is_string()), (Some("cmd.run"), true));
    assert_eq!(own(&minion, &["sandbox.check"])["refusals"], json!({"different": 1, "times": 2, "left_out": 0}));
    let suggested = own(&minion, &["sandbox.suggest", "since=1h", "module=cmd"]);
    assert_eq!((suggested[0]["line"].as_str(), suggested[0]["jobs"][0].as_str()), (Some(line), Some(jid)));
    assert_eq!(suggested[0]["jobs"].as_array().map(Vec::len), Some(2), "{suggested}");
    assert!(text(&suggested[0]["risk"]).starts_with("medium"), "{suggested}");
    assert_eq!(own(&minion, &["sandbox.suggest", "module=test"]), json!([]));

    // Neither a master nor a function of the host's own may grant.
    let file = minion.path("conf/minion.d");
    for function in ["sandbox.grant", "sandbox.revoke"] {
        let refused = master.json("web1", &[function, line]);
        assert!(text(&refused).contains("changed on the host itself"), "{refused}");
    }
    let tried = own(&minion, &["sandbox.grant", line, "test=True"]);
    assert_eq!(tried["written"], json!(false));
    assert!(text(&master.json("web1", &["cmd.run", "id -u"])).contains("may not run"));

    let granted = own(&minion, &["sandbox.grant", line]);
    let path = text(&granted["file"]);
    let content = std::fs::read_to_string(path).expect("the owner's file");
    for comment in ["# what this host permits", "# nothing but grains", "# for cmd.run"] {
        assert!(content.contains(comment), "{comment}: {content}");
    }
    assert!(text(&granted["diff"]).contains("/id]"), "{granted} {}", file.display());
    let again = minion.salt_call(&["--local", "sandbox.grant", line]);
    assert!(again.code != 0 && again.stderr.contains("says this already"), "{again:?}");
    minion.running().signal(Signal::HUP);
    let id = json!(rustix::process::getuid().as_raw().to_string());
    wait_for("the grant", || (master.json("web1", &["cmd.run", "id -u"]) == id).then_some(()));

    own(&minion, &["sandbox.revoke", line]);
    minion.running().signal(Signal::HUP);
    wait_for("the refusal", || {
        master.json("web1", &["cmd.run", "id -u"]).as_str()?.contains("may not run").then_some(())
    });
    let content = std::fs::read_to_string(path).expect("the owner's file");
    assert!(content.contains("cmd: {grains: true}") && content.contains("# what this host permits"), "{content}");
}

/// Nobody types what a schedule starts, though the owner wrote it, nor what a state calls.
#[test]
fn neither_a_schedule_nor_a_state_grants() {
    let line = "cmd: {process: [/bin/sh]}";
    let conf = format!(
        "schedule: {{widen: {{function: sandbox.grant, args: ['{line}'], seconds: 1, return_job: false}}}}\n\
         sandbox: {{modules: {{state: {{functions: any}}, module: {{functions: any}}}}}}\n"
    );
    let master = Master::start("");
    let minion = master.minion_kind(Kind::Brine, "web1", &conf);
    let read = |file: &str| std::fs::read_to_string(minion.path(file));
    let before = read("conf/minion").expect("the configuration");
    let refused = |of: &str| {
        let all = own(&minion, &["sandbox.refusals"]);
        all.as_array()?.iter().find(|one| one["function"] == of).cloned()
    };
    let scheduled = wait_for("the job of the schedule", || refused("sandbox.grant"));
    assert!(text(&scheduled["what"]).contains("changed on the host itself"), "{scheduled}");
    assert_eq!((scheduled["master"].is_null(), scheduled["line"].is_null()), (true, true), "{scheduled}");

    let state = format!("sandbox.grant=[{{line: \"{line}\"}}]");
    let ran = minion.salt_call(&["--local", "--out=json", "state.single", "module.run", "name=x", &state]);
    assert!(ran.stdout.contains("changed on the host itself"), "{ran:?}");
    assert_eq!(read("conf/minion").expect("the configuration"), before);
    assert!(read("conf/minion.d/sandbox.conf").is_err(), "nothing was written");
}

/// A file that a job looks at and then changes is two refusals; what is suggested names that file alone.
#[test]
fn a_file_is_granted_and_not_its_folder() {
    let out = tempfile::tempdir().expect("a temporary folder");
    let (file, beside) = (out.path().join("motd"), out.path().join("other"));
    for path in [&file, &beside] {
        std::fs::write(path, "old\n").expect("our own folder");
    }
    let master = Master::start("");
    let minion =
        master.minion_kind(Kind::Brine, "web1", "sandbox:\n  modules:\n    file:\n      grains: true   # here\n");
    let append = |path: &std::path::Path| {
        let path = path.display().to_string();
        minion.salt_call(&["--local", "--out=json", "file.append", &path, "args=new"])
    };
    let mut lines = Vec::new();
    while append(&file).code != 0 {
        let suggested = own(&minion, &["sandbox.suggest", "module=file"]);
        let line = text(&suggested[0]["line"]).to_owned();
        assert!(lines.len() < 4 && !lines.contains(&line), "{line} was granted: {lines:?} {:?}", append(&file));
        own(&minion, &["sandbox.grant", &line]);
        lines.push(line);
    }
    assert!(!lines.is_empty() && lines.iter().all(|line| line.contains("motd: r")), "{lines:?}");
    assert_eq!(std::fs::read_to_string(&file).expect("granted"), "old\nnew\n");
    assert!(append(&beside).code != 0, "the folder was granted: {lines:?}");
    assert_eq!(std::fs::read_to_string(&beside).expect("our own"), "old\n");
    // What was read in vain by the executor is listed too.
    let vain = minion.salt_call(&["--local", "file.read", "/etc/hostname"]);
    assert!(vain.code != 0, "{vain:?}");
    let all = own(&minion, &["sandbox.suggest", "module=file"]);
    assert!(text(&all[0]["line"]).contains("/etc/hostname: ro"), "{all}");
}

#[test]
fn a_line_that_is_wrong_or_wider_than_it_says_changes_nothing() {
    let master = Master::start("");
    let minion = master.minion_kind(Kind::Brine, "web1", "sandbox: {modules: {cmd: {process: false}}}");
    for (line, why) in [
        ("cmd: {process: [/usr/bin/id]}", "would replace"),
        ("cmd: {proces: [/usr/bin/id]}", "there is no such grant"),
        ("cmd: {filesystem: {/srv/../etc: rw}}", "/srv/../etc"),
        ("cmd: true", "a line is one entry"),
        ("x: {grains: true}\ny: {grains: true}", "control characters"),
        ("limits: {memory: 9}", "sandbox:modules:limits"),
        ("../x: {grains: true}", "sandbox:modules:../x"),
    ] {
        let refused = minion.salt_call(&["--local", "sandbox.grant", line]);
        assert!(refused.code != 0 && refused.stderr.contains(why), "{line}: {refused:?}");
    }
    let missing = minion.salt_call(&["--local", "sandbox.revoke", "disk: {grains: true}"]);
    assert!(missing.code != 0 && missing.stderr.contains("has no such entry"), "{missing:?}");
}

/// What runs is shown with what it uses while it runs. A master does not see what runs for others.
#[test]
fn what_runs_is_shown_to_its_owner_and_its_own_jobs_to_a_master() {
    let master = Master::start("");
    let minion = master.minion_kind(Kind::Brine, "web1", "");
    std::thread::scope(|scope| {
        let call = scope.spawn(|| minion.salt_call(&["--local", "test.sleep", "25"]));
        let job = wait_for("the call with what it uses", || {
            let running = own(&minion, &["sandbox.running"]);
            running.as_array()?.iter().find(|job| job["calls"][0]["memory"].is_u64()).cloned()
        });
        let used = &job["calls"][0];
        assert_eq!((text(&job["function"]), text(&job["from"])), ("test.sleep", "salt-call"), "{job}");
        assert!(used["memory"].as_u64() < used["memory_max"].as_u64(), "{job}");
        assert!(used["cpu_ms"].as_u64() <= used["ms"].as_u64(), "{job}");
        assert_eq!(master.json("web1", &["sandbox.running"]), json!([]), "it is none of the master's");
        call.join().expect("it ends").exits(0);
    });
    // Nothing is left of a call that has ended.
    let sockets = std::fs::read_dir(minion.path("cache/proc.running")).expect("the folder of sockets");
    assert_eq!(sockets.count(), 1, "the minion's own");
}
