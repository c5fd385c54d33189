//! The owner's decisions from the viewpoint of an operator and an owner.
use std::time::{Duration, Instant};

use brine_kit::files::set_mode;
use brine_kit::programs::example;
use brine_kit::wait::wait_for;
use brine_tests::salt::{Kind, Master, Minion};
use serde_json::{Value, json};

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("not text: {value}"))
}

/// Starts a minion with this `sandbox:` configuration.
fn minion(master: &Master, sandbox: &str) -> Minion {
    master.minion_kind(Kind::Brine, "web1", sandbox)
}

/// Returns the configuration line at the end of an error as YAML.
fn grant_of(error: &str) -> String {
    let (_, line) = error.split_once("minion's configuration: ").unwrap_or_else(|| panic!("no line in {error}"));
    format!("sandbox:\n  modules:\n    {}\n", line.trim())
}

#[test]
fn a_command_is_refused_with_the_line_that_grants_it() {
    let master = Master::start("");
    let mut minion = minion(&master, "");
    let refused = master.json("web1", &["cmd.run", "id -u"]);
    let line = grant_of(text(&refused));
    assert!(line.contains("cmd: {process: ["), "{line}");
    minion.stop();
    std::fs::create_dir_all(minion.path("conf/minion.d")).expect("our own folder");
    std::fs::write(minion.path("conf/minion.d/sandbox.conf"), line).expect("our own folder");
    let events = master.events();
    minion.up();
    events.wait_tag("salt/minion/web1/start");
    assert_eq!(master.json("web1", &["cmd.run", "id -u"]), json!(rustix::process::getuid().as_raw().to_string()));
    // The same program with shell syntax: no shell was granted, so the syntax is not interpreted.
    let refused = master.json("web1", &["cmd.run", "id -u; id -g"]);
    assert!(text(&refused).contains(';') && text(&refused).contains("shell"), "{refused}");
    let refused = master.json("web1", &["cmd.run", "cat /etc/passwd"]);
    assert!(text(&refused).contains("cmd: {process: ["), "{refused}");
}

#[test]
fn a_program_ends_with_its_job() {
    let master = Master::start("");
    let minion = minion(&master, "sandbox: {modules: {cmd: {process: any}}}");
    let events = master.events();
    let jid = master.start_job(&["web1", "cmd.run", "sleep 4242 & sleep 4243"]);
    let sleepers = || processes_with("sleep\u{0}424");
    wait_for("the programs to run", || (sleepers() == 2).then_some(()));
    let killed = master.json("web1", &["saltutil.kill_job", &jid]);
    assert!(killed.is_string(), "{killed}");
    let event = events.wait_return(&jid, "web1");
    assert_eq!(event["success"], json!(false), "{event}");
    wait_for("the programs to be gone", || (sleepers() == 0).then_some(()));
    drop(minion);
}

fn processes_with(command: &str) -> usize {
    let all = std::fs::read_dir("/proc").expect("proc").flatten();
    all.filter(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).starts_with(command)
    })
    .count()
}

#[test]
fn files_are_read_where_the_owner_said_and_nowhere_else() {
    let master = Master::start("");
    let folder = tempfile::tempdir().expect("a folder");
    set_mode(folder.path(), 0o755);
    std::fs::write(folder.path().join("motd"), "hello\n").expect("our own folder");
    std::os::unix::fs::symlink("/etc/passwd", folder.path().join("out")).expect("our own folder");
    let dir = folder.path().display().to_string();
    let _minion = minion(&master, &format!("sandbox: {{modules: {{file: {{filesystem: {{{dir}: ro}}}}}}}}"));
    assert_eq!(master.json("web1", &["file.read", &format!("{dir}/motd")]), json!("hello\n"));
    assert_eq!(master.json("web1", &["file.file_exists", &format!("{dir}/none")]), json!(false));
    for outside in ["/etc/passwd".to_owned(), format!("{dir}/../../etc/passwd"), format!("{dir}/out")] {
        let refused = master.json("web1", &["file.read", &outside]);
        assert!(!text(&refused).contains("root:"), "{outside}: {refused}");
    }
    let refused = master.json("web1", &["file.read", "/etc/passwd"]);
    // The whole line, including existing grants.
    assert!(text(&refused).contains(&format!("file: {{filesystem: {{/etc: ro, {dir}: ro}}}}")), "{refused}");
}

