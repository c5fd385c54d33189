//! Configuration files as operators write them.

use std::path::Path;
use std::time::Duration;

use super::*;
use crate::value::{list, map, text};

fn config(text: &str) -> Result<Config, ConfigError> {
    Config::from_yaml(text, Path::new("/etc/salt/minion"), Role::Minion)
}

#[test]
fn the_defaults_are_salts() {
    let master = Config::from_yaml("", Path::new("/etc/salt/master"), Role::Master).unwrap();
    let minion = config("").unwrap();
    for (config, key, expect) in [
        (&master, "interface", text("0.0.0.0")),
        (&master, "ret_port", Value::from(4506)),
        (&master, "sock_dir", text("/var/run/salt/master")),
        (&master, "minimum_auth_version", Value::from(3)),
        (&master, "sign_pub_messages", Value::from(true)),
        (&master, "token_dir", text("/var/cache/salt/master/tokens")),
        (&minion, "master", text("salt")),
        (&minion, "acceptance_wait_time", Value::from(10)),
        (&minion, "recon_max", Value::from(10_000)),
        (&minion, "pki_dir", text("/etc/salt/pki/minion")),
        (&minion, "conf_file", text("/etc/salt/minion")),
    ] {
        assert_eq!(config.value(key), Some(&expect), "{key}");
    }
    assert!(master.get(settings::ID).unwrap().ends_with("_master"));
    assert_eq!(minion.value("id"), None);
    let roots = master.get(settings::FILE_ROOTS).unwrap();
    assert_eq!(roots, [("base".to_owned(), vec!["/srv/salt".to_owned(), "/srv/spm/salt".to_owned()])]);
}

#[test]
fn unknown_keys_are_kept_and_values_reached_by_path() {
    let c = config("my: {a: {b: [1, x]}}\nsandbox: {limits: {memory: 1}}").unwrap();
    assert_eq!(c.value("my:a:b:1"), Some(&text("x")));
    assert_eq!(c.value("sandbox:limits:memory"), Some(&Value::from(1)));
    assert_eq!(c.value("my:z"), None);
}

#[test]
fn files_include_others_as_salt_merges_them() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("minion", "master: a\nuser: u\ngrains: {x: 1}\ninclude: [extra/*.yml, none.yml]\n");
    write("minion.d/10.conf", "master: b\nlist: [1, 2]\ngrains: {y: 2}\n");
    write("minion.d/20.conf", "list: [2, 3]\ngrains: {z: 3}\ninclude: ../deep.conf\n");
    write("minion.d/.hidden.conf", "master: hidden\n");
    write("minion.d/notes.txt", "master: notes\n");
    write("deep.conf", "deep: true\nlist: [4]\n");
    write("extra/e.yml", "extra: 1\n");
    let c = Config::load(&dir.path().join("minion"), Role::Minion).unwrap();
    assert_eq!(c.get(settings::MASTER).unwrap(), ["b"]);
    assert_eq!(c.get(settings::USER).unwrap(), "u");
    // An include within a file replaces that file's keys before it is merged with the others of its list.
    assert_eq!(c.value("list"), Some(&list([1, 2, 4])));
    assert_eq!(c.value("grains"), Some(&map([("y", 2), ("z", 3)])), "a key of the main file is replaced whole");
    assert_eq!((c.value("deep"), c.value("extra")), (Some(&Value::from(true)), Some(&Value::from(1))));
    assert_eq!(c.dir(), dir.path());
}

#[test]
fn a_missing_file_is_an_empty_one_and_a_bad_one_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("minion");
    assert_eq!(Config::load(&path, Role::Minion).unwrap().get(settings::MASTER).unwrap(), ["salt"]);
    for (text, expect) in [
        ("a: 1\na: 2", "is not valid YAML: line 2, column 1: the key \"a\" is there twice"),
        ("just text", "must be a map of options"),
        ("include: minion", "more than 16 levels of include"),
    ] {
        std::fs::write(&path, text).unwrap();
        let error = Config::load(&path, Role::Minion).unwrap_err().to_string();
        assert!(error.contains(expect) && error.contains(path.to_str().unwrap()), "{error}");
    }
    std::fs::write(&path, [0xff]).unwrap();
    assert!(matches!(Config::load(&path, Role::Minion), Err(ConfigError::Read { .. })));
    for empty in ["", "# nothing", "null", "false", "[]"] {
        std::fs::write(&path, empty).unwrap();
        assert!(Config::load(&path, Role::Minion).is_ok(), "{empty}");
    }
}

