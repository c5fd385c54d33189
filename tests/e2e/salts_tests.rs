//! Texts, exit codes and functions that Salt's own integration tests check.

use brine_kit::process::run;
use brine_kit::programs::program;
use brine_tests::salt::Master;
use serde_json::{Value, json};

#[test]
fn an_option_that_there_is_not_is_told_with_the_usage_on_standard_error() {
    for name in ["salt", "salt-key", "salt-run", "salt-cp", "salt-call", "salt-master", "salt-minion"] {
        let refused = run(&program(name), &["--unknown-argument"]).exits(64);
        assert!(refused.stderr.starts_with("Usage: "), "{name}: {refused:?}");
        assert!(
            refused.stderr.ends_with(&format!("{name}: error: no such option: --unknown-argument\n")),
            "{refused:?}"
        );
        assert_eq!(refused.stdout, "", "{name}");
    }
}

#[test]
fn salt_run_documents_every_runner() {
    let master = Master::start("");
    let docs = master.command("salt-run", &["-d"]).exits(0).stdout;
    for name in [
        "jobs.active",
        "jobs.list_jobs",
        "jobs.lookup_jid",
        "manage.down",
        "manage.up",
        "network.wol",
        "network.wollist",
        "state.event",
    ] {
        assert!(docs.contains(&format!("{name}:\n")), "{name}");
    }
    let woken = master.command("salt-run", &["--out=json", "network.wol", "08-00-27-13-69-77", "127.0.0.1"]).exits(0);
    assert_eq!(woken.json(), json!(true));
    let list = master.path("macs");
    std::fs::write(&list, "08:00:27:13:69:77\n\n080027136978\n").expect("our own folder");
    let list = list.display().to_string();
    let woken = master.command("salt-run", &["network.wollist", &list, "127.0.0.1"]).exits(0);
    assert!(woken.stdout.contains("Waking up 08:00:27:13:69:77\n"), "{woken:?}");
    // The command reads no other file of the master.
    let refused = master.command("salt-run", &["network.wollist", "/etc/passwd", "127.0.0.1"]).exits(1);
    assert!(!refused.stdout.contains("root:") && !refused.stderr.contains("root:"), "{refused:?}");
}

#[test]
fn salt_call_says_what_salt_says_of_functions_that_are_not_there() {
    let master = Master::start("");
    let minion = master.minion("web1");
    let call = |args: &[&str]| minion.salt_call(&[&["--local"], args].concat());
    let listed = call(&["--out=json", "test"]).exits(1).json()["local"].clone();
    assert_eq!(listed["test"], json!("'test' is not available."));
    assert!(listed["test.echo"].as_str().expect("its documentation").contains("CLI Example:"), "{listed}");
    assert!(listed.as_object().expect("a dict").keys().all(|name| name.starts_with("test")), "{listed}");
    let none = call(&["nosuch.function"]).exits(255);
    assert!(none.stderr.starts_with("'nosuch.function' is not available."), "{none:?}");
    let none = call(&["-d", "nosuch.function"]).exits(1);
    assert!(none.stderr.starts_with("'nosuch.function' is not available.") && none.stdout.is_empty(), "{none:?}");
    // The same for a job of the master.
    let listed = master.salt(&["--out=json", "--static", "web1", "test.pin"]).exits(1).json()["web1"].clone();
    assert_eq!(listed["test.pin"], json!("'test.pin' is not available. Did you mean test.ping?"));
    assert!(listed["test.ping"].is_string(), "{listed}");

    let fib = call(&["--out=txt", "test.fib", "3"]).exits(0).stdout;
    assert!(fib.starts_with("local: (2, ") && fib.ends_with(")\n"), "{fib}");
    assert!(call(&["--out=raw", "test.fib", "3"]).exits(0).stdout.starts_with("{'local': (2, "));
    assert_eq!(call(&["--out=txt", "test.arg", "1"]).exits(0).stdout, "local: {'args': [1], 'kwargs': {}}\n");

    // A missing log service does not end the daemon.
    std::fs::create_dir_all(minion.path("conf/minion.d")).expect("our own folder");
    let log = |url: &str| {
        std::fs::write(minion.path("conf/minion.d/log.conf"), format!("log_file: {url}\n")).expect("our own folder");
        call(&["--out=json", "test.ping"]).exits(0)
    };
    for url in ["file:///dev/doesnotexist", "file:///dev/doesnotexist/LOG_DAEMON"] {
        let done = log(url);
        assert_eq!(done.json()["local"], json!(true));
        let warning =
            "[WARNING ] The log_file does not exist. Logging not setup correctly or syslog service not started.";
        assert!(done.stderr.contains(warning), "{done:?}");
    }
    assert!(log("tcp://127.0.0.1:1").stderr.contains("TCP is not offered"));
    assert_eq!(log("udp://127.0.0.1:9").stderr, "");
}

