use brine_protocol::config::{Config, Role};

use super::*;

fn opts(yaml: &str) -> Result<AccessOpts, String> {
    let config = Config::from_yaml(yaml, Path::new("/etc/salt/master"), Role::Master).unwrap();
    AccessOpts::from_config(&config).map_err(|e| e.to_string())
}

fn access(yaml: &str) -> (tempfile::TempDir, Access) {
    let dir = tempfile::tempdir().unwrap();
    let access = Access::open(opts(yaml).unwrap(), dir.path(), &["root".to_owned()]).unwrap();
    (dir, access)
}

fn login(name: &str, password: &str) -> Value {
    map([("eauth", "sharedsecret"), ("username", name), ("password", password)])
}

fn claim(load: &Value) -> Claim<'_> {
    Claim { load, address: Address::Here, bytes: 0, is_gone: &|| false }
}

async fn identify(access: &Access, load: &Value) -> Result<Principal, Denied> {
    access.identify(&claim(load)).await
}

/// Publishes `fun` to `minions`. The permission's targets are ids of minions.
async fn published(caller: &Principal, fun: &str, minions: &[&str]) -> Option<Extent> {
    let ids: Vec<_> = minions.iter().map(|id| brine_protocol::ids::MinionId::try_from(*id).unwrap()).collect();
    let resolve = |target: String| std::future::ready(vec![target.as_str().try_into().unwrap()]);
    caller.may_publish(&[(fun, &[])], &ids, resolve).await
}

#[tokio::test]
async fn a_key_is_its_users_and_no_more() {
    let (dir, access) = access("publisher_acl: {nob.dy: [test.ping, {a: [test.version]}], other: ['.*']}");
    let key = |user: &str| std::fs::read_to_string(dir.path().join(format!(".{user}_key"))).unwrap();
    let ask = |key: String| map([("key", key), ("user", "root".to_owned())]);
    let root = identify(&access, &ask(key("root"))).await.unwrap();
    assert_eq!(published(&root, "cmd.run", &["a", "b"]).await, Some(Extent::Target));
    assert!(root.may_call("wheel", "key.accept", &[], &[]).is_ok());

    // The name in the request does not matter.
    let nobody = identify(&access, &ask(key("nobody"))).await.unwrap();
    assert_eq!(nobody.name(), "nobody");
    assert_eq!(published(&nobody, "test.ping", &["a", "b"]).await, Some(Extent::Target));
    assert_eq!(published(&nobody, "test.version", &["a"]).await, Some(Extent::Found));
    assert_eq!(published(&nobody, "test.version", &["a", "b"]).await, None);
    assert_eq!(published(&nobody, "cmd.run", &["a"]).await, None);
    assert_eq!(published(&nobody, "saltutil.find_job", &["a", "b"]).await, Some(Extent::Target));
    // In Salt this user may call any runner.
    let denied = nobody.may_call("runner", "jobs.list_jobs", &[], &[]).unwrap_err();
    assert_eq!(denied.name, "UserAuthenticationError");
    for wrong in [String::new(), "x".repeat(76)] {
        assert!(identify(&access, &ask(wrong)).await.is_err());
    }
}

#[tokio::test]
async fn what_everybody_may_is_for_who_is_not_named() {
    let yaml =
        "sharedsecret: s\nexternal_auth: {sharedsecret: {fred: [test.ping], 'web*': [test.arg], '*': [test.version]}}";
    for (permissive, both) in [(false, false), (true, true)] {
        let (_dir, access) = access(&format!("{yaml}\npermissive_acl: {permissive}"));
        let fred = identify(&access, &login("fred", "s")).await.unwrap();
        assert!(published(&fred, "test.ping", &["a"]).await.is_some());
        assert_eq!(published(&fred, "test.version", &["a"]).await.is_some(), both);
        let other = identify(&access, &login("other", "s")).await.unwrap();
        assert!(published(&other, "test.version", &["a"]).await.is_some());
        assert!(published(&other, "test.arg", &["a"]).await.is_none());
        let web = identify(&access, &login("web1", "s")).await.unwrap();
        assert!(published(&web, "test.arg", &["a"]).await.is_some());
    }
    let (_dir, access) = access(yaml);
    for (name, password) in [("fred", "S"), ("fred", ""), ("", "s")] {
        assert!(identify(&access, &login(name, password)).await.is_err(), "{name} {password}");
    }
}

