//! CVE-2022-22941 as a property: for every target and all permissions, a job goes only to minions that the permissions
//! allow. The test applies the published load to all hosts, also to those unknown to the master.

use std::cell::Cell;

use brine_protocol::ids::MinionId;
use brine_protocol::target::{Facts, Target, TargetType, fnmatch};
use brine_protocol::value::{Value, ValueExt, map, text};
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, TestRunner};
use sha2::{Digest as _, Sha256};

use super::harness::*;

/// Users, each with different permissions.
const USERS: usize = 16;
const CASES: u32 = 160;

/// A host: the data that the master has of it, and its real grains.
struct Host {
    id: MinionId,
    /// `None`: its key is not accepted.
    known: Option<Option<Value>>,
    grains: Value,
}

fn hosts() -> Vec<Host> {
    let role = |role: &str| map([("role", role)]);
    let host = |name: &str, known: Option<Option<Value>>, now: &str| Host { id: id(name), known, grains: role(now) };
    vec![
        host("web1", Some(Some(role("web"))), "web"),
        // Its role changed after the master got the grains.
        host("web2", Some(Some(role("web"))), "db"),
        host("db1", Some(Some(role("db"))), "db"),
        host("db2", Some(Some(role("db"))), "web"),
        // Accepted, but the master has no grains of it.
        host("app1", Some(None), "web"),
        // Hosts unknown to the master.
        host("web9", None, "web"),
        host("db9", None, "db"),
        host("other", None, "web"),
    ]
}

/// A permission of a user: functions, and their compound target; `None`: all minions.
#[derive(Debug, Clone)]
struct Permission {
    target: Option<&'static str>,
    functions: &'static str,
}

/// Globs that also work as regular expressions (`test.*`).
const FUNCTIONS: [&str; 4] = ["test.ping", "test.*", "grains.*", "cmd.run"];
const CALLED: [&str; 4] = ["test.ping", "test.version", "grains.items", "cmd.run"];
const COMPOUND: [&str; 15] = [
    "*",
    "web1",
    "web*",
    "db?",
    "[wd]*",
    "nobody*",
    "G@role:web",
    "G@role:*",
    "L@web1,db1,web9",
    r"E@web\d",
    "web* or db1",
    "not web1",
    "* and not G@role:db",
    "( web1 or G@role:db ) and not db2",
    "N@group",
];
const OTHERS: [(&str, &str); 9] = [
    ("web1,db1", "list"),
    ("web1,web9,other", "list"),
    (r"web\d", "pcre"),
    (".*", "pcre"),
    ("role:web", "grain"),
    ("role:*", "grain"),
    ("role:w.b", "grain_pcre"),
    ("group", "nodegroup"),
    ("*", "glob"),
];

fn permissions() -> impl Strategy<Value = Vec<Permission>> {
    let target = prop_oneof![1 => Just(None), 6 => proptest::sample::select(&COMPOUND[..]).prop_map(Some)];
    let one = (target, proptest::sample::select(&FUNCTIONS[..]));
    proptest::collection::vec(one.prop_map(|(target, functions)| Permission { target, functions }), 1..4)
}

/// Generates a target and its type.
fn target() -> impl Strategy<Value = (&'static str, &'static str)> {
    let compound = proptest::sample::select(&COMPOUND[..]).prop_map(|tgt| (tgt, "compound"));
    let glob = proptest::sample::select(&COMPOUND[..6]).prop_map(|tgt| (tgt, "glob"));
    prop_oneof![compound, glob, proptest::sample::select(&OTHERS[..])]
}

fn parse(tgt: &Value, tgt_type: &str) -> Option<Target> {
    Target::parse(tgt_type.parse::<TargetType>().ok()?, tgt, ":").ok()
}

/// Expands `N@group`.
fn expanded(target: &str) -> String {
    target.replace("N@group", "L@web1,web2")
}

/// Returns whether these permissions allow a function on a host, by the master's data of it.
fn allows(permissions: &[Permission], fun: &str, host: &Host) -> bool {
    permissions.iter().filter(|permission| fnmatch(permission.functions, fun)).any(|permission| {
        let Some(target) = permission.target.filter(|target| *target != "*") else { return true };
        let Some(known) = &host.known else { return false };
        let target = parse(&text(expanded(target)), "compound").expect("a target of ours");
        target.matches(&Facts { id: &host.id, grains: known.as_ref(), pillar: None })
    })
}

