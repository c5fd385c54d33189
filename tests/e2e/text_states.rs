//! States that edit text: what stock Salt made of each of them is in `text_states/answers.json`
//! (`tests/interop/python/text_states.py`), and input that means harm.

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use brine_kit::throwaway::ThrowawayRoot;
use brine_tests::salt::{Kind, Minion};
use serde_json::{Map, Value, json};

const CASES: &str = include_str!("text_states/cases.json");
/// States of `/etc/hosts`, keys and kernel parameters in a row, with stock Salt's answers (`tests/interop/python/host_states.py`).
const HOST: &str = include_str!("text_states/host.json");
const ANSWERS: &str = include_str!("text_states/answers.json");

/// A minion whose modules may change this folder.
fn minion(root: &Path) -> Minion {
    let grant = format!("{{changes: {{{}: rw}}}}", root.display());
    let config = format!("sandbox:\n  modules:\n    file.states: {grant}\n    ini.states: {grant}\n");
    Minion::prepare(Kind::Brine, "web1", 1, &config)
}

/// States by id: the module and function, and the arguments.
fn apply(minion: &Minion, states: &[(String, String, Map<String, Value>)], test: bool) -> BTreeMap<String, Value> {
    let mut high = Map::new();
    for (id, state, arguments) in states {
        let (module, function) = state.split_once('.').expect("MODULE.FUNCTION");
        let arguments = arguments.iter().map(|(name, value)| json!({name: value}));
        let state: Vec<Value> = std::iter::once(json!(function)).chain(arguments).collect();
        high.insert(id.clone(), json!({module: state, "__sls__": "cases", "__env__": "base"}));
    }
    let high = Value::Object(high).to_string();
    let test = format!("test={}", if test { "True" } else { "False" });
    let returned = minion.salt_call(&["--local", "--out=json", "state.high", &high, &test]).json();
    let results = returned["local"].as_object().unwrap_or_else(|| panic!("no results: {returned}"));
    results
        .iter()
        .map(|(tag, result)| (tag.split("_|-").nth(1).expect("what the test itself made").to_owned(), result.clone()))
        .collect()
}

fn lay(cases: &[Value], root: &Path) {
    for case in cases {
        if let Some(content) = case["content"].as_str() {
            std::fs::write(root.join(case["id"].as_str().expect("what the test itself made")), content)
                .expect("what the test itself made");
        }
    }
}

/// The files of a case: the ends of their names, with content and mode.
fn files(root: &Path, id: &str) -> Value {
    let mut found = Map::new();
    for entry in std::fs::read_dir(root).expect("what the test itself made") {
        let path = entry.expect("what the test itself made").path();
        let name = path.file_name().expect("what the test itself made").to_str().expect("what the test itself made");
        let Some(end) = name.strip_prefix(id).filter(|end| end.is_empty() || end.starts_with('.')) else { continue };
        if path.is_file() {
            let mode =
                format!("{:o}", path.metadata().expect("what the test itself made").permissions().mode() & 0o7777);
            found.insert(
                end.to_owned(),
                json!([std::fs::read_to_string(&path).expect("what the test itself made"), mode]),
            );
        }
    }
    Value::Object(found)
}

/// What is compared of a result: in Brine, what Salt raises is one line.
fn told(result: &Value, root: &Path) -> Value {
    let comment = result["comment"].as_str().unwrap_or_default();
    let comment = match comment.strip_prefix("An exception occurred in this state: ") {
        Some(why) => format!("EXC {why}"),
        None => comment.to_owned(),
    };
    let told = json!([result["result"], comment, result["changes"]]).to_string();
    serde_json::from_str(&told.replace(root.to_str().expect("what the test itself made"), "ROOT"))
        .expect("what the test itself made")
}