#[tokio::test]
async fn a_shared_secret_that_is_not_set_lets_nobody_in() {
    let (_dir, access) = access("external_auth: {sharedsecret: {'*': ['.*']}}");
    for password in ["", "None"] {
        assert!(identify(&access, &login("x", password)).await.is_err());
    }
    let nil = map([("eauth", Value::from("sharedsecret")), ("username", Value::from("x")), ("password", Value::Nil)]);
    assert!(identify(&access, &nil).await.is_err());
}

#[tokio::test]
async fn a_token_holds_as_long_as_its_system_is_used() {
    let yaml = "sharedsecret: s\nexternal_auth: {sharedsecret: {fred: [test.ping]}}";
    let (dir, before) = access(yaml);
    let (made, _) = before.mint(&claim(&login("fred", "s"))).await.unwrap();
    let token = map([("token", made.get_text("token").unwrap())]);
    assert_eq!(identify(&before, &token).await.unwrap().name(), "fred");
    let after = Access::open(opts("sharedsecret: s").unwrap(), dir.path(), &["root".to_owned()]).unwrap();
    assert!(identify(&after, &token).await.is_err());
}

#[test]
fn settings_are_checked() {
    for bad in [
        "external_auth: [x]",
        "external_auth: {file: {fred: '.*'}}",
        "external_auth: {file: {fred: ['(']}}",
        "external_auth: {file: {fred: [{a: [x], b: [y]}]}}",
        "external_auth: {file: {fred: [{a: [{test.ping: {arg: [x]}}]}]}}",
        "publisher_acl: {joe: test.ping}",
        "publisher_acl_blacklist: {users: ['^(?!sudo_).*$']}",
        "token_expire_user_override: 3",
    ] {
        assert!(opts(bad).is_err(), "{bad}");
    }
    let error = opts("external_auth: {file: {fred: ['(']}}").unwrap_err();
    assert!(error.contains("file: fred: ") && error.contains("\"(\""), "{error}");
    let error = opts("sharedsecret: very-secret\nexternal_auth: 1").unwrap_err();
    assert!(!error.contains("very-secret"), "{error}");
}

#[tokio::test]
async fn the_blacklist_is_for_everybody() {
    let (dir, access) = access("publisher_acl_blacklist: {users: ['eve.*', 'sudo_*'], modules: [cmd, 'test.s*']}");
    let key = std::fs::read_to_string(dir.path().join(".root_key")).unwrap();
    let root = identify(&access, &map([("key", key)])).await.unwrap();
    for (claimed, fun, blocked) in [
        ("root", "test.ping", false),
        ("root", "test.sleep", true),
        ("root", "cmd.run", false),
        ("sudo_joe", "test.ping", true),
        ("eve2", "test.ping", true),
    ] {
        assert_eq!(
            access.is_blocked(&root, Some(claimed), &[("test.ping", &[]), (fun, &[])]),
            blocked,
            "{claimed} {fun}"
        );
    }
}

#[test]
fn users_must_be_users_of_this_host_unless_the_operator_says_otherwise() {
    let yaml = "publisher_acl: {nobody: [test.ping], nobody-of-this-name: [test.ping], 'no such.*': [test.ping]}";
    for (settings, made) in [("", false), ("client_acl_verify: True", false), ("client_acl_verify: False", true)] {
        let (dir, _access) = access(&format!("{yaml}\n{settings}"));
        assert!(dir.path().join(".nobody_key").exists());
        assert_eq!(dir.path().join(".nobody-of-this-name_key").exists(), made, "{settings}");
        let made = if made { 4 } else { 3 };
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), made, "keys and tokens; a pattern is no name");
    }
}
