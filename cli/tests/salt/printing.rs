//! The requests of `salt`, and the output for their results.

use brine_protocol::event::Event;
use brine_protocol::value::{Value, map};
use serde_json::json;

use super::fake_master::{FakeMaster, KEY, field, returned};
use super::{JID, SALT};

#[tokio::test]
async fn returns_are_printed() {
    let mut master = FakeMaster::start("").await;
    let salt = master.command(SALT, &["*", "test.arg", "1", "a=b", "-t", "7"]);
    let mut bus = master.subscriber().await;
    let request = master.request().await;
    let load = request.load.clone();
    request.published(JID, &["web1", "web2"]).await;
    bus.fire(&returned(JID, "web2", "two\nlines", 0)).await;
    bus.fire(&returned(JID, "web1", map([("b", 1), ("a", 2)]), 0)).await;
    let out = "web2:\n    two\n    lines\nweb1:\n    ----------\n    a:\n        2\n    b:\n        1\n";
    salt.await.unwrap().is(0, out, "");
    for (name, expect) in [
        ("cmd", json!("publish")),
        ("tgt", json!("*")),
        ("fun", json!("test.arg")),
        ("arg", json!([1, {"__kwarg__": true, "a": "b"}])),
        ("key", json!(KEY)),
        ("tgt_type", json!("glob")),
        ("ret", json!("")),
        ("jid", json!("")),
        ("kwargs", json!({"show_timeout": true, "show_jid": false, "delimiter": ":"})),
        ("user", json!("root")),
    ] {
        assert_eq!(field(&load, name), expect, "{name}");
    }
}

#[tokio::test]
async fn options_of_the_job_go_along() {
    let mut master = FakeMaster::start("").await;
    let args = ["*", "test.ping", "--executor-opts={timeout: 5s}", "--module-executors=[direct_call]", "--metadata=x"];
    let salt = master.command(SALT, &args);
    let mut bus = master.subscriber().await;
    let request = master.request().await;
    let kwargs = field(&request.load, "kwargs");
    assert_eq!(kwargs["executor_opts"], json!({"timeout": "5s"}));
    assert_eq!(kwargs["module_executors"], json!(["direct_call"]));
    assert_eq!(kwargs["metadata"], json!("x"));
    request.published(JID, &["web1"]).await;
    bus.fire(&returned(JID, "web1", true, 0)).await;
    salt.await.unwrap().is(0, "web1:\n    True\n", "");
}

#[tokio::test]
async fn returners_go_along_with_the_load() {
    let mut master = FakeMaster::start("").await;
    let args = [
        "--return=pgjsonb,syslog",
        "--return_config=alternative",
        "--return_kwargs={db: salt}",
        "--start-event",
        "--args-stdin",
        "*",
    ];
    let salt = master.command_with(SALT, &args, "test.echo\n--summary\na word\n");
    let mut bus = master.subscriber().await;
    let request = master.request().await;
    let load = &request.load;
    assert_eq!(field(load, "ret"), json!("pgjsonb,syslog"));
    assert_eq!((field(load, "fun"), field(load, "arg")), (json!("test.echo"), json!(["a word"])));
    let kwargs = field(load, "kwargs");
    assert_eq!(kwargs["ret_config"], json!("alternative"));
    assert_eq!(kwargs["ret_kwargs"], json!({"db": "salt"}));
    assert_eq!(kwargs["start_event"], json!(true));
    request.published(JID, &["web1"]).await;
    bus.fire(&returned(JID, "web1", "a word", 0)).await;
    let done = salt.await.unwrap();
    assert!(done.stdout.starts_with("web1:\n    a word\n\n\n----"), "an option on stdin: {done:?}");
}

#[tokio::test]
async fn progress_is_a_bar_and_a_summary() {
    let mut master = FakeMaster::start("").await;
    let salt = master.command(SALT, &["-p", "*", "test.ping"]);
    let (mut bus, _) = master.job(JID, &["web1", "web2"]).await;
    bus.fire(&returned(JID, "web1", true, 0)).await;
    bus.fire(&returned(JID, "web2", false, 3)).await;
    let done = salt.await.unwrap();
    assert!(done.stdout.starts_with("\n\n----") && done.stdout.contains("# of minions with errors: 1\n"), "{done:?}");
    assert!(!done.stdout.contains("web1") && done.code == 1, "{done:?}");
}

#[tokio::test]
async fn highstate_is_for_what_asks_for_it() {
    let mut master = FakeMaster::start("").await;
    let salt = master.command(SALT, &["--out=highstate", "*", "test.ping"]);
    let (mut bus, _) = master.job(JID, &["web1"]).await;
    bus.fire(&returned(JID, "web1", true, 0)).await;
    salt.await.unwrap().is(0, "web1:\n    True\n", "");
}

