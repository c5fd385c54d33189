//! Invalid command lines of operators, and the commands' messages.
#![allow(clippy::disallowed_methods, reason = "tests start the programs that they test")]

use brine_kit::process::run;
use brine_kit::programs::{example, program};
use brine_tests::compiled::lay_out;
use brine_tests::salt::{Kind, Master, Minion};

#[test]
fn wrong_calls_get_one_line_with_the_right_signature() {
    let master = Master::start("");
    let _minion = master.minion("web1");
    for (call, expected) in [
        (&["test.pingg"][..], "'test.pingg' is not available."),
        (&["nomodule.ping"], "'nomodule.ping' is not available."),
        (&["test.fib", "many"], "Passed invalid arguments to test.fib"),
        (&["test.fib"], "Passed invalid arguments to test.fib"),
        (&["test.fib", "1", "2"], "Passed invalid arguments to test.fib"),
        (&["test.fib", "nom=1"], "Passed invalid arguments to test.fib"),
        (&["test.fib", "-1"], "Passed invalid arguments to test.fib"),
    ] {
        let mut args = vec!["--out=json", "--static", "*"];
        args.extend(call);
        let output = master.salt(&args).exits(1);
        let text = output.json()["web1"].as_str().expect("an error text").to_owned();
        assert!(text.starts_with(expected), "{call:?}: {text}");
        assert!(!text.contains('\n'), "one line: {text}");
        if expected.starts_with("Passed") {
            assert!(text.contains("test.fib(num: u32)"), "the signature: {text}");
        }
        assert!(output.stderr.contains("ERROR: Minions returned with non-zero exit code"), "{output:?}");
    }
}

#[test]
fn the_retcode_of_a_function_fails_the_command() {
    let master = Master::start("");
    let _minion = master.minion("web1");
    let output = master.salt(&["*", "test.retcode", "7"]).exits(1);
    assert_eq!(output.stdout, "web1:\n    True\n");
    let raised = master.salt(&["*", "test.exception", "the reason"]).exits(1);
    assert!(raised.stdout.contains("the reason"), "{raised:?}");
}

#[test]
fn a_return_that_is_too_large_for_the_event_bus_is_printed_whole() {
    let master = Master::start("max_event_size: 20000");
    let _minion = master.minion("web1");
    let large = "x".repeat(100_000);
    let output = master.salt(&["--out=json", "--static", "*", "test.echo", &large]).exits(0);
    assert!(output.json()["web1"] == large.as_str(), "{} bytes", output.stdout.len());
    assert_eq!(output.stderr, "");
}

#[test]
fn a_silent_minion_is_named_with_its_job() {
    let master = Master::start("timeout: 1\ngather_job_timeout: 1");
    let quick = master.minion("quick");
    let silent = master.minion("silent");
    silent.running().signal(rustix::process::Signal::STOP);
    let output = master.salt(&["*", "test.ping"]).exits(1);
    assert!(output.stdout.contains("quick:\n    True\n"), "{output:?}");
    assert!(output.stdout.contains("silent:\n    Minion did not return."), "{output:?}");
    assert!(output.stdout.contains("salt-run jobs.lookup_jid "), "{output:?}");
    silent.running().signal(rustix::process::Signal::CONT);
    drop(quick);
}

#[test]
fn a_job_that_takes_longer_than_the_timeout_is_waited_for() {
    let master = Master::start("timeout: 1\ngather_job_timeout: 5");
    let _minion = master.minion("web1");
    let output = master.salt(&["*", "test.sleep", "4"]).exits(0);
    assert_eq!(output.stdout, "web1:\n    True\n");
}

