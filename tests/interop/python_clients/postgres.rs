//! Python's PostgreSQL returners beside ours, with the same tables.

use brine_kit::process::{Output, run_with};
use brine_kit::wait::wait_for;
use brine_tests::postgres::Server;
use brine_tests::salt::{Kind, Master, python};
use serde_json::json;

use super::start;

fn script(master: &Master, args: &[&str]) -> Output {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/interop/python/postgres.py");
    let conf = master.path("conf/master").display().to_string();
    let all = [&[path, &conf], args].concat();
    run_with(&python(), &all, &[("PYTHONDONTWRITEBYTECODE", "1")])
}

#[test]
fn both_read_what_the_other_wrote() {
    let Some(server) = Server::start() else { return };
    for (returner, database, password) in [("postgres", "plain", "passwd"), ("pgjsonb", "jsonb", "pass")] {
        let config = format!(
            "master_job_cache: {returner}\nreturner.{returner}.host: 127.0.0.1\nreturner.{returner}.port: {}\n\
             returner.{returner}.user: salt\nreturner.{returner}.{password}: salt secret\nreturner.{returner}.db: {database}\n",
            server.port
        );
        let master = start(&config);
        if script(&master, &[returner, "has"]).code != 0 {
            brine_kit::missing("psycopg2", "tools/salt-venv.sh installs it into the Python of the tests");
            return;
        }
        let _minion = master.minion("web1");
        let jid = master.start_job(&["*", "test.echo", "süß"]);
        let sql = format!("select count(*) from salt_returns where jid = '{jid}'");
        wait_for("the return in PostgreSQL", || (server.sql(database, &sql) == "1").then_some(()));
        script(&master, &[returner, "read", &jid]).exits(0);
        // In SQL the rows of both look alike.
        let written: String = script(&master, &[returner, "write"]).exits(0).json().as_str().expect("a jid").to_owned();
        let columns =
            "fun, success, jsonb_typeof(full_ret::jsonb->'return'), jsonb_typeof(return::jsonb), pg_typeof(alter_time)";
        let ours = server.sql(database, &format!("select {columns} from salt_returns where jid = '{jid}'"));
        assert_eq!(ours, "test.echo|true|string|string|timestamp with time zone");
        let theirs =
            server.sql(database, &format!("select {columns} from salt_returns where jid = '{written}' and id = 'db1'"));
        assert_eq!(theirs, "test.arg|true|object|object|timestamp with time zone");

        let ours = |args: &[&str]| master.command("salt-run", &[args, &["--out=json"]].concat()).exits(0).json();
        let found = ours(&["jobs.lookup_jid", &written]);
        assert_eq!(found, json!({"db1": {"args": ["süß"], "n": 1.5}, "db2": null}));
        let theirs =
            |args: &[&str]| master.command_of(Kind::Python, "salt-run", &[args, &["--out=json"]].concat()).json();
        for jid in [&jid, &written] {
            assert_eq!(ours(&["jobs.lookup_jid", jid]), theirs(&["jobs.lookup_jid", jid]), "{jid}");
            let (mine, salts) = (ours(&["jobs.list_job", jid]), theirs(&["jobs.list_job", jid]));
            for key in ["jid", "Function", "Arguments", "Target", "Target-type", "User"] {
                assert_eq!(mine[key], salts[key], "{key} of {jid}");
            }
        }
    }
}