#[test]
fn the_owner_sees_what_each_module_may_do() {
    let master = Master::start("");
    let minion = minion(&master, "sandbox: {modules: {cmd: {process: [/usr/bin/uptime]}}}");
    for show in [
        master.json("web1", &["sandbox.show", "cmd"]),
        minion.salt_call(&["--local", "--out=json", "sandbox.show", "cmd"]).exits(0).json()["local"].clone(),
    ] {
        assert_eq!(show["sha256"].as_str().map(str::len), Some(64), "{show}");
        assert!(show.to_string().contains("/usr/bin/uptime"), "{show}");
    }
    let list = master.json("web1", &["sandbox.list"]);
    for module in [
        "alias",
        "aliases",
        "alternatives",
        "archive",
        "beacon",
        "beacons",
        "cert_info",
        "cmd",
        "config",
        "cp",
        "cron",
        "debconf",
        "defaults",
        "dig",
        "disk",
        "dnsutil",
        "diskusage",
        "environ",
        "event",
        "file",
        "firewall",
        "git",
        "grains",
        "group",
        "hashutil",
        "host",
        "hosts",
        "http",
        "ini",
        "inotify",
        "iptables",
        "journald",
        "jinja",
        "key",
        "kmod",
        "load",
        "local",
        "locale",
        "match",
        "log",
        "logrotate",
        "loop",
        "memusage",
        "mine",
        "module",
        "mount",
        "network",
        "network_info",
        "pillar",
        "pip",
        "pkg",
        "pkgrepo",
        "ps",
        "postgres",
        "postgres_cluster",
        "postgres_database",
        "postgres_extension",
        "postgres_group",
        "postgres_initdb",
        "postgres_language",
        "postgres_privileges",
        "postgres_schema",
        "postgres_tablespace",
        "postgres_user",
        "process",
        "publish",
        "random",
        "rawfile_json",
        "receipts",
        "salt_version",
        "saltutil",
        "sandbox",
        "schedule",
        "service",
        "shadow",
        "slsutil",
        "ssh",
        "ssh_auth",
        "ssh_known_hosts",
        "state",
        "stateconf",
        "status",
        "swapusage",
        "sys",
        "sysctl",
        "tcp_events",
        "temp",
        "test",
        "timezone",
        "user",
        "virtualenv",
        "webhook",
    ] {
        assert!(list.get(module).is_some(), "{module} in {list}");
    }
    let check = master.json("web1", &["sandbox.check"]);
    assert!(check.is_object(), "{check}");
}

#[test]
fn an_executor_has_its_second_wall() {
    let master = Master::start("");
    let minion = minion(&master, "");
    let status = std::fs::read_to_string(format!("/proc/{}/status", minion.executor())).expect("it runs");
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).expect("the kernel tells");
        line.split_once(':').expect("a field").1.trim().to_owned()
    };
    assert_eq!(field("NoNewPrivs"), "1");
    assert_eq!(field("Seccomp"), "2");
    if rustix::process::getuid().is_root() {
        assert!(!field("Uid").split_whitespace().any(|id| id == "0"), "{}", field("Uid"));
        assert_eq!(field("Groups"), "");
        assert_eq!(field("CapEff"), "0000000000000000");
    }
}

#[test]
fn configuration_that_others_may_write_is_refused() {
    let minion = Minion::prepare(Kind::Brine, "web1", 1, "");
    let file = minion.path("conf/minion");
    minion.salt_call(&["--local", "test.ping"]).exits(0);
    set_mode(&file, 0o666);
    let refused = minion.salt_call(&["--local", "test.ping"]);
    assert_ne!(refused.code, 0, "{refused:?}");
    assert!(refused.stderr.contains(&file.display().to_string()) && refused.stderr.contains("chmod"), "{refused:?}");
}

#[test]
fn a_job_may_bring_a_timeout_of_its_own() {
    let master = Master::start("");
    master.serve("_modules/spin.wasm", &std::fs::read(example("spin")).expect("an example"));
    let _minion = minion(&master, "");
    // The time runs from when the minion has the job: the first one may use it up until the module is compiled and its executor is there.
    master.json("web1", &["--executor-opts", "{timeout: 1}", "spin.forever"]);
    let began = Instant::now();
    let ended = master.json("web1", &["--executor-opts", "{timeout: 4}", "spin.forever"]);
    assert!(text(&ended).contains("wall clock limit"), "{ended}");
    assert!(began.elapsed() < Duration::from_secs(25), "{:?}", began.elapsed());
}

#[test]
fn one_function_may_have_what_its_module_has_not() {
    let master = Master::start("");
    let _minion = minion(&master, "sandbox: {modules: {cmd.retcode: {process: [/usr/bin/id]}}}");
    assert_eq!(master.json("web1", &["cmd.retcode", "id"]), json!(0));
    let refused = master.json("web1", &["cmd.run", "id"]);
    assert!(text(&refused).contains("cmd: {process: ["), "{refused}");
}

/// No list of words covers all names of secrets, so every setting that is not public needs a grant.
#[test]
fn settings_that_nobody_called_public_are_refused_with_the_line_that_shows_them() {
    let own = "bearer: hunter2\npasscode: hunter2\nsnmp_community: hunter2\nlicense: hunter2\nssh_priv: hunter2\n'sdb:uri': hunter2\n\
               app: {url: 'https://a.example', deep: {key: hunter2}}\nschedule: {j: {args: [hunter2]}}\n\
               mine_functions: {x: [test.echo, hunter2]}\ngrains: {role: web}\nconfig_public: ['app:u*']\n";
    let minion = Minion::prepare(Kind::Brine, "web1", 1, own);
    let get = |key: &str| minion.salt_call(&["--local", "--out=json", "config.get", key]);
    for (key, expect) in [("id", "web1"), ("app:url", "https://a.example")] {
        assert_eq!(get(key).exits(0).json()["local"], expect, "{key}");
    }
    for key in ["license", "sdb:uri", "app:deep", "mine_functions"] {
        let refused = get(key);
        let said = format!("{}{}", refused.stdout, refused.stderr);
        assert!(
            !said.contains("hunter2") && said.contains(&format!("may not read the setting {key};")),
            "{key}: {said}"
        );
        assert!(said.contains("config_public"), "{said}");
    }
    // The suggested line in the configuration.
    let said = get("bearer").stderr;
    let (line, _) = said.split_once("; for all modules").expect("the end of the line");
    std::fs::create_dir_all(minion.path("conf/minion.d")).expect("our own folder");
    std::fs::write(minion.path("conf/minion.d/config.conf"), grant_of(line)).expect("our own folder");
    assert_eq!(get("bearer").exits(0).json()["local"], "hunter2");
    assert!(get("passcode").stderr.contains("[bearer, passcode]"), "the next line keeps the first");
}