#[test]
fn no_master_no_key_no_configuration_unknown_option() {
    let mut master = Master::start("");
    // Salt exits 0 when authentication fails.
    std::fs::write(master.path("cache/.root_key"), "wrong").expect("our own folder");
    let wrong_key = master.salt(&["*", "test.ping"]).exits(0);
    assert!(
        format!("{}{}", wrong_key.stdout, wrong_key.stderr).contains("Authentication error occurred."),
        "{wrong_key:?}"
    );

    master.stop();
    let down = master.salt(&["*", "test.ping"]);
    assert!(format!("{}{}", down.stdout, down.stderr).to_lowercase().contains("master"), "{down:?}");

    let unknown = run(&program("salt"), &["--no-such-option"]);
    assert!(unknown.code != 0 && unknown.stderr.contains("--no-such-option"), "{unknown:?}");

    std::fs::write(master.path("conf/master"), "interface: [127.0.0.1\n").expect("our own folder");
    let broken = run(&program("salt-master"), &["-c", &master.conf()]);
    assert!(broken.code != 0 && broken.stderr.contains("conf/master"), "{broken:?}");
    assert!(broken.stderr.trim().lines().count() <= 2, "{broken:?}");
}

#[test]
fn a_user_who_cannot_read_the_key_logs_in_and_keeps_a_token() {
    let users = tempfile::tempdir().expect("a temporary folder");
    let file = users.path().join("users");
    std::fs::write(&file, "fred:fred-secret\n").expect("our own folder");
    let master = Master::start(&format!(
        "external_auth: {{file: {{^filename: {}, fred: ['test.*']}}}}\ntoken_file: {}\n",
        file.display(),
        users.path().join("token").display()
    ));
    let _minion = master.minion("web1");
    let log_in = ["-a", "file", "--username=fred"];
    let salt = |args: &[&str]| master.salt(args).exits(0).stdout;
    let with =
        |password: &'static str, more: &[&'static str]| salt(&[&log_in[..], &["--password", password], more].concat());
    assert_eq!(with("fred-secret", &["*", "test.ping"]), "web1:\n    True\n");
    assert_eq!(with("fred-secret", &["*", "grains.items"]), "Authorization error occurred.\n", "not as root");
    assert_eq!(with("wrong", &["*", "test.ping"]), "Authentication error occurred.\n");
    assert_eq!(with("fred-secret", &["-T", "*", "test.ping"]), "web1:\n    True\n");
    std::fs::remove_file(master.path("cache/.root_key")).expect("the master's key");
    assert_eq!(salt(&["*", "test.ping"]), "web1:\n    True\n", "by the token");
    assert_eq!(salt(&["*", "grains.items"]), "Authorization error occurred.\n");
}

