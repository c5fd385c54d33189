//! Packages: the states of `pkg` and `pkgrepo` do what Salt's do. Each runs in a root of its own, which is thrown away, with a
//! repository of small packages in it; results and changes are compared state by state, and then what there is.

use std::path::Path;

use brine_kit::process::Output;
use brine_kit::throwaway::ThrowawayRoot;
use brine_tests::salt::{Kind, Minion, python};
use serde_json::{Value, json};

const HOST: &str = include_str!("host.sh");
const STEPS: &str = include_str!("steps.json");
const CONFIG: &str = "file_client: local\nlog_level: quiet";

/// Makes all calls of `state.high` in one process, because Salt takes a second or two to start.
const PYTHON: &str = "
import json, sys
import salt.client
functions = salt.client.Caller(sys.argv[1]).sminion.functions
for words in json.loads(sys.argv[2]):
    name, *args = words
    kwargs = args.pop() if args and isinstance(args[-1], dict) else {}
    functions.pack['__context__'].clear()
    print('ANSWER', json.dumps(functions[name](*args, **kwargs)), flush=True)
";

/// The calls: words, the last of which may be a dict of keywords. A state is called alone, as often as `run` says.
fn steps() -> Vec<Vec<Value>> {
    let all: Vec<Value> = serde_json::from_str(STEPS).expect("steps.json");
    let mut steps = Vec::new();
    for step in &all {
        if let Some(call) = step["call"].as_array() {
            steps.push(call.clone());
            continue;
        }
        let (state, arguments) = (step["state"].as_str().expect("a state"), step["with"].as_object());
        let (module, function) = state.split_once('.').expect("MODULE.FUNCTION");
        let arguments = arguments.into_iter().flatten().map(|(name, value)| json!({name: value}));
        let chunk: Vec<Value> = std::iter::once(json!(function)).chain(arguments).collect();
        let high = json!({step["id"].as_str().unwrap_or("it"): {module: chunk, "__sls__": "tests", "__env__": "base"}});
        // Applied once more only in the long form.
        let mut modes: Vec<&str> = step["run"].as_str().expect("how to run it").split_whitespace().collect();
        if !brine_tests::long() {
            modes.truncate(2);
        }
        for mode in modes {
            steps.push(vec![json!("state.high"), high.clone(), json!({"test": mode == "test"})]);
        }
    }
    steps
}

/// A root with the packages.
fn root(folders: &[&Path]) -> Option<ThrowawayRoot> {
    let root = ThrowawayRoot::new(folders)?;
    root.run(Path::new("/bin/sh"), &["-c", &format!("cd /\n{HOST}"), "host"]).exits(0);
    Some(root)
}

/// Removes what differs between two runs: `debconf-get-selections` prints the answers of a package in any order.
fn comparable(call: &[Value], mut answer: Value) -> Value {
    if call[0] == "debconf.show"
        && let Some(answers) = answer.as_array_mut()
    {
        answers.sort_by_key(ToString::to_string);
    }
    if let Some(results) = answer.as_object_mut() {
        for result in results.values_mut().filter_map(Value::as_object_mut) {
            result.retain(|key, _| matches!(key.as_str(), "name" | "result" | "changes" | "comment"));
        }
    }
    answer
}

/// The call as words of a command line.
fn words(call: &[Value]) -> Vec<String> {
    let mut words = vec!["--local".to_owned(), "--out=json".into(), "--".into()];
    for (index, word) in call.iter().enumerate() {
        match word {
            Value::Object(keywords) if index > 1 || call[0] != "state.high" => {
                words.extend(keywords.iter().map(|(name, value)| match value {
                    Value::String(text) => format!("{name}={text}"),
                    other => format!("{name}={other}"),
                }));
            }
            Value::String(text) => words.push(text.clone()),
            other => words.push(other.to_string()),
        }
    }
    words
}

#[test]
fn packages_are_installed_as_salt_does() {
    let brine = Minion::prepare(Kind::Brine, "m1", 1, &format!("{CONFIG}\nsandbox: {{profiles: [states]}}"));
    let salt = Minion::prepare(Kind::Python, "m1", 1, CONFIG);
    let program = Kind::Brine.program("salt-call");
    let steps = steps();
    let (Some(ours), Some(theirs)) = (root(&[brine.folder.path(), &program]), root(&[salt.folder.path(), &python()]))
    else {
        return;
    };
    let args =
        ["-W", "ignore", "-c", PYTHON, &salt.path("conf/minion").display().to_string(), &json!(steps).to_string()];
    let output = theirs.run(&python(), &args);
    let expected: Vec<Value> =
        output.stdout.lines().filter_map(|line| line.strip_prefix("ANSWER ")).map(read).collect();
    assert_eq!(expected.len(), steps.len(), "Salt's answers: {output:?}");

    let conf = brine.conf();
    let mut wrong = Vec::new();
    for (call, expected) in steps.iter().zip(expected) {
        let words = words(call);
        let args: Vec<&str> = ["-c", &conf].into_iter().chain(words.iter().map(String::as_str)).collect();
        let before = (call.last() == Some(&json!({"test": true}))).then(|| snapshot(&ours));
        let output: Output = ours.run(&program, &args);
        assert!(output.stdout.trim_start().starts_with('{'), "{}: {output:?}", json!(call));
        let answer = comparable(call, output.json()["local"].clone());
        let expected = comparable(call, expected);
        if answer != expected {
            wrong.push(format!("{}:\n  {answer}\n  in Salt\n  {expected}\n{}", json!(call), output.stderr));
        }
        if let Some(before) = before {
            assert_eq!(before, snapshot(&ours), "a dry run wrote something: {}", json!(call));
        }
    }
    assert!(wrong.is_empty(), "{} answers differ:\n{}", wrong.len(), wrong.join("\n"));
    let there = "dpkg-query -W -f '${Package} ${Version} ${Status}\\n' 'brine-*'; dpkg --get-selections 'brine-*'; \
                 cd /etc; grep -r . apt/sources.list* brine-* | sort; \
                 stat -c '%n %a %U %s' apt/keyrings/*; cksum apt/keyrings/*";
    assert_eq!(ours.shell(there), theirs.shell(there));
}

fn read(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"))
}

/// The files of the host that were written, with their times, without the minion's own.
fn snapshot(root: &ThrowawayRoot) -> String {
    root.shell("cd /run/changed && find etc usr var srv -type f -printf '%p %s %T@\\n' 2>/dev/null | sort || true")
}
