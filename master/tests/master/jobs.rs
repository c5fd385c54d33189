//! The way of a job through the master: published, returned, stored, looked up.

use brine_protocol::ids::Jid;
use brine_protocol::value::{Value, ValueExt, empty_map, list, map};

use super::harness::*;

fn ids(value: &Value, field: &str) -> Vec<String> {
    value.get_list(field).unwrap().iter().map(|id| id.text().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_goes_out_and_its_return_comes_back() {
    let master = TestMaster::start("").await;
    let minion = master.minion("web1", 1).await;
    let _other = master.minion("db1", 2).await;
    let mut publications = minion.subscribe(&master, &[""]).await;
    let mut events = master.events().await;
    let reply = master.publish("web*", "glob", "test.echo", vec!["hi".into()]).await;
    assert_eq!(reply.get_text("enc"), Some("clear"));
    let reply = reply.get("load").unwrap();
    assert_eq!((ids(reply, "minions"), ids(reply, "missing")), (vec!["web1".to_owned()], vec![]));
    let jid = reply.get_text("jid").unwrap();
    assert!(Jid::try_from(jid).is_ok());

    let new = events.next().await;
    assert_eq!(new.tag, format!("salt/job/{jid}/new"));
    let fields: Vec<_> = new.data.entries().unwrap().iter().map(|(k, _)| k.text().unwrap()).collect();
    assert_eq!(fields, ["jid", "tgt_type", "tgt", "user", "fun", "arg", "minions", "missing", "_stamp"]);
    assert_eq!(events.next().await.tag, format!("salt/job/{jid}/publish"));
    let job = publications.load().await;
    assert_eq!(
        (job.get_text("jid"), job.get_text("fun"), job.get_text("tgt_type")),
        (Some(jid), Some("test.echo"), Some("glob"))
    );
    assert!(!job.has("key") && !job.has("kwargs"));

    assert_eq!(minion.ask(&master, minion.return_load(jid, "hi")).await, Value::Nil);
    let ret = events.next().await;
    assert_eq!(ret.tag, format!("salt/job/{jid}/ret/web1"));
    assert_eq!(
        (ret.data.get_text("return"), ret.data.get_text("cmd"), ret.data.get_i64("retcode")),
        (Some("hi"), Some("_return"), Some(0))
    );
    assert!(!ret.data.has("tok") && !ret.data.has("nonce"));
    // A second return for the same job is acknowledged but not stored.
    assert_eq!(minion.ask(&master, minion.return_load(jid, "other")).await, Value::Nil);
    assert_eq!(run(&master, "jobs.lookup_jid", vec![jid.into()], &mut events).await, map([("web1", "hi")]));
}

/// Starts a runner. Returns the tag of its events.
async fn start(master: &TestMaster, fun: &str) -> String {
    let load = map([("cmd", Value::from("runner")), ("fun", fun.into()), ("key", master.local_key().into())]);
    master.clear(load).await.get_text("tag").unwrap().to_owned()
}

/// Waits for a runner's result.
async fn ended(tag: &str, events: &mut Events) -> Value {
    events.wait(&format!("{tag}/ret")).await.data.get("return").cloned().unwrap()
}

/// Starts a runner and waits for its result.
async fn run(master: &TestMaster, fun: &str, arg: Vec<Value>, events: &mut Events) -> Value {
    let load = map([
        ("cmd", Value::from("runner")),
        ("fun", fun.into()),
        ("arg", Value::Array(arg)),
        ("kwarg", empty_map()),
        ("user", "root".into()),
        ("key", master.local_key().into()),
    ]);
    let reply = master.clear(load).await;
    let tag = reply.get_text("tag").unwrap().to_owned();
    assert_eq!(events.next().await.tag, format!("{tag}/new"));
    let ret = events.wait(&format!("{tag}/ret")).await;
    assert_eq!(ret.data.get_text("fun"), Some(format!("runner.{fun}").as_str()));
    ret.data.get("return").cloned().unwrap()
}

/// The key of a caller is neither stored nor sent to others.
#[tokio::test(flavor = "multi_thread")]
async fn a_published_job_holds_no_key() {
    let master = TestMaster::start("").await;
    let minion = master.minion("web1", 1).await;
    let mut publications = minion.subscribe(&master, &[""]).await;
    let mut events = master.events().await;
    let key = master.local_key();
    let mut load = master.publish_load("*", "glob", "test.ping", vec![]);
    load.insert("kwargs", map([("password", "hunter2"), ("tok", "hunter2")]));
    master.clear(load).await;
    let mut seen = Vec::new();
    for _ in 0..2 {
        seen.extend(events.next().await.encode());
    }
    seen.extend(publications.load().await.to_string().into_bytes());
    let mut folders = vec![master.path("cache/jobs")];
    let mut files = vec![master.path("cache/jobs.db"), master.path("cache/jobs.db-wal")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    assert_eq!(files.len(), 4, "{files:?}");
    files.iter().for_each(|path| seen.extend(std::fs::read(path).unwrap()));
    let has = |text: &str| seen.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(has("test.ping") && !has(&key) && !has("hunter2"));
}

/// A signed return must be signed by its minion.
#[tokio::test(flavor = "multi_thread")]
async fn a_return_with_a_wrong_signature_is_refused() {
    let master = TestMaster::start("").await;
    let minion = master.minion("web1", 1).await;
    let mut events = master.events().await;
    let jid = "20261120134740245008";
    for signature in [Value::Binary(vec![7; 256]), Value::Nil, "x".into()] {
        let mut load = minion.return_load(jid, true);
        load.insert("sig", signature);
        load.insert("tok", "good");
        master.raw(minion.envelope(load, "web1", 3)).await;
        assert_eq!(events.next().await.tag, "brine/refused/return/web1");
    }
    assert_eq!(run(&master, "jobs.lookup_jid", vec![jid.into()], &mut events).await, empty_map());
}

#[tokio::test(flavor = "multi_thread")]
async fn targets_of_every_kind_that_is_there() {
    let master = TestMaster::start("").await;
    for (name, key) in [("web1", 1), ("web2", 2), ("db1", 1)] {
        master.minion(name, key).await;
    }
    for (tgt, tgt_type, minions, missing) in [
        ("*", "glob", "db1,web1,web2", ""),
        ("web?", "glob", "web1,web2", ""),
        ("WEB*", "glob", "", ""),
        ("web[12]$", "pcre", "web1,web2", ""),
        ("eb1", "pcre", "", ""),
        ("web1,none,db1", "list", "db1,web1", "none"),
        ("none", "list", "", ""),
        ("os:Debian", "grain", "", ""),
        ("(", "pcre", "", ""),
        ("*", "nonsense", "", ""),
    ] {
        let reply = master.publish(tgt, tgt_type, "test.ping", vec![]).await;
        let load = reply.get("load").unwrap();
        let mut found = ids(load, "minions");
        found.sort();
        assert_eq!(found.join(","), minions, "{tgt} {tgt_type}");
        if minions.is_empty() {
            assert_eq!(load.get("jid"), Some(&Value::Nil));
            let text = format!("Master could not resolve minions for target {tgt}");
            assert_eq!(load.get_text("error"), Some(text.as_str()));
        } else {
            assert_eq!(ids(load, "missing").join(","), missing);
        }
    }
    for field in ["tgt", "fun", "arg"] {
        let mut load = master.publish_load("*", "glob", "test.ping", vec![]);
        load.remove(field);
        assert_eq!(master.clear(load).await, Value::from("Some exception handling minion payload"), "{field}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn with_filtering_each_minion_has_its_topic() {
    let master = TestMaster::start("zmq_filtering: True").await;
    let minion = master.minion("web1", 1).await;
    let _other = master.minion("web2", 2).await;
    let topic = minion.id.topic();
    let mut publications = minion.subscribe(&master, &["broadcast", &topic]).await;
    master.publish("web2", "glob", "test.ping", vec![]).await;
    master.publish("web*", "glob", "test.version", vec![]).await;
    let frames = publications.frames().await;
    assert_eq!((frames.len(), &frames[0][..]), (2, topic.as_bytes()));
    let load = publications.open(&frames).unwrap();
    assert_eq!(load.get_text("fun"), Some("test.version"), "what is for others does not come");
}

#[tokio::test(flavor = "multi_thread")]
async fn returns_outlive_the_master() {
    let mut master = TestMaster::start("").await;
    let mut minion = master.minion("web1", 1).await;
    let reply = master.publish("*", "glob", "test.ping", vec![]).await;
    let jid = reply.get("load").unwrap().get_text("jid").unwrap().to_owned();
    minion.ask(&master, minion.return_load(&jid, true)).await;
    master.stop().await;
    assert!(!master.path("run/pid").exists());
    master.start_again().await;
    let mut events = master.events().await;
    assert_eq!(run(&master, "jobs.lookup_jid", vec![jid.as_str().into()], &mut events).await, map([("web1", true)]));
    // A minion that knows no runs (§3.10) authenticates again.
    let before = minion.credentials.clone().unwrap();
    minion.connect(master.server().request_endpoint()).await;
    let mut events = master.events().await;
    assert_eq!(minion.ask(&master, minion.return_load(&jid, false)).await, Value::Nil);
    assert_eq!(
        run(&master, "jobs.lookup_jid", vec![jid.into()], &mut events).await,
        map([("web1", true)]),
        "the first one stays"
    );
    let after = minion.credentials.clone().unwrap();
    assert!(after.publish_key != before.publish_key && after.session_key != before.session_key);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_salt_call_ran_becomes_a_job() {
    let master = TestMaster::start("").await;
    let minion = master.minion("web1", 1).await;
    let mut events = master.events().await;
    let mut load = minion.return_load("req", "hi");
    load.remove("success");
    minion.ask(&master, load).await;
    let event = events.wait("salt/job/").await;
    let jid = event.data.get_text("jid").unwrap().to_owned();
    assert!(Jid::try_from(jid.as_str()).is_ok());
    let jobs = run(&master, "jobs.list_jobs", vec![], &mut events).await;
    assert_eq!(jobs.get(&jid).and_then(|job| job.get_text("Target")), Some("web1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_return_that_is_too_large_is_told_of_instead_of_lost() {
    let master = TestMaster::start("max_return_size: 10000").await;
    let minion = master.minion("web1", 1).await;
    let mut events = master.events().await;
    let reply = master.publish("*", "glob", "test.ping", vec![]).await;
    let jid = reply.get("load").unwrap().get_text("jid").unwrap().to_owned();
    assert_eq!(minion.ask(&master, minion.return_load(&jid, "x".repeat(20_000))).await, Value::Nil);
    let refused = events.wait("brine/refused/return/web1").await;
    assert!(refused.data.get_text("error").unwrap().contains("max_return_size"));
    let event = events.wait(&format!("salt/job/{jid}/ret/web1")).await;
    assert_eq!((event.data.get_i64("retcode"), event.data.get_bool("success")), (Some(1), Some(false)));
    assert!(event.data.get_text("return").unwrap().contains("max_return_size"));
    // Also if the size is in unknown fields.
    let mut load = minion.return_load("req", true);
    load.insert("more", "x".repeat(20_000));
    assert_eq!(minion.ask(&master, load).await, Value::Nil);
    let event = events.wait("salt/job/").await;
    assert_eq!((event.data.has("more"), event.data.get_text("fun")), (false, Some("test.ping")));
}

/// A return of ten megabytes is stored, and its event says that it was trimmed.
#[tokio::test(flavor = "multi_thread")]
async fn large_returns_are_stored_whole_and_trimmed_on_the_bus() {
    let master = TestMaster::start("").await;
    let minion = master.minion("web1", 1).await;
    let mut events = master.events().await;
    let big = "x".repeat(10 << 20);
    let jid = "20261120134740245008";
    // The first request over a new connection, as after the master was away.
    assert_eq!(minion.ask(&master, minion.return_load(jid, big.as_str())).await, Value::Nil);
    let event = events.wait(&format!("salt/job/{jid}/ret/web1")).await;
    assert_eq!(event.data.get_text("return"), Some("VALUE_TRIMMED"));
    let found = run(&master, "jobs.lookup_jid", vec![jid.into()], &mut events).await;
    assert_eq!(found.get_text("web1"), Some(big.as_str()));
    // The return of one minion, as `salt` fetches it.
    let other = master.minion("web2", 2).await;
    other.ask(&master, other.return_load(jid, "small")).await;
    let mut events = master.events().await;
    for (minion, expected) in
        [("web1", map([("web1", big.as_str())])), ("web2", map([("web2", "small")])), ("web3", empty_map())]
    {
        let kwargs = map([("__kwarg__", Value::from(true)), ("minion", minion.into())]);
        let found = run(&master, "jobs.lookup_jid", vec![jid.into(), kwargs], &mut events).await;
        assert!(found == expected, "{minion}");
    }
}

/// A return that cannot be stored is not acknowledged, so its minion keeps it. A job that cannot be stored is not
/// published, and the caller gets the error. Both work again when there is space.
#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_is_full() {
    let master = TestMaster::start("").await;
    let minion = master.minion("web1", 1).await;
    let mut events = master.events().await;
    let database = rusqlite::Connection::open(master.path("cache/jobs.db")).unwrap();
    // As SQLite does on a full disk: the transaction is rolled back and ended.
    for table in ["jobs", "returns"] {
        let sql = format!(
            "create trigger full_{table} before insert on {table} begin select raise(rollback, 'database or disk is full'); end"
        );
        database.execute_batch(&sql).unwrap();
    }
    let jid = "20261120134740245008";
    let session = minion.session.as_ref().unwrap();
    let sealed = session.seal_request(minion.return_load(jid, "kept")).unwrap();
    let reply = master.raw(sealed.payload).await;
    assert!(session.open_reply(&reply, &sealed.nonce).is_err(), "not acknowledged");
    let reply = master.publish("*", "glob", "test.ping", vec![]).await;
    let error = reply.get_text("error").unwrap();
    assert!(
        error.starts_with("The job was not published: the job store ") && error.contains("jobs.db failed: "),
        "{error}"
    );
    assert!(error.contains("database or disk is full"), "{error}");
    assert_eq!(
        minion.ask(&master, map([("cmd", "_file_envs")])).await,
        Value::Array(vec!["base".into()]),
        "it goes on"
    );

    database.execute_batch("drop trigger full_jobs; drop trigger full_returns").unwrap();
    assert_eq!(minion.ask(&master, minion.return_load(jid, "kept")).await, Value::Nil);
    assert_eq!(events.next().await.tag, format!("salt/job/{jid}/ret/web1"), "its event comes now and not before");
    assert_eq!(run(&master, "jobs.lookup_jid", vec![jid.into()], &mut events).await, map([("web1", "kept")]));
    let reply = master.publish("*", "glob", "test.ping", vec![]).await;
    assert_eq!(ids(reply.get("load").unwrap(), "minions"), ["web1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn runners_and_the_key_wheel() {
    let master = TestMaster::start("").await;
    let minion = master.minion("web1", 1).await;
    let mut events = master.events().await;
    let unknown = run(&master, "no.such", vec![], &mut events).await;
    assert!(unknown.text().unwrap().starts_with("'no.such' is not available."), "{unknown}");
    let wrong = run(&master, "jobs.lookup_jid", vec![], &mut events).await;
    let said = "\nPassed invalid arguments: lookup_jid() missing 1 required positional argument: 'jid'\n\nUsage:\n";
    assert!(wrong.text().unwrap().starts_with(said), "{wrong}");
    let mut publications = minion.subscribe(&master, &[""]).await;
    let active = start(&master, "jobs.active").await;
    let asked = publications.load().await;
    assert_eq!(asked.get_text("fun"), Some("saltutil.running"));
    let running = map([
        ("jid", Value::from("20261120134740245008")),
        ("fun", "test.sleep".into()),
        ("arg", list([100])),
        ("pid", 7.into()),
    ]);
    minion.ask(&master, minion.return_load(asked.get_text("jid").unwrap(), list([running]))).await;
    let active = ended(&active, &mut events).await;
    let job = active.get("20261120134740245008").unwrap();
    assert_eq!((job.get_text("Function"), job.get("Running")), (Some("test.sleep"), Some(&list([map([("web1", 7)])]))));
    let _silent = master.minion("web2", 2).await;
    let status = map([
        ("cmd", Value::from("runner")),
        ("fun", "manage.status".into()),
        ("kwarg", map([("timeout", 1)])),
        ("key", master.local_key().into()),
    ]);
    master.clear(status).await;
    let jid = publications.load().await.get_text("jid").unwrap().to_owned();
    minion.ask(&master, minion.return_load(&jid, true)).await;
    let ret = loop {
        let event = events.wait("salt/run/").await;
        if event.tag.ends_with("/ret") {
            break event;
        }
    };
    let status = ret.data.get("return").unwrap();
    assert_eq!((ids(status, "up"), ids(status, "down")), (vec!["web1".to_owned()], vec!["web2".to_owned()]));
    std::fs::remove_file(master.path("pki/minions/web2")).unwrap();

    let wheel = |fun: &str, arg: Vec<Value>| {
        let load = map([
            ("cmd", Value::from("wheel")),
            ("fun", fun.into()),
            ("arg", Value::Array(arg)),
            ("kwarg", empty_map()),
            ("key", master.local_key().into()),
        ]);
        async { master.clear(load).await.get("data").cloned().unwrap() }
    };
    let new = TestMinion::new("new", 2);
    new.authenticate(&master).await;
    assert_eq!(ids(wheel("key.list_all", vec![]).await.get("return").unwrap(), "minions_pre"), ["new"]);
    assert_eq!(ids(wheel("key.accept", vec!["n*".into()]).await.get("return").unwrap(), "minions"), ["new"]);
    wheel("key.reject", vec!["new".into(), Value::from(true)]).await;
    // Each change is one event, with the key as in Salt's: a rejected key was not deleted.
    for act in ["accepted", "rejected"] {
        let told = events.wait("salt/key").await.data;
        assert_eq!((told.get_text("act"), told.get_text("id")), (Some(act), Some("new")));
        assert!(told.get_text("pub").is_some_and(|pem| pem.starts_with("-----BEGIN PUBLIC KEY-----")), "{told}");
    }
    wheel("key.delete", vec!["new".into()]).await;
    assert!(!master.key_in("minions_rejected", "new"));
    let unknown = wheel("config.apply", vec![]).await;
    assert_eq!(unknown.get_bool("success"), Some(false));
}

/// One minion sends two thousand returns over eight connections: all are acknowledged and stored.
#[tokio::test(flavor = "multi_thread")]
async fn many_returns_at_once() {
    let master = TestMaster::start("").await;
    let minion = master.minion("web1", 1).await;
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..8 {
        let mut requester = master.requester();
        let session = minion.session.clone().unwrap();
        let loads: Vec<_> =
            (0..250).map(|n| minion.return_load(&format!("2026112013474024{:04}", task * 250 + n), n)).collect();
        tasks.spawn(async move {
            for load in loads {
                let sealed = session.seal_request(load).unwrap();
                let reply = requester.request(sealed.payload.into(), SOON).await.unwrap();
                assert_eq!(session.open_reply(&reply, &sealed.nonce).unwrap(), Value::Nil);
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    let mut events = master.events().await;
    for n in [0, 999, 1999] {
        let found = run(&master, "jobs.lookup_jid", vec![format!("2026112013474024{n:04}").into()], &mut events).await;
        assert_eq!(found, map([("web1", n % 250)]));
    }
}

/// `cache.*` by banks: banks with data of minions are read-only, and no bank is outside of the folder of banks.
#[tokio::test(flavor = "multi_thread")]
async fn banks_of_the_cache_are_bounded() {
    let master = TestMaster::start("minion_data_cache_events: False").await;
    let minion = master.minion("web1", 1).await;
    minion.pillar(&master).await;
    let mut events = master.events().await;
    let words = |words: &[&str]| words.iter().map(|word| Value::from(*word)).collect::<Vec<_>>();
    let grains = run(&master, "cache.fetch", words(&["grains", "web1"]), &mut events).await;
    assert_eq!(grains.get_text("os"), Some("Test"));
    for bank in ["grains", "pillar", "mine", "../grains", "a/../../grains", "/", ".", "tokens/../..", "a/.b"] {
        let said = run(&master, "cache.store", words(&[bank, "web1", "forged"]), &mut events).await;
        assert!(said.text().is_some_and(|text| text.contains("bank")), "{bank}: {said}");
    }
    for key in ["../web1", "a/b", "", ".hidden", "."] {
        let said = run(&master, "cache.store", words(&["mine2", key, "x"]), &mut events).await;
        assert!(said.text().is_some_and(|text| text.contains("key must be a name")), "{key}: {said}");
    }
    assert_eq!(run(&master, "cache.fetch", words(&["grains", "web1"]), &mut events).await, grains);
    // The master's own folders are no banks, so their names are free.
    assert_eq!(run(&master, "cache.store", words(&["tokens", "k", "mine"]), &mut events).await, Value::Nil);
    assert!(master.path("cache/banks/tokens/k.p").exists() && !master.path("cache/tokens/k.p").exists());
    assert_eq!(mode(master.path("cache/banks/tokens/k.p")), 0o600);
    let key = run(&master, "cache.list", words(&["brine_sessions"]), &mut events).await;
    assert_eq!(key, Value::Array(Vec::new()), "the master's session keys are no bank");
    let large = vec!["b".into(), "k".into(), Value::from("x".repeat(2 << 20))];
    let said = run(&master, "cache.store", large, &mut events).await;
    assert!(said.text().is_some_and(|text| text.contains("data has more than 1 MiB")), "{said}");
    assert_eq!(run(&master, "cache.flush", words(&["grains"]), &mut events).await, Value::from(true));
    assert!(!master.path("cache/grains/web1.p").exists());
}

/// CVE-2021-25282 and CVE-2021-3197 for another function: the wheel writes a file only in its folder, and the event
/// does not contain the content.
#[tokio::test(flavor = "multi_thread")]
async fn the_wheel_writes_settings_by_a_plain_name_only() {
    let master = TestMaster::start("").await;
    let mut events = master.events().await;
    let update = async |name: &str, contents: Value| {
        let load = map([
            ("cmd", Value::from("wheel")),
            ("fun", Value::from("config.update_config")),
            ("key", Value::from(master.local_key())),
            ("file_name", Value::from(name)),
            ("yaml_contents", contents),
        ]);
        let reply = master.clear(load).await;
        reply.traverse("data:return", ":").and_then(ValueExt::text).unwrap_or_default().to_owned()
    };
    assert_eq!(update("good", "timeout: 9".into()).await, "Wrote good.conf");
    for _ in ["new", "ret"] {
        let event = events.wait("salt/wheel/").await;
        assert!(!event.data.to_string().contains("timeout"), "{event:?}");
    }
    assert_eq!(std::fs::read_to_string(master.path("master.d/good.conf")).unwrap(), "timeout: 9\n");
    assert_eq!(mode(master.path("master.d/good.conf")), 0o600);
    for name in ["../evil", "/etc/evil", "a/b", "..", ""] {
        assert_eq!(update(name, "timeout: 9".into()).await, "Invalid path", "{name}");
    }
    assert!(!master.path("evil.conf").exists());
    assert!(update("bad", "ret_port: [".into()).await.contains("no YAML"));
    assert!(update("bad", "ret_port: many".into()).await.contains("could not start"));
    assert_eq!(std::fs::read_dir(master.path("master.d")).unwrap().count(), 1);
}
