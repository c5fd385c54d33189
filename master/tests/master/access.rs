//! All clients against all endpoints: a permitted call works, a refused call changes nothing and reveals no secret
//! (CVE-2020-25592, CVE-2021-25281, CVE-2024-38822).

use std::collections::BTreeSet;

use brine_protocol::keys::PrivateOps as _;
use brine_protocol::value::{Value, ValueExt, empty_map, map, text, to_json};
use sha2::{Digest as _, Sha256};

use super::harness::*;

const FRED: &str = "password-of-fred";
const OPS: &str = "password-of-ops";
const FRONT_END: &str = "password-of-the-front-end";
const STATIC: &str = "token-of-the-configuration-0123456789abcdef";

/// A local user that exists on every host.
const LOCAL_USER: &str = "nobody";

fn config(users: &str) -> String {
    let sum = hex::encode(Sha256::digest(STATIC));
    format!(
        "sharedsecret: {FRONT_END}
audit_log: /audit
publisher_acl: {{{LOCAL_USER}: [test.ping, '@wheel']}}
publisher_acl_blacklist: {{users: [mallory], modules: [test.sleep]}}
external_auth:
  file:
    ^filename: {users}
    fred: [test.ping, '@jobs']
    ops: [test.ping, '@runner', '@wheel']
    mallory: ['.*']
  sharedsecret:
    front: [test.ping]
  statictoken:
    ^tokens: {{ci: {sum}}}
    ci: [{{web1: [test.ping]}}]
"
    )
}

/// The calls that every client tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Ask {
    /// `test.ping` on web1.
    Ping,
    /// `test.ping` on all.
    PingAll,
    /// `cmd.run` on web1.
    Run,
    /// `test.sleep`, which the blacklist forbids to all.
    Blocked,
    /// The runner `jobs.list_jobs`.
    ListJobs,
    /// The runner `manage.alived`.
    Alived,
    /// The wheel `key.accept`.
    Accept,
}

use Ask::{Accept, Alived, Blocked, ListJobs, Ping, PingAll, Run};

const ALL: [Ask; 7] = [Ping, PingAll, Run, Blocked, ListJobs, Alived, Accept];

impl Ask {
    fn load(self) -> Value {
        let publish = |tgt: &str, fun: &str| {
            map([
                ("cmd", text("publish")),
                ("tgt", text(tgt)),
                ("tgt_type", text("glob")),
                ("fun", text(fun)),
                ("arg", Value::Array(Vec::new())),
                ("ret", text("")),
                ("jid", text("")),
                ("user", text("root")),
                ("kwargs", empty_map()),
            ])
        };
        let call = |cmd: &str, fun: &str, arg: Vec<Value>| {
            map([
                ("cmd", text(cmd)),
                ("fun", text(fun)),
                ("arg", Value::Array(arg)),
                ("kwarg", empty_map()),
                ("user", text("root")),
            ])
        };
        match self {
            Self::Ping => publish("web1", "test.ping"),
            Self::PingAll => publish("*", "test.ping"),
            Self::Run => publish("web1", "cmd.run"),
            Self::Blocked => publish("web1", "test.sleep"),
            Self::ListJobs => call("runner", "jobs.list_jobs", vec![]),
            Self::Alived => call("runner", "manage.alived", vec![]),
            Self::Accept => call("wheel", "key.accept", vec![text("waiting")]),
        }
    }

    /// Returns the load with a caller's proof, in the place that this command has for it.
    fn with(self, proof: &Value) -> Value {
        let mut load = self.load();
        let is_publish = load.get_text("cmd") == Some("publish");
        for (name, value) in proof.entries().unwrap() {
            let name = name.text().unwrap();
            if is_publish && !matches!(name, "key" | "user") {
                load.get_mut("kwargs").unwrap().insert(name, value.clone());
            } else {
                load.insert(name, value.clone());
            }
        }
        load
    }

