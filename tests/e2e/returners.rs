//! Returns that also go to a PostgreSQL server: `--return`, `ext_job_cache`, `master_job_cache`.

use std::time::Duration;

use brine_kit::wait::wait_for;
use brine_protocol::envelope::Envelope;
use brine_protocol::msgpack;
use brine_protocol::value::{Value, ValueExt, map, to_json};
use brine_tests::postgres::Server;
use brine_tests::salt::Master;
use brine_zmtp::{Endpoint, ReqConfig, Requester};

/// Returns the settings of a master for one of the server's databases.
fn settings(server: &Server, returner: &str, database: &str) -> String {
    let password = if returner == "postgres" { "passwd" } else { "pass" };
    format!(
        "returner.{returner}.host: 127.0.0.1\nreturner.{returner}.port: {}\nreturner.{returner}.user: salt\n\
         returner.{returner}.{password}: salt secret\nreturner.{returner}.db: {database}\n",
        server.port
    )
}

/// Publishes like `salt TGT FUN ARG --return RET`. Returns the jid.
fn publish(master: &Master, fun: &str, arg: &[&str], ret: &str, kwargs: &[(&str, &str)]) -> String {
    let key = std::fs::read_to_string(master.path("cache/.root_key")).expect("a key");
    let load = map([
        ("cmd", Value::from("publish")),
        ("tgt", Value::from("*")),
        ("fun", Value::from(fun)),
        ("arg", Value::Array(arg.iter().map(|arg| Value::from(*arg)).collect())),
        ("key", Value::from(key)),
        ("tgt_type", Value::from("glob")),
        ("ret", Value::from(ret)),
        ("jid", Value::from("")),
        ("kwargs", map(kwargs.iter().copied())),
        ("user", Value::from("root")),
    ]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let reply = runtime.block_on(async {
        let mut requester = Requester::new(Endpoint::tcp("127.0.0.1", master.ret_port), ReqConfig::default());
        requester.request(Envelope::clear(load).encode().into(), Duration::from_secs(30)).await.expect("a reply")
    });
    let reply = msgpack::decode(&reply, &msgpack::Limits::REQUEST).expect("a reply");
    let jid = reply.get("load").and_then(|load| load.get_text("jid"));
    jid.unwrap_or_else(|| panic!("not published: {}", to_json(&reply))).to_owned()
}

/// Waits for the rows of a job.
fn rows(server: &Server, database: &str, jid: &str) -> String {
    let sql = format!(
        "select id, fun, return, success, full_ret::jsonb->>'retcode' from salt_returns where jid = '{jid}' order by id"
    );
    wait_for("the return in PostgreSQL", || Some(server.sql(database, &sql)).filter(|rows| !rows.is_empty()))
}

#[test]
fn a_return_goes_where_its_job_says() {
    let Some(server) = Server::start() else { return };
    let other = settings(&server, "postgres", "plain").replace("returner.postgres.", "other.returner.postgres.");
    let mut nowhere = settings(&server, "pgjsonb", "jsonb").replace("salt secret", "wrong");
    nowhere.push_str(&other);
    let config = nowhere + "returner.postgres.host: 127.0.0.1\nreturner.postgres.port: 1\n";
    let master = Master::start(&config);
    let events = master.events();
    let _minion = master.minion("web1");
    let jid = publish(&master, "test.echo", &["hi \u{fc}"], "postgres,pgjsonb,mysql", &[("ret_config", "other")]);
    assert_eq!(rows(&server, "plain", &jid), "web1|test.echo|\"hi \u{fc}\"|true|0");
    let event = events.wait_return(&jid, "web1");
    assert_eq!(event.get("ret"), None, "an event is as Salt's");
    let log = master.daemon.as_ref().expect("it runs");
    log.wait_log("is not written to the returner other.mysql");
    // Refused, because the caller could have the master's password sent to any host.
    let jid =
        publish(&master, "test.ping", &[], "postgres", &[("ret_config", "other"), ("ret_kwargs", "{'host': 'x'}")]);
    events.wait_return(&jid, "web1");
    log.wait_log("takes no return_kwargs");
    // The error about a wrong password says what to set, and contains no password.
    publish(&master, "test.ping", &[], "pgjsonb", &[]);
    log.wait_log("Set user and password of the returner");
    let all = log.log_text();
    assert!(!all.contains("insert into") && !all.contains("hi \u{fc}"), "nor what was returned");
    assert!(!all.contains("salt secret") && !all.contains("wrong"), "no password is in the log");
    assert_eq!(server.sql("plain", "select count(*) from salt_returns"), "1");
    assert_eq!(server.sql("jsonb", "select count(*) from salt_returns"), "0");
}

#[test]
fn a_server_that_is_away_holds_up_nobody_and_gets_all_of_it() {
    let Some(mut server) = Server::start() else { return };
    let mut master = Master::start(&format!("ext_job_cache: pgjsonb\n{}", settings(&server, "pgjsonb", "jsonb")));
    let minion = master.minion("web1");
    let first = publish(&master, "test.echo", &["first"], "", &[]);
    assert_eq!(rows(&server, "jsonb", &first), "web1|test.echo|\"first\"|true|0");
    server.kill();

    let events = master.events();
    let second = publish(&master, "test.echo", &["nul \0 here"], "", &[]);
    events.wait_return(&second, "web1");
    let spool = minion.path("cache/spool");
    wait_for("the acknowledgement", || std::fs::read_dir(&spool).ok()?.next().is_none().then_some(()));
    master.daemon.as_ref().expect("it runs").wait_log("wait for it, and it is tried again");
    // Meanwhile the embedded store has the job.
    let found = master.command("salt-run", &["jobs.lookup_jid", &second, "--out=json"]).exits(0).json();
    assert_eq!(found["web1"], "nul \0 here");
    // Neither a crash of the master nor one of the server loses or duplicates waiting returns.
    master.kill();
    master.up();
    let events = master.events();
    events.wait_tag("salt/minion/web1/start");
    let third = publish(&master, "test.echo", &["third"], "", &[]);
    server.up();
    assert_eq!(rows(&server, "jsonb", &third), "web1|test.echo|\"third\"|true|0");
    assert_eq!(rows(&server, "jsonb", &second), "web1|test.echo|\"nul \u{fffd} here\"|true|0", "JSONB has no NUL");
    assert_eq!(server.sql("jsonb", "select count(*) from salt_returns"), "3");
    // The runner's own run is a job too.
    let all = "select jid, load->>'fun', load->>'tgt', load->'Minions' from jids where load->>'fun' = 'test.echo' order by jid";
    let jobs = server.sql("jsonb", all);
    let expect = [&first, &second, &third].map(|jid| format!("{jid}|test.echo|*|[\"web1\"]")).join("\n");
    assert_eq!(jobs, expect);
}

#[test]
fn lookups_come_from_the_master_job_cache() {
    let Some(server) = Server::start() else { return };
    for (returner, database) in [("postgres", "plain"), ("pgjsonb", "jsonb")] {
        // Jobs that another master left there.
        let old = "20240102030405123456";
        let load = r#"{"fun": "test.version", "arg": [1], "tgt": "db*", "tgt_type": "glob", "user": "ann", "jid": "20240102030405123456"}"#;
        server.sql(database, &format!("insert into jids values ('{old}', '{load}')"));
        let full = r#"{"id": "db1", "return": "3008.1", "retcode": 0, "success": true, "fun": "test.version"}"#;
        server.sql(
            database,
            &format!("insert into salt_returns (fun, jid, return, id, success, full_ret) values ('test.version', '{old}', '\"3008.1\"', 'db1', 'true', '{full}')"),
        );
        let mut master =
            Master::start(&format!("master_job_cache: {returner}\n{}", settings(&server, returner, database)));
        let _minion = master.minion("web1");
        let look = |args: &[&str]| master.command("salt-run", &[args, &["--out=json"]].concat()).exits(0).json();
        assert_eq!(look(&["jobs.lookup_jid", old]), serde_json::json!({"db1": "3008.1"}));
        let job = look(&["jobs.list_job", old]);
        assert_eq!((&job["Function"], &job["User"]), (&"test.version".into(), &"ann".into()), "{job}");
        let jid = publish(&master, "test.ping", &[], "", &[]);
        assert_eq!(rows(&server, database, &jid), "web1|test.ping|true|true|0");
        let jobs = look(&["jobs.list_jobs"]);
        let mut jids: Vec<&String> = jobs.as_object().expect("a map").keys().collect();
        jids.sort();
        assert!(jids.contains(&&old.to_owned()) && jids.contains(&&jid), "{jids:?}");
        // The embedded store is lost, but the other one still has the job.
        master.stop();
        for name in ["jobs.db", "jobs.db-wal", "jobs.db-shm"] {
            let _ = std::fs::remove_file(master.path("cache").join(name));
        }
        master.up();
        let look = |args: &[&str]| master.command("salt-run", &[args, &["--out=json"]].concat()).exits(0).json();
        assert_eq!(look(&["jobs.lookup_jid", &jid]), serde_json::json!({"web1": true}));
    }
}

#[test]
fn events_are_kept() {
    let Some(mut server) = Server::start() else { return };
    let both = settings(&server, "postgres", "plain") + &settings(&server, "pgjsonb", "jsonb");
    let lists = "event_return_whitelist: ['deploy/*', 'salt/job/*/new']\nevent_return_blacklist: ['deploy/no.*']";
    let mut master = Master::start(&format!(
        "id: m1\nevent_return: [postgres, pgjsonb]\nevent_return_queue_max_seconds: 1\n{lists}\n{both}"
    ));
    let _minion = master.minion("web1");
    let send = |master: &Master, tag: &str, data: &str| {
        master.command("salt-run", &["event.send", tag, data]).exits(0);
    };
    let kept = |server: &Server, database: &str, what: &str, expect: &str| {
        let sql = format!("select {what} from salt_events where tag like 'deploy/%' order by id");
        wait_for(&format!("{expect} in {database}"), || (server.sql(database, &sql) == expect).then_some(()));
    };
    let columns = "tag, data::jsonb->>'n', master_id, abs(extract(epoch from now() - alter_time)) < 600, \
                   data::jsonb ? '_stamp'";
    let jid = publish(&master, "test.ping", &[], "", &[]);
    send(&master, "deploy/not", "data={n: 0}");
    send(&master, "deploy/1", "data={n: \u{fc}}");
    for database in ["plain", "jsonb"] {
        kept(&server, database, columns, "deploy/1|\u{fc}|m1|t|t");
        let job = format!("select data::jsonb->>'fun' from salt_events where tag = 'salt/job/{jid}/new'");
        wait_for("the job's event", || (server.sql(database, &job) == "test.ping").then_some(()));
        let others = "select count(*) from salt_events where tag not like 'deploy/%' and tag not like 'salt/job/%/new'";
        assert_eq!(server.sql(database, others), "0");
    }

    // When the server is back, it gets the events in their order, as long as the master lives.
    server.kill();
    for n in ["2", "3", "4"] {
        send(&master, &format!("deploy/{n}"), "data={n: 1}");
    }
    master.daemon.as_ref().expect("it runs").wait_log("event_return: the returner pgjsonb failed");
    server.up();
    let all = "deploy/1\ndeploy/2\ndeploy/3\ndeploy/4";
    kept(&server, "plain", "tag", all);
    kept(&server, "jsonb", "tag", all);
    // Waiting events are written when the master ends.
    send(&master, "deploy/5", "data={n: 1}");
    master.stop();
    kept(&server, "plain", "tag", &format!("{all}\ndeploy/5"));
}

#[test]
fn many_events_are_kept_together() {
    let Some(server) = Server::start() else { return };
    let config = settings(&server, "pgjsonb", "jsonb");
    let mut master = Master::start(&format!("event_return: pgjsonb\nevent_return_queue: 500\n{config}"));
    master.command("salt-run", &["event.send", "deploy/x", "data={n: 1}"]).exits(0);
    let count = "select count(*) from salt_events where tag = 'deploy/x'";
    // Nothing is written before there are enough events. At the master's end the rest is written.
    assert_eq!(server.sql("jsonb", count), "0");
    master.stop();
    assert_eq!(server.sql("jsonb", count), "1");
    let refused = Master::prepare(brine_tests::salt::Kind::Brine, "event_return: mysql");
    let said = refused.command("salt-master", &[]).exits(64);
    assert!(said.stderr.contains("event_return") && said.stderr.contains("pgjsonb"), "{said:?}");
}
