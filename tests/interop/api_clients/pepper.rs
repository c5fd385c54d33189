//! pepper 0.7.6: what its options do, with the answers of our salt-api.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use brine_kit::needs::missing;
use brine_kit::process::{Output, run_with};
use brine_kit::programs::program_folder;
use serde_json::{Value, json};

use super::{Api, PASSWORD, start};

/// pepper, in a virtual environment of its own. Beside Salt it would print as Salt's outputters do.
fn installed() -> Option<PathBuf> {
    let path = program_folder().join("../venv/pepper/bin/pepper");
    if path.exists() {
        return Some(path);
    }
    missing("pepper", "run `make venv`");
    None
}

struct Pepper {
    program: PathBuf,
    api: Api,
}

impl Pepper {
    fn run_as(&self, password: &str, words: &[&str]) -> Output {
        let home = self.api.master.path("").display().to_string();
        let environment = [
            ("HOME", home.as_str()),
            ("SALTAPI_URL", &self.api.url),
            ("SALTAPI_USER", "ann"),
            ("SALTAPI_PASS", password),
            ("SALTAPI_EAUTH", "sharedsecret"),
            ("PYTHONDONTWRITEBYTECODE", "1"),
        ];
        let mut all = vec!["--ignore-ssl-errors", "--non-interactive"];
        all.extend(words);
        run_with(&self.program, &all, &environment)
    }

    /// Runs it, and returns what it prints of `return`.
    fn returns(&self, words: &[&str]) -> Value {
        self.run_as(PASSWORD, words).exits(0).json()["return"].take()
    }

    /// The only result of a call.
    fn result(&self, words: &[&str]) -> Value {
        let mut all = self.returns(words);
        assert_eq!(all.as_array().map(Vec::len), Some(1), "{words:?}: {all}");
        all[0].take()
    }
}

fn start_pepper() -> Option<Pepper> {
    installed().map(|program| Pepper { program, api: start() })
}

#[test]
fn pepper_runs_functions() {
    let Some(pepper) = start_pepper() else { return };
    // It always asks for the whole return.
    let ret = |result: &Value, id: &str| result[id]["ret"].clone();
    let one = pepper.result(&["one", "test.ping"]);
    assert_eq!((ret(&one, "one"), &one["one"]["retcode"]), (json!(true), &json!(0)), "{one}");
    assert_eq!(one["one"]["jid"].as_str().map(str::len), Some(20));
    let args = pepper.result(&["one", "test.arg", "1", "word", "key=[a, 2]"]);
    let args = ret(&args, "one");
    // Over JSON a text stays one, as in Salt.
    assert_eq!((&args["args"], &args["kwargs"]["key"]), (&json!(["1", "word"]), &json!(["a", 2])), "{args}");
    for target in
        [&["-L", "one,two"][..], &["-E", "one|two"], &["-G", "role:*"], &["-C", "G@role:web or two"], &["one*"]]
    {
        let mut words = target.to_vec();
        words.push("test.ping");
        let found = pepper.result(&words);
        assert_eq!(ret(&found, "one"), json!(true), "{target:?}: {found}");
        assert_eq!(found["two"].is_object(), target.len() > 1, "{target:?}: {found}");
    }
    assert_eq!(ret(&pepper.result(&["-N", "web", "test.ping"]), "one"), json!(true));
    let batch = pepper.returns(&["--batch=1", "-L", "one,two", "test.ping"]);
    let mut ids: Vec<&String> =
        batch.as_array().into_iter().flatten().filter_map(|one| one.as_object()?.keys().next()).collect();
    ids.sort();
    assert_eq!(ids, ["one", "two"], "{batch}");
    let job = pepper.result(&["--client=local_async", "-L", "one,two", "test.echo", "later"]);
    let jid = job["jid"].as_str().expect("a jid");
    assert_eq!(job["minions"], json!(["one", "two"]));
    // Keywords of runners and of the wheel stand beside the function.
    let info = pepper.result(&["--client=runner", "jobs.list_job", &format!("jid={jid}")]);
    assert_eq!(info["data"]["return"]["Function"], json!("test.echo"), "{info}");
    let started = pepper.result(&["--client=runner_async", "jobs.active"]);
    assert_eq!(started["tag"], json!(format!("salt/run/{}", started["jid"].as_str().expect("a jid"))));
    let keys = pepper.result(&["--client=wheel", "key.list_all"]);
    assert_eq!(keys["data"]["return"]["minions"], json!(["down", "one", "two"]), "{keys}");
    let finger = pepper.result(&["--client=wheel", "key.finger", "match=one"]);
    let fingers = finger["data"]["return"]["minions"].as_object().expect("a map");
    assert_eq!(fingers.keys().collect::<Vec<_>>(), ["one"]);
    let many =
        r#"[{"client": "local", "tgt": "one", "fun": "test.ping"}, {"client": "wheel", "fun": "minions.connected"}]"#;
    let many = pepper.returns(&["--json", many]);
    assert_eq!((ret(&many[0], "one"), &many[1]["data"]["return"]), (json!(true), &json!(["one", "two"])), "{many}");
}

