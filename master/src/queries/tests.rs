use std::path::Path;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use brine_protocol::config::{Config, Role};
use brine_protocol::ids::{Jid, MinionId};
use brine_protocol::keys::KeyState;
use brine_protocol::msgpack;
use brine_protocol::value::{empty_map, list, to_json};
use serde_json::json;

use super::*;
use crate::access::{AccessOpts, Address, Claim};
use crate::fileserver::FileOpts;
use crate::jobs::{JobCacheOpts, NewReturn, StoredJob};
use crate::live_settings::LiveSettings;
use crate::minion_data::MinionData;

/// Users of every kind. The permissions with a target reach the minions that it matches.
const USERS: &str = "
sharedsecret: secret
external_auth:
  sharedsecret:
    root: [test.ping]
    everything: ['.*', '@runner', '@wheel']
    pings: [test.ping]
    webs: [{'web*': [test.*]}]
    args: [{'*': [{test.arg: {args: [prod]}}]}, '@jobs']
    lists: [test.ping, '@jobs']
    keys: ['@wheel']
    lister: [test.ping, {'@wheel': [key.list_all]}]
    blocked: ['.*', '@runner', '@wheel']
    nothing: []
publisher_acl_blacklist:
  users: [blocked]
";

struct Fixture {
    dir: tempfile::TempDir,
    queries: Arc<Queries>,
}

impl Fixture {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let config = Config::from_yaml(USERS, Path::new("/etc/salt/master"), Role::Master).unwrap();
        let cachedir = dir.path().to_owned();
        let access = Access::open(AccessOpts::from_config(&config).unwrap(), &cachedir, &["root".to_owned()]).unwrap();
        let keys = Arc::new(MinionKeys::open(&cachedir.join("pki")).unwrap());
        let data = Arc::new(MinionData::new(&cachedir));
        let live = Arc::new(ArcSwap::from_pointee(LiveSettings::from_config(&config).unwrap()));
        let targets = Targets { keys: keys.clone(), data: data.clone(), live, has_data: true };
        let presence = Presence { keys: keys.clone(), data, cachedir: cachedir.clone(), port: 1 };
        let files = FileServer::new(&FileOpts::from_config(&config).unwrap(), &cachedir).unwrap();
        let jobs = JobCache::open(&cachedir.join("jobs.db"), &JobCacheOpts { keep: true, ..JobCacheOpts::default() });
        let queries = Queries {
            cachedir,
            hash_type: HashType::Sha256,
            access: Arc::new(access),
            targets: Arc::new(targets),
            keys,
            master_key: pem(),
            presence: Arc::new(presence),
            jobs: Arc::new(jobs.unwrap()),
            files: Arc::new(files),
            reports: Arc::default(),
            turns: Queries::turns(),
        };
        Self { dir, queries: Arc::new(queries) }
    }

    /// Makes a minion whose grains the master has.
    fn minion(&self, id: &str, grains: &Value) {
        self.queries.keys.put(KeyState::Accepted, &id.parse().unwrap(), &pem()).unwrap();
        let dir = self.dir.path().join("grains");
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join(format!("{id}.p")), msgpack::encode_disk(grains)).unwrap();
    }

    fn key(&self, state: KeyState, id: &str) {
        self.queries.keys.put(state, &id.parse().unwrap(), &pem()).unwrap();
    }

    async fn caller(&self, user: &str) -> Principal {
        let load = map([("eauth", "sharedsecret"), ("username", user), ("password", "secret")]);
        let claim = Claim { load: &load, address: Address::Here, bytes: 0, is_gone: &|| false };
        self.queries.access.identify(&claim).await.unwrap()
    }

    /// Asks as a user. The error is the name of the refusal.
    async fn ask(&self, user: &str, query: &str, args: Value) -> Result<serde_json::Value, String> {
        let caller = match user {
            "ROOT" => Principal::local_program(),
            user => self.caller(user).await,
        };
        let load = map([("query", Value::from(query)), ("args", args)]);
        let mut reply = self.queries.answer(load, caller).await.unwrap();
        match reply.remove("answer") {
            Some(answer) => Ok(to_json(&answer)),
            None => Err(reply.traverse("error:name", ":").and_then(Value::text).unwrap_or_default().to_owned()),
        }
    }

    async fn ids(&self, user: &str, query: &str, args: Value) -> Result<String, String> {
        let answer = self.ask(user, query, args).await?;
        let items = answer["items"].as_array().unwrap();
        let id = |item: &serde_json::Value| item["id"].as_str().or(item["jid"].as_str()).unwrap().to_owned();
        Ok(items.iter().map(id).collect::<Vec<_>>().join(" "))
    }

    async fn job(&self, jid: &str, user: &str, fun: &str, arg: &[&str], minions: &[&str]) {
        let load = map([
            ("fun", Value::from(fun)),
            ("arg", list(arg.iter().copied())),
            ("tgt", Value::from("the target")),
            ("user", Value::from(user)),
        ]);
        let minions = minions.iter().map(|id| id.parse().unwrap()).collect();
        self.queries.jobs.add_job(StoredJob::to_record(jid.parse().unwrap(), &load, minions)).await.unwrap();
    }

    async fn ret(&self, jid: &str, id: &str, entries: &[(&str, Value)]) {
        let load = map(entries.iter().cloned());
        let ret = NewReturn::from_load(jid.parse().unwrap(), id.parse().unwrap(), 1_000, &load);
        self.queries.jobs.local().add_return(ret).await.unwrap();
    }
}

