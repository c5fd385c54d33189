//! `salt`, `salt-run` and the clients behind them against a master that does what each test says.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod fake_master;

use brine_client::{ClientError, ClientOpts, Job, JobEvent, LocalClient};
use brine_protocol::config::{Config, Role};
use brine_protocol::event::{Event, Framing, frame};
use brine_protocol::value::{Value, map};
use fake_master::{Done, FakeMaster, KEY, field, published, returned, soon};
use serde_json::json;

const SALT: &str = env!("CARGO_BIN_EXE_salt");
const SALT_RUN: &str = env!("CARGO_BIN_EXE_salt-run");
const JID: &str = "20261120134740245008";
const PROBE: &str = "20261120134741000000";

const NO_RESPONSE: &str = "    Minion did not return. [No response]\n    The minions may not have all finished running and any \
                           remaining minions will return upon completion. To look up the return data for this job later, \
                           run the following command:\n    \n    salt-run jobs.lookup_jid 20261120134740245008\n";

impl Done {
    #[track_caller]
    fn is(&self, code: i32, stdout: &str, stderr: &str) {
        assert_eq!((self.code, self.stdout.as_str(), self.stderr.as_str()), (code, stdout, stderr));
    }
}

fn client(master: &FakeMaster) -> LocalClient {
    let config = Config::load(&master.path("conf/master"), Role::Master).unwrap();
    LocalClient::new(ClientOpts::new(&config).unwrap())
}

fn ping() -> Job {
    Job::new("*", "test.ping", vec![])
}

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
async fn events_before_the_reply_count() {
    let mut master = FakeMaster::start("").await;
    let salt = master.command(SALT, &["web1", "test.ping"]);
    let mut bus = master.subscriber().await;
    let request = master.request().await;
    bus.fire(&returned(JID, "web1", true, 0)).await;
    request.published(JID, &["web1"]).await;
    salt.await.unwrap().is(0, "web1:\n    True\n", "");
}

#[tokio::test]
async fn both_framings_of_the_bus_in_pieces() {
    for framing in [Framing::Bare, Framing::Prefixed] {
        let mut master = FakeMaster::start("").await;
        let salt = master.command(SALT, &["*", "test.ping", "--out=txt"]);
        let (mut bus, _) = master.job(JID, &["web1", "web2"]).await;
        let mut bytes = frame(&returned(JID, "web1", "x".repeat(70_000), 0), framing);
        bytes.extend(frame(&returned(JID, "web2", true, 0), framing));
        for piece in bytes.chunks(997) {
            bus.send(piece).await;
        }
        let done = salt.await.unwrap();
        assert_eq!(done.stdout, format!("web1: {}\nweb2: True\n", "x".repeat(70_000)), "{framing:?}");
    }
}

#[tokio::test]
async fn nothing_matched() {
    for (args, stdout, stderr) in [
        (&["nobody", "test.ping"][..], "", "ERROR: No return received\n"),
        (&["nobody", "test.ping", "--out=json"], "{}\n", "ERROR: No return received\n"),
        (&["nobody", "sys.doc"], "", "No minions found to gather docs from\n"),
    ] {
        let mut master = FakeMaster::start("").await;
        let salt = master.command(SALT, args);
        let _bus = master.subscriber().await;
        let error = "Master could not resolve minions for target nobody";
        let load = map([("jid", Value::Nil), ("minions", Value::Array(vec![])), ("error", Value::from(error))]);
        master.request().await.answer(&map([("enc", Value::from("clear")), ("load", load)])).await;
        let text = "No minions matched the target. No command was sent, no jid was assigned.\n";
        salt.await.unwrap().is(2, &format!("{text}{stdout}"), stderr);
    }
}

