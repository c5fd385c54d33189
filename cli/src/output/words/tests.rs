use brine_protocol::value::{Value, from_json};
use serde_json::json;

use crate::output::{Outputter, Style};

#[expect(clippy::needless_pass_by_value, reason = "made by json! at each call")]
fn shown(fun: &str, value: serde_json::Value, color: bool) -> String {
    let outputter = Outputter::by_name(Outputter::of_function(fun)).expect("an outputter");
    let minions = Value::Map(vec![(Value::from("web1"), from_json(&value))]);
    outputter.render(&minions, &Style { color, visible: color, ..Style::default() })
}

#[test]
fn a_function_has_its_own_words() {
    assert_eq!(Outputter::of_function("sandbox.list"), "sandbox.list");
    assert_eq!(Outputter::of_function("test.ping"), "");
    // Any other answer is shown as it is, an error too.
    assert_eq!(shown("sandbox.list", json!("no"), false), "web1:\n    no");
    assert_eq!(shown("sandbox.check", json!({"a": 1}), false), "web1:\n    ----------\n    a:\n        1");
}

#[test]
fn the_list_is_a_table() {
    let list = json!({
        "cmd": {"version": "1.0.0", "origin": "standard", "signed_by": [], "missing": true, "usable": true},
        "deploy": {"version": "2.0.0", "origin": "salt://_modules/deploy.wasm (environment base)", "signed_by": ["ops.pub"], "missing": false,
                   "usable": true, "held": true},
        "test": {"version": "1.0.0", "origin": "standard", "signed_by": [], "missing": false, "usable": true},
    });
    let text = shown("sandbox.list", list.clone(), false);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "web1:");
    assert!(lines[1].starts_with("    module  version  from") && lines[1].ends_with("state"), "{text}");
    assert!(text.contains("update is held") && text.contains("3 modules, 1 to look at."), "{text}");
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{text}");
    // Colour for what needs a look, and for nothing else.
    let coloured = shown("sandbox.list", list, true);
    let marked: Vec<&str> = coloured.lines().filter(|line| line.contains('\x1b')).collect();
    assert!(!marked.is_empty() && marked[0].contains("deploy"), "{coloured}");
    assert!(
        coloured
            .lines()
            .filter(|line| line.contains("cmd") || line.contains("test "))
            .all(|line| !line.contains('\x1b'))
    );
}

#[test]
fn a_module_says_what_it_wants() {
    let show = json!({
        "name": "cmd", "usable": true, "version": "1.0.0", "sha256": "ab".repeat(32), "origin": "standard", "signed_by": [],
        "words": ["wants to run programs: may run /usr/bin/uptime; may not run anything else"],
        "has": {"all": {}, "cmd.run": {}}, "from_profiles": {}, "profiles": {"observe": "It opens. It cannot."},
        "missing": ["cmd: {files: []}"], "notes": [],
    });
    let text = shown("sandbox.show", show, false);
    for expect in [
        "cmd 1.0.0, of Brine's package.",
        "- wants to run programs: may run /usr/bin/uptime; may not run anything else",
        "By the profile observe: It opens. It cannot.",
        "Other grants hold for cmd.run",
        "    cmd: {files: []}",
    ] {
        assert!(text.contains(expect), "{text}");
    }
    let left_out = json!({"name": "x", "usable": false, "left_out": {"why": "it is broken", "lines": "a: 1\nb: 2"}});
    let text = shown("sandbox.show", left_out, false);
    assert!(
        text.contains("x is not usable here.") && text.contains("it is broken") && text.contains("\n    b: 2"),
        "{text}"
    );
}

#[test]
fn a_profile_is_two_sentences() {
    let profile = json!({"name": "observe", "from": "Brine's package", "opens": "It opens.", "cannot": "It cannot.", "never": [],
                         "in_force": false, "line": "profiles: [observe]", "grants": {}});
    let text = shown("sandbox.show", profile, false);
    assert!(text.contains("    It opens. It cannot.\n") && text.ends_with("    profiles: [observe]"), "{text}");
}

#[test]
fn the_check_and_a_held_update_are_paragraphs() {
    let check = json!({
        "executors": [{"pid": 7, "reaches": {"filesystem": {"/srv": "ro"}, "network": [], "user": null},
                       "walls": {"uid": 1, "seccomp": true, "landlock": false}, "lacking": ["landlock"], "notes": []}],
        "findings": ["there is no program /x"], "profiles": ["observe"],
        "last_syncs": {"base": {"at": "2026-11-27 00:00:00", "age_s": 5, "master": "ab"}},
    });
    for (counts, line) in [
        (json!({"different": 0, "times": 0, "left_out": 0}), "Nothing was refused."),
        (json!({"different": 1, "times": 1, "left_out": 0}), "Once something was refused. sandbox.refusals lists 1."),
        (
            json!({"different": 64, "times": 9_000, "left_out": 8_000}),
            "9000 times something was refused. sandbox.refusals lists 64, without 8000\n    times that it had no room for.",
        ),
    ] {
        let mut check = check.clone();
        check["refusals"] = counts;
        let text = shown("sandbox.check", check, false);
        assert!(text.contains(line), "{text}");
    }
    let text = shown("sandbox.check", check, true);
    assert!(text.contains("/srv (ro)") && text.contains("Profiles in force: observe."), "{text}");
    assert!(text.contains("\x1b[0;1;33m- there is no program /x"), "{text}");
    let version = json!({"version": "2.0.0", "sha256": "cd".repeat(32), "size": 1, "origin": "x", "signed_by": [], "signed": null});
    let diff = json!({
        "name": "deploy", "why": "it asks for more", "in_use": null, "held": version,
        "functions": {"added": ["deploy.x()"], "removed": [], "changed": []},
        "permissions": {"added": {"brine:host/process": "run programs"}, "removed": {}},
        "lines": "deploy: {process: []}", "approve": "salt-call --local sandbox.approve deploy cdcd",
    });
    let text = shown("sandbox.diff", diff, false);
    assert!(text.contains("- run programs (brine:host/process)") && text.contains("New functions:"), "{text}");
    assert!(text.ends_with("    salt-call --local sandbox.approve deploy cdcd"), "{text}");
}