fn pem() -> String {
    "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n".to_owned()
}

fn os(os: &str, version: &str) -> Value {
    map([("os", os), ("saltversion", version), ("hidden", "x")])
}

fn args<const N: usize>(args: [(&str, &str); N]) -> Value {
    map(args)
}

const REFUSED: &str = "AuthorizationError";
const WRONG: &str = "SaltInvocationError";

#[tokio::test]
async fn a_query_is_one_of_the_table_with_its_arguments() {
    let fixture = Fixture::new();
    for (query, wrong) in [
        ("", args([])),
        ("publish", args([])),
        ("fleet", args([("key", "x")])),
        ("fleet", args([("limit", "0")])),
        ("fleet", args([("limit", "501")])),
        ("fleet", args([("limit", "-1")])),
        ("fleet", args([("state", "x")])),
        ("fleet", args([("sort", "hidden")])),
        ("fleet", args([("cursor", "x")])),
        ("fleet", map([("q", list(["x"]))])),
        ("fleet", list(["x"])),
        ("fleet", args([("q", &"x".repeat(1_025))])),
        ("jobs", args([("cursor", "eAAx")])),
        ("jobs", args([("minion", "../x")])),
    ] {
        assert_eq!(fixture.ask("ROOT", query, wrong.clone()).await, Err(WRONG.to_owned()), "{query} {wrong:?}");
    }
}

/// Each query needs its right.
#[tokio::test]
async fn rights() {
    let fixture = Fixture::new();
    for (query, args, may) in [
        ("fleet", args([]), ["everything", "pings", "webs", "lister"].as_slice()),
        ("minion", args([("id", "x")]), &["everything", "pings", "webs", "lister"]),
        ("modules", args([]), &["everything", "pings", "webs", "lister"]),
        ("held", args([]), &["everything", "pings", "webs", "lister"]),
        ("plan", args([("tgt", "*"), ("fun", "test.ping")]), &["everything", "pings", "webs", "lister"]),
        ("keys", args([]), &["everything", "keys", "lister"]),
        ("me", args([]), &["everything", "pings", "webs", "keys", "lister", "nothing"]),
        // These show nothing without a permission.
        ("jobs", args([]), &["everything", "pings", "webs", "keys", "lister", "nothing"]),
    ] {
        for user in ["everything", "pings", "webs", "keys", "lister", "nothing", "blocked"] {
            let refused = fixture.ask(user, query, args.clone()).await == Err(REFUSED.to_owned());
            assert_eq!(!refused, may.contains(&user), "{user} {query}");
        }
    }
}