fn token(user: usize) -> String {
    format!("token-of-user-{user:02}-0123456789abcdef")
}

fn config(users: &[Vec<Permission>]) -> String {
    let mut tokens = String::new();
    let mut lines = String::new();
    for (user, permissions) in users.iter().enumerate() {
        let sum = hex::encode(Sha256::digest(token(user)));
        tokens.push_str(&format!("      u{user}: {sum}\n"));
        lines.push_str(&format!("    u{user}:\n"));
        for permission in permissions {
            lines.push_str(&match permission.target {
                None => format!("      - '{}'\n", permission.functions),
                Some(target) => format!("      - '{target}': ['{}']\n", permission.functions),
            });
        }
    }
    format!("nodegroups: {{group: 'L@web1,web2'}}\nexternal_auth:\n  statictoken:\n    ^tokens:\n{tokens}{lines}")
}

async fn master_with(config: &str, hosts: &[Host]) -> (TestMaster, Publications) {
    let master = TestMaster::start(config).await;
    let mut publications = None;
    for host in hosts.iter().filter(|host| host.known.is_some()) {
        let minion = master.minion(host.id.as_str(), 1).await;
        if let Some(Some(grains)) = &host.known {
            let load = map([
                ("cmd", text("_pillar")),
                ("grains", grains.clone()),
                ("saltenv", Value::Nil),
                ("ver", text("2")),
            ]);
            master.raw(minion.session.as_ref().unwrap().seal_request(load).unwrap().payload).await;
        }
        if publications.is_none() {
            publications = Some(minion.subscribe(&master, &[""]).await);
        }
    }
    (master, publications.unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn cve_2022_22941_a_job_goes_to_no_minion_that_the_permissions_do_not_allow() {
    let hosts = hosts();
    let mut runner = TestRunner::new(Config { cases: CASES, failure_persistence: None, ..Config::default() });
    let users: Vec<Vec<Permission>> =
        (0..USERS).map(|_| permissions().new_tree(&mut runner).unwrap().current()).collect();
    let (master, publications) = master_with(&config(&users), &hosts).await;
    let publications = tokio::sync::Mutex::new(publications);
    let (allowed, refused, narrowed) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let functions = proptest::collection::vec(proptest::sample::select(&CALLED[..]), 1..3);
    let case = (0..USERS, target(), functions);
    let handle = tokio::runtime::Handle::current();
    let ran = runner.run(&case, |(user, (tgt, tgt_type), functions)| {
        let published = tokio::task::block_in_place(|| {
            handle.block_on(async {
                let mut load = master.publish_load(tgt, tgt_type, "", vec![]);
                let _ = load.remove("key");
                load.insert("fun", Value::Array(functions.iter().map(|fun| text(*fun)).collect()));
                load.insert("arg", Value::Array(functions.iter().map(|_| Value::Array(vec![])).collect()));
                load.insert("kwargs", map([("token", token(user))]));
                let reply = master.clear(load).await;
                let jid = reply.get("load").and_then(|load| load.get_text("jid")).map(str::to_owned);
                match jid {
                    Some(_) => Some(publications.lock().await.load().await),
                    None => None,
                }
            })
        });
        let Some(published) = published else {
            refused.set(refused.get() + 1);
            return Ok(());
        };
        allowed.set(allowed.get() + 1);
        let goes_to = parse(published.get("tgt").unwrap(), published.get_text("tgt_type").unwrap());
        narrowed
            .set(narrowed.get() + usize::from(published.get_text("tgt_type") == Some("list") && tgt_type != "list"));
        for host in &hosts {
            let facts = Facts { id: &host.id, grains: Some(&host.grains), pillar: None };
            let takes = goes_to.as_ref().is_some_and(|target| target.matches(&facts));
            let may = functions.iter().all(|fun| allows(&users[user], fun, host));
            prop_assert!(
                !takes || may,
                "{} takes {functions:?} of {tgt:?} ({tgt_type}), published for {}, and is not among {:?}",
                host.id,
                published.get("tgt").unwrap(),
                users[user]
            );
        }
        Ok(())
    });
    println!("{} jobs, {} of them narrowed; {} refused", allowed.get(), narrowed.get(), refused.get());
    ran.unwrap_or_else(|error| panic!("{error}\nusers: {users:#?}"));
    // Both outcomes occurred, so the property was tested.
    assert!(allowed.get() > 10 && refused.get() > 10, "{} {}", allowed.get(), refused.get());
}