#[test]
fn pepper_logs_in_and_fails_as_it_says() {
    let Some(pepper) = start_pepper() else { return };
    let fails = |password: &str, words: &[&str], why: &str| {
        let output = pepper.run_as(password, words);
        assert!(output.code == 1 && output.stderr.contains(why), "{words:?}: {output:?}");
    };
    fails("wrong", &["one", "test.ping"], "Authentication denied");
    fails("wrong", &["-r", "one", "test.ping"], "Authentication denied");
    fails(PASSWORD, &["--client=ssh", "one", "test.ping"], "Pepper error");
    fails(PASSWORD, &["--json", r#"{"client": "no_such", "tgt": "one", "fun": "test.ping"}"#], "Pepper error");
    fails(PASSWORD, &["--json", r#"{"client": "local", "fun": "test.ping"}"#], "Pepper error");
    fails(PASSWORD, &["--username=joe", "one", "test.version"], "Authentication denied");
    // By /token and /run.
    assert_eq!(pepper.result(&["-r", "one", "test.ping"])["one"]["ret"], json!(true));
    let keys = pepper.result(&["-r", "--client=wheel", "key.list_all"]);
    assert_eq!(keys["data"]["return"]["minions"], json!(["down", "one", "two"]));

    // A token that is kept, and used without a password.
    for (name, more) in [("session", &[][..]), ("token", &["-r"][..])] {
        let file = pepper.api.master.path(name);
        let path = file.display().to_string();
        let mut words = vec!["-T", "-x", &path, "--token-expire=1000"];
        words.extend(more);
        words.extend(["one", "test.ping"]);
        assert_eq!(pepper.result(&words)["one"]["ret"], json!(true));
        assert_eq!(std::fs::metadata(&file).expect("a token file").permissions().mode() & 0o777, 0o600);
        let kept: Value = serde_json::from_slice(&std::fs::read(&file).expect("a token file")).expect("JSON");
        let (start, expire) = (kept["start"].as_f64().expect("a time"), kept["expire"].as_f64().expect("a time"));
        assert!((expire - start - 1000.0).abs() < 1.0, "{name}: from {start} to {expire}");
        let output = pepper.run_as("wrong", &words).exits(0).json();
        assert_eq!(output["return"][0]["one"]["ret"], json!(true), "{name}");
    }

    // Who is asked and does not return. It looks each three seconds.
    let whole = pepper.run_as(PASSWORD, &["--fail-if-incomplete", "-t", "60", "-L", "one,two", "test.ping"]).exits(0);
    assert!(whole.stdout.contains("\"one\": true") && whole.stdout.contains("\"two\": true"), "{whole:?}");
    let part = pepper.run_as(PASSWORD, &["--fail-if-incomplete", "-t", "7", "*", "test.ping"]).exits(1);
    assert!(part.stdout.contains("Failed") && part.stdout.contains("\"down\""), "{part:?}");
    assert!(part.stdout.contains("\"one\": true") && part.stdout.contains("\"two\": true"), "{part:?}");
}