#[tokio::test]
async fn retcodes_and_outputters_of_returns() {
    for (data, code, stdout) in [
        (json!({"return": true, "retcode": 3}), 1, "web1:\n    True\n"),
        (json!({"return": false, "retcode": 0}), 0, "web1:\n    False\n"),
        (
            json!({"return": {"a.b": 1, "c.d": 2}, "retcode": {"a.b": 0, "c.d": 4}}),
            1,
            "web1:\n    ----------\n    a.b:\n        1\n    c.d:\n        2\n",
        ),
        (json!({"return": [1], "retcode": [0, 0]}), 0, "web1:\n    - 1\n"),
        (json!({"return": "x"}), 0, "web1:\n    x\n"),
        (json!({"return": {"k": [1]}, "out": "txt", "retcode": 0}), 0, "web1: {'k': [1]}\n"),
        (
            json!({"return": {"k": [1]}, "out": "highstate", "retcode": 0}),
            0,
            "web1:\n\nSummary for web1\n-----------\nSucceeded: 0\nFailed:   0\n-----------\nTotal states run:    0\nTotal run \
             time:  0.000 ms\n",
        ),
    ] {
        let mut master = FakeMaster::start("").await;
        let salt = master.command(SALT, &["*", "test.x"]);
        let (mut bus, _) = master.job(JID, &["web1"]).await;
        let data = brine_protocol::value::from_json(&data);
        bus.fire(&Event { tag: format!("salt/job/{JID}/ret/web1"), data: data.clone() }).await;
        let stderr = if code == 0 { "" } else { "ERROR: Minions returned with non-zero exit code\n" };
        let done = salt.await.unwrap();
        assert_eq!((done.code, done.stdout.as_str(), done.stderr.as_str()), (code, stdout, stderr), "{data}");
    }
}

#[tokio::test]
async fn headings_groups_and_summaries() {
    let rule = "-------------------------------------------";
    let heading = format!("Executing job with jid {JID}\n{rule}\n\n");
    let block = format!(
        "\n\n{rule}\nSummary\n{rule}\n# of minions targeted: 2\n# of minions returned: 2\n# of minions that did not \
                         return: 0\n# of minions with errors: 0\n{rule}\n"
    );
    let rows = "web2:\n    True\nweb1:\n    True\n";
    for (args, stdout) in [
        (&["-v", "*", "test.ping"][..], format!("{heading}{rows}")),
        (&["--show-jid", "*", "test.ping"], format!("jid: {JID}\n{rows}")),
        (&["--summary", "*", "test.ping"], format!("{rows}{block}")),
        (&["--summary", "--out=txt", "*", "test.ping"], "web2: True\nweb1: True\n".to_owned()),
        (&["-s", "*", "test.ping"], "web1:\n    True\nweb2:\n    True\n".to_owned()),
        (&["-s", "--out=json", "--out-indent=-1", "*", "test.ping"], "{\"web2\": true, \"web1\": true}\n".to_owned()),
        (&["--out=json", "--out-indent=-1", "*", "test.ping"], "{\"web2\": true}\n{\"web1\": true}\n".to_owned()),
        (&["--out=quiet", "*", "test.ping"], String::new()),
        (&["--force-color", "--out=txt", "*", "test.ping"], "web2: True\nweb1: True\n".to_owned()),
    ] {
        let mut master = FakeMaster::start("").await;
        let salt = master.command(SALT, args);
        let (mut bus, _) = master.job(JID, &["web1", "web2"]).await;
        bus.fire(&returned(JID, "web2", true, 0)).await;
        bus.fire(&returned(JID, "web1", true, 0)).await;
        salt.await.unwrap().is(0, &stdout, "");
    }
}

#[tokio::test]
async fn asynchronous_calls_print_the_jid() {
    let mut master = FakeMaster::start("").await;
    let salt = master.command(SALT, &["--async", "*", "test.ping"]);
    let _bus = master.subscriber().await;
    master.request().await.published(JID, &["web1"]).await;
    salt.await.unwrap().is(0, &format!("Executed command with job ID: {JID}\n"), "");
}

