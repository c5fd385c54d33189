//! A full disk: nothing is acknowledged that is not stored, the error names the disk, and the master continues when
//! there is space.

use brine_kit::process::Output;
use brine_kit::programs::program;
use brine_kit::wait::wait_for;
use brine_tests::salt::{Kind, Master, Minion};
use brine_tests::small_disk::SmallDisk;

/// Runs one of the master's commands where it sees the master's disk.
fn command(disk: &SmallDisk, master: &Master, name: &str, args: &[&str]) -> Output {
    let conf = master.conf();
    disk.run(&program(name), &[&["-c", &conf], args].concat())
}

#[test]
fn a_full_disk_is_named_and_minions_keep_their_returns() {
    let mut master = Master::prepare(Kind::Brine, "auto_accept: True\npython_job_files: False");
    let Some(disk) = SmallDisk::new(&master.path("cache"), 6 << 10) else { return };
    let words = ["-c", &master.conf(), "-l", "debug"];
    master.daemon = Some(disk.daemon(&program("salt-master"), &words, &master.path("master.out")));
    let bus = master.path("sock/master_event_pub.ipc");
    wait_for("the master's event bus", || std::os::unix::net::UnixStream::connect(&bus).ok().map(drop));
    let events = master.events();
    let mut minion = Minion::prepare(Kind::Brine, "web1", master.ret_port, "");
    minion.up();
    events.wait_tag("salt/minion/web1/start");
    let started = command(&disk, &master, "salt", &["--async", "*", "test.sleep", "3"]).exits(0);
    let jid = started.stdout.trim().rsplit(' ').next().expect("a jid").to_owned();
    events.wait_tag(&format!("salt/job/{jid}/publish"));
    disk.fill();

    let spool = minion.path("cache/spool");
    let daemon = master.daemon.as_ref().expect("it runs");
    daemon.wait_log("database or disk is full");
    let named = format!("{} (brine-small-disk) has 0 bytes of 6144 KiB free", master.path("cache").display());
    daemon.wait_log(&named);
    wait_for("the return on the minion's disk", || std::fs::read_dir(&spool).ok()?.next().map(drop));
    assert_eq!(events.count(&format!("salt/job/{jid}/ret/web1")), 0, "nobody hears of a return that is not stored");
    for how in [&[][..], &["--async"], &["--static"], &["-b", "1"]] {
        let refused = command(&disk, &master, "salt", &[how, &["*", "test.ping"]].concat()).exits(1);
        assert!(refused.stdout.contains(&named), "{refused:?}");
    }

    disk.free();
    events.wait_return(&jid, "web1");
    wait_for("the spool to be empty", || std::fs::read_dir(&spool).ok()?.next().is_none().then_some(()));
    let found = command(&disk, &master, "salt-run", &["jobs.lookup_jid", &jid, "--out=json"]).exits(0).json();
    assert_eq!(found, serde_json::json!({"web1": true}));
    assert_eq!(command(&disk, &master, "salt", &["*", "test.ping"]).exits(0).stdout, "web1:\n    True\n");
    master.daemon.as_ref().expect("it runs").wait_log("works again");
}