#[test]
fn salt_call_tells_what_it_does_and_what_it_does_not() {
    let master = Master::start("");
    let minion = master.minion("web1");
    let events = master.events();
    let call =
        minion.salt_call(&["--out=json", "--metadata", "--set-metadata={ticket: 7}", "test.echo", "x y", "--", "-l"]);
    // Behind two dashes, words are arguments even if they look like options.
    assert_eq!(call.code, 1, "{call:?}");
    let call =
        minion.salt_call(&["--out=json", "--metadata", "--set-metadata={ticket: 7}", "test.echo", "x y"]).exits(0);
    let local = call.json()["local"].clone();
    assert_eq!((&local["fun"], &local["fun_args"]), (&serde_json::json!("test.echo"), &serde_json::json!(["x y"])));
    assert_eq!((&local["return"], &local["metadata"]["ticket"]), (&serde_json::json!("x y"), &serde_json::json!(7)));
    let event = events.wait("its return", |tag, data| {
        tag.starts_with("salt/job/") && data["fun"] == "test.echo" && data["return"] == "x y"
    });
    assert_eq!(event["metadata"], serde_json::json!({"ticket": 7}));

    let file = minion.path("out");
    let option = format!("--out-file={}", file.display());
    let call = minion.salt_call(&["--local", &option, "--out=newline_values_only", "test.arg", "1"]).exits(0);
    assert_eq!(call.stdout, "");
    assert!(std::fs::read_to_string(&file).expect("written").contains("'args': [1]"));
    let call = minion.salt_call(&["--local", "--no-parse=a", "--out=json", "test.arg", "a=1", "b=1"]).exits(0);
    assert_eq!(call.json()["local"]["kwargs"], serde_json::json!({"a": "1", "b": 1}));
    let call = minion.salt_call(&["--local", "--skip-grains", "--out=json", "grains.items"]).exits(0);
    assert_eq!(call.json()["local"], serde_json::json!({}));
    let call = minion.salt_call(&["--local", "--executor-opts={timeout: 100ms}", "test.sleep", "50"]);
    assert!(call.code == 1 && call.elapsed < brine_kit::wait::DEADLINE, "{call:?}");
    let other = minion.path("other").display().to_string();
    lay_out(&minion.path("other/sandbox"));
    minion.salt_call(&["--local", "--cachedir", &other, "test.ping"]).exits(0);
    assert!(minion.path("other/sandbox").is_dir());
    // Returners are modules of this host. One that does not take a return is said, and changes nothing else.
    let call = minion.salt_call(&["--local", "--return=local,nothing", "--out=json", "test.echo", "x y"]).exits(0);
    assert_eq!(call.json()["local"], serde_json::json!("x y"));
    let shown = "'return': 'x y', 'retcode': 0, 'id': 'web1', 'fun': 'test.echo', 'fun_args': ['x y'], 'success': True";
    assert!(call.stderr.contains(shown), "{call:?}");
    assert!(call.stderr.contains("the returner nothing did not take the return: "), "{call:?}");
    for option in ["--states-dir=/srv", "-r", "--proxyid=x"] {
        let refused = minion.salt_call(&[option, "test.ping"]).exits(64);
        assert!(refused.stderr.contains("is not offered: "), "{refused:?}");
    }
}

#[test]
fn a_port_in_use_is_named() {
    let first = Master::start("");
    let mut second = Master::prepare(Kind::Brine, "");
    let conf = second.path("conf/master");
    let text = std::fs::read_to_string(&conf).expect("just written");
    let text = text.replace(&format!("ret_port: {}", second.ret_port), &format!("ret_port: {}", first.ret_port));
    std::fs::write(&conf, text).expect("our own folder");
    let output = run(&program("salt-master"), &["-c", &second.conf()]);
    assert!(output.code != 0, "{output:?}");
    assert!(output.stderr.contains(&first.ret_port.to_string()), "{output:?}");
    second.stop();
}

/// Reverses the line, contains characters without width, and controls the terminal.
const EVIL: &str = "e\u{202e}v\u{200b}i\u{feff}l\u{e0041}\u{1b}[2J";

fn shows_all(what: &str, text: &str) {
    let hidden = text.chars().find(|c| *c != '\n' && brine_protocol::text::is_active(*c));
    assert_eq!(hidden, None, "{what}: {text:?}");
}

