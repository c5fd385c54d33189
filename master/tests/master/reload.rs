//! Reload (SIGHUP): all new settings take effect or none, also for minions and users who are already there.

use brine_kit::files::set_mode;
use brine_master::MasterOpts;
use brine_protocol::auth::AuthOutcome;
use brine_protocol::config::{Config, Role};
use brine_protocol::value::{Value, ValueExt, empty_map, map, text};

use super::harness::*;

const SECRET: &str = "the-secret-of-the-front-end";

fn access(permissions: &str) -> String {
    format!("sharedsecret: {SECRET}\nexternal_auth: {{sharedsecret: {{front: [{permissions}]}}}}")
}

fn reload(master: &TestMaster, from: &str, to: &str) -> Result<(), String> {
    let text = master.config();
    assert!(text.contains(from), "{from:?} in {text}");
    let config = Config::from_yaml(&text.replace(from, to), &master.path("master"), Role::Master).unwrap();
    master.server().reload(&MasterOpts::from_config(&config).map_err(|error| error.to_string())?)
}

#[tokio::test(flavor = "multi_thread")]
async fn permissions_end_for_who_has_a_token_and_a_broken_setting_changes_nothing() {
    let master = TestMaster::start(&access("'@runner'")).await;
    let login = map([("cmd", "mk_token"), ("eauth", "sharedsecret"), ("username", "front"), ("password", SECRET)]);
    let token = master.clear(login).await.get_text("token").expect("a token").to_owned();
    let list = || async {
        let load = map([
            ("cmd", text("runner")),
            ("fun", text("jobs.list_jobs")),
            ("arg", Value::Array(Vec::new())),
            ("kwarg", empty_map()),
            ("token", text(token.as_str())),
        ]);
        master.clear(load).await.get_text("tag").is_some()
    };
    assert!(list().await);
    // If one of the new settings is unusable, the valid ones take no effect either.
    let broken = format!("{}\nfile_ignore_regex: ['(']", access("test.ping"));
    let error = reload(&master, &access("'@runner'"), &broken).unwrap_err();
    assert!(error.contains("file_ignore_regex"), "{error}");
    assert!(list().await, "nothing has changed");
    reload(&master, &access("'@runner'"), &access("test.ping")).unwrap();
    assert!(!list().await, "the token is worth what its user may now");
    reload(&master, &access("'@runner'"), &access("'@runner'")).unwrap();
    assert!(list().await);
    reload(&master, &access("'@runner'"), "").unwrap();
    assert!(!list().await, "nobody logs in any more");
}

/// Reloads the permissions of peers and the rules for accepting keys.
#[tokio::test(flavor = "multi_thread")]
async fn what_minions_may_is_taken_up_and_a_mistake_loosens_nothing() {
    let loose = "peer: {web1: [test.ping]}";
    let master = TestMaster::start(loose).await;
    let (web, db) = (master.minion("web1", 1).await, master.minion("db1", 2).await);
    db.ask(&master, map([("cmd", text("_mine")), ("data", map([("ip", 1)]))])).await;
    // Returns whether web1 may publish, and whether it may read the mine.
    let may = async || {
        let publish = map([
            ("cmd", text("minion_pub")),
            ("fun", text("test.ping")),
            ("arg", Value::Array(Vec::new())),
            ("tgt", text("*")),
            ("tgt_type", text("glob")),
            ("ret", text("")),
            ("tmo", 5.into()),
            ("form", text("clean")),
        ]);
        let ask = map([("cmd", "_mine_get"), ("tgt", "*"), ("fun", "ip")]);
        (web.ask(&master, publish).await.has("jid"), web.ask(&master, ask).await == map([("db1", 1)]))
    };
    // Returns whether a new minion is accepted.
    let comes = async |name: &str, key: usize| {
        matches!(TestMinion::new(name, key).authenticate(&master).await, AuthOutcome::Accepted(_))
    };
    assert_eq!(may().await, (true, true));
    assert!(!comes("auto1", 2).await);

    let list = master.path("autosign.conf");
    std::fs::write(&list, "auto*\n").unwrap();
    set_mode(&list, 0o600);
    let strict = format!("peer: {{web1: [test.version]}}\nmine_get: {{db1: [ip]}}\nautosign_file: {}", list.display());
    reload(&master, loose, &strict).unwrap();
    assert_eq!(may().await, (false, false));
    assert!(comes("auto1", 2).await && !comes("other", 1).await);

    // With a wrong setting, the more permissive ones beside it take no effect.
    let wide = "open_mode: True\nauto_accept: True";
    for wrong in [
        "peer: {'(': [test.*]}\nmine_get: {'.*': ['.*']}",
        "mine_get: {web1: ['(']}\npeer: {'.*': ['.*']}",
        "peer: {'.*': ['.*']}\nfile_ignore_regex: ['(']",
        "peer: {'.*': ['.*']}\neauth_acl_module: rest",
        "peer: {'.*': ['.*']}\nkeep_acl_in_token: True",
    ] {
        let error = reload(&master, loose, &format!("{wide}\n{wrong}")).unwrap_err();
        assert!(!error.contains('\n'), "{error}");
        assert_eq!(may().await, (false, false), "{wrong}");
        assert!(!comes("other", 1).await, "{wrong}");
    }
    reload(&master, loose, loose).unwrap();
    assert_eq!(may().await, (true, true));
}