#[tokio::test]
async fn a_user_sees_the_minions_that_it_may_target() {
    let fixture = Fixture::new();
    for id in ["db1", "web1", "web2"] {
        fixture.minion(id, &os("Debian", "3008.5"));
    }
    fixture.key(KeyState::Pending, "web3");
    let all = args([("state", "all")]);
    for (user, seen) in [
        ("ROOT", "db1 web1 web2 web3"),
        ("everything", "db1 web1 web2 web3"),
        ("lister", "db1 web1 web2 web3"),
        ("pings", "db1 web1 web2"),
        ("args", "db1 web1 web2"),
        ("webs", "web1 web2"),
    ] {
        assert_eq!(fixture.ids(user, "fleet", all.clone()).await.unwrap(), seen, "{user}");
    }
    let counts = async |user: &str| fixture.ask(user, "fleet", args([])).await.unwrap()["counts"].clone();
    assert_eq!(
        counts("everything").await,
        json!({"accepted": 3, "connected": 0, "pending": 1, "rejected": 0, "denied": 0})
    );
    assert_eq!(
        counts("webs").await,
        json!({"accepted": 2, "connected": 0, "pending": null, "rejected": null, "denied": null})
    );
    let one = async |user: &str, id: &str| fixture.ask(user, "minion", args([("id", id)])).await.unwrap();
    assert!(one("webs", "db1").await.is_null());
    assert!(one("pings", "web3").await.is_null(), "its key is not accepted");
    assert!(one("everything", "../db1").await.is_null());
    let web1 = one("webs", "web1").await;
    assert_eq!((&web1["id"], &web1["os"], &web1["version"]), (&json!("web1"), &json!("Debian"), &json!("3008.5")));
    assert!(web1["reported"].is_f64() && web1["fingerprint"].is_null() && web1["grains"]["hidden"].is_null());
    assert!(one("everything", "web1").await["fingerprint"].is_string());
    assert!(one("lister", "web1").await["fingerprint"].is_null());
    assert_eq!(one("lister", "web3").await["key"], "pending");
}