#[test]
fn the_module_test_is_whole() {
    let master = Master::start("");
    let minion = master.minion("web1");
    let run = |args: &[&str]| minion.salt_call(&[&["--local", "--out=json"], args].concat());
    let local = |args: &[&str]| run(args).exits(0).json()["local"].clone();
    for (args, expected) in [
        (&["test.arg_clean", "1", "__pub_x=1", "b=2"][..], json!({"args": [1], "kwargs": {"b": 2}})),
        (&["test.arg_repr", "1", "two", "a=[b]"], json!({"args": "(1, 'two')", "kwargs": "{'a': ['b']}"})),
        (
            &["test.arg_type", "1", "x", "1.5", "[1]", "{a: 1}", "None", "True", "k=1"],
            json!({"args": ["<class 'int'>", "<class 'str'>", "<class 'float'>", "<class 'list'>", "<class 'dict'>",
                "<class 'NoneType'>", "<class 'bool'>"], "kwargs": {"k": "<class 'int'>"}}),
        ),
        (&["test.assertion", "True"], json!(null)),
        (&["test.conf_test"], json!("unconfigured")),
        (&["test.cross_test", "test.echo", "[text]"], json!("text")),
        (&["test.not_loaded"], json!([])),
        (&["test.provider", "test"], json!("test")),
        (&["test.provider", "nosuch"], json!("")),
        (&["test.raise_exception", "nosuch"], json!(false)),
        (&["test.rand_sleep", "0"], json!(true)),
        (&["test.try", "test.exception"], json!(null)),
        (&["test.try", "test.exception", "return_try_exception=True", "message=Oh"], json!("Oh")),
        (&["test.try", "test.echo", "text=hi"], json!("hi")),
        (&["test.tty", "pts3", "x"], json!("ERROR: This function has been moved to cmd.tty")),
        (&["saltutil.sync_grains"], json!([])),
        (&["saltutil.sync_states", "saltenv=dev"], json!([])),
        (&["saltutil.sync_sdb"], json!([])),
        (&["saltutil.list_extmods"], json!({"modules": []})),
    ] {
        assert_eq!(local(args), expected, "{args:?}");
    }
    let report = local(&["test.module_report"]);
    assert!(report["modules"].as_array().expect("a list").contains(&json!("test")), "{report}");
    assert_eq!((&report["missing_attrs"], &report["missing_subs"]), (&json!([]), &json!([])));
    assert_eq!(local(&["test.providers"])["saltutil"], json!("saltutil"));
    assert_eq!(local(&["test.attr_call"])["id"], json!("web1"));
    let opts = local(&["test.get_opts"]);
    assert_eq!((&opts["id"], &opts["cachedir"]), (&json!("web1"), &json!(minion.path("cache").display().to_string())));
    assert_eq!(local(&["test.opts_pkg"])["grains"]["id"], json!("web1"));
    for (kind, length) in [("md5", 32), ("sha512", 128)] {
        let hash = local(&["test.random_hash", &format!("hash_type={kind}")]);
        assert_eq!(hash.as_str().map(str::len), Some(length), "{hash}");
    }
    assert_eq!(
        local(&["test.rand_str", "1", "sha256"]).as_str().expect("a hash"),
        "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b"
    );
    let versions = local(&["test.versions"]);
    assert!(versions.as_str().expect("a text").starts_with("Salt Version:\n          Salt: "), "{versions}");
    assert_eq!(versions, local(&["test.versions_report"]));
    assert_eq!(local(&["test.versions_information"])["System Versions"]["system"], json!("Linux"));
    assert!(local(&["test.stack"]).as_str().expect("a text").ends_with("  test.stack\n"));
    let warned = run(&["test.deprecation_warning"]).exits(0);
    assert!(warned.stderr.matches("DeprecationWarning").count() >= 2, "{warned:?}");
    assert!(warned.stderr.contains("This is a test deprecation warning by version."), "{warned:?}");

    for (args, said) in [
        (&["test.raise_exception", "TypeError"][..], "TypeError"),
        (&["test.raise_exception", "salt.exceptions.CommandExecutionError", "Went wrong"], "Went wrong"),
        (&["test.raise_exception", "OSError", "2", "No such file", "/tmp/x"], "[Errno 2] No such file: '/tmp/x'"),
        (&["test.assertion", "False"], "AssertionError"),
        (&["test.random_hash", "hash_type=nope"], "nope"),
        (&["test.cross_test", "test.nosuch"], "'test.nosuch' is not available."),
        (&["test.cross_test", "nosuch.function"], "functions: ["),
    ] {
        let failed = run(args).exits(1);
        assert!(failed.stderr.contains(said), "{args:?}: {failed:?}");
    }
    assert!(run(&["test.missing_func"]).exits(255).stderr.starts_with("'test.missing_func' is not available."));
}