    /// Returns whether the answer is a success; the error is the error's name.
    fn judge(self, reply: &Value) -> Result<(), String> {
        if let Some(error) = reply.get("error") {
            return Err(error.get_text("name").unwrap_or_default().to_owned());
        }
        let done = match self {
            Self::Ping | Self::PingAll | Self::Run | Self::Blocked => {
                reply.get("load").is_some_and(|load| load.get_text("jid").is_some())
            }
            Self::ListJobs | Self::Alived => reply.get_text("tag").is_some(),
            Self::Accept => reply.get("data").is_some_and(|data| data.get("success") == Some(&Value::from(true))),
        };
        if done { Ok(()) } else { Err(format!("{reply}")) }
    }
}

struct Client {
    name: &'static str,
    proof: Value,
    may: &'static [Ask],
    /// Whether the caller is known. A refused call of a known caller is an authorization error.
    known: bool,
}

fn client(name: &'static str, proof: Value, may: &'static [Ask]) -> Client {
    Client { name, proof, may, known: true }
}

fn stranger(name: &'static str, proof: Value) -> Client {
    Client { name, proof, may: &[], known: false }
}

fn login(system: &str, name: &str, password: &str) -> Value {
    map([("eauth", system), ("username", name), ("password", password)])
}

fn with_cmd(proof: &Value, cmd: &str) -> Value {
    let mut load = proof.clone();
    load.insert("cmd", cmd);
    load
}