#[tokio::test]
async fn a_silent_minion_is_asked_and_then_reported() {
    let mut master = FakeMaster::start("").await;
    std::fs::write(master.path("pki/minions/web1"), "").unwrap();
    std::fs::write(master.path("pki/minions/web2"), "").unwrap();
    let salt = master.command(SALT, &["*", "test.ping"]);
    let (mut bus, _) = master.job(JID, &["web1", "web2"]).await;
    bus.fire(&returned(JID, "web1", true, 0)).await;
    let probe = master.request().await;
    for (name, expect) in [
        ("fun", json!("saltutil.find_job")),
        ("arg", json!([JID])),
        ("tgt", json!(["web2"])),
        ("tgt_type", json!("list")),
    ] {
        assert_eq!(field(&probe.load, name), expect, "{name}");
    }
    probe.published(PROBE, &["web2"]).await;
    let done = salt.await.unwrap();
    let stdout = format!("web1:\n    True\nweb2:\n{NO_RESPONSE}");
    done.is(1, &stdout, "ERROR: Minions returned with non-zero exit code\n");
}

#[tokio::test]
async fn a_minion_that_still_runs_the_job_is_waited_for() {
    let mut master = FakeMaster::start("").await;
    let salt = master.command(SALT, &["*", "test.sleep", "3"]);
    let (mut bus, _) = master.job(JID, &["web1"]).await;
    for probe in ["20261120134741000001", "20261120134742000002"] {
        master.request().await.published(probe, &["web1"]).await;
        bus.fire(&returned(probe, "web1", map([("jid", JID), ("fun", "test.sleep")]), 0)).await;
    }
    let last = master.request().await;
    last.published("20261120134743000003", &["web1"]).await;
    bus.fire(&returned(JID, "web1", true, 0)).await;
    salt.await.unwrap().is(0, "web1:\n    True\n", "");
}

#[tokio::test]
async fn ids_that_no_minion_has_are_reported_without_a_wait() {
    let mut master = FakeMaster::start("").await;
    let salt = master.command(SALT, &["-L", "web1,zz", "test.ping"]);
    let mut bus = master.subscriber().await;
    let request = master.request().await;
    assert_eq!((field(&request.load, "tgt"), field(&request.load, "tgt_type")), (json!(["web1", "zz"]), json!("list")));
    request.answer(&published(JID, &["web1"], &["zz"])).await;
    bus.fire(&returned(JID, "web1", true, 0)).await;
    let stdout = format!("web1:\n    True\nzz:\n{NO_RESPONSE}");
    salt.await.unwrap().is(1, &stdout, "ERROR: Minions returned with non-zero exit code\n");
}

#[tokio::test]
async fn hidden_timeouts_are_not_shown() {
    let mut master = FakeMaster::start("").await;
    let salt = master.command(SALT, &["--hide-timeout", "-L", "web1,zz", "test.ping"]);
    let mut bus = master.subscriber().await;
    master.request().await.answer(&published(JID, &["web1"], &["zz"])).await;
    bus.fire(&returned(JID, "web1", true, 0)).await;
    salt.await.unwrap().is(0, "web1:\n    True\n", "");
}

#[tokio::test]
async fn the_masters_refusals_are_printed_and_end_well() {
    for (name, message) in [
        ("AuthenticationError", "Authentication error occurred."),
        ("AuthorizationError", "Authorization error occurred."),
    ] {
        let mut master = FakeMaster::start("").await;
        let salt = master.command(SALT, &["*", "test.ping"]);
        let _bus = master.subscriber().await;
        let error = map([("name", name), ("message", message)]);
        master.request().await.answer(&map([("error", error)])).await;
        salt.await.unwrap().is(0, &format!("{message}\n"), "");
    }
}

#[tokio::test]
async fn a_key_that_cannot_be_read_is_named() {
    let mut master = FakeMaster::start("").await;
    std::fs::remove_file(master.path("cache/.root_key")).unwrap();
    let salt = master.command(SALT, &["*", "test.ping"]);
    let _bus = master.subscriber().await;
    let request = master.request().await;
    assert_eq!(field(&request.load, "key"), json!(""));
    let error = map([("name", "AuthenticationError"), ("message", "Authentication error occurred.")]);
    request.answer(&map([("error", error)])).await;
    let done = salt.await.unwrap();
    assert_eq!((done.code, done.stdout.as_str()), (0, "Authentication error occurred.\n"));
    assert!(
        done.stderr.contains("cannot read the master's key") && done.stderr.contains(".root_key"),
        "{}",
        done.stderr
    );
    assert_eq!(done.stderr.lines().count(), 1, "{}", done.stderr);
}

