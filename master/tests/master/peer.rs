//! Jobs and runners that minions start (§6.1), as `peer` and `peer_run` permit.

use brine_protocol::value::{Value, ValueExt, empty_map, list, map, text};

use super::harness::*;

const SETTINGS: &str = "
peer:
  web.*:
    - test.*
    - 'G@role:db': [pkg.version, {file.read: {args: [/etc/motd$]}}]
    - 'L@web1': grains.get
peer_run:
  web1: [manage.*]
";

fn pub_load(fun: &str, arg: &[&str], tgt: &str, tgt_type: &str) -> Value {
    map([
        ("cmd", text("minion_pub")),
        ("fun", text(fun)),
        ("arg", list(arg.iter().map(|word| text(*word)))),
        ("tgt", text(tgt)),
        ("tgt_type", text(tgt_type)),
        ("ret", text("")),
        ("tmo", 5.into()),
        ("form", text("clean")),
        ("no_parse", Value::Array(Vec::new())),
    ])
}

/// Sends this minion's grains to the master.
async fn tell_role(minion: &TestMinion, master: &TestMaster, role: &str) {
    let session = minion.session.as_ref().unwrap();
    let load = map([("cmd", text("_pillar")), ("grains", map([("role", role)])), ("ver", text("2"))]);
    let sealed = session.seal_request(load).unwrap();
    let reply = master.raw(sealed.payload).await;
    session.open_pillar_reply(&reply, &sealed.nonce).unwrap();
}