#[test]
fn messages_that_repeat_what_was_typed_drive_no_terminal() {
    let master = Master::prepare(Kind::Brine, "");
    let minion = Minion::prepare(Kind::Brine, "web1", 1, "");
    let (master, minion) = (master.conf(), minion.conf());
    let option = format!("--{EVIL}");
    let path = format!("/{EVIL}");
    let fun = format!("{EVIL}.ping");
    for (name, args) in [
        ("salt-call", vec!["-c", &minion, "--local", &fun]),
        ("salt-call", vec!["-c", &minion, "--local", "-d", EVIL]),
        ("salt-call", vec!["-c", &minion, "--local", "test.fib", EVIL]),
        ("salt-call", vec!["-c", &minion, "--local", &option]),
        ("salt-call", vec!["-c", &path, "--local", "test.ping"]),
        ("salt-call", vec!["-c", &minion, "--local", "-l", EVIL, "test.ping"]),
        ("salt-call", vec!["-c", &minion, "--local", "--out", EVIL, "test.ping"]),
        ("salt-minion", vec![&option]),
        ("salt-sandbox", vec![&option]),
        ("salt-sandbox", vec!["-c", &path]),
        ("salt-master", vec![&option]),
        ("salt", vec!["-c", &master, &option]),
        ("salt", vec!["-c", &path, "*", "test.ping"]),
        ("salt", vec!["-c", &master, "--out-file", &path, EVIL, "test.ping"]),
        ("salt", vec!["-c", &master, "-b", EVIL, "*", "test.ping"]),
        ("salt-run", vec!["-c", &master, &option]),
        ("salt-run", vec!["-c", &master, EVIL]),
        ("salt-key", vec!["-c", &master, "-a", EVIL]),
        ("salt-key", vec!["-c", &master, "--gen-keys", "x", "--gen-keys-dir", &path]),
        ("salt-key", vec!["-c", &master, "--user", EVIL]),
        ("salt-cp", vec!["-c", &master, "*", EVIL, "/tmp/x"]),
        ("salt-module", vec!["inspect", EVIL]),
        ("salt-module", vec![&option]),
    ] {
        let output = run(&program(name), &args);
        shows_all(&format!("{name} {args:?}"), &format!("{}{}", output.stdout, output.stderr));
    }
    let repeated = run(&program("salt-call"), &["-c", &minion, "--local", &fun]);
    assert!(repeated.stderr.contains("e\\u202ev\\u200bi\\ufeffl\\U000e0041\\x1b[2J"), "{repeated:?}");
}

/// A module's author writes the documentation, and owners read it with `salt-call -d` before they trust the module.
#[test]
fn a_modules_documentation_drives_no_terminal() {
    let minion = Minion::prepare(Kind::Brine, "web1", 1, "");
    let folder = tempfile::tempdir().expect("a folder");
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../wasm-modules/examples/spin/wit");
    let copied = std::process::Command::new("cp").arg("-rL").arg(&source).arg(folder.path().join("wit")).status();
    assert!(copied.expect("cp").success());
    let world = folder.path().join("wit/world.wit");
    let text =
        std::fs::read_to_string(&world).expect("a world").replacen("/// ", "/// e\u{200b}v\u{feff}i\u{e0041}l ", 1);
    let text = text.replace("    /// ", "    /// e\u{200b}v\u{feff}i\u{e0041}l ");
    std::fs::write(&world, text).expect("our own folder");
    let module = folder.path().join("spin.wasm").display().to_string();
    let wit = folder.path().join("wit").display().to_string();
    run(&program("salt-module"), &["docs", &example("spin").display().to_string(), "--wit", &wit, "-o", &module])
        .exits(0);
    let dir = folder.path().display().to_string();
    let docs = run(&program("salt-call"), &["-c", &minion.conf(), "--local", "-m", &dir, "-d", "spin"]).exits(0);
    shows_all("-d", &docs.stdout);
    assert!(docs.stdout.contains("e\\u200bv\\ufeffi\\U000e0041l"), "{docs:?}");
    for args in [vec!["inspect", &module], vec!["inspect", "--json", &module], vec!["run", &module]] {
        let output = run(&program("salt-module"), &args);
        shows_all(&format!("{args:?}"), &format!("{}{}", output.stdout, output.stderr));
    }
}

/// `yaml` and `json` escape in their own syntax, for every reader.
#[test]
fn machine_readable_output_hides_nothing_and_keeps_its_values() {
    let minion = Minion::prepare(Kind::Brine, "web1", 1, "");
    let echo = |out: &str, text: &str| {
        let out = format!("--out={out}");
        run(&program("salt-call"), &["-c", &minion.conf(), "--local", &out, "test.echo", text]).exits(0).stdout
    };
    for text in [EVIL, "a\u{ad}\u{e0041}b"] {
        let (json, yaml) = (echo("json", text), echo("yaml", text));
        shows_all("json", &json);
        shows_all("yaml", &yaml);
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(json["local"], text);
        let yaml = brine_protocol::config::yaml::load(&yaml).expect("YAML");
        assert_eq!(brine_protocol::value::ValueExt::get_text(&yaml, "local"), Some(text));
    }
}