#[test]
fn refusals_and_what_would_grant_them() {
    let refusals = json!([
        {"time": "2026-11-27 10:00:00", "first": "2026-11-27 09:00:00", "times": 3, "master": null, "jid": "1", "module": "cmd",
         "function": "cmd.run", "what": "run /usr/bin/\u{1b}[2Jwhoami", "line": "cmd: {process: [/usr/bin/whoami]}"},
    ]);
    let text = shown("sandbox.refusals", refusals, false);
    assert!(text.contains("cmd.run") && text.contains("One was refused.") && !text.contains('\x1b'), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert_eq!(shown("sandbox.refusals", json!([]), false), "web1:\n    Nothing was refused.");
    let flood = json!([
        {"time": "2026-11-27 10:00:00", "times": 1, "function": "cmd.run", "what": "run /bin/x"},
        {"time": "2026-11-27 10:00:00", "times": 49_936, "function": "", "what": "others: the list had no room for them"},
    ]);
    let text = shown("sandbox.refusals", flood, false);
    assert!(text.contains("no room for them  49936") && text.contains("One was refused."), "{text}");
    let suggested = json!([
        {"line": "cmd: {process: [/bin/sh]}", "risk": "high: /bin/sh runs what it is told", "wanted": ["run /bin/sh"],
         "functions": ["cmd.run"], "jobs": ["1", "2", "3", "4", "5"], "times": 7, "last": "2026-11-27 10:00:00",
         "grant": "salt-call --local sandbox.grant 'cmd: {process: [/bin/sh]}'"},
    ]);
    let text = shown("sandbox.suggest", suggested.clone(), false);
    for expect in [
        "    salt-call --local sandbox.grant 'cmd: {process: [/bin/sh]}'\n",
        "Wanted 7 times by cmd.run: 'run /bin/sh'; jobs 1, 2, 3 and 2 more.",
        "Risk high: /bin/sh runs what it is told.",
    ] {
        assert!(text.contains(expect), "{expect}: {text}");
    }
    // What a module wants or a job calls cannot pass for the rest of the sentence.
    let mut odd = suggested.clone();
    odd[0]["wanted"] = json!(["run /x; jobs 1. Risk low: it's fine"]);
    odd[0]["functions"] = json!(["cmd.x: 'y'; jobs 2"]);
    odd[0]["jobs"] = json!(["1. Risk low"]);
    let odd = shown("sandbox.suggest", odd, false).split_whitespace().collect::<Vec<_>>().join(" ");
    let expect = r#"by "cmd.x: 'y'; jobs 2": "run /x; jobs 1. Risk low: it's fine"; jobs '1. Risk low'."#;
    assert!(odd.contains(expect), "{odd}");
    let coloured = shown("sandbox.suggest", suggested, true);
    assert!(coloured.lines().filter(|line| line.contains('\x1b')).all(|line| line.contains("Risk")), "{coloured}");
    let changed =
        json!({"file": "/etc/salt/minion", "diff": "-a: 1\n+a: 2", "written": false, "risk": "low: it reads"});
    let text = shown("sandbox.grant", changed, false);
    assert!(text.contains("In /etc/salt/minion this would change:\n    -a: 1\n    +a: 2"), "{text}");
}

#[test]
fn what_runs_is_a_line_for_each_call() {
    let running = json!([
        {"jid": "20261126100000000001", "function": "state.apply", "user": "root", "from": "master", "master": "aa", "pid": 1, "calls": [
            {"function": "state.apply", "called_by": null, "ms": 1_900, "ms_max": 60_000, "memory": 1, "memory_max": 64 << 20,
             "cpu_ms": 400, "cpu_ms_max": 30_000},
            {"function": "cmd.run\u{1b}[2J", "called_by": "state.apply", "ms": 0, "ms_max": 60_000, "memory": null,
             "memory_max": 64 << 20, "cpu_ms": null, "cpu_ms_max": 30_000},
        ]},
        {"jid": "20261126100000000002", "function": "test.ping", "user": "root", "from": "master", "master": "aa", "pid": 1, "calls": []},
    ]);
    let text = shown("sandbox.running", running, false);
    for expect in ["state.apply", "1/60 s", "1/64 MiB", "0.4/30 s", "+ cmd.run", "20261126100000000002  test.ping"] {
        assert!(text.contains(expect), "{expect}: {text}");
    }
    assert!(!text.contains('\x1b') && text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert_eq!(shown("sandbox.running", json!([]), false), "web1:\n    Nothing runs.");
}