fn jid(reply: &Value) -> String {
    reply.get_text("jid").unwrap_or_else(|| panic!("nothing was published: {reply}")).to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_minion_publishes_and_asks_for_the_returns() {
    let master = TestMaster::start(SETTINGS).await;
    let (web, other) = (master.minion("web1", 1).await, master.minion("db1", 2).await);
    let mut publications = other.subscribe(&master, &[""]).await;
    let reply = web.ask(&master, pub_load("test.arg", &["1", "a=b", "[x]"], "*", "glob")).await;
    assert_eq!(reply.get("minions"), Some(&list(["db1", "web1"])));
    let published = publications.load().await;
    let kwargs = map([("__kwarg__", Value::from(true)), ("a", text("b"))]);
    assert_eq!(published.get("arg"), Some(&list([1.into(), list(["x"]), kwargs])));
    assert_eq!((published.get_text("id"), published.get_text("tgt")), (Some("web1"), Some("*")));
    let ask = map([("cmd", text("pub_ret")), ("jid", jid(&reply).into())]);
    assert_eq!(web.ask(&master, ask.clone()).await, empty_map(), "at once, and nothing is there yet");
    other.ask(&master, other.return_load(&jid(&reply), "hi")).await;
    assert_eq!(web.ask(&master, ask.clone()).await, map([("db1", map([("ret", "hi")]))]));
    // Only the minion that started the job gets its returns; others do not even learn whether it exists.
    let mut events = master.events().await;
    assert_eq!(other.ask(&master, ask).await, empty_map());
    assert_eq!(events.next().await.tag, "brine/refused/peer/db1");
    let unknown = map([("cmd", "pub_ret"), ("jid", "20261120134740245008")]);
    assert_eq!(web.ask(&master, unknown).await, empty_map());
    assert_eq!(events.next().await.tag, "brine/refused/peer/web1");
    let odd = map([("cmd", "pub_ret"), ("jid", "../../x")]);
    assert_eq!(web.ask(&master, odd).await, empty_map());
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_published_that_peer_does_not_permit() {
    let master = TestMaster::start(SETTINGS).await;
    let (web, db) = (master.minion("web1", 1).await, master.minion("db1", 2).await);
    tell_role(&web, &master, "web").await;
    tell_role(&db, &master, "db").await;
    let mut events = master.events().await;
    let mut publications = db.subscribe(&master, &[""]).await;
    for (fun, arg, tgt, tgt_type) in [
        ("cmd.run", &["id"][..], "*", "glob"),
        ("publish.publish", &[], "*", "glob"),
        // Salt permits these two: it requires only one function of several, and compares only the whole text with
        // `publish.`.
        ("test.ping,cmd.run", &["", "id"], "*", "glob"),
        ("test.ping,publish.publish", &["", "x"], "*", "glob"),
        ("pkg.version", &["x"], "*", "glob"),
        ("pkg.version", &["x"], "web1", "glob"),
        ("file.read", &["/etc/shadow"], "db1", "glob"),
        ("file.read", &[], "db1", "glob"),
        // A keyword argument before them does not change the place of the checked arguments.
        ("file.read", &["binary=1", "/etc/shadow"], "db1", "glob"),
        ("file.read", &["'x=/etc/motd'", "/etc/shadow"], "db1", "glob"),
        ("grains.get", &["os"], "db1", "glob"),
        ("xtest.ping", &[], "*", "glob"),
        ("", &[], "*", "glob"),
    ] {
        let reply = web.ask(&master, pub_load(fun, arg, tgt, tgt_type)).await;
        assert_eq!(reply, empty_map(), "{fun} {arg:?} on {tgt}");
        assert_eq!(events.next().await.tag, "brine/refused/peer/web1", "{fun} {arg:?}");
    }
    assert_eq!(db.ask(&master, pub_load("test.ping", &[], "*", "glob")).await, empty_map(), "no rule is for db1");
    assert_eq!(events.next().await.tag, "brine/refused/peer/db1");
    let mut nameless = pub_load("test.ping", &[], "*", "glob");
    nameless.insert("id", "web1");
    nameless.insert("tok", "good");
    assert_eq!(decode(&master.raw(db.envelope(nameless, "db1", 3)).await), text("bad load"), "another's name");
    events.next().await;
    for (fun, arg, tgt, tgt_type) in [
        ("pkg.version", &["x"][..], "role:db", "grain"),
        ("file.read", &["/etc/motd"], "db1", "list"),
        ("test.ping,test.echo", &["", "x"], "*", "glob"),
        ("grains.get", &["os"], "web1", "glob"),
    ] {
        let reply = web.ask(&master, pub_load(fun, arg, tgt, tgt_type)).await;
        let published = publications.load().await;
        assert_eq!(published.get_text("jid"), Some(jid(&reply).as_str()), "{fun}");
        // A target by grains is published to the resolved minions, by name.
        if tgt_type == "grain" {
            assert_eq!((published.get("tgt"), published.get_text("tgt_type")), (Some(&list(["db1"])), Some("list")));
        }
    }
    assert_eq!(web.ask(&master, pub_load("test.ping", &[], "nobody", "glob")).await, empty_map());
    assert_eq!(web.ask(&master, pub_load("test.ping", &[], "x", "odd")).await, empty_map());
}

#[tokio::test(flavor = "multi_thread")]
async fn others_pillar_is_not_found_out_by_patterns() {
    let master = TestMaster::start("peer: {.*: [.*]}").await;
    let (web, _db) = (master.minion("web1", 1).await, master.minion("db1", 2).await);
    let pillar = brine_protocol::msgpack::encode_disk(&map([("secret", "s3cret")]));
    std::fs::create_dir_all(master.path("cache/pillar")).unwrap();
    std::fs::write(master.path("cache/pillar/db1.p"), pillar).unwrap();
    for (tgt, tgt_type, published) in [
        ("secret:s*", "pillar", false),
        ("secret:s.*", "pillar_pcre", false),
        ("I@secret:s*", "compound", false),
        ("J@secret:s.* or web1", "compound", false),
        ("secret:s3cret", "pillar", true),
        ("I@secret:s3cret", "compound", true),
    ] {
        let reply = web.ask(&master, pub_load("test.ping", &[], tgt, tgt_type)).await;
        assert_eq!(reply.has("jid"), published, "{tgt}: {reply}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn runners_run_for_who_may_run_them() {
    let master = TestMaster::start(SETTINGS).await;
    let (web, db) = (master.minion("web1", 1).await, master.minion("db1", 2).await);
    let mut events = master.events().await;
    let load = |fun: &str| map([("cmd", text("minion_runner")), ("fun", text(fun)), ("arg", Value::Array(Vec::new()))]);
    let unknown = web.ask(&master, load("manage.nothing")).await;
    assert!(unknown.text().unwrap().starts_with("'manage.nothing' is not available."), "{unknown}");
    let new = events.wait("salt/run/").await;
    assert_eq!(
        (new.data.get_text("user"), new.data.get_text("fun")),
        (Some("minion web1"), Some("runner.manage.nothing"))
    );
    events.wait("salt/run/").await;
    for (minion, fun) in [(&web, "jobs.list_jobs"), (&web, "xmanage.up"), (&db, "manage.up")] {
        assert_eq!(minion.ask(&master, load(fun)).await, empty_map(), "{fun}");
        assert_eq!(events.next().await.tag, format!("brine/refused/peer/{}", minion.id));
    }
    // Without the settings nothing is permitted.
    let master = TestMaster::start("").await;
    let web = master.minion("web1", 1).await;
    assert_eq!(web.ask(&master, load("manage.up")).await, empty_map());
    assert_eq!(web.ask(&master, pub_load("test.ping", &[], "*", "glob")).await, empty_map());
}

/// A runner fires in the name of its caller: a minion does not come to be the master by way of it.
#[tokio::test(flavor = "multi_thread")]
async fn an_event_by_way_of_a_runner_is_the_minions() {
    let folder = tempfile::tempdir().unwrap();
    let sls = folder.path().join("show.sls");
    std::fs::write(&sls, "x:\n  runner.test.arg:\n    - arg: [{{ tag }}, {{ fired_by.kind }}]\n").unwrap();
    let sls = sls.display();
    let config = format!(
        "peer_run: {{web1: [event.send]}}\nreactor: [{{x/plain: [{sls}]}}, {{x/open: [{sls}], from_minions: true}}]"
    );
    let master = TestMaster::start(&config).await;
    let web = master.minion("web1", 1).await;
    let mut events = master.events().await;
    for tag in ["x/plain", "x/open"] {
        let load = map([("cmd", text("minion_runner")), ("fun", text("event.send")), ("arg", list([tag]))]);
        assert_eq!(web.ask(&master, load).await, Value::from(true));
    }
    let reaction = loop {
        let event = events.wait("salt/run/").await;
        if event.data.get_text("fun") == Some("runner.test.arg") {
            break event;
        }
    };
    assert_eq!(reaction.data.get("fun_args"), Some(&list(["x/open", "minion"])), "the event before it had no reaction");
}

/// An orchestration would publish jobs and run runners with rights that `peer` and `peer_run` did not give.
#[tokio::test(flavor = "multi_thread")]
async fn a_minion_starts_no_orchestration() {
    let master = TestMaster::start("peer_run: {.*: ['.*']}").await;
    let web = master.minion("web1", 1).await;
    let high = map([("a", map([("salt.function", list([map([("name", "test.ping")]), map([("tgt", "*")])]))]))]);
    for (fun, args) in [
        ("state.orchestrate", vec![text("deploy")]),
        ("state.orchestrate_high", vec![high]),
        ("state.orchestrate_single", vec![text("salt.function"), text("test.ping")]),
        ("state.orchestrate_show_sls", vec![text("deploy")]),
    ] {
        let load = map([("cmd", text("minion_runner")), ("fun", text(fun)), ("arg", Value::Array(args))]);
        let said = web.ask(&master, load).await;
        assert!(said.text().is_some_and(|said| said.contains("may not start an orchestration")), "{fun}: {said}");
    }
}

/// Without data of minions, a target by grains would match all minions, and so would the target of a permission.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_known_permits_nothing() {
    let master =
        TestMaster::start("minion_data_cache: False\npeer: {web1: [test.*, {'G@role:db': [pkg.version]}]}").await;
    let (web, _db) = (master.minion("web1", 1).await, master.minion("db1", 2).await);
    assert_eq!(web.ask(&master, pub_load("test.ping", &[], "role:db", "grain")).await, empty_map());
    assert_eq!(web.ask(&master, pub_load("pkg.version", &[], "db1", "glob")).await, empty_map());
    assert!(web.ask(&master, pub_load("test.ping", &[], "db1", "glob")).await.has("jid"));
}

/// A waiting runner delays no other requests, and the runners of one minion are bounded.
#[tokio::test(flavor = "multi_thread")]
async fn runners_that_wait_hold_up_nobody() {
    let master = TestMaster::start("peer_run: {.*: [manage.status]}\ntimeout: 3\ngather_job_timeout: 1").await;
    // An accepted minion that never responds, so that the runner waits for it.
    let (web, other) = (master.minion("web1", 1).await, master.minion("silent", 2).await);
    let status =
        map([("cmd", text("minion_runner")), ("fun", text("manage.status")), ("arg", Value::Array(Vec::new()))]);
    let mut events = master.events().await;
    let meanwhile = async {
        for _ in 0..2 {
            events.wait("salt/run/").await;
        }
        assert_eq!(web.ask(&master, status.clone()).await, empty_map(), "a third one of the same minion");
        assert_eq!(events.wait("brine/refused/peer/").await.tag, "brine/refused/peer/web1");
        assert_eq!(other.ask(&master, map([("cmd", "_file_envs")])).await, list(["base"]));
        assert_eq!(web.ask(&master, map([("cmd", "_file_envs")])).await, list(["base"]));
    };
    let (first, second, ()) =
        tokio::join!(web.ask(&master, status.clone()), web.ask(&master, status.clone()), meanwhile);
    for answer in [first, second] {
        assert!(answer.get_list("down").is_some_and(|down| !down.is_empty()), "{answer}");
    }
}