#[tokio::test]
async fn documentation_is_merged() {
    let mut master = FakeMaster::start("").await;
    let salt = master.command(SALT, &["-d", "*", "test"]);
    let (mut bus, load) = master.job(JID, &["web1", "web2", "web3"]).await;
    assert_eq!((field(&load, "fun"), field(&load, "arg")), (json!("sys.doc"), json!(["test"])));
    bus.fire(&returned(JID, "web1", map([("test.ping", "\n    Ping.\n"), ("test.b", "")]), 0)).await;
    bus.fire(&returned(JID, "web2", map([("test.ping", "other"), ("test.a", "A.")]), 0)).await;
    bus.fire(&returned(JID, "web3", Value::Map(vec![]), 0)).await;
    salt.await.unwrap().is(0, "test.a:\nA.\n\ntest.ping:\n\n    Ping.\n\n\n", "");
}

#[tokio::test]
async fn output_goes_to_a_file() {
    let mut master = FakeMaster::start("").await;
    let file = master.path("out");
    for (append, expect) in
        [(false, "web1:\n    True\n"), (true, "web1:\n    True\nweb1:\n    True\n"), (false, "web1:\n    True\n")]
    {
        let option = format!("--out-file={}", file.display());
        let mut args = vec!["*", "test.ping", option.as_str()];
        if append {
            args.push("--out-file-append");
        }
        let salt = master.command(SALT, &args);
        let (mut bus, _) = master.job(JID, &["web1"]).await;
        bus.fire(&returned(JID, "web1", true, 0)).await;
        salt.await.unwrap().is(0, "", "");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), expect);
    }
}

#[tokio::test]
async fn an_unknown_outputter_is_named_and_nested_used() {
    let mut master = FakeMaster::start("").await;
    let salt = master.command(SALT, &["--out=bogus", "*", "test.ping"]);
    let (mut bus, _) = master.job(JID, &["web1"]).await;
    bus.fire(&returned(JID, "web1", true, 0)).await;
    let done = salt.await.unwrap();
    assert_eq!((done.code, done.stdout.as_str()), (0, "web1:\n    True\n"));
    assert!(done.stderr.contains("Invalid outputter bogus specified, fall back to nested"), "{}", done.stderr);
}

#[tokio::test]
async fn a_return_that_was_too_large_for_the_bus_is_fetched() {
    let big = "x".repeat(2 << 20);
    for knows_minion in [true, false] {
        let mut master = FakeMaster::start("").await;
        let salt = master.command(SALT, &["*", "test.echo", "--out=txt"]);
        let (mut bus, _) = master.job(JID, &["web1", "web2"]).await;
        bus.fire(&returned(JID, "web2", "VALUE_TRIMMED", 0)).await;
        bus.fire(&returned(JID, "web1", "small", 0)).await;
        let mut results = vec![(json!({"arg": [JID], "kwarg": {"minion": "web2"}}), knows_minion)];
        if !knows_minion {
            results.push((json!({"arg": [JID], "kwarg": {}}), true));
        }
        for (asked, success) in results {
            let mut lookup = master.subscriber().await;
            let request = master.request().await;
            assert_eq!((field(&request.load, "fun"), field(&request.load, "kwarg")), (json!("jobs.lookup_jid"), asked));
            request.answer(&map([("tag", "salt/run/1"), ("jid", "1")])).await;
            let ret = if success { map([("web2", big.as_str())]) } else { Value::from("Passed invalid arguments") };
            let data = map([("return", ret), ("success", success.into())]);
            lookup.fire(&Event { tag: "salt/run/1/ret".to_owned(), data }).await;
        }
        let done = salt.await.unwrap();
        assert!(done.code == 0 && done.stderr.is_empty(), "{} {}", done.code, done.stderr);
        assert!(done.stdout == format!("web2: {big}\nweb1: small\n"), "{} bytes", done.stdout.len());
    }
}

/// If the whole return cannot be fetched, the trimmed one is displayed with advice.

#[tokio::test]
async fn a_return_that_cannot_be_fetched_is_shown_as_it_came() {
    let mut master = FakeMaster::start("").await;
    let salt = master.command(SALT, &["*", "test.echo", "--out=txt"]);
    let (mut bus, _) = master.job(JID, &["web1"]).await;
    bus.fire(&returned(JID, "web1", map([("a", "VALUE_TRIMMED")]), 0)).await;
    let _lookup = master.subscriber().await;
    let error = map([("name", "UserAuthenticationError"), ("message", "no")]);
    master.request().await.answer(&map([("error", error)])).await;
    let done = salt.await.unwrap();
    assert_eq!((done.code, done.stdout.as_str()), (0, "web1: {'a': 'VALUE_TRIMMED'}\n"));
    assert!(done.stderr.contains(&format!("salt-run jobs.lookup_jid {JID}")), "{}", done.stderr);
    assert_eq!(done.stderr.lines().count(), 1, "{}", done.stderr);
}