/// A user who may call `test.*` does not get the grants of other modules through it.
#[test]
fn the_module_test_calls_what_needs_no_grant_and_more_by_its_owners_word() {
    let master = Master::start("");
    let granted = "sandbox: {modules: {cmd: {process: any}}}";
    let mut minion = master.minion_kind(brine_tests::salt::Kind::Brine, "web1", granted);
    let refused = master.json("web1", &["test.cross_test", "cmd.run", "['echo hi']"]);
    let said = refused.as_str().expect("a refusal");
    assert!(said.contains("test: {functions: [") && said.ends_with("cmd.run]}"), "{said}");
    for hidden in [&["test.try", "pillar.items"][..], &["test.cross_test", "config.get", "[id]"]] {
        let refused = master.json("web1", hidden);
        assert!(refused.as_str().is_some_and(|said| said.contains("functions: [")), "{refused}");
    }
    assert_eq!(master.json("web1", &["test.cross_test", "test.echo", "[hi]"]), json!("hi"));
    minion.stop();
    // The owner's grant replaces the default, even if it grants nothing. Other functions of the module still work.
    for (word, expected) in [("[cmd.run]", Some("hi")), ("false", None)] {
        let grants = format!("sandbox: {{modules: {{cmd: {{process: any}}, test: {{functions: {word}}}}}}}\n");
        std::fs::create_dir_all(minion.path("conf/minion.d")).expect("our own folder");
        std::fs::write(minion.path("conf/minion.d/sandbox.conf"), grants).expect("our own folder");
        let events = master.events();
        minion.up();
        events.wait_tag("salt/minion/web1/start");
        let answer: Value = master.json("web1", &["test.cross_test", "cmd.run", "['echo hi']"]);
        match expected {
            Some(text) => assert_eq!(answer, json!(text)),
            None => assert!(answer.as_str().is_some_and(|said| said.contains("test: {functions: [")), "{answer}"),
        }
        assert_eq!(master.json("web1", &["test.ping"]), json!(true));
        minion.stop();
    }
}
