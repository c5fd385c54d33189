//! A full disk: nothing is acknowledged that is not stored, the error names the disk, and the master continues when
//! there is space.
#![allow(clippy::disallowed_methods, reason = "tests start the programs that they test")]

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use brine_kit::process::{Daemon, run};
use brine_kit::programs::program;
use brine_kit::wait::wait_for;
use brine_tests::salt::Master;

/// Returns the command that makes a mount namespace: as root, or as a user who may make user namespaces.
fn namespace() -> Option<Vec<&'static str>> {
    let kinds = [vec!["unshare", "-m"], vec!["unshare", "-Urm"]];
    kinds.into_iter().find(|kind| {
        let mut command = Command::new(kind[0]);
        command.args(&kind[1..]).args(["sh", "-c", "mount -t tmpfs -o size=64k none /tmp"]);
        command.output().is_ok_and(|output| output.status.success())
    })
}

/// Starts the master with a small disk for `cachedir`. The disk is visible only to the master, and is removed with it.
fn start_on_small_disk(master: &mut Master, namespace: &[&str]) {
    let (cache, conf) = (master.path("cache"), master.conf());
    std::fs::create_dir_all(&cache).expect("our own folder");
    let script = format!(
        "mount -t tmpfs -o size=6m,mode=0700 brine-small-disk {} && exec {} -c {conf} -l debug",
        cache.display(),
        program("salt-master").display()
    );
    let mut args = namespace[1..].to_vec();
    args.extend(["sh", "-c", &script]);
    master.daemon = Some(Daemon::start(
        Path::new("/usr/bin/env"),
        &[&[namespace[0]], args.as_slice()].concat(),
        &master.path("master.out"),
    ));
    let bus = master.path("sock/master_event_pub.ipc");
    wait_for("the master's event bus", || std::os::unix::net::UnixStream::connect(&bus).ok().map(drop));
}

/// Returns the path of one of the master's files as the master sees it.
fn inside(master: &Master, relative: &str) -> PathBuf {
    let pid = master.daemon.as_ref().expect("it runs").pid();
    PathBuf::from(format!("/proc/{pid}/root{}", master.path(relative).display()))
}

/// Runs one of the master's commands in the master's mount namespace.
fn command(master: &Master, name: &str, args: &[&str]) -> brine_kit::process::Output {
    let (pid, program, conf) = (
        master.daemon.as_ref().expect("it runs").pid().to_string(),
        program(name).display().to_string(),
        master.conf(),
    );
    let mut all = vec!["-t", &pid, "-m", "-U", "--preserve-credentials", &program, "-c", &conf];
    if rustix::process::geteuid().is_root() {
        all.retain(|arg| !matches!(*arg, "-U" | "--preserve-credentials"));
    }
    all.extend(args);
    run(Path::new("/usr/bin/nsenter"), &all)
}

/// Fills the disk.
fn fill(path: &Path) {
    let mut file = File::create(path).expect("a file");
    for size in [64 << 10, 4 << 10, 512, 1] {
        while file.write_all(&vec![0; size]).is_ok() {}
    }
}

#[test]
fn a_full_disk_is_named_and_minions_keep_their_returns() {
    let Some(namespace) = namespace() else {
        brine_kit::missing("the right to mount", "allow `unshare -m` or `unshare -Urm` to this user");
        return;
    };
    let mut master = Master::prepare(brine_tests::salt::Kind::Brine, "auto_accept: True\npython_job_files: False");
    start_on_small_disk(&mut master, &namespace);
    let events = master.events();
    let mut minion = brine_tests::salt::Minion::prepare(brine_tests::salt::Kind::Brine, "web1", master.ret_port, "");
    minion.up();
    events.wait_tag("salt/minion/web1/start");
    let started = command(&master, "salt", &["--async", "*", "test.sleep", "3"]).exits(0);
    let jid = started.stdout.trim().rsplit(' ').next().expect("a jid").to_owned();
    events.wait_tag(&format!("salt/job/{jid}/publish"));
    fill(&inside(&master, "cache/fill"));

    let spool = minion.path("cache/spool");
    let daemon = master.daemon.as_ref().expect("it runs");
    daemon.wait_log("database or disk is full");
    let disk = format!("{} (brine-small-disk) has 0 bytes of 6144 KiB free", master.path("cache").display());
    daemon.wait_log(&disk);
    wait_for("the return on the minion's disk", || std::fs::read_dir(&spool).ok()?.next().map(drop));
    assert_eq!(events.count(&format!("salt/job/{jid}/ret/web1")), 0, "nobody hears of a return that is not stored");
    for how in [&[][..], &["--async"], &["--static"], &["-b", "1"]] {
        let refused = command(&master, "salt", &[how, &["*", "test.ping"]].concat()).exits(1);
        assert!(refused.stdout.contains(&disk), "{refused:?}");
    }

    std::fs::remove_file(inside(&master, "cache/fill")).expect("the file");
    events.wait_return(&jid, "web1");
    wait_for("the spool to be empty", || std::fs::read_dir(&spool).ok()?.next().is_none().then_some(()));
    let found = command(&master, "salt-run", &["jobs.lookup_jid", &jid, "--out=json"]).exits(0).json();
    assert_eq!(found, serde_json::json!({"web1": true}));
    assert_eq!(command(&master, "salt", &["*", "test.ping"]).exits(0).stdout, "web1:\n    True\n");
    master.daemon.as_ref().expect("it runs").wait_log("works again");
}