/// Returns the effects that calls had on the master's files.
fn traces(master: &TestMaster) -> (bool, usize) {
    let tokens = std::fs::read_dir(master.path("cache/tokens")).map_or(0, Iterator::count);
    (master.key_in("minions", "waiting"), tokens)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_client_times_every_endpoint() {
    let files = tempfile::tempdir().unwrap();
    let users = files.path().join("users");
    std::fs::write(&users, format!("fred:{FRED}\nops:{OPS}\nmallory:{OPS}\ngone:{OPS}\n")).unwrap();
    let master = TestMaster::start(&config(&users.display().to_string())).await;
    for (no, id) in [(1, "web1"), (2, "db1")] {
        std::fs::write(master.path("pki/minions").join(id), key(no).public().clean_pem()).unwrap();
    }
    let waiting = || std::fs::write(master.path("pki/minions_pre/waiting"), key(1).public().clean_pem()).unwrap();
    let mint = async |name: &str, password: &str| -> String {
        let mut load = login("file", name, password);
        load.insert("cmd", "mk_token");
        master.clear(load).await.get_text("token").unwrap_or_default().to_owned()
    };
    let (fred, ops) = (mint("fred", FRED).await, mint("ops", OPS).await);
    // Removed like salt-api's /logout does it.
    let ended = mint("fred", FRED).await;
    std::fs::remove_file(master.path("cache/tokens").join(&ended)).unwrap();
    let root_key = master.local_key();
    let local_key = std::fs::read_to_string(master.path(&format!("cache/.{LOCAL_USER}_key"))).unwrap();
    let token = |token: &str| map([("token", token)]);
    let local = |key: &str| map([("key", key)]);
    let both = |mut one: Value, other: Value| {
        for (name, value) in other.entries().unwrap() {
            one.insert(name.text().unwrap(), value.clone());
        }
        one
    };
    let x = |n: usize| "x".repeat(n);

    let clients = [
        client("the master's key", local(&root_key), &[Ping, PingAll, Run, ListJobs, Alived, Accept]),
        client("a local user's key", local(&local_key), &[Ping, PingAll, Accept]),
        client(
            "a local user who says it is root",
            both(local(&local_key), map([("user", "root")])),
            &[Ping, PingAll, Accept],
        ),
        client("a password, some", login("file", "fred", FRED), &[Ping, PingAll, ListJobs]),
        client("a password, much", login("file", "ops", OPS), &[Ping, PingAll, ListJobs, Alived, Accept]),
        client("the front end's password", login("sharedsecret", "front", FRONT_END), &[Ping, PingAll]),
        client("the front end's password, another user", login("sharedsecret", "other", FRONT_END), &[]),
        client("a user who may all and is blocked", login("file", "mallory", OPS), &[]),
        client("a user without any permission", login("file", "gone", OPS), &[]),
        client("a token, some", token(&fred), &[Ping, PingAll, ListJobs]),
        client("a token, much", token(&ops), &[Ping, PingAll, ListJobs, Alived, Accept]),
        client("a token of the configuration", token(STATIC), &[Ping]),
        client("a token of the configuration as a password", login("statictoken", "ci", STATIC), &[Ping]),
        // A further wrong or right proof in the same request changes nothing.
        client(
            "a right token and a wrong password",
            both(token(&fred), login("file", "fred", "x")),
            &[Ping, PingAll, ListJobs],
        ),
        stranger("nothing", empty_map()),
        stranger("an empty key", local("")),
        stranger("a wrong key", local(&x(76))),
        stranger("the beginning of the key", local(&root_key[..75])),
        stranger("a wrong password", login("file", "fred", "wrong")),
        stranger("an empty password", login("file", "fred", "")),
        stranger("another user's password", login("file", "fred", OPS)),
        stranger("an unknown user", login("file", "eve", FRED)),
        stranger("an unknown system", login("ldap", "fred", FRED)),
        stranger("a system that lets in anybody", login("auto", "fred", FRED)),
        stranger("a system of another's", login("sharedsecret", "fred", FRED)),
        stranger("another's token of the configuration", login("statictoken", "fred", STATIC)),
        stranger("a name with a line end", login("file", "x\nfred", FRED)),
        stranger(
            "a name that is no text",
            map([("eauth", text("file")), ("username", 7.into()), ("password", text(FRED))]),
        ),
        stranger(
            "a password that is no text",
            map([("eauth", text("file")), ("username", text("fred")), ("password", true.into())]),
        ),
        stranger("no name", map([("eauth", "file"), ("password", FRED)])),
        stranger("a token that was ended", token(&ended)),
        stranger("a token that is none", token(&x(64))),
        stranger("an empty token", token("")),
        stranger("a token that is a path", token("../.root_key")),
        stranger("a token that is no text", map([("token", true)])),
        stranger("a hash of the configuration as a token", token(&hex::encode(Sha256::digest(STATIC)))),
        stranger("a wrong token and the master's key", both(token(&x(64)), local(&root_key))),
        stranger("a wrong password and the master's key", both(login("file", "fred", "wrong"), local(&root_key))),
        stranger("a wrong token and a right password", both(token(&x(64)), login("file", "fred", FRED))),
    ];

    let mut events = master.events().await;
    let (mut said, mut allowed) = (String::new(), BTreeSet::new());
    let error_of = |client: &Client, ask: Ask| match (ask <= Blocked, client.known) {
        (true, true) => "AuthorizationError",
        (true, false) => "AuthenticationError",
        (false, _) if client.proof.has("token") => "TokenAuthenticationError",
        (false, _) if client.proof.has("eauth") => "EauthAuthenticationError",
        (false, _) => "UserAuthenticationError",
    };
    for (no, client) in clients.iter().enumerate().filter(|(_, client)| client.known) {
        for ask in ALL {
            waiting();
            let _ = std::fs::remove_file(master.path("pki/minions/waiting"));
            let before = traces(&master);
            let what = format!("{}: {ask:?}", client.name);
            let reply = master.clear(ask.with(&client.proof)).await;
            said.push_str(&reply.to_string());
            match ask.judge(&reply) {
                Ok(()) => assert!(client.may.contains(&ask) && allowed.insert((no, ask)), "{what} was done"),
                Err(error) => {
                    assert!(!client.may.contains(&ask), "{what} was not done: {reply}");
                    assert_eq!(error, error_of(client, ask), "{what}");
                    assert_eq!(traces(&master), before, "{what}: nothing was done");
                }
            }
        }
        let known_by_token = client.proof.has("token");
        let reply = master.clear(with_cmd(&client.proof, "get_token")).await;
        assert_eq!(reply.get_text("name").is_some(), known_by_token, "{}: get_token: {reply}", client.name);
        // A caller that can log in can also get a token.
        if client.proof.has("eauth") && !known_by_token {
            let reply = master.clear(with_cmd(&client.proof, "mk_token")).await;
            assert!(reply.get_text("token").is_some(), "{}: mk_token: {reply}", client.name);
        }
    }
    // The refused callers run concurrently, because each wrong password takes a second.
    waiting();
    let _ = std::fs::remove_file(master.path("pki/minions/waiting"));
    let before = traces(&master);
    let tries = clients.iter().flat_map(|client| {
        let asks = [Ping, ListJobs, Accept].map(|ask| (Some(ask), ask.with(&client.proof)));
        // `mk_token` reads only name and password, whatever token the request has.
        let is_right = client.name == "a wrong token and a right password";
        let tokens = ["get_token", "mk_token"].map(|cmd| (None, with_cmd(&client.proof, cmd)));
        let tokens = tokens.into_iter().take(if is_right { 1 } else { 2 });
        let all: Vec<_> = if client.known { Vec::new() } else { asks.into_iter().chain(tokens).collect() };
        let no_login = client.known
            && client.name != "a right token and a wrong password"
            && (client.proof.has("token") || !client.proof.has("eauth"));
        let more = no_login.then(|| (None, with_cmd(&client.proof, "mk_token")));
        all.into_iter().chain(more).map(move |(ask, load)| (client, ask, load))
    });
    let master_ref = &master;
    let tries = tries.map(|(client, ask, load)| async move { (client, ask, master_ref.clear_in_turn(load).await) });
    for (client, ask, reply) in futures_util::future::join_all(tries).await {
        said.push_str(&reply.to_string());
        match ask {
            Some(ask) => assert_eq!(ask.judge(&reply).unwrap_err(), error_of(client, ask), "{}: {ask:?}", client.name),
            // No token is made or shown.
            None => assert!(
                [text(""), empty_map(), Value::from(false)].contains(&reply),
                "{}: a token: {reply}",
                client.name
            ),
        }
    }
    assert_eq!(traces(&master), before, "nothing was done");
    assert_eq!(allowed.len(), clients.iter().map(|client| client.may.len()).sum::<usize>());

    // The bus has an event for each allowed call, and none for other calls.
    let end = master.clear(Ask::Ping.with(&local(&root_key))).await;
    let end = end.get("load").and_then(|load| load.get_text("jid")).unwrap().to_owned();
    let (mut jobs, mut runs, mut wheels, mut refused) = (0, 0, 0, 0);
    loop {
        let event = events.next().await;
        said.push_str(&event.data.to_string());
        let parts: Vec<_> = event.tag.split('/').collect();
        match parts[..] {
            ["salt", "job", jid, "new"] if jid == end => break,
            ["salt", "job", _, "new"] => jobs += 1,
            ["salt", "run", _, "new"] => runs += 1,
            ["salt", "wheel", _, "new"] => wheels += 1,
            ["brine", "refused", "login"] => refused += 1,
            _ => {}
        }
    }
    let count = |asks: &[Ask]| allowed.iter().filter(|(_, ask)| asks.contains(ask)).count();
    assert_eq!((jobs, runs, wheels), (count(&[Ping, PingAll, Run]), count(&[ListJobs, Alived]), count(&[Accept])));
    assert!(refused > 0, "log-ins that failed are told");

    let audit = std::fs::read_to_string(master.path("audit")).unwrap();
    for (action, outcome, count) in
        [("publish", "allowed", jobs + 1), ("runner", "allowed", runs), ("wheel", "allowed", wheels)]
    {
        let line = format!("\"action\":\"{action}\",\"outcome\":\"{outcome}\"");
        assert_eq!(audit.lines().filter(|found| found.contains(&line)).count(), count, "{action} {outcome}");
    }
    for (user, method) in [("fred", "eauth"), ("fred", "token"), ("ci", "token"), (LOCAL_USER, "key"), ("root", "key")]
    {
        let who = format!("\"user\":\"{user}\",\"method\":\"{method}\"");
        assert!(audit.contains(&who), "{who}");
    }
    for secret in [
        FRED,
        OPS,
        FRONT_END,
        STATIC,
        root_key.as_str(),
        local_key.as_str(),
        fred.as_str(),
        ops.as_str(),
        ended.as_str(),
    ] {
        assert!(!said.contains(secret), "{secret} was told");
        assert!(!audit.contains(secret), "{secret} is in the audit log");
    }
}

/// All encrypted commands (§6).
const OF_MINIONS: [&str; 25] = [
    "_return",
    "_minion_event",
    "_pillar",
    "_master_opts",
    "_master_tops",
    "_mine",
    "_mine_get",
    "_mine_delete",
    "_mine_flush",
    "_register_resources",
    "_file_recv",
    "_file_envs",
    "_file_list",
    "_file_find",
    "_file_hash",
    "_file_hash_and_stat",
    "_serve_file",
    "_dir_list",
    "minion_pub",
    "pub_ret",
    "minion_runner",
    "minion_publish",
    "_syndic_return",
    "revoke_auth",
    "verify_minion",
];

/// Returns a load with which the command has an effect.
fn of_minion(cmd: &str, id: &str) -> Value {
    let mut load = map([
        ("cmd", text(cmd)),
        ("id", text(id)),
        ("jid", text("20261120134740245008")),
        ("fun", text("test.ping")),
        ("fun_args", Value::Array(Vec::new())),
        ("return", text("stolen")),
        ("tag", text("deploy/done")),
        ("data", map([("test.ping", text("stolen"))])),
        ("arg", Value::Array(Vec::new())),
        ("tgt", text("*")),
        ("ret", text("")),
        ("tok", text("good")),
    ]);
    for (name, value) in [("path", "ok"), ("saltenv", "base"), ("ver", "2")] {
        load.insert(name, value);
    }
    load.insert("loc", 0);
    load.insert("grains", map([("os", "Test")]));
    load
}

#[tokio::test(flavor = "multi_thread")]
async fn every_stranger_times_every_command_of_minions() {
    let config = "file_recv: True\npeer: {'.*': ['.*']}\npeer_run: {'.*': ['.*']}";
    let master = TestMaster::start(config).await;
    std::fs::write(master.path("files/ok"), "content of the file").unwrap();
    let (web, db) = (master.minion("web1", 1).await, master.minion("db1", 2).await);
    let gone = master.minion("gone", 1).await;
    std::fs::rename(master.path("pki/minions/gone"), master.path("pki/minions_rejected/gone")).unwrap();
    let listing = || {
        let mut found = Vec::new();
        let mut folders = vec![master.path("cache/minions"), master.path("pki")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten().map(Result::unwrap) {
                if entry.path().is_dir() { folders.push(entry.path()) } else { found.push(entry.path()) }
            }
        }
        found.sort();
        found
    };
    let before = listing();
    let mut events = master.events().await;
    let refused = [text("bad load"), empty_map()];
    for cmd in OF_MINIONS {
        let without = |name: &str| {
            let mut load = of_minion(cmd, "web1");
            load.remove(name);
            load
        };
        let tok = |tok: Value| {
            let mut load = of_minion(cmd, "web1");
            load.insert("tok", tok);
            load
        };
        let theirs = Value::Binary(db.key.x931_sign(b"salt").unwrap());
        for (who, reply) in [
            (
                "a clear request",
                master.raw(brine_protocol::envelope::Envelope::clear(of_minion(cmd, "web1")).encode()).await,
            ),
            ("another's session", master.raw(db.envelope(of_minion(cmd, "web1"), "web1", 3)).await),
            ("another's id in the load", master.raw(db.envelope(of_minion(cmd, "web1"), "db1", 3)).await),
            ("another's id outside", master.raw(web.envelope(of_minion(cmd, "web1"), "db1", 3)).await),
            ("an unknown id", master.raw(web.envelope(of_minion(cmd, "web9"), "web9", 3)).await),
            ("a rejected key", master.raw(gone.envelope(of_minion(cmd, "gone"), "gone", 3)).await),
            ("no token", master.raw(web.envelope(without("tok"), "web1", 3)).await),
            ("a token that is none", master.raw(web.envelope(tok(text("x")), "web1", 3)).await),
            ("another's token", master.raw(web.envelope(tok(theirs), "web1", 3)).await),
            ("no id", master.raw(web.envelope(without("id"), "web1", 3)).await),
            ("an old version", master.raw(web.envelope(of_minion(cmd, "web1"), "web1", 2)).await),
        ] {
            let reply = decode(&reply);
            assert!(refused.contains(&reply), "{cmd}, {who}: {reply}");
        }
    }
    assert_eq!(listing(), before, "nothing was written, no key was moved");
    let list = master.clear(map([
        ("cmd", text("runner")),
        ("fun", text("jobs.list_jobs")),
        ("key", text(master.local_key())),
        ("user", text("root")),
    ]));
    let started = list.await;
    let end = format!("{}/ret", started.get_text("tag").unwrap());
    loop {
        let event = events.next().await;
        if event.tag == end {
            assert_eq!(event.data.get("return"), Some(&empty_map()), "no job was published or returned");
            break;
        }
        let tag = event.tag.as_str();
        assert!(tag.starts_with("brine/refused/") || tag.starts_with("salt/run/"), "{tag}");
        assert!(!to_json(&event.data).to_string().contains("stolen"), "{tag}");
    }
    // The minion's own requests with the same loads succeed, so the loads themselves were not the reason of the
    // refusals.
    let answer = web.ask(&master, of_minion("_serve_file", "web1")).await;
    assert_eq!(answer.get_text("dest"), Some("ok"));
    assert_eq!(web.ask(&master, of_minion("_mine", "web1")).await, Value::from(true));
    web.ask(&master, of_minion("_minion_event", "web1")).await;
    assert_eq!(events.wait("deploy/done").await.data.get_text("id"), Some("web1"));
}

/// A minion's session gives no access to the commands of operators.
#[tokio::test(flavor = "multi_thread")]
async fn a_minion_is_no_operator() {
    let master = TestMaster::start("").await;
    let minion = master.minion("web1", 1).await;
    for cmd in ["publish", "runner", "wheel", "mk_token", "get_token", "ping", "_auth"] {
        let mut load = of_minion(cmd, "web1");
        load.insert("tgt", "*");
        load.insert("key", "");
        load.remove("tok");
        load.remove("id");
        assert_eq!(minion.ask(&master, load).await, empty_map(), "{cmd}");
    }
}

/// With `audit_log_required`, a call without an audit line is refused; otherwise it runs, and the loss is reported.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_under_the_audit_log() {
    // `audit_log` is relative to root_dir, so it names an existing folder.
    for required in [true, false] {
        let master = TestMaster::start(&format!("audit_log: /audit/log\naudit_log_required: {required}")).await;
        std::fs::write(master.path("pki/minions").join("web1"), key(1).public().clean_pem()).unwrap();
        std::fs::write(master.path("pki/minions_pre/waiting"), key(2).public().clean_pem()).unwrap();
        // The file at the path is replaced by a device that is always full.
        std::fs::remove_file(master.path("audit/log")).unwrap();
        rustix::fs::symlink("/dev/full", master.path("audit/log")).unwrap();
        let root = map([("key", master.local_key())]);
        let mut events = master.events().await;
        assert!(master.server().reopen_audit_log().is_err(), "a link is not followed");
        std::fs::remove_file(master.path("audit/log")).unwrap();
        std::fs::create_dir(master.path("audit/log")).unwrap();
        // The master checks its file at least every second, and then finds that it cannot be opened.
        tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
        for ask in [Ping, ListJobs, Accept] {
            let reply = master.clear(ask.with(&root)).await;
            let done = !reply.has("error");
            assert_eq!(done, !required, "{ask:?}: {reply}");
            if required {
                assert!(reply.to_string().contains("audit"), "{reply}");
            }
        }
        assert_eq!(master.key_in("minions", "waiting"), !required);
        let event = events.wait("brine/audit/lost").await;
        assert_eq!(event.data.get("refusing"), Some(&Value::from(required)));
        std::fs::remove_dir(master.path("audit/log")).unwrap();
        assert!(Ping.judge(&master.clear(Ping.with(&root)).await).is_ok(), "it goes on when it can be written again");
        let log = std::fs::read_to_string(master.path("audit/log")).unwrap();
        assert!(log.contains("\"outcome\":\"lost\""), "{log}");
    }
}

