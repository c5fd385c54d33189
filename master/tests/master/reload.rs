//! What changes while a master runs (SIGHUP): all of it or nothing, and it counts for those who are there already.

use brine_master::MasterOpts;
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
    master.server().reload(&MasterOpts::from_config(&config).unwrap())
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
    // One of the new settings cannot be used: the good ones beside it do not count either.
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
