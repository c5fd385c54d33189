//! Invalid calls, configurations, replies and events.

use brine_client::JobEvent;
use brine_kit::wait::Deadline;
use brine_protocol::event::{Event, Framing, frame};
use brine_protocol::value::{Value, map};
use serde_json::json;

use super::fake_master::{DEADLINE, FakeMaster, field, returned};
use super::{JID, PROBE, SALT, SALT_RUN, client, ping};

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
    let next = DEADLINE.within(async {
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
    // a stream with malformed frames is closed, and a new connection is made
    let again = tokio::spawn(async move {
        let mut bus = master.subscriber().await;
        bus.fire(&returned(JID, "web1", true, 0)).await;
        let probe = master.request().await;
        probe.published(PROBE, &["web1"]).await;
        std::future::pending::<()>().await;
    });
    let done = DEADLINE.within(salt).await.unwrap();
    again.abort();
    assert!(!done.stderr.contains("panicked"), "{what}: {done:?}");
    if matches!(what, "a length that no one has" | "a frame of 4 GiB" | "random") {
        // a stream that waits for missing bytes ends with the wait for minions
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

/// A trimmed return is fetched: for this minion alone, or for the whole job from a master that cannot select a minion.

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
    // One line for each problem, with advice.
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
        done.stdout
            .starts_with("Usage: salt [options] '<target>' <function> [arguments]\n\nRuns a function on the minions"),
        "{done:?}"
    );
    for option in [
        "--pcre",
        "--list",
        "--grain",
        "--compound",
        "--nodegroup",
        "--ipcidr",
        "--range",
        "--batch",
        "--batch-wait",
        "--batch-safe-limit",
        "--batch-safe-size",
        "--failhard",
        "--subset",
        "--preview-target",
        "--timeout",
        "--out",
        "--hide-timeout",
        "--log-level",
        "--config-dir",
        "--progress",
        "--return",
        "--make-token",
        "--args-stdin",
    ] {
        assert!(done.stdout.contains(option), "{option}");
    }
    for hidden in ["--batch-size", "--eauth", "--hosts", "--hard-crash"] {
        assert!(!done.stdout.contains(hidden), "{hidden}");
    }
    // passed on unchanged, because the master resolves it
    let mut master = FakeMaster::start("").await;
    let salt = master.command(SALT, &["-G", "os:Debian", "test.ping", "--delimiter=|"]);
    let (mut bus, load) = master.job(JID, &["web1"]).await;
    assert_eq!((field(&load, "tgt"), field(&load, "tgt_type")), (json!("os:Debian"), json!("grain")));
    assert_eq!(field(&load, "kwargs")["delimiter"], json!("|"));
    bus.fire(&returned(JID, "web1", true, 0)).await;
    assert_eq!(salt.await.unwrap().code, 0);
}
