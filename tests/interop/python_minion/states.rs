//! A tree of states that Brine serves and Python compiles, and the output of `salt` for it.

use brine_kit::process::run;
use brine_tests::salt::{Kind, Master, python};
use serde_json::{Value, json};

/// Returns the output of `salt`, and the return that it shows.
fn shown(master: &Master, code: i32, args: &[&str]) -> (String, Value) {
    let mut all = vec!["--show-jid", "python"];
    all.extend(args);
    let output = master.salt(&all).exits(code).stdout;
    let (jid, text) = output.strip_prefix("jid: ").and_then(|rest| rest.split_once('\n')).expect("a jid first");
    let found = master.command("salt-run", &["--out=json", "jobs.lookup_jid", jid]).exits(0).json();
    (text.to_owned(), found["python"].clone())
}

/// Returns the output of Python's outputter for a return.
fn as_python_prints(master: &Master, ret: &Value) -> String {
    let file = master.path("return.json");
    std::fs::write(&file, json!({"python": ret}).to_string()).expect("our own folder");
    let print = "
import json, sys, salt.config, salt.output
opts = dict(salt.config.DEFAULT_MINION_OPTS, color=False, extension_modules='', optimization_order=[0], conf_file='')
print(salt.output.out_format(json.load(open(sys.argv[1])), 'highstate', opts))
";
    run(&python(), &["-c", print, &file.display().to_string()]).exits(0).stdout
}

#[test]
fn states_are_served_applied_and_shown() {
    let master = Master::start("timeout: 60");
    let minion = master.minion_kind(Kind::Python, "python", "");
    let out = minion.path("out").display().to_string();
    master.serve("top.sls", b"base:\n  'python':\n    - web\n  'other*':\n    - nothing\n");
    let web = format!(
        "{{% set motd = '{out}/motd' %}}
include:
  - web.folder

{{{{ motd }}}}:
  file.managed:
    - source: salt://web/templates/motd.j2
    - template: jinja
    - context: {{who: ünïcödé}}
    - require:
      - file: {out}

shown:
  cmd.run:
    - name: cat {{{{ motd }}}}
    - onchanges:
      - file: {{{{ motd }}}}
"
    );
    master.serve("web/init.sls", web.as_bytes());
    master.serve("web/folder.sls", format!("{out}:\n  file.directory: []\n").as_bytes());
    master.serve("web/templates/motd.j2", b"Hello {{ who }} on {{ grains['id'] }}\n");
    master.serve(
        "broken.sls",
        b"fails:\n  test.fail_without_changes: []\nafter:\n  test.nop:\n    - require:\n      - test: fails\n",
    );

    assert_eq!(master.json("python", &["cp.list_states"]), json!(["broken", "top", "web", "web.folder"]));
    assert_eq!(master.json("python", &["state.show_top"]), json!({"base": ["web"]}));
    let dry = master.salt(&["python", "state.apply", "test=True"]).exits(0);
    assert!(dry.stdout.contains("Succeeded: 3 (unchanged="), "{}", dry.stdout);
    assert!(!minion.path("out").exists());

    let first = master.salt(&["python", "state.apply"]).exits(0);
    assert!(first.stdout.contains("Hello ünïcödé on python"), "{}", first.stdout);
    assert!(first.stdout.contains("Succeeded: 3 (changed=3)\nFailed:    0\n"), "{}", first.stdout);
    let motd = std::fs::read_to_string(minion.path("out/motd")).expect("the state wrote it");
    assert_eq!(motd, "Hello ünïcödé on python\n");

    let (text, ret) = shown(&master, 0, &["state.highstate"]);
    assert_eq!(text, as_python_prints(&master, &ret));
    assert!(text.contains("Succeeded: 3\n"), "{text}");
    let terse = master.salt(&["--state-output=terse", "--state-verbose=True", "python", "state.highstate"]).exits(0);
    let line = format!(" Name: {out} - Function: file.directory - Result: Clean - Started: ");
    assert!(terse.stdout.contains(&line), "{}", terse.stdout);

    let (text, ret) = shown(&master, 1, &["state.apply", "broken"]);
    assert_eq!(text, as_python_prints(&master, &ret));
    assert!(text.contains("Succeeded: 0\nFailed:    2\n"), "{text}");
    let none = master.salt(&["python", "state.apply", "none"]).exits(1);
    assert!(none.stdout.contains("Data failed to compile:"), "{}", none.stdout);
    assert!(none.stdout.contains("No matching sls found for 'none' in env 'base'"), "{}", none.stdout);
    let single = master.json("python", &["state.single", "test.succeed_with_changes", "name=x"]);
    assert_eq!(single["test_|-x_|-x_|-succeed_with_changes"]["result"], json!(true));
}
