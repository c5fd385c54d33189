//! Commands, functions as states, services, repositories and Python's packages: the states of `cmd`, `module`, `service`, `git` and `pip` do
//! what Salt's do, each in a root of its own that is thrown away. Results, comments and changes are compared state by state, in a dry run, an
//! apply and another.

use std::path::Path;

use brine_kit::throwaway::ThrowawayRoot;
use brine_tests::long;
use brine_tests::salt::{Kind, Minion, python};
use serde_json::{Value, json};

const CONFIG: &str = "file_client: local\nlog_level: quiet";

/// Makes all runs in one process, because Salt takes a second or two to start.
const PYTHON: &str = "
import json, os, sys
os.chdir('/')
import salt.client
functions = salt.client.Caller(sys.argv[1]).sminion.functions
for high, test in json.loads(sys.argv[2]):
    print('ANSWER', json.dumps(functions['state.high'](high, test=test), default=sorted), flush=True)
";

/// A run: high data, and whether it is dry.
type Step = (Value, bool);

/// The steps of a file: a list of runs, each a dict of ids with `MODULE.STATE` and its arguments, run dry, then for real, then, with
/// `BRINE_LONG`, again.
fn steps(file: &str) -> Vec<Step> {
    let runs: Vec<Value> = serde_json::from_str(file).expect("a list of runs");
    let high = |run: &Value| {
        let chunks = run.as_object().expect("a dict of ids").iter().map(|(id, chunk)| {
            let (state, arguments) = chunk.as_object().and_then(|chunk| chunk.iter().next()).expect("a state");
            let (module, function) = state.split_once('.').expect("MODULE.STATE");
            let mut list = vec![json!(function)];
            list.extend(arguments.as_object().expect("arguments").iter().map(|(name, value)| json!({name: value})));
            (id.clone(), json!({module: list, "__sls__": "tests", "__env__": "base"}))
        });
        Value::Object(chunks.collect())
    };
    let dry = if long() { &[true, false, false][..] } else { &[true, false] };
    runs.iter().flat_map(|run| dry.iter().map(|dry| (high(run), *dry)).collect::<Vec<_>>()).collect()
}

/// Without what differs between two runs.
fn comparable(mut answer: Value) -> Value {
    for result in answer.as_object_mut().into_iter().flat_map(|results| results.values_mut()) {
        let Some(fields) = result.as_object_mut() else { continue };
        fields.retain(|key, _| matches!(key.as_str(), "name" | "result" | "changes" | "comment" | "__run_num__"));
        if let Some(changes) = fields.get_mut("changes").and_then(Value::as_object_mut) {
            changes.remove("pid");
        }
    }
    answer
}

/// Runs the steps in two roots that `host` prepared, ours and Salt's, and compares. Returns both for further looks.
fn compare(host: &str, steps: &[Step]) -> Option<[ThrowawayRoot; 2]> {
    let brine = Minion::prepare(Kind::Brine, "m1", 1, &format!("{CONFIG}\nsandbox: {{profiles: [states]}}"));
    let salt = Minion::prepare(Kind::Python, "m1", 1, CONFIG);
    let call = Kind::Brine.program("salt-call");
    let prepared = |folders: &[&Path]| {
        let root = ThrowawayRoot::new(folders)?;
        root.shell(host);
        Some(root)
    };
    let ours = prepared(&[brine.folder.path(), &call])?;
    let theirs = prepared(&[salt.folder.path(), &python()])?;
    let conf = salt.path("conf/minion").display().to_string();
    // What this machine tells pip counts on neither side.
    let pips = std::env::vars().map(|(name, _)| name).filter(|name| name.starts_with("PIP_"));
    let without: Vec<String> = pips.flat_map(|name| ["-u".to_owned(), name]).collect();
    let (python, steps_text) = (python().display().to_string(), json!(steps).to_string());
    let script = [python.as_str(), "-W", "ignore", "-c", PYTHON, &conf, &steps_text];
    let line: Vec<&str> = without.iter().map(String::as_str).chain(script).collect();
    let output = theirs.run(Path::new("/usr/bin/env"), &line);
    let answers = output.stdout.lines().filter_map(|line| line.strip_prefix("ANSWER "));
    let expected: Vec<Value> = answers.map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(expected.len(), steps.len(), "Salt's answers: {output:?}");
    let conf = brine.conf();
    let mut wrong = Vec::new();
    for ((high, dry), expected) in steps.iter().zip(expected) {
        let (high, dry) = (high.to_string(), format!("test={}", if *dry { "True" } else { "False" }));
        let output = ours.run(&call, &["-c", &conf, "--local", "--out=json", "state.high", &high, &dry]);
        let (answer, expected) = (comparable(output.json()["local"].clone()), comparable(expected));
        let tags = expected.as_object().expect("results").keys();
        wrong.extend(
            tags.filter(|tag| answer[*tag] != expected[*tag])
                .map(|tag| format!("{tag} {dry}\n  {}\n  in Salt {}", answer[tag], expected[tag])),
        );
        assert_eq!(
            answer.as_object().map(serde_json::Map::len),
            expected.as_object().map(serde_json::Map::len),
            "{answer}"
        );
    }
    assert!(wrong.is_empty(), "{} results differ:\n{}", wrong.len(), wrong.join("\n"));
    Some([ours, theirs])
}

#[test]
fn commands_and_functions_run_as_in_salt() {
    compare(include_str!("commands.sh"), &steps(include_str!("commands.json")));
}

#[test]
fn services_of_init_scripts_are_as_in_salt() {
    let Some([ours, theirs]) = compare(include_str!("init.sh"), &steps(include_str!("init.json"))) else { return };
    // What the script was told, without the questions, is the same; and what it started stayed.
    let told = "grep -v status /var/log/brined";
    assert_eq!(ours.shell(told), theirs.shell(told));
}

#[test]
fn units_of_systemd_are_as_in_salt() {
    let Some([ours, theirs]) = compare(include_str!("systemd.sh"), &steps(include_str!("systemd.json"))) else {
        return;
    };
    let there = "ls -l /run/units /etc/systemd/system/multi-user.target.wants | awk '{print $9}'; find /etc/systemd/system -lname /dev/null";
    assert_eq!(ours.shell(there), theirs.shell(there));
}

#[test]
fn repositories_are_as_in_salt() {
    let Some([ours, theirs]) = compare(include_str!("git.sh"), &steps(include_str!("git.json"))) else { return };
    // The same commits, branches, files and settings; and a dry run and what is refused left nothing.
    let there = "for repository in /opt/* /home/ada/app; do [ ! -e $repository/HEAD -a ! -e $repository/.git ] || (cd $repository; \
                 pwd; git rev-parse HEAD 2>&1 || true; git for-each-ref; git status --short 2>&1 || true; git config --local --list); done; \
                 cat /home/ada/.gitconfig; find /opt /srv /home/ada -maxdepth 2 | LC_ALL=C sort";
    assert_eq!(ours.shell(there), theirs.shell(there));
}

#[test]
fn packages_of_python_are_as_in_salt() {
    // Each state starts pip several times, which takes a second each time.
    let mut steps = steps(include_str!("pip.json"));
    if !long() {
        steps.retain(|(_, dry)| !dry);
    }
    let Some([ours, theirs]) = compare(include_str!("pip.sh"), &steps) else { return };
    let there = "for venv in venv other; do /opt/$venv/bin/python -m pip list; done";
    assert_eq!(ours.shell(there), theirs.shell(there));
}