#[tokio::test]
async fn no_master() {
    let master = FakeMaster::start("").await;
    std::fs::remove_file(master.path("sock/master_event_pub.ipc")).unwrap();
    let done = master.command(SALT, &["*", "test.ping"]).await.unwrap();
    assert_eq!((done.code, done.stdout.as_str()), (0, "The salt master could not be contacted. Is master running?\n"));
    assert!(done.stderr.contains("master_event_pub.ipc: start salt-master, or name"), "{}", done.stderr);
    assert_eq!(done.stderr.lines().count(), 1, "{}", done.stderr);
    let done = master.command(SALT_RUN, &["jobs.list_jobs"]).await.unwrap();
    assert_eq!((done.code, done.stdout.as_str()), (1, ""));
    assert!(done.stderr.contains("The salt master could not be contacted. Is master running?"), "{}", done.stderr);
    assert!(done.stderr.contains("start salt-master") && done.stderr.lines().count() == 1, "{}", done.stderr);
}

#[tokio::test]
async fn a_master_that_goes_away_before_it_answers() {
    let mut master = FakeMaster::start("").await;
    let salt = master.command(SALT, &["*", "test.ping"]);
    let _bus = master.subscriber().await;
    let request = master.request().await;
    drop(request);
    let _folder = master.stop().await;
    let done = salt.await.unwrap();
    assert!(
        done.code == 0 && done.stdout.starts_with("Salt request timed out. The master is not responding."),
        "{done:?}"
    );
}

#[tokio::test]
async fn the_bus_may_come_back() {
    let mut master = FakeMaster::start("").await;
    let client = client(&master);
    let job = ping();
    let mut returns = {
        let (returns, bus) = tokio::join!(client.cmd_iter(&job), master.job(JID, &["web1"]));
        drop(bus);
        returns.unwrap()
    };
    let next = soon("the return", async {
        let (event, ()) = tokio::join!(returns.next(), async {
            let mut bus = master.subscriber().await;
            bus.fire(&returned(JID, "web1", 5, 0)).await;
            // keeps the bus open until the client has read
            tokio::task::yield_now().await;
            std::mem::drop(bus);
        });
        event
    });
    assert!(matches!(next.await, Ok(Some(JobEvent::Return(ret))) if ret.id == "web1" && ret.ret == Value::from(5)));
    assert_eq!(returns.next().await.unwrap(), None);
}

