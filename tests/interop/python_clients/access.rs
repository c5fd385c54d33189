//! Other users of the master: log-ins, tokens, users of the host.

use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;

use brine_kit::process::Daemon;
use brine_kit::wait::wait_for;
use brine_tests::salt::{Kind, Master};

use super::{minions, script, start};

/// The configuration that `access.py` expects.
const CONFIG: &str = "
sharedsecret: front-end-secret
token_expire: 1000
token_expire_user_override: {file: [fred]}
publisher_acl_blacklist: {modules: [test.sleep]}
external_auth:
  file:
    ^filename: USERS
    ^groupfile: GROUPS
    fred: ['test.*', 'grains.*', sys.list_functions, '@runner', '@wheel']
    ann:
      - one: [test.ping, {test.echo: {args: ['a.*']}}]
      - 'G@role:db': [test.version]
      - '@jobs': [list_jobs]
    ops%:
      - '@wheel': [key.list_all]
    '*': [test.version]
  sharedsecret:
    '*': [test.ping]
  ldap:
    root: ['.*']
";

/// Starts a master with that configuration. Returns it with the folder of its users' files.
fn start_with_users(more: &str) -> (Master, tempfile::TempDir) {
    let files = tempfile::tempdir().expect("a temporary folder");
    let (users, groups) = (files.path().join("users"), files.path().join("groups"));
    std::fs::write(&users, "fred:fred-secret\nann:ann-secret\nbob:bob-secret\n").expect("our own folder");
    std::fs::write(&groups, "ops: bob\n").expect("our own folder");
    let config = CONFIG.replace("USERS", &users.display().to_string()).replace("GROUPS", &groups.display().to_string());
    (start(&format!("{config}{more}")), files)
}

#[test]
fn log_ins_tokens_and_permissions() {
    let (master, _users) = start_with_users("");
    let _minions = minions(&master);
    script(&master, "access", &[]);

    let log = std::fs::read_to_string(master.path("log")).expect("a log");
    let key = std::fs::read_to_string(master.path("cache/.root_key")).expect("a key");
    for secret in [key.as_str(), "fred-secret", "ann-secret", "bob-secret", "wrong-secret", "front-end-secret"] {
        assert!(!log.contains(secret), "{secret} is in the log");
    }
    let tokens = std::fs::read_dir(master.path("cache/tokens")).expect("tokens");
    let mut count = 0;
    for token in tokens.map(|token| token.expect("an entry")) {
        assert_eq!(token.metadata().expect("it").permissions().mode() & 0o777, 0o600);
        let name = token.file_name().to_string_lossy().into_owned();
        assert!(!log.contains(&name[..64]), "a token is in the log");
        count += 1;
    }
    assert!(count >= 6, "three tokens, in two files each");
    assert!(log.contains("external_auth: ldap is not used"), "what is not offered is said");
}

/// The same script passes with Python's salt-api and with ours.
#[test]
fn salt_api() {
    for kind in [Kind::Python, Kind::Brine] {
        salt_api_of(kind);
    }
}

fn salt_api_of(kind: Kind) {
    let [port] = brine_kit::ports::free_ports();
    let (master, _users) = start_with_users(&format!(
        "rest_cherrypy: {{port: {port}, host: 127.0.0.1, disable_ssl: True, thread_pool: 10}}\n\
         netapi_enable_clients: [local, local_async, local_batch, local_subset, runner, runner_async, wheel]\n\
         api_logfile: api.log\napi_pidfile: api.pid\n"
    ));
    let _minions = minions(&master);
    let log = master.path("api.out");
    let _api = Daemon::start(&kind.program("salt-api"), &["-c", &master.conf(), "-l", "info"], &log);
    wait_for("salt-api to listen", || TcpStream::connect(("127.0.0.1", port)).ok().map(drop));
    script(&master, "salt_api", &[&port.to_string()]);
}