/// Uses a PAM service of the test, from the request to the permission of the user's group. Without the rights to make
/// one the test fails, unless `BRINE_TEST_WITHOUT_PAM` is set.
#[tokio::test(flavor = "multi_thread")]
async fn users_of_the_system_by_pam() {
    if std::env::var_os("BRINE_TEST_WITHOUT_PAM").is_some() {
        eprintln!("nothing is tested: BRINE_TEST_WITHOUT_PAM is set");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("check");
    let content = "#!/bin/sh\n[ \"$PAM_USER:$(tr -d '\\0')\" = 'daemon:right password' ]\n";
    brine_kit::files::script(&script, content);
    let service = format!("brine-master-test-{}", std::process::id());
    let lines = format!(
        "auth required pam_exec.so quiet expose_authtok {}\naccount required pam_permit.so\n",
        script.display()
    );
    let path = std::path::Path::new("/etc/pam.d").join(&service);
    let built = std::env::current_exe().unwrap().parent().unwrap().join("../brine-pam");
    assert!(built.exists(), "PAM cannot be tested: brine-pam is not built (cargo build -p brine-pam)");
    if let Err(error) = std::fs::write(&path, lines) {
        panic!("PAM cannot be tested: {}: {error}; run this as root, or set BRINE_TEST_WITHOUT_PAM=1", path.display());
    }
    let config =
        format!("auth.pam.service: {service}\nexternal_auth: {{pam: {{daemon%: [test.ping], web%: [test.arg]}}}}");
    let master = TestMaster::start(&config).await;
    std::fs::write(master.path("pki/minions").join("web1"), key(1).public().clean_pem()).unwrap();
    let right = login("pam", "daemon", "right password");
    let replies = [
        master.clear(Ping.with(&right)).await,
        master.clear(Run.with(&right)).await,
        master.clear(Ping.with(&login("pam", "daemon", "wrong"))).await,
        master.clear(Ping.with(&login("pam", "nobody", "right password"))).await,
    ];
    let token = master.clear(with_cmd(&right, "mk_token")).await;
    let by_token = master.clear(Ping.with(&map([("token", token.get_text("token").unwrap_or_default())]))).await;
    std::fs::remove_file(&path).unwrap();
    let names: Vec<_> =
        replies.iter().chain([&by_token]).map(|reply| Ping.judge(reply).err().unwrap_or_default()).collect();
    assert_eq!(names, ["", "AuthorizationError", "AuthenticationError", "AuthenticationError", ""], "{replies:?}");
    assert!(token.get_list("groups").is_some_and(|groups| groups.contains(&text("daemon"))), "{token}");
}

/// Keys are changed by the wheel, by `salt-key`, by a setting and by the minion itself. A mere event about a key
/// changes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn key_changes_are_in_the_audit_log() {
    let master = TestMaster::start("audit_log: /audit\nauto_accept: True").await;
    let mut signed = TestMinion::new("signed", 1);
    let brine_protocol::auth::AuthOutcome::Accepted(credentials) = signed.authenticate(&master).await else { panic!() };
    signed.take(*credentials);
    std::fs::write(master.path("pki/minions_pre/waiting"), key(2).public().clean_pem()).unwrap();
    assert!(Accept.judge(&master.clear(Accept.with(&map([("key", master.local_key())]))).await).is_ok());
    let mut load = map([("cmd", "_minion_event"), ("id", "signed"), ("tag", "salt/key")]);
    load.insert("data", map([("act", "delete"), ("id", "forged")]));
    signed.ask(&master, load).await;
    let said = map([("result", Value::from(true)), ("act", "delete".into()), ("id", "old".into())]);
    let event = brine_protocol::event::Event::new("salt/key", said);
    brine_protocol::event::push(&master.path("sock/master_event_pull.ipc"), &event).await.unwrap();
    assert_eq!(signed.ask(&master, map([("cmd", "revoke_auth")])).await, Value::from(true));
    let wanted = [
        r#""method":"auto_accept","act":"accepted","id":"signed""#,
        r#""method":"master","address":"local","act":"accepted","id":"waiting""#,
        r#""method":"salt-key","address":"local","act":"delete","id":"old""#,
        r#""method":"master","address":"local","act":"delete","id":"signed""#,
    ];
    let log = || std::fs::read_to_string(master.path("audit")).unwrap();
    SOON.until("the audit log's lines", || wanted.iter().all(|line| log().contains(line))).await;
    let log = log();
    assert!(!log.contains("forged"), "{log}");
}