#[tokio::test]
async fn hostile_events_do_no_harm() {
    let mut deep = Value::Nil;
    for _ in 0..5_000 {
        deep = Value::Array(vec![deep]);
    }
    let tag = format!("salt/job/{JID}/ret/web1");
    let event = |tag: &str, data: Value| frame(&Event { tag: tag.to_owned(), data }, Framing::Bare);
    let body = |body: &[u8]| {
        let mut out = vec![0x82, 0xa4];
        out.extend(b"head\x80\xa4body\xc5");
        out.extend(u16::try_from(body.len()).unwrap().to_be_bytes());
        out.extend(body);
        out
    };
    let mut cases = tokio::task::JoinSet::new();
    for (what, bytes) in [
        ("another job's", event("salt/job/20261120134740245009/ret/web1", map([("return", 1)]))),
        ("no return in it", event(&tag, map([("x", 1)]))),
        ("data is no map", body(&[tag.as_bytes(), b"\n\n\x93\x01\x02\x03"].concat())),
        ("not msgpack", body(&[tag.as_bytes(), b"\n\n\xc1\xc1\xc1"].concat())),
        ("cut off", body(&[tag.as_bytes(), b"\n\n\x81\xa6return\xdb\xff\xff\xff\xff"].concat())),
        ("no tag", body(b"\n\n\x80")),
        ("no data", body(tag.as_bytes())),
        ("tag not text", body(b"\xff\xfe\n\n\x80")),
        ("wrong types", event(&format!("salt/job/{JID}/new"), map([("minions", 7), ("missing", 8)]))),
        ("deep", {
            let data = map([("return", deep)]);
            event(&tag, data)
        }),
        ("another framing", vec![0xff; 64]),
        ("a length that no one has", vec![0x00, 0xff, 0xff, 0xff, 0x82, 0xa4]),
        ("a frame of 4 GiB", [&b"\x82\xa4head\x80\xa4body\xc6"[..], &[0xff; 4], &[0; 32]].concat()),
        ("random", (0..4096u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect()),
    ] {
        cases.spawn(hostile_event(what, bytes));
    }
    cases.join_all().await;
}

async fn hostile_event(what: &'static str, bytes: Vec<u8>) {
    let mut master = FakeMaster::start("").await;
    let salt = master.command(SALT, &["*", "test.ping"]);
    let (mut bus, _) = master.job(JID, &["web1"]).await;
    bus.send(&bytes).await;
    bus.fire(&returned(JID, "web1", true, 0)).await;
    // a stream that lost its way is given up and made anew
    let again = tokio::spawn(async move {
        let mut bus = master.subscriber().await;
        bus.fire(&returned(JID, "web1", true, 0)).await;
        let probe = master.request().await;
        probe.published(PROBE, &["web1"]).await;
        std::future::pending::<()>().await;
    });
    let done = soon(what, salt).await.unwrap();
    again.abort();
    assert!(!done.stderr.contains("panicked"), "{what}: {done:?}");
    if matches!(what, "a length that no one has" | "a frame of 4 GiB" | "random") {
        // and one that waits for bytes that never come ends with the wait for minions
        assert!(done.stdout.contains("Minion did not return."), "{what}: {done:?}");
    } else {
        assert_eq!((done.code, done.stdout.as_str()), (0, "web1:\n    True\n"), "{what}: {}", done.stderr);
    }
}

#[tokio::test]
async fn hostile_replies_are_refused() {
    for (what, bytes, expect) in [
        ("not msgpack", vec![0xc1], "the master's reply makes no sense"),
        ("empty", vec![], "the master's reply makes no sense"),
        ("nil", vec![0xc0], "the master's reply makes no sense"),
        ("a length that no one has", vec![0xdf, 0xff, 0xff, 0xff, 0xff], "the master's reply makes no sense"),
        ("no load", vec![0x80], "the master's reply makes no sense"),
        ("text", b"\xa8bad load".to_vec(), "bad load"),
        ("load is a number", b"\x81\xa4load\x07".to_vec(), "No minions matched"),
        ("escapes", b"\xa5\x1b[2Jx".to_vec(), "?[2Jx"),
    ] {
        let mut master = FakeMaster::start("").await;
        let salt = master.command(SALT, &["*", "test.ping"]);
        let _bus = master.subscriber().await;
        master.request().await.answer_bytes(bytes).await;
        let done = salt.await.unwrap();
        assert!(done.stdout.contains(expect) && !done.stderr.contains("panicked"), "{what}: {done:?}");
    }
}

/// What the bus left out is looked up: for this minion alone, or, from a master that does not know how to, all of the job.
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

/// When it cannot be looked up, what there is is shown, and what to do is said.
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
            "web1:\n    ----------\n    k:\n        - 1\n",
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
async fn node_groups_are_sent_as_compound_targets() {
    let mut master = FakeMaster::start("nodegroups:\n  web: web*\n").await;
    let done = master.command(SALT, &["-N", "nosuch", "test.ping"]).await.unwrap();
    done.is(0, &format!("Node group nosuch unavailable in {}\n", master.path("conf/master").display()), "");
    let salt = master.command(SALT, &["-N", "web", "test.ping"]);
    let (mut bus, load) = master.job(JID, &["web1"]).await;
    assert_eq!((field(&load, "tgt"), field(&load, "tgt_type")), (json!("web*"), json!("compound")));
    bus.fire(&returned(JID, "web1", true, 0)).await;
    assert_eq!(salt.await.unwrap().stdout, "web1:\n    True\n");
}

#[tokio::test]
async fn wrong_calls_and_configurations() {
    let master = FakeMaster::start("").await;
    let usage = "Usage: salt [options] '<target>' <function> [arguments]\n\nsalt: error: ";
    for (args, code, stderr) in [
        (&["--bogus"][..], 64, format!("{usage}no such option: --bogus\n")),
        (
            &["-E", "-L", "x", "test.ping"],
            64,
            format!("{usage}The options --pcre/--list are mutually exclusive. Please only choose one of them\n"),
        ),
        (&[], 42, "\nCannot execute command without defining a target.\n\n".to_owned()),
        (&["*"], 42, "\nIncomplete options passed.\n\n".to_owned()),
        (&["*", "a.b,c.d", "x"], 42, "Cannot execute compound command without defining all arguments.\n".to_owned()),
    ] {
        let done = master.command(SALT, args).await.unwrap();
        assert_eq!((done.code, done.stderr.as_str()), (code, stderr.as_str()), "{args:?}");
    }
    let done = master.command(SALT, &["--version"]).await.unwrap();
    done.is(0, concat!("salt ", env!("CARGO_PKG_VERSION"), " (Brine)\n"), "");
    // One line each, that says what to do.
    let (gone, file) = (master.path("gone").display().to_string(), master.path("conf/master").display().to_string());
    for program in [SALT, SALT_RUN, env!("CARGO_BIN_EXE_salt-key")] {
        for (dir, expect) in [
            (&gone, format!("the configuration folder {gone} does not exist: name the one")),
            (&file, "name the folder it is in, not the file".to_owned()),
        ] {
            let words: &[&str] = if program.ends_with("salt-key") { &["-L"] } else { &["*", "test.ping"] };
            let done = master.command(program, &[&["-c", dir.as_str()], words].concat()).await.unwrap();
            assert!(done.code == 64 && done.stderr.contains(&expect), "{program}: {done:?}");
            assert_eq!((done.stderr.lines().count(), done.stdout.as_str()), (1, ""), "{program}: {done:?}");
        }
    }
    std::fs::write(master.path("conf/master"), "interface: [1").unwrap();
    let done = master.command(SALT, &["*", "test.ping"]).await.unwrap();
    assert!(done.code == 64 && done.stderr.contains("conf/master") && done.stderr.lines().count() == 1, "{done:?}");
}

#[tokio::test]
async fn help_names_what_works() {
    let master = FakeMaster::start("").await;
    let done = master.command(SALT, &["--help"]).await.unwrap();
    assert!(
        done.stdout.starts_with("Usage: salt [options] '<target>' <function> [arguments]\n\nSalt allows for"),
        "{done:?}"
    );
    for option in [
        "--pcre",
        "--list",
        "--grain",
        "--compound",
        "--nodegroup",
        "--ipcidr",
        "--timeout",
        "--out",
        "--hide-timeout",
        "--log-level",
        "--config-dir",
    ] {
        assert!(done.stdout.contains(option), "{option}");
    }
    for later in ["--batch", "--subset", "--eauth"] {
        assert!(!done.stdout.contains(later), "{later}");
    }
    // sent as it is: the master resolves it
    let mut master = FakeMaster::start("").await;
    let salt = master.command(SALT, &["-G", "os:Debian", "test.ping", "--delimiter=|"]);
    let (mut bus, load) = master.job(JID, &["web1"]).await;
    assert_eq!((field(&load, "tgt"), field(&load, "tgt_type")), (json!("os:Debian"), json!("grain")));
    assert_eq!(field(&load, "kwargs")["delimiter"], json!("|"));
    bus.fire(&returned(JID, "web1", true, 0)).await;
    assert_eq!(salt.await.unwrap().code, 0);
}

#[tokio::test]
async fn runners_return() {
    for (ret, args, code, stdout) in [
        (json!({"success": true, "return": {"web1": true}}), &["jobs.lookup_jid", JID][..], 0, "web1:\n    True\n"),
        (
            json!({"success": true, "return": {"web1": true}}),
            &["jobs.lookup_jid", JID, "--out=json", "--out-indent=-1"],
            0,
            "{\"web1\": true}\n",
        ),
        (json!({"success": true, "return": {"outputter": "txt", "data": {"a": [1]}}}), &["x.y"], 0, "a: [1]\n"),
        (json!({"success": true, "return": {}}), &["jobs.lookup_jid", JID], 0, ""),
        (json!({"success": false, "return": "'x.y' is not available."}), &["x.y"], 1, "'x.y' is not available.\n"),
        (json!({"success": true, "return": "r", "retcode": 9}), &["x.y"], 9, "r\n"),
        (json!({"success": true, "return": "r"}), &["-q", "x.y"], 0, ""),
    ] {
        let mut master = FakeMaster::start("").await;
        let run = master.command(SALT_RUN, args);
        let mut bus = master.subscriber().await;
        let request = master.request().await;
        assert_eq!((field(&request.load, "cmd"), field(&request.load, "key")), (json!("runner"), json!(KEY)));
        let tag = format!("salt/run/{PROBE}");
        let data = brine_protocol::value::from_json(&ret);
        // another runner's result, and this one's before the reply
        bus.fire(&Event { tag: "salt/run/20261120134741000009/ret".to_owned(), data: map([("return", "wrong")]) })
            .await;
        bus.fire(&Event { tag: format!("{tag}/new"), data: map([("return", "wrong")]) }).await;
        bus.fire(&Event { tag: format!("{tag}/ret"), data }).await;
        request.answer(&map([("tag", tag.as_str()), ("jid", PROBE)])).await;
        let done = run.await.unwrap();
        assert_eq!((done.code, done.stdout.as_str(), done.stderr.as_str()), (code, stdout, ""), "{args:?} {ret}");
    }
}

#[tokio::test]
async fn runner_arguments_are_packed() {
    let mut master = FakeMaster::start("").await;
    let run = master.command(SALT_RUN, &["--async", "jobs.lookup_jid", JID, "missing=True"]);
    let _bus = master.subscriber().await;
    let request = master.request().await;
    assert_eq!(field(&request.load, "fun"), json!("jobs.lookup_jid"));
    assert_eq!(field(&request.load, "kwarg"), json!({"arg": [JID], "kwarg": {"missing": true}}));
    request.answer(&map([("tag", "salt/run/1"), ("jid", "1")])).await;
    let done = run.await.unwrap();
    assert_eq!((done.code, done.stdout.as_str()), (0, ""));
    assert!(
        done.stderr.contains("Running in asynchronous mode.") && done.stderr.contains("salt/run/1"),
        "{}",
        done.stderr
    );
}

#[tokio::test]
async fn a_runner_that_takes_too_long_and_a_master_that_stops() {
    let mut master = FakeMaster::start("").await;
    let run = master.command(SALT_RUN, &["-t", "1", "x.y"]);
    let bus = master.subscriber().await;
    master.request().await.answer(&map([("tag", "salt/run/1"), ("jid", "1")])).await;
    let done = run.await.unwrap();
    assert!(done.code == 1 && done.stderr.starts_with("no result within 1 seconds"), "{done:?}");
    drop(bus);
    let run = master.command(SALT_RUN, &["x.y"]);
    let bus = master.subscriber().await;
    master.request().await.answer(&map([("tag", "salt/run/1"), ("jid", "1")])).await;
    drop(bus);
    let done = run.await.unwrap();
    assert!(done.code == 1 && done.stderr.contains("the master closed its event bus"), "{done:?}");
}

#[tokio::test]
async fn the_library_gives_returns_and_errors() {
    let mut master = FakeMaster::start("").await;
    let client = client(&master);
    let job = ping();
    let (all, ()) = tokio::join!(client.cmd(&job), async {
        let (mut bus, _) = master.job(JID, &["web1", "web2"]).await;
        bus.fire(&returned(JID, "web1", 1, 0)).await;
        bus.fire(&returned(JID, "web2", 2, 0)).await;
    });
    assert_eq!(all.unwrap(), [("web1".to_owned(), Value::from(1)), ("web2".to_owned(), Value::from(2))]);
    let (published, ()) = tokio::join!(client.cmd_async(&job), async {
        let _bus = master.subscriber().await;
        master.request().await.published(JID, &["web1"]).await;
    });
    assert_eq!(published.unwrap().jid, JID);
    std::fs::remove_file(master.path("sock/master_event_pub.ipc")).unwrap();
    assert!(matches!(client.cmd_async(&job).await, Err(ClientError::MasterDown { .. })));
}