#[tokio::test]
async fn the_fleet_is_filtered_sorted_and_paged() {
    let fixture = Fixture::new();
    fixture.minion("b", &os("Debian", "3008.5"));
    fixture.minion("c", &os("Alma", "3007.1"));
    fixture.minion("a", &os("Debian", "3006.9"));
    fixture.key(KeyState::Accepted, "d");
    for (args, found) in [
        (args([]), "a b c d"),
        (args([("sort", "-id")]), "d c b a"),
        (args([("sort", "os")]), "d c a b"),
        (args([("sort", "-version")]), "b c a d"),
        (args([("q", "deb")]), "a b"),
        (args([("q", "3007")]), "c"),
        (args([("q", "[ab]")]), "a b"),
        (args([("q", "x*")]), ""),
        (args([("state", "away")]), "a b c d"),
        (args([("state", "connected")]), ""),
        (args([("state", "denied")]), ""),
    ] {
        assert_eq!(fixture.ids("ROOT", "fleet", args.clone()).await.unwrap(), found, "{args:?}");
    }
    for sort in ["id", "-id", "os", "-os", "state", "-version"] {
        let whole = fixture.ids("ROOT", "fleet", args([("sort", sort)])).await.unwrap();
        let (mut pages, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = args([("sort", sort), ("limit", "3"), ("cursor", &cursor)]);
            let answer = fixture.ask("ROOT", "fleet", page).await.unwrap();
            assert_eq!(answer["total"], 4);
            pages
                .extend(answer["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()));
            match answer["next"].as_str() {
                Some(next) => cursor = next.to_owned(),
                None => break,
            }
        }
        assert_eq!(pages.join(" "), whole, "{sort}");
    }
}

/// Grains are written by minions.
#[tokio::test]
async fn odd_grains_do_no_harm() {
    let fixture = Fixture::new();
    fixture.minion("a", &map([("os", list(["x"; 1_000])), ("saltversion", Value::from("\u{1b}[2J\0".repeat(9)))]));
    fixture.minion("b", &empty_map());
    std::fs::write(fixture.dir.path().join("grains/b.p"), b"\xff").unwrap();
    let answer = fixture.ask("ROOT", "fleet", args([("sort", "os"), ("limit", "1")])).await.unwrap();
    assert_eq!(answer["items"][0]["id"], "b");
    let next = answer["next"].as_str().unwrap();
    let answer = fixture.ask("ROOT", "fleet", args([("sort", "os"), ("limit", "1"), ("cursor", next)])).await.unwrap();
    let item = &answer["items"][0];
    assert_eq!((item["id"].as_str(), item["version"].as_str()), (Some("a"), Some("[2J".repeat(9).as_str())));
    assert!(item["os"].as_str().unwrap().len() <= 128);
}

const FIRST: &str = "20261120134740245001";
const SECOND: &str = "20261120134740245002";
const THIRD: &str = "20261120134740245003";
const FOURTH: &str = "20261120134740245004";

/// Jobs that a user could start, and under other names only with the right to list jobs.
#[tokio::test]
async fn a_user_sees_the_jobs_that_it_could_start() {
    let fixture = Fixture::new();
    for id in ["db1", "web1", "web2"] {
        fixture.minion(id, &os("Debian", "3008.5"));
    }
    fixture.job(FIRST, "webs", "test.ping", &[], &["web1", "web2"]).await;
    fixture.job(SECOND, "webs", "cmd.run", &["id"], &["web1"]).await;
    fixture.job(THIRD, "root", "test.ping", &[], &["web1", "db1"]).await;
    fixture.job(FOURTH, "args", "test.arg", &["prod"], &["db1"]).await;
    let jids = |jids: &[&str]| jids.join(" ");
    for (user, seen) in [
        ("ROOT", jids(&[FOURTH, THIRD, SECOND, FIRST])),
        ("everything", jids(&[FOURTH, THIRD, SECOND, FIRST])),
        ("webs", jids(&[FIRST])),
        ("pings", String::new()),
        ("lists", jids(&[THIRD, FIRST])),
        ("args", jids(&[FOURTH])),
        // A name says nothing about who started a job as root of this host.
        ("root", jids(&[THIRD])),
        ("nothing", String::new()),
    ] {
        assert_eq!(fixture.ids(user, "jobs", args([])).await.unwrap(), seen, "{user}");
        for jid in [FIRST, SECOND, THIRD, FOURTH] {
            let shown = fixture.ask(user, "job", args([("jid", jid)])).await.unwrap();
            assert_eq!(!shown.is_null(), seen.contains(jid), "{user} {jid}");
        }
    }
    fixture.job("20261120134740245005", "args", "test.arg", &["other"], &["db1"]).await;
    assert_eq!(fixture.ids("args", "jobs", args([])).await.unwrap(), FOURTH, "another argument");
    assert!(fixture.ask("ROOT", "job", args([("jid", "x")])).await.unwrap().is_null());
    assert!(fixture.ask("ROOT", "job", args([("jid", "20261120134740245009")])).await.unwrap().is_null());
}

#[tokio::test]
async fn jobs_are_filtered_and_paged() {
    let fixture = Fixture::new();
    fixture.job(FIRST, "ann", "test.ping", &[], &["a", "b"]).await;
    fixture.job(SECOND, "bob", "state.apply", &["web"], &["a"]).await;
    fixture.job(THIRD, "bob", "saltutil.find_job", &["1"], &["a"]).await;
    fixture.job(FOURTH, "bob", "state.apply", &["web"], &["c"]).await;
    fixture.ret(FIRST, "a", &[("fun", "test.ping".into()), ("return", true.into())]).await;
    for id in ["a", "c"] {
        let jid = if id == "a" { SECOND } else { FOURTH };
        let failed = id == "a";
        fixture.ret(jid, id, &[("fun", "x".into()), ("return", 1.into()), ("retcode", i64::from(failed).into())]).await;
    }
    let jids = |jids: &[&str]| jids.join(" ");
    for (args, found) in [
        (args([]), jids(&[FOURTH, SECOND, FIRST])),
        (args([("find_job", "1")]), jids(&[FOURTH, THIRD, SECOND, FIRST])),
        (args([("fun", "state.apply")]), jids(&[FOURTH, SECOND])),
        (args([("fun", "state")]), String::new()),
        (args([("fun", "*.ping")]), FIRST.to_owned()),
        (args([("user", "ann")]), FIRST.to_owned()),
        (args([("minion", "a")]), jids(&[SECOND, FIRST])),
        (args([("target", "TARGET")]), jids(&[FOURTH, SECOND, FIRST])),
        (args([("target", "x")]), String::new()),
        (args([("state", "failed")]), SECOND.to_owned()),
        (args([("state", "running")]), FIRST.to_owned()),
    ] {
        assert_eq!(fixture.ids("ROOT", "jobs", args.clone()).await.unwrap(), found, "{args:?}");
    }
    let first = fixture.ask("ROOT", "jobs", args([("limit", "2")])).await.unwrap();
    let job = &first["items"][0];
    assert_eq!((&job["expected"], &job["returned"], &job["failed"]), (&json!(1), &json!(1), &json!(0)));
    assert_eq!((&job["args"], &job["target"]), (&json!(["web"]), &json!("the target")));
    let next = first["next"].as_str().unwrap();
    assert_eq!(fixture.ids("ROOT", "jobs", args([("limit", "2"), ("cursor", next)])).await.unwrap(), FIRST);
}

#[tokio::test]
async fn a_job_shows_failures_first_and_what_the_sandbox_used() {
    let fixture = Fixture::new();
    fixture.job(FIRST, "ann", "test.ping", &[], &["a", "b", "c", "d"]).await;
    let sha = "ab".repeat(32);
    let used = map([("wall_us", Value::from(5)), ("sha256", sha.as_str().into()), ("evil", "x".into())]);
    fixture.ret(FIRST, "a", &[("fun", "x".into()), ("return", "r".into()), ("usage", used)]).await;
    let odd = map([("wall_us", Value::from("x")), ("sha256", "<script>".into())]);
    let many = list(std::iter::repeat_n(odd, 100));
    fixture.ret(FIRST, "c", &[("fun", "x".into()), ("return", "x".repeat(70_000).into()), ("usage", many)]).await;
    fixture.ret(FIRST, "d", &[("fun", "x".into()), ("return", "no".into()), ("retcode", 2.into())]).await;
    let job = fixture.ask("ROOT", "job", args([("jid", FIRST)])).await.unwrap();
    let counts = ["expected", "returned", "failed", "missing"].map(|key| job[key].as_u64().unwrap());
    assert_eq!((counts, job["last"].as_f64()), ([4, 3, 1, 1], Some(1.0)));
    let items = job["items"].as_array().unwrap();
    let states: Vec<_> =
        items.iter().map(|item| (item["id"].as_str().unwrap(), item["state"].as_str().unwrap())).collect();
    assert_eq!(states, [("d", "failed"), ("b", "missing"), ("a", "ok"), ("c", "ok")]);
    assert_eq!((&items[0]["retcode"], &items[0]["return"]), (&json!(2), &json!("no")));
    assert_eq!(items[2]["usage"], json!([{"wall_us": 5, "sha256": sha}]));
    assert_eq!((&items[3]["return"], &items[3]["cut"]), (&json!(null), &json!(true)));
    assert_eq!(items[3]["usage"].as_array().unwrap().len(), 64);
    assert_eq!(items[3]["usage"][0], json!({}));
    let alone = fixture.ask("ROOT", "job", args([("jid", FIRST), ("minion", "c")])).await.unwrap();
    assert_eq!(alone["items"][0]["return"].as_str().map(str::len), Some(70_000));
    let page = async |cursor: &str| {
        let args = args([("jid", FIRST), ("limit", "2"), ("cursor", cursor)]);
        fixture.ids("ROOT", "job", args).await.unwrap()
    };
    let first = fixture.ask("ROOT", "job", args([("jid", FIRST), ("limit", "2")])).await.unwrap();
    assert_eq!((page("").await.as_str(), page(first["next"].as_str().unwrap()).await.as_str()), ("d b", "a c"));
    assert_eq!(fixture.ids("ROOT", "job", args([("jid", FIRST), ("state", "missing")])).await.unwrap(), "b");
}

#[tokio::test]
async fn keys_have_fingerprints_for_who_may_see_them() {
    let fixture = Fixture::new();
    fixture.key(KeyState::Accepted, "a");
    fixture.key(KeyState::Pending, "b");
    let keys = fixture.ask("keys", "keys", args([])).await.unwrap();
    let finger = brine_protocol::keys::fingerprint(&pem());
    let key = |id: &str, state: &str, finger: Option<&str>| json!({"id": id, "state": state, "fingerprint": finger});
    assert_eq!(keys["items"], json!([key("b", "pending", Some(&finger)), key("a", "accepted", Some(&finger))]));
    assert_eq!((&keys["master"], &keys["total"]), (&json!(finger), &json!(2)));
    let keys = fixture.ask("lister", "keys", args([("q", "A"), ("state", "accepted")])).await.unwrap();
    assert_eq!((&keys["items"], &keys["master"]), (&json!([key("a", "accepted", None)]), &json!(null)));
}

#[tokio::test]
async fn what_a_user_may_do() {
    let fixture = Fixture::new();
    let may = async |user: &str| fixture.ask(user, "me", args([])).await.unwrap();
    let nothing = may("nothing").await;
    assert_eq!(
        nothing,
        json!({"fleet": false, "everywhere": false, "jobs": false, "keys": false, "runners": [], "wheels": []})
    );
    let lister = may("lister").await;
    assert_eq!(
        (&lister["fleet"], &lister["keys"], &lister["wheels"]),
        (&json!(true), &json!(true), &json!(["key.list_all"]))
    );
    assert_eq!(may("webs").await["everywhere"], false);
    let everything = may("everything").await;
    assert!(everything["runners"].as_array().unwrap().contains(&json!("jobs.list_jobs")));
    assert!(everything["wheels"].as_array().unwrap().contains(&json!("key.accept")));
}

/// The bounds are for a build without optimization on a busy machine; an optimized one is some ten times faster.
#[tokio::test]
async fn ten_thousand_minions() {
    const MINIONS: usize = 10_000;
    let fixture = Fixture::new();
    let ids: Vec<MinionId> = (0..MINIONS).map(|n| format!("web{n}").parse().unwrap()).collect();
    let (accepted, grains) = (fixture.dir.path().join("pki/minions"), fixture.dir.path().join("grains"));
    std::fs::create_dir_all(&grains).unwrap();
    let known = msgpack::encode_disk(&os("Debian", "3008.5"));
    for id in &ids {
        std::fs::write(accepted.join(id.as_str()), pem()).unwrap();
        std::fs::write(grains.join(format!("{id}.p")), &known).unwrap();
    }
    let load = map([
        ("fun", Value::from("test.ping")),
        ("arg", list::<Value>([])),
        ("tgt", "*".into()),
        ("user", "ann".into()),
    ]);
    for n in 0..20 {
        let jid: Jid = format!("202611201347402450{n:02}").parse().unwrap();
        fixture.queries.jobs.add_job(StoredJob::to_record(jid, &load, ids.clone())).await.unwrap();
    }
    // The first one reads all grains.
    fixture.ask("webs", "fleet", args([])).await.unwrap();
    for (user, query, args, count) in [
        ("ROOT", "fleet", args([]), 100),
        ("webs", "fleet", args([("sort", "-os"), ("q", "debian")]), 100),
        ("lists", "jobs", args([]), 20),
        ("ROOT", "keys", args([]), 100),
        ("lists", "job", args([("jid", "20261120134740245007")]), 100),
    ] {
        let asked = Instant::now();
        let answer = fixture.ask(user, query, args).await.unwrap();
        let took = asked.elapsed();
        println!("{user} {query}: {took:?}");
        assert_eq!(answer["items"].as_array().unwrap().len(), count, "{query}");
        assert!(took < Duration::from_secs(3), "{query} took {took:?}");
    }
}

fn tool(version: &str, sha256: &str, missing: &[&str]) -> Value {
    map([
        ("name", Value::from("tool")),
        ("usable", true.into()),
        ("version", version.into()),
        ("sha256", sha256.into()),
        ("origin", "base".into()),
        ("asks", list(["http"])),
        ("has", map([("all", map([("http", list(["https://x/"]))]))])),
        ("missing", list(missing.iter().copied())),
    ])
}

/// Three minions with a module, one of which holds an update, and one that reported nothing.
fn reporting() -> Fixture {
    let fixture = Fixture::new();
    for id in ["db1", "web1", "web2", "web3"] {
        fixture.minion(id, &os("Debian", "3008.5"));
    }
    let (old, new) = ("ab".repeat(32), "cd".repeat(32));
    let report = |modules: Vec<Value>, held: Vec<Value>| map([("modules", list(modules)), ("held", list(held))]);
    let held = map([
        ("name", Value::from("tool")),
        ("why", "it asks for more".into()),
        ("held", map([("version", "2"), ("sha256", &new)])),
        ("permissions", map([("added", map([("brine:host/http", "the web")]))])),
        ("approve", "salt-call --local sandbox.approve tool".into()),
    ]);
    let keep = |id: &str, report: Value| fixture.queries.reports.keep(&id.parse().unwrap(), &report).unwrap();
    keep("web1", report(vec![tool("1", &old, &[])], vec![]));
    keep("web2", report(vec![tool("1", &old, &["the line"])], vec![held]));
    keep("db1", report(vec![], vec![]));
    fixture
}

#[tokio::test]
async fn modules_of_the_minions_that_a_user_sees() {
    let fixture = reporting();
    let modules = fixture.ask("ROOT", "modules", args([])).await.unwrap();
    let module = &modules["items"][0];
    assert_eq!((&modules["minions"], &modules["unknown"], &module["name"]), (&json!(3), &json!(1), &json!("tool")));
    assert_eq!((&module["held"], &module["drift"], &module["served"]), (&json!(1), &json!(0), &json!([])));
    let version = &module["versions"][0];
    assert_eq!((&version["version"], &version["some"]), (&json!("1"), &json!(["web1", "web2"])));
    assert_eq!(version["grants"].as_array().unwrap().len(), 2);
    assert_eq!(fixture.ask("ROOT", "modules", args([("q", "x")])).await.unwrap()["items"], json!([]));
    let held = fixture.ask("webs", "held", args([])).await.unwrap();
    let update = &held["items"][0];
    assert_eq!((&update["some"], &held["unknown"]), (&json!(["web2"]), &json!(1)));
    assert_eq!(update["permissions"]["added"], json!({"brine:host/http": "the web"}));
    assert_eq!(update["approve"], "salt-call --local sandbox.approve tool");
    let one = fixture.ask("webs", "minion", args([("id", "web2")])).await.unwrap();
    assert_eq!(one["sandbox"]["modules"][0]["held"], json!("cd".repeat(32)));
    assert_eq!(one["modules"], json!({"total": 1, "drift": 0, "held": 1, "missing": 1}));
    assert!(fixture.ask("webs", "minion", args([("id", "web3")])).await.unwrap()["sandbox"].is_null());
    // A user whose permissions reach none of them.
    fixture.key(KeyState::Accepted, "db2");
    for id in ["web1", "web2"] {
        fixture.queries.keys.remove(KeyState::Accepted, &id.parse().unwrap()).unwrap();
    }
    assert_eq!(fixture.ask("webs", "modules", args([])).await.unwrap()["items"], json!([]));
    assert_eq!(fixture.ask("webs", "held", args([])).await.unwrap()["items"], json!([]));
}

#[tokio::test]
async fn a_plan_shows_minions_of_that_very_call() {
    let fixture = reporting();
    let plan = async |user: &str, fun: &str, arg: &[&str]| {
        let args = map([("tgt", Value::from("*")), ("fun", fun.into()), ("arg", list(arg.iter().copied()))]);
        fixture.ask(user, "plan", args).await.unwrap()
    };
    let all = plan("ROOT", "tool.x", &[]).await;
    let counts = ["expected", "connected", "away", "without", "unknown"].map(|key| all[key].as_u64().unwrap());
    assert_eq!((counts, &all["allowed"]), ([4, 0, 4, 1, 1], &json!(true)));
    let groups = all["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 2);
    assert!(groups.iter().any(|group| group["missing"] == json!(["the line"]) && group["some"] == json!(["web2"])));
    for (user, fun, arg, allowed, shown) in [
        ("webs", "test.ping", [].as_slice(), false, json!(["web1", "web2", "web3"])),
        ("webs", "cmd.run", &[], false, json!([])),
        ("pings", "test.ping", &[], true, json!(["db1", "web1", "web2", "web3"])),
        ("pings", "test.arg", &[], false, json!([])),
        ("args", "test.arg", &["prod"], true, json!(["db1", "web1", "web2", "web3"])),
        ("args", "test.arg", &["other"], false, json!([])),
    ] {
        let plan = plan(user, fun, arg).await;
        assert_eq!((&plan["allowed"], &plan["some"]), (&json!(allowed), &shown), "{user} {fun} {arg:?}");
    }
    for wrong in [args([("tgt", "*")]), args([("fun", "test.ping")]), args([("tgt", "*"), ("fun", "x")])] {
        assert_eq!(fixture.ask("ROOT", "plan", wrong.clone()).await, Err(WRONG.to_owned()), "{wrong:?}");
    }
    let wrong = args([("tgt", "x"), ("tgt_type", "x"), ("fun", "test.ping")]);
    assert_eq!(fixture.ask("ROOT", "plan", wrong).await, Err(WRONG.to_owned()));
}
