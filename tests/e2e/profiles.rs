//! What profiles open and refuse, by functions of standard modules that run with programs of the host.

use std::path::Path;

use brine_tests::salt::{Kind, Master, Minion};
use serde_json::Value;

/// Calls a function on the minion's host: what it returned, or the error.
fn call(minion: &Minion, args: &[&str]) -> Result<Value, String> {
    let done = minion.salt_call(&[&["--local", "--out=json"], args].concat());
    match done.code {
        0 => Ok(done.json()["local"].clone()),
        _ => Err(format!("{}{}", done.stdout, done.stderr)),
    }
}

/// A host with systemd, whose services can be asked for.
fn has_systemd() -> bool {
    Path::new("/run/systemd/system").is_dir()
}

#[test]
fn observe_sees_and_changes_nothing() {
    let master = Master::start("");
    let minion = master.minion_kind(Kind::Brine, "web1", "sandbox: {profiles: [observe]}");
    let seen = |args: &[&str]| call(&minion, args).unwrap_or_else(|error| panic!("{args:?}: {error}"));
    assert!(seen(&["disk.usage"])["/"]["available"].is_string());
    assert!(seen(&["disk.percent"])["/"].is_string());
    assert!(seen(&["status.loadavg"])["1-min"].is_number());
    assert!(seen(&["status.meminfo"])["MemTotal"].is_object());
    assert!(seen(&["status.uptime"]).is_object());
    assert_eq!(seen(&["user.info", "root"])["uid"], 0);
    assert_eq!(seen(&["group.info", "root"])["gid"], 0);
    assert!(seen(&["mount.active"])["/"].is_object());
    let apt = Path::new("/usr/bin/dpkg-query").exists();
    if apt {
        assert!(seen(&["pkg.list_pkgs"])["dpkg"].is_string());
        assert!(seen(&["pkg.version", "dpkg"]).is_string());
    }
    if has_systemd() {
        assert!(seen(&["service.get_all"]).as_array().is_some_and(|all| !all.is_empty()));
        assert!(seen(&["service.status", "systemd-journald"]).is_boolean());
    }

    // The same modules, where they would change something.
    let mut refused = vec![
        vec!["user.add", "brine-test-user"],
        vec!["user.delete", "brine-test-user"],
        vec!["group.add", "brine-test-group"],
        vec!["mount.mount", "/mnt", "/dev/brine-none"],
        vec!["mount.set_fstab", "/mnt/brine", "/dev/brine-none", "ext4"],
        vec!["timezone.set_zone", "Etc/UTC"],
        vec!["sysctl.persist", "vm.swappiness", "10"],
        vec!["file.write", "/var/log/brine-test", "x"],
    ];
    if ["/sbin/lsmod", "/usr/bin/lsmod"].iter().any(|lsmod| Path::new(lsmod).exists()) {
        refused.push(vec!["kmod.load", "brine_none"]);
    }
    if apt {
        refused.push(vec!["pkg.install", "brine-no-such-package"]);
    }
    if has_systemd() {
        refused.push(vec!["service.restart", "brine-no-such-unit"]);
        refused.push(vec!["service.enable", "brine-no-such-unit"]);
    }
    let before = std::fs::read_to_string("/etc/passwd").expect("every host has it");
    let wrong: Vec<String> = refused
        .iter()
        .filter_map(|args| match call(&minion, args) {
            Err(error) if error.contains("may not ") => None,
            other => Some(format!("{args:?}: {other:?}")),
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(std::fs::read_to_string("/etc/passwd").expect("every host has it"), before);
    assert!(!Path::new("/var/log/brine-test").exists());
    // What was refused can be granted by lines that a profile does not stand in the way of.
    let all = call(&minion, &["sandbox.refusals"]).expect("it only reads");
    let functions: Vec<&str> =
        all.as_array().into_iter().flatten().filter_map(|one| one["function"].as_str()).collect();
    assert!(functions.contains(&"user.add") && functions.contains(&"file.write"), "{functions:?}");
}

/// Which units may be restarted is a question of the command line, which is checked before a program starts: also where no systemd runs.
#[test]
fn services_opens_the_named_ones_alone() {
    let master = Master::start("");
    let minion = master.minion_kind(
        Kind::Brine,
        "web1",
        "sandbox:\n  profiles: [{services: [brine-test-nginx]}]\n  modules:\n    cmd: {process: {lines: []}}\n",
    );
    let shown = call(&minion, &["sandbox.show", "service"]).expect("it only reads").to_string();
    assert!(shown.contains("restart brine-test-nginx.service"), "{shown}");
    let refused = |args: &[&str]| call(&minion, args).is_err_and(|error| error.contains("may not run"));
    if !has_systemd() || !Path::new("/usr/bin/systemctl").exists() {
        return;
    }
    for function in
        ["service.start", "service.stop", "service.restart", "service.reload", "service.enable", "service.disable"]
    {
        assert!(!refused(&[function, "brine-test-nginx"]), "{function}");
        for other in
            ["brine-test-ssh", "brine-test-nginx2", "brine-test-nginx.socket", "brine-test-nginx brine-test-ssh"]
        {
            assert!(refused(&[function, other]), "{function} {other}");
        }
    }
    assert!(refused(&["service.mask", "brine-test-nginx"]));
}