#[test]
fn root_dir_goes_before_every_path() {
    let c = config("root_dir: /tmp/r/\npki_dir: /tmp/r/pki\nlog_file: file:///dev/log\nid: 7").unwrap();
    for (key, expect) in [
        ("root_dir", "/tmp/r"),
        ("cachedir", "/tmp/r/var/cache/salt/minion"),
        ("pki_dir", "/tmp/r/pki"),
        ("log_file", "file:///dev/log"),
        ("extension_modules", "/tmp/r/var/cache/salt/minion/extmods"),
        ("id", "7"),
    ] {
        assert_eq!(c.value(key), Some(&text(expect)), "{key}");
    }
    let master = "cachedir: /c\nsock_dir: /a/very/long/directory/for/sockets";
    let c = Config::from_yaml(master, Path::new("/etc/salt/master"), Role::Master).unwrap();
    assert_eq!(c.get(settings::SOCK_DIR).unwrap(), Path::new("/c/.salt-unix"));
}

#[test]
fn wrong_values_get_an_error_that_says_what_is_wanted() {
    let c = config(
        "publish_port: 70000\nmaster_port: x\nopen_mode: maybe\nauth_timeout: -1\nfile_roots: [a]\nkeysize: 2000.0",
    )
    .unwrap();
    let says = |error: ConfigError, expect: &str| {
        assert_eq!(error.to_string(), format!("the option {expect}"));
    };
    says(
        c.get(settings::PUBLISH_PORT).unwrap_err(),
        "publish_port in /etc/salt/minion must be a port from 0 to 65535, not 70000",
    );
    says(
        c.get(settings::MASTER_PORT).unwrap_err(),
        "master_port in /etc/salt/minion must be a port from 0 to 65535, not 'x'",
    );
    says(c.get(settings::OPEN_MODE).unwrap_err(), "open_mode in /etc/salt/minion must be true or false, not 'maybe'");
    says(
        c.get(settings::AUTH_TIMEOUT).unwrap_err(),
        "auth_timeout in /etc/salt/minion must be a number of seconds from 0 to 1000000000, not -1",
    );
    says(
        c.get(settings::FILE_ROOTS).unwrap_err(),
        "file_roots in /etc/salt/minion must be a map of names to lists of texts, not ['a']",
    );
    says(
        c.get(settings::RET_PORT).unwrap_err(),
        "ret_port in /etc/salt/minion must be a port from 0 to 65535, not missing",
    );
    says(
        c.get(settings::KEYSIZE).unwrap_err(),
        "keysize in /etc/salt/minion must be a whole number of bits from 2048 to 8192, not 2000.0",
    );
    let secret = Config::from_yaml("sharedsecret: [hidden]", Path::new("/m"), Role::Master).unwrap();
    says(secret.get(settings::SHAREDSECRET).unwrap_err(), "sharedsecret in /m must be text, not something else");
}

#[test]
fn only_true_opens_the_door() {
    for (text, open) in [("true", true), ("yes", true), ("1", false), ("'true'", false), ("null", false)] {
        let yaml = format!("open_mode: {text}\nauto_accept: {text}");
        let c = Config::from_yaml(&yaml, Path::new("/m"), Role::Master).unwrap();
        assert_eq!(
            (c.get(settings::OPEN_MODE).unwrap(), c.get(settings::AUTO_ACCEPT).unwrap()),
            (open, open),
            "{text}"
        );
    }
}

#[test]
fn lists_and_durations_are_forgiving() {
    let c = config("master: [a, b]\nauth_timeout: 0.5\nrecon_max: 250\nfile_roots:\n  base: /srv\n  dev:\n").unwrap();
    assert_eq!(c.get(settings::MASTER).unwrap(), ["a", "b"]);
    assert_eq!(c.get(settings::AUTOSIGN_GRAINS).unwrap(), Vec::<String>::new());
    assert_eq!(c.get(settings::AUTH_TIMEOUT).unwrap(), Duration::from_millis(500));
    assert_eq!(c.get(settings::RECON_MAX).unwrap(), Duration::from_millis(250));
    assert_eq!(
        c.get(settings::FILE_ROOTS).unwrap(),
        [("base".to_owned(), vec!["/srv".to_owned()]), ("dev".to_owned(), vec![])]
    );
}

#[test]
fn what_is_shown_has_no_secrets() {
    let yaml = "timeout: 7\nkey_pass: hidden\nsharedsecret: hidden\nmy_own: hidden\n\
                external_auth: {rest: {^url: hidden, fred: [test.ping]}}";
    let config = Config::from_yaml(yaml, Path::new("/etc/salt/master"), Role::Master).unwrap();
    let shown = config.shown();
    assert_eq!((shown.get_i64("timeout"), shown.get_i64("ret_port")), (Some(7), Some(4506)));
    assert!(shown.traverse("external_auth:rest:fred", ":").is_some());
    assert!(!shown.python_repr().contains("hidden"), "{shown}");
}