/// One run with test=True, after which every file is as it was, and one without.
#[test]
fn states_that_edit_text_do_as_stock_salt() {
    let folder = tempfile::tempdir().expect("what the test itself made");
    let root = folder.path().canonicalize().expect("what the test itself made");
    let minion = minion(&root);
    let cases: Vec<Value> = serde_json::from_str(CASES).expect("what the test itself made");
    let answers: Map<String, Value> = serde_json::from_str(ANSWERS).expect("what the test itself made");
    let states: Vec<_> = cases
        .iter()
        .map(|case| {
            let id = case["id"].as_str().expect("what the test itself made");
            let arguments = case["args"].to_string().replace("ROOT", root.to_str().expect("what the test itself made"));
            let mut arguments: Map<String, Value> =
                serde_json::from_str(&arguments).expect("what the test itself made");
            arguments.entry("name").or_insert_with(|| json!(root.join(id)));
            (id.to_owned(), case["state"].as_str().expect("what the test itself made").to_owned(), arguments)
        })
        .collect();
    lay(&cases, &root);
    let dry = apply(&minion, &states, true);
    for case in &cases {
        let id = case["id"].as_str().expect("what the test itself made");
        let expect = case["content"].as_str().map_or(json!({}), |content| json!({"": [content, "644"]}));
        assert_eq!(files(&root, id), expect, "{id} changed with test=True");
    }
    let applied = apply(&minion, &states, false);
    let mut wrong = Vec::new();
    for (id, ..) in &states {
        let is = json!({
            "test": dry.get(id).map(|result| told(result, &root)),
            "apply": applied.get(id).map(|result| told(result, &root)),
            "files": files(&root, id),
        });
        for part in ["test", "apply", "files"] {
            if is[part] != answers[id][part] {
                wrong.push(format!("{id}, {part}:\n  Brine {}\n  Salt  {}", is[part], answers[id][part]));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), 3 * states.len(), wrong.join("\n"));
    // Applied again, nothing changes that Salt would change but once.
    let again = apply(&minion, &states, false);
    let kept =
        ["replace_one", "append_list", "block", "kv_many", "comment", "uncomment", "ini_opts", "ser_merge", "decode"];
    for id in kept {
        assert_eq!((&again[id]["result"], &again[id]["changes"]), (&json!(true), &json!({})), "{id}");
    }
}

/// What is granted is the profile `states`, and one place more.
#[test]
fn states_of_hosts_and_keys_do_as_stock_salt() {
    let config = "sandbox:\n  profiles: [states]\n  modules:\n    ssh_auth.states:\n      changes: {/etc/passwd: ro, \
                  /home: rw, /root/.ssh: rw, /etc/ssh/keys: rw}\n";
    let minion = Minion::prepare(Kind::Brine, "web1", 1, config);
    let programs = Kind::Brine.program("salt-call");
    let cases: Vec<Value> = serde_json::from_str(HOST).expect("what the test itself made");
    let mut high = Map::new();
    for case in &cases {
        let (module, function) = case["state"]
            .as_str()
            .expect("what the test itself made")
            .split_once('.')
            .expect("what the test itself made");
        let mut state = vec![json!(function), json!({"order": high.len() + 1})];
        state.extend(
            case["args"]
                .as_object()
                .expect("what the test itself made")
                .iter()
                .map(|(name, value)| json!({name: value})),
        );
        high.insert(
            case["id"].as_str().expect("what the test itself made").into(),
            json!({module: state, "__sls__": "cases", "__env__": "base"}),
        );
    }
    let high = Value::Object(high).to_string();
    for (part, test) in [("test", "test=True"), ("apply", "test=False")] {
        let Some(root) =
            ThrowawayRoot::new(&[minion.folder.path(), programs.parent().expect("what the test itself made")])
        else {
            return;
        };
        root.shell(r"rm -rf /root/.ssh; printf '127.0.0.1\tlocalhost\n# own\n\n10.0.0.9 old # c\n' > /etc/hosts");
        let before = root.shell("cat /etc/hosts");
        let call = ["-c", &minion.conf(), "--local", "--out=json", "state.high", &high, test];
        let returned = root.run(&programs, &call).json();
        let results = returned["local"].as_object().unwrap_or_else(|| panic!("no results: {returned}"));
        for case in &cases {
            let id = case["id"].as_str().expect("what the test itself made");
            let (_, result) =
                results.iter().find(|(tag, _)| tag.split("_|-").nth(1) == Some(id)).expect("what the test itself made");
            let mut told = told(result, Path::new("ROOT"));
            let warnings = result.get("warnings").cloned().unwrap_or_else(|| json!([]));
            told.as_array_mut().expect("what the test itself made").push(warnings);
            assert_eq!(told, case[part], "{id}, {part}");
        }
        if part == "test" {
            assert_eq!(root.shell("cat /etc/hosts; ls -d /root/.ssh 2>/dev/null || true"), before);
        } else {
            let files = "cat /etc/hosts; cd /root/.ssh; stat -c '%a %U' . authorized_keys; cat authorized_keys";
            let hosts = "127.0.0.1\t\tlocalhost\n# own\n10.0.0.9\t\told\t\t# c\n";
            let written = root.shell(files);
            assert!(written.starts_with(hosts), "{written}");
            assert!(written.ends_with("700 root\n600 root\nssh-rsa AAAA x\n"), "{written}");
        }
    }
}

/// Text that earlier states leave for a file is in its block, and in the context of its template.
#[test]
fn accumulated_text_reaches_the_states_that_it_is_for() {
    let folder = tempfile::tempdir().expect("what the test itself made");
    let root = folder.path().canonicalize().expect("what the test itself made");
    let minion = minion(&root);
    let (block, managed) = (root.join("block"), root.join("managed"));
    std::fs::write(&block, "#S\n#E\n").expect("what the test itself made");
    let state = |id: &str, state: &str, arguments: Value| match arguments {
        Value::Object(arguments) => (id.to_owned(), state.to_owned(), arguments),
        _ => panic!("no arguments"),
    };
    let states = [
        state(
            "one",
            "file.accumulated",
            json!({"name": "acc", "filename": block, "text": ["b", "c"], "require_in": [{"file": "block"}]}),
        ),
        state(
            "two",
            "file.accumulated",
            json!({"name": "acc", "filename": block, "text": "b", "require_in": [{"file": "block"}], "require": [{"file": "one"}]}),
        ),
        state(
            "other",
            "file.accumulated",
            json!({"name": "not", "filename": block, "text": "z", "require_in": [{"file": "managed"}]}),
        ),
        state(
            "three",
            "file.accumulated",
            json!({"name": "acc", "filename": managed, "text": ["x", "y"], "require_in": [{"file": "managed"}]}),
        ),
        state(
            "block",
            "file.blockreplace",
            json!({"name": block, "marker_start": "#S", "marker_end": "#E", "content": "a"}),
        ),
        state(
            "managed",
            "file.managed",
            json!({"name": managed, "template": "jinja", "contents": "{{ accumulator['acc'] | join('+') }}"}),
        ),
    ];
    let results = apply(&minion, &states, false);
    for (id, result) in &results {
        assert_eq!(result["result"], json!(true), "{id}: {result}");
    }
    let said = |id: &str| results[id]["comment"].as_str().expect("what the test itself made").to_owned();
    assert_eq!(said("one"), format!("Accumulator acc for file {} was charged by text", block.display()));
    assert_eq!(said("two"), "");
    assert_eq!(std::fs::read_to_string(&block).expect("what the test itself made"), "#S\na\nb\nc\n#E\n");
    assert_eq!(std::fs::read_to_string(&managed).expect("what the test itself made"), "x+y\n");
}

/// An expression that explodes, a file that is too large, a link out of the grant, bytes that are no text, arguments that
/// are none: each is a failed result that says why, and changes nothing; the other states go on.
#[test]
fn input_that_means_harm_is_refused() {
    let folder = tempfile::tempdir().expect("what the test itself made");
    let root = folder.path().canonicalize().expect("what the test itself made").join("granted");
    std::fs::create_dir(&root).expect("what the test itself made");
    let minion = minion(&root);
    std::fs::write(root.join("a"), "a".repeat(64)).expect("what the test itself made");
    std::fs::write(root.join("many"), "a".repeat(1 << 16)).expect("what the test itself made");
    std::fs::write(root.join("latin1"), b"caf\xe9 x\n").expect("what the test itself made");
    // A file of 100 MiB, without its blocks.
    std::fs::File::create(root.join("large"))
        .expect("what the test itself made")
        .set_len(100 << 20)
        .expect("what the test itself made");
    let outside = folder.path().join("outside");
    std::fs::write(&outside, "a = 1\n").expect("what the test itself made");
    symlink(&outside, root.join("link")).expect("what the test itself made");
    std::fs::write(root.join("b"), "a = 1\n").expect("what the test itself made");
    symlink(&outside, root.join("b.bak")).expect("what the test itself made");
    let explodes = "(a|aa)+(?!a)b";
    let fail = [
        ("a", "file.replace", json!({"pattern": explodes, "repl": ""}), "Max limit for backtracking"),
        ("a", "file.line", json!({"mode": "delete", "match": explodes}), "Max limit for backtracking"),
        ("a", "file.comment", json!({"regex": explodes}), "Max limit for backtracking"),
        ("a", "file.replace", json!({"pattern": "(", "repl": ""}), "unterminated subpattern"),
        ("a", "file.replace", json!({"pattern": "((a{999}){999}){999}", "repl": ""}), "Error compiling regex"),
        ("many", "file.replace", json!({"pattern": "a", "repl": "x".repeat(1 << 10)}), "more than"),
        ("large", "file.replace", json!({"pattern": "a", "repl": "b"}), "104857600 bytes"),
        ("large", "file.append", json!({"text": "a"}), "104857600 bytes"),
        ("large", "file.blockreplace", json!({"content": "a", "append_if_not_found": true}), "104857600 bytes"),
        ("large", "file.keyvalue", json!({"key": "a", "value": "b"}), "104857600 bytes"),
        ("large", "ini.options_present", json!({"sections": {"a": {"b": "c"}}}), "104857600 bytes"),
        // What a link leads to outside of the grant is neither read nor changed.
        ("link", "file.replace", json!({"pattern": "a", "repl": "b"}), "may not"),
        ("link", "file.append", json!({"text": "b"}), "may not"),
        ("link", "file.serialize", json!({"dataset": {"a": 1}, "merge_if_exists": true}), "may not"),
        ("link", "ini.options_present", json!({"sections": {"a": {"b": "c"}}}), "may not"),
        ("latin1", "file.line", json!({"mode": "delete", "match": "y"}), "can't decode byte 0xe9"),
        ("latin1", "file.replace", json!({"pattern": "a", "repl": "b", "nonsense": 1}), "nonsense"),
    ];
    // Salt empties the file that is no text; here bytes are replaced. A link in the place of a backup is replaced.
    let succeed = [
        ("latin1", "file.replace", json!({"pattern": "x", "repl": "y"})),
        ("b", "file.replace", json!({"pattern": "a", "repl": "b"})),
    ];
    let state = |id: String, name: &str, state: &str, arguments: &Value| {
        let Value::Object(mut arguments) = arguments.clone() else { panic!("no arguments") };
        arguments.insert("name".into(), json!(root.join(name)));
        (id, state.to_owned(), arguments)
    };
    let failing = fail
        .iter()
        .enumerate()
        .map(|(at, (name, function, arguments, _))| state(format!("fails{at}"), name, function, arguments));
    let succeeding = succeed.iter().map(|(name, function, arguments)| state((*name).into(), name, function, arguments));
    let results = apply(&minion, &failing.chain(succeeding).collect::<Vec<_>>(), false);
    for (at, (name, function, _, expect)) in fail.iter().enumerate() {
        let result = &results[&format!("fails{at}")];
        let comment = result["comment"].as_str().unwrap_or_default();
        assert_eq!((&result["result"], &result["changes"]), (&json!(false), &json!({})), "{function} {name}: {result}");
        assert!(comment.contains(expect), "{function} {name}: {expect} in {comment}");
    }
    for (name, ..) in succeed {
        assert_eq!(results[name]["result"], json!(true), "{}", results[name]);
    }
    assert_eq!(std::fs::read(root.join("latin1")).expect("what the test itself made"), b"caf\xe9 y\n");
    assert_eq!(std::fs::read_to_string(root.join("b.bak")).expect("what the test itself made"), "a = 1\n");
    assert_eq!(std::fs::read_to_string(root.join("b")).expect("what the test itself made"), "b = 1\n");
    assert_eq!(std::fs::read_to_string(&outside).expect("what the test itself made"), "a = 1\n");
}
