//! The life of both daemons from the viewpoint of an operator: signals, pid files, users, the service manager, several
//! minions on one host.
#![allow(clippy::disallowed_methods, reason = "tests start the programs that they test")]

use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::time::{Duration, Instant};

use brine_kit::files::set_mode;
use brine_kit::process::{Daemon, run, run_with, signal};
use brine_kit::programs::{example, program, program_folder};
use brine_kit::wait::{DEADLINE, wait_for};
use brine_tests::salt::{Kind, Master, Minion};
use rustix::process::{Pid, Signal};
use serde_json::json;

/// Replaces a text in a file.
fn edit(path: &Path, from: &str, to: &str) {
    let text = std::fs::read_to_string(path).expect("a configuration");
    assert!(text.contains(from), "{from:?} in {text}");
    std::fs::write(path, text.replacen(from, to, 1)).expect("our own file");
}

fn add(path: &Path, lines: &str) {
    let text = std::fs::read_to_string(path).expect("a configuration");
    std::fs::write(path, format!("{text}{lines}\n")).expect("our own file");
}

/// Counts a text in a daemon's log.
fn count(daemon: &Daemon, text: &str) -> usize {
    daemon.log_text().matches(text).count()
}

/// Sends SIGHUP and waits for the daemon's message.
fn reload(daemon: &Daemon, says: &str) {
    let before = count(daemon, says);
    daemon.signal(Signal::HUP);
    wait_for(&format!("{says:?} in the log:\n{}", daemon.log_text()), || (count(daemon, says) > before).then_some(()));
}

const READ: &str = "configuration read again";
const KEPT: &str = "the one before stays";

#[test]
fn a_master_takes_up_what_can_change_while_it_runs() {
    let master = Master::start("log_level_logfile: info");
    let _minion = master.minion("web1");
    let (conf, daemon) = (master.path("conf/master"), master.daemon.as_ref().expect("it runs"));
    let files = || master.json("web1", &["cp.list_master"]);
    master.serve("one.txt", b"1");
    std::fs::create_dir_all(master.path("srv/more")).expect("our own folder");
    std::fs::write(master.path("srv/more/two.txt"), "2").expect("our own folder");
    assert_eq!(files(), json!(["one.txt"]));
    let pinged = |target: &str| master.salt(&["-N", target, "test.ping", "--out=json", "--static", "-t", "5"]).stdout;
    assert!(!pinged("pair").contains("web1"));

    let roots = format!("base: [{}]", master.path("srv/salt").display());
    edit(&conf, &roots, &format!("base: [{0}/srv/salt, {0}/srv/more]", master.folder.path().display()));
    add(&conf, "nodegroups: {pair: 'L@web1,web2'}\nworker_threads: 7\npublish_session: 4000");
    // Log rotation renames the open file.
    std::fs::rename(master.path("log"), master.path("log.1")).expect("its log file");
    reload(daemon, "count from the next start");
    let log = daemon.log_text();
    assert!(log.contains("read again: file_roots, nodegroups changed"), "{log}");
    assert!(log.contains("from the next start: publish_session, worker_threads"), "{log}");
    assert_eq!(files(), json!(["one.txt", "two.txt"]));
    assert!(pinged("pair").contains("web1"));
    let up = master.command("salt-run", &["manage.up", "tgt=pair", "tgt_type=nodegroup", "--out=json"]);
    assert!(up.stdout.contains("web1"), "{up:?}");
    assert!(master.path("log").exists(), "the log goes on in a new file");

    // An error in a file is reported, and nothing changes.
    for (wrong, said) in
        [("\nfile_roots: [", "YAML"), ("\nkeysize: 7", "keysize"), ("\nfile_ignore_regex: ['(']", "file_ignore_regex")]
    {
        let good = std::fs::read_to_string(&conf).expect("a configuration");
        add(&conf, wrong);
        reload(daemon, KEPT);
        let log = daemon.log_text();
        let line = log.lines().rfind(|line| line.contains(KEPT)).expect("the line");
        assert!(line.contains(said) && line.contains("ERROR"), "{line}");
        std::fs::write(&conf, good).expect("our own file");
    }
    assert_eq!(files(), json!(["one.txt", "two.txt"]));
}

#[test]
fn the_log_level_changes_while_a_daemon_runs() {
    let mut master = Master::prepare(Kind::Brine, "log_level: warning\nlog_level_logfile: warning");
    let (conf, out) = (master.path("conf/master"), master.path("master.out"));
    let daemon = Daemon::start(&program("salt-master"), &["-c", &master.conf()], &out);
    wait_for("the master's event bus", || master.path("sock/master_event_pub.ipc").exists().then_some(()));
    let file = || std::fs::read_to_string(master.path("log")).unwrap_or_default();
    let refused = || drop(master.salt(&["*", "test.ping", "-t", "1"]));
    refused();
    assert!(!file().contains("[DEBUG"), "{}", file());
    edit(&conf, "log_level_logfile: warning", "log_level_logfile: debug");
    reload(&daemon, READ);
    refused();
    wait_for("debug lines in the log file", || file().contains("[DEBUG").then_some(()));
    assert!(!daemon.log_text().contains("[DEBUG"), "the console has its own level");
    edit(&conf, "log_level_logfile: debug", "log_level_logfile: error");
    daemon.signal(Signal::HUP);
    master.daemon = Some(daemon);
}

#[test]
fn a_minion_takes_up_grants_and_revocations_while_it_runs() {
    let master = Master::start("");
    let minion = master.minion("web1");
    let (conf, daemon) = (minion.path("conf/minion"), minion.running());
    master.serve("_modules/hello.wasm", &std::fs::read(example("hello")).expect("an example"));
    assert!(master.json("web1", &["hello.world"]).is_string());
    let uptime = || master.json("web1", &["cmd.run", "/bin/echo granted"]);
    assert_ne!(uptime(), json!("granted"), "nothing was granted yet");

    add(&conf, "sandbox:\n  modules:\n    cmd: {process: [/bin/echo, /usr/bin/echo]}");
    reload(daemon, "something else now: cmd; refused now: none");
    assert_eq!(uptime(), json!("granted"));

    let sha256 = master.json("web1", &["sandbox.show", "hello"])["sha256"].as_str().expect("a hash").to_owned();
    add(&conf, &format!("  revoked: {{sha256: [\"{sha256}\"]}}"));
    reload(daemon, "refused now: hello");
    let said = master.json("web1", &["hello.world"]);
    assert!(said.as_str().is_some_and(|text| text.contains("revoked")), "{said}");
    assert_eq!(uptime(), json!("granted"), "what is not revoked goes on");

    // A broken file does not change the configuration in force: revocations stay.
    let good = std::fs::read_to_string(&conf).expect("a configuration");
    add(&conf, "  nonsense: true");
    reload(daemon, KEPT);
    assert!(daemon.log_text().contains("sandbox:nonsense"), "{}", daemon.log_text());
    assert!(master.json("web1", &["hello.world"]).as_str().is_some_and(|text| text.contains("revoked")));
    // The same for a file that others may write.
    let harmless = good.replace("revoked:", "replace_standard: [] #");
    std::fs::write(&conf, harmless).expect("our own file");
    set_mode(&conf, 0o666);
    reload(daemon, KEPT);
    assert!(master.json("web1", &["hello.world"]).as_str().is_some_and(|text| text.contains("revoked")));
    // The owner removes the revocation.
    set_mode(&conf, 0o644);
    reload(daemon, READ);
    assert!(master.json("web1", &["hello.world"]).as_str().is_some_and(|text| text.starts_with("Hello")));
}

#[test]
fn signals_show_what_a_daemon_does() {
    let master = Master::start("");
    let minion = master.minion("web1");
    let (of_master, of_minion) = (master.daemon.as_ref().expect("it runs"), minion.running());
    of_master.signal(Signal::USR2);
    of_minion.signal(Signal::USR2);
    let jid = master.start_job(&["*", "test.sleep", "30"]);
    wait_for("the job", || (master.json("web1", &["saltutil.find_job", &jid])["jid"] == jid.as_str()).then_some(()));
    of_master.signal(Signal::USR1);
    of_minion.signal(Signal::USR1);
    of_minion.wait_log(&format!("job {jid}: test.sleep for"));
    of_minion.wait_log("jobs: 1 run or wait");
    of_master.wait_log("state of salt-master:");
    of_master.wait_log("subscribers: 1 of 1 connections");
    for (daemon, folder) in [(of_master, master.path("cache/profiles")), (of_minion, minion.path("cache/profiles"))] {
        daemon.wait_log("the profile is in");
        let entry = std::fs::read_dir(folder).expect("the folder").next().expect("a profile").expect("an entry");
        let mode = entry.metadata().expect("its mode").permissions().mode() & 0o777;
        let text = std::fs::read_to_string(entry.path()).expect("the profile");
        assert!(
            mode == 0o600 && text.contains("worker 0: busy") && text.contains("timers rang late"),
            "{mode:o} {text}"
        );
    }
    let folder = std::fs::read_dir(master.path("cache/profiles")).expect("the folder");
    let texts = folder.map(|entry| std::fs::read_to_string(entry.expect("an entry").path()).expect("a profile"));
    let text: String = texts.collect();
    assert!(text.lines().any(|line| line.starts_with("_return ")), "what was done in that time: {text}");
}

#[test]
fn one_daemon_a_pid_file() {
    let mut master = Master::start("");
    let mut minion = master.minion("web1");
    for (name, conf, path, daemon) in [
        ("salt-master", master.conf(), master.path("master.pid"), master.daemon.as_mut().expect("it runs")),
        ("salt-minion", minion.conf(), minion.path("minion.pid"), minion.daemon.as_mut().expect("it runs")),
    ] {
        assert_eq!(std::fs::read_to_string(&path).expect("a pid file"), daemon.pid().to_string());
        let second = run(&program(name), &["-c", &conf]).exits(1);
        let said = format!("{name}: {name} is already running (pid {}, pid file {}).", daemon.pid(), path.display());
        assert!(second.stderr.lines().any(|line| line.starts_with(&said)), "{second:?}");
        // A killed daemon leaves its file behind.
        daemon.kill();
        assert!(path.exists());
    }
    master.up();
    minion.up();
    wait_for("the minion's own number in its pid file", || {
        let text = std::fs::read_to_string(minion.path("minion.pid")).ok()?;
        (text == minion.running().pid().to_string()).then_some(())
    });
    minion.stop();
    assert!(!minion.path("minion.pid").exists());
}

#[test]
fn two_minions_of_one_host_by_their_folders() {
    let master = Master::start("");
    let (one, mut two) = (master.minion("one"), master.minion("two"));
    let answers = || master.salt(&["*", "test.ping", "--out=json", "--static", "-t", "10"]).json();
    assert_eq!(answers(), json!({"one": true, "two": true}));
    assert_ne!(
        std::fs::read(one.path("minion.pid")).expect("a pid file"),
        std::fs::read(two.path("minion.pid")).expect("a pid file")
    );
    two.stop();
    assert_eq!(master.json("one", &["test.ping"]), json!(true));
    two.up();
    wait_for("both to answer", || (answers() == json!({"one": true, "two": true})).then_some(()));
}

#[test]
fn a_minion_goes_to_the_background_when_it_has_what_it_needs() {
    let master = Master::start("");
    let minion = Minion::prepare(Kind::Brine, "web1", master.ret_port, "");
    let output = run(&program("salt-minion"), &["-c", &minion.conf(), "-d"]).exits(0);
    assert_eq!(output.stdout, "");
    let number: u32 =
        std::fs::read_to_string(minion.path("minion.pid")).expect("a pid file").parse().expect("a number");
    let pid = Pid::from_raw(number.cast_signed()).expect("a pid");
    assert_eq!(rustix::process::getsid(Some(pid)).expect("it runs"), pid, "it leads a session of its own");
    signal(number, Signal::TERM);
    wait_for("it to end", || (!minion.path("minion.pid").exists()).then_some(()));
    // The process in the foreground reports errors.
    add(&minion.path("conf/minion"), "transport: tcp");
    let output = run(&program("salt-minion"), &["-c", &minion.conf(), "-d"]).exits(64);
    assert!(output.stderr.contains("transport") && output.stderr.lines().count() == 1, "{output:?}");
}

/// Checks whether other users can reach the programs under test.
fn others_reach(folder: &Path) -> bool {
    let open = |dir: &Path| std::fs::metadata(dir).is_ok_and(|meta| meta.permissions().mode() & 0o001 != 0);
    let reach = folder.canonicalize().is_ok_and(|folder| folder.ancestors().all(open));
    if !reach {
        eprintln!("this test does nothing: other users cannot reach {}", folder.display());
    }
    reach
}

/// Returns the numbers in a line of `/proc/PID/status`.
fn status(daemon: &Daemon, field: &str) -> Vec<String> {
    let text = std::fs::read_to_string(format!("/proc/{}/status", daemon.pid())).expect("it runs");
    let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':')).expect("the field");
    line.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn a_daemon_of_root_becomes_its_user() {
    if !brine_kit::is_root() || !others_reach(&program_folder()) {
        return; // needs root, and a program folder that other users can reach
    }
    let id = |what: &str| run(Path::new("/usr/bin/id"), &[what, "nobody"]).exits(0).stdout.trim().to_owned();
    let mut master = Master::prepare(Kind::Brine, "");
    let mut minion = Minion::prepare(Kind::Brine, "web1", master.ret_port, "");
    for (folder, conf) in [(&master.folder, "conf/master"), (&minion.folder, "conf/minion")] {
        set_mode(folder.path(), 0o755);
        edit(&folder.path().join(conf), "user: root", "user: nobody");
    }
    // Files left by root's master must be given to the master's user.
    std::fs::create_dir_all(master.path("cache/jobs/old")).expect("our own folder");
    master.up();
    master.accept(&mut minion);
    assert_eq!(master.json("web1", &["test.ping"]), json!(true));
    for daemon in [master.daemon.as_ref().expect("it runs"), minion.running()] {
        assert_eq!(status(daemon, "Uid"), vec![id("-u"); 4]);
        assert_eq!(status(daemon, "Gid"), vec![id("-g"); 4]);
        let mut groups: Vec<String> = id("-G").split(' ').map(str::to_owned).collect();
        groups.sort();
        let mut own = status(daemon, "Groups");
        own.sort();
        assert_eq!(own, groups, "its groups, and none of root's");
        assert_eq!(status(daemon, "CapEff"), ["0000000000000000"]);
    }
    use std::os::unix::fs::MetadataExt;
    let nobody: u32 = id("-u").parse().expect("a number");
    for path in ["pki", "cache", "cache/jobs/old", "sock", "log"] {
        assert_eq!(std::fs::metadata(master.path(path)).expect(path).uid(), nobody, "{path}");
    }
    // The daemon also reloads as that user.
    reload(minion.running(), READ);
}

/// The messages to a service manager.
struct Manager {
    socket: UnixDatagram,
    _folder: tempfile::TempDir,
    path: String,
}

impl Manager {
    fn new() -> Self {
        let folder = tempfile::tempdir_in("/tmp").expect("a temporary folder");
        let path = folder.path().join("notify");
        let socket = UnixDatagram::bind(&path).expect("a socket");
        socket.set_read_timeout(Some(Duration::from_secs(1))).expect("a timeout");
        Self { socket, path: path.display().to_string(), _folder: folder }
    }

    fn hears(&self, what: &str) {
        let end = Instant::now() + DEADLINE;
        let mut buffer = [0; 4096];
        loop {
            match self.socket.recv(&mut buffer) {
                Ok(length) if String::from_utf8_lossy(&buffer[..length]).lines().any(|line| line == what) => return,
                Ok(_) => {}
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(e) => panic!("{e}"),
            }
            assert!(Instant::now() < end, "the service manager did not hear {what}");
        }
    }
}

#[test]
fn the_service_manager_is_told() {
    let master = Master::prepare(Kind::Brine, "");
    let minion = Minion::prepare(Kind::Brine, "web1", master.ret_port, "drain_timeout: 600");
    for (name, conf, out) in [
        ("salt-master", master.conf(), master.path("master.out")),
        ("salt-minion", minion.conf(), minion.path("minion.out")),
    ] {
        let manager = Manager::new();
        let env = [("NOTIFY_SOCKET", manager.path.as_str()), ("WATCHDOG_USEC", "500000")];
        let mut daemon = Daemon::start_with(&program(name), &["-c", &conf], &env, &out);
        manager.hears("READY=1");
        manager.hears("WATCHDOG=1");
        daemon.signal(Signal::HUP);
        manager.hears("RELOADING=1");
        manager.hears("READY=1");
        daemon.signal(Signal::TERM);
        manager.hears("STOPPING=1");
        if name == "salt-minion" {
            // The unit's TimeoutStopSec is not for jobs that may take longer.
            manager.hears("EXTEND_TIMEOUT_USEC=621000000");
        }
        assert!(daemon.wait_exit().success(), "{name}");
    }
}

#[test]
fn a_master_says_before_it_starts_what_is_wrong() {
    let mut master = Master::prepare(Kind::Brine, "");
    let (conf, gone) = (master.path("conf/master"), master.path("srv/gone"));
    let roots = format!("base: [{}]", master.path("srv/salt").display());
    edit(&conf, &roots, &format!("base: [{}]", gone.display()));
    master.up();
    let log = master.daemon.as_ref().expect("it runs").log_text();
    assert!(
        log.contains(&format!("the folder {} of file_roots (base) does not exist: make it", gone.display())),
        "{log}"
    );
    master.stop();
    let refused = |says: &[&str], code: i32| {
        let output = run(&program("salt-master"), &["-c", &master.conf(), "-l", "quiet"]).exits(code);
        let line = output.stderr.trim_end();
        assert!(line.lines().count() == 1 && says.iter().all(|says| line.contains(says)), "{says:?}: {output:?}");
    };
    let chmod = |path: &Path, mode: u32| {
        set_mode(path, mode);
    };
    // A user who may write the file decides what all minions run.
    chmod(&conf, 0o666);
    refused(&["is not read, because it may be changed by others", "chmod go-w"], 64);
    chmod(&conf, 0o644);
    std::fs::create_dir(master.path("conf/master.d")).expect("our own folder");
    chmod(&master.path("conf/master.d"), 0o777);
    refused(&["master.d", "chmod go-w"], 64);
    chmod(&master.path("conf/master.d"), 0o755);
    chmod(&master.path("cache"), 0o777);
    refused(&["anybody may write in the folder", "chmod o-w"], 77);
    chmod(&master.path("cache"), 0o750);
    edit(&conf, "user: root", "user: no-such-user");
    refused(&["no user no-such-user"], 67);
}

#[test]
fn a_saltfile_says_where_the_configuration_is() {
    let master = Master::start("");
    let _minion = master.minion("web1");
    let saltfile = master.path("Saltfile");
    let text = format!(
        "salt:\n  config_dir: {0}\n  output: json\n  static: True\nsalt-key: {{config_dir: {0}}}\n",
        master.conf()
    );
    std::fs::write(&saltfile, text).expect("our own file");
    let named = format!("--saltfile={}", saltfile.display());
    let output = run(&program("salt"), &[&named, "*", "test.ping"]).exits(0);
    assert_eq!(output.json(), json!({"web1": true}));
    let path = saltfile.display().to_string();
    let output = run_with(&program("salt-key"), &["-L"], &[("SALT_SALTFILE", &path)]).exits(0);
    assert!(output.stdout.contains("web1"), "{output:?}");
    // In a default place too, no other user may write it.
    let home = master.path("home");
    std::fs::create_dir_all(home.join(".salt")).expect("our own folder");
    std::fs::copy(&saltfile, home.join(".salt/Saltfile")).expect("our own file");
    let (own, home) = (home.join(".salt/Saltfile"), home.display().to_string());
    let output = run_with(&program("salt-key"), &["-L"], &[("HOME", &home)]).exits(0);
    assert!(output.stdout.contains("web1"), "{output:?}");
    set_mode(&own, 0o666);
    let output = run_with(&program("salt-key"), &["-L"], &[("HOME", &home)]).exits(64);
    assert!(output.stderr.contains("because others may write it"), "{output:?}");
}

/// Another user, who can write only where every user can, such as in /tmp.
const FRED: u32 = 4711;

/// Makes a link of Fred's in a sticky folder that leads to a folder of root's.
fn freds_link(folder: &Path) -> std::path::PathBuf {
    let (shared, private, link) = (folder.join("shared"), folder.join("private"), folder.join("shared/l"));
    for (dir, mode) in [(&shared, 0o1777), (&private, 0o700)] {
        std::fs::create_dir(dir).expect("our own folder");
        set_mode(dir, mode);
    }
    std::os::unix::fs::symlink(&private, &link).expect("our own folder");
    std::os::unix::fs::lchown(&link, Some(FRED), None).expect("root gives it away");
    link
}

/// Sets a setting to a path.
fn set(path: &Path, option: &str, value: &Path) {
    let text = std::fs::read_to_string(path).expect("a configuration");
    let others = text.lines().filter(|line| !line.starts_with(&format!("{option}:")));
    let text: Vec<&str> = others.collect();
    std::fs::write(path, format!("{}\n{option}: {}\n", text.join("\n"), value.display())).expect("our own file");
}

#[test]
fn a_daemon_of_root_writes_nothing_where_another_users_symlink_leads() {
    if !brine_kit::is_root() {
        return; // only root can make files of other users
    }
    for option in ["sock_dir", "cachedir", "pki_dir"] {
        let master = Master::prepare(Kind::Brine, "");
        let link = freds_link(master.folder.path());
        // A short path, because a long sock_dir is moved below cachedir, as in Salt.
        set(&master.path("conf/master"), option, &link.join("s"));
        let refused = run(&program("salt-master"), &["-c", &master.conf()]);
        assert!(refused.stderr.contains("is a symlink of user 4711") && refused.stderr.contains(option), "{refused:?}");
        assert_ne!(refused.code, 0, "{option}");
        assert_eq!(std::fs::read_dir(master.path("private")).expect("ours").count(), 0, "{option}");
    }
    // A log file and a pid file: the daemon can run without them.
    let mut minion = Minion::prepare(Kind::Brine, "web1", 1, "");
    let link = freds_link(minion.folder.path());
    for option in ["log_file", "pidfile"] {
        set(&minion.path("conf/minion"), option, &link.join(option));
    }
    minion.up();
    let daemon = minion.running();
    daemon.wait_log("starts; its master is");
    assert_eq!(daemon.log_text().matches("is a symlink of user 4711").count(), 2, "{}", daemon.log_text());
    assert_eq!(std::fs::read_dir(minion.path("private")).expect("ours").count(), 0);
}

#[test]
fn salt_says_permission_to_who_has_none() {
    use std::os::unix::process::CommandExt as _;
    if !brine_kit::is_root() || !others_reach(&program_folder()) {
        return; // only root can become another user
    }
    let mut master = Master::prepare(Kind::Brine, "");
    set_mode(master.folder.path(), 0o755);
    master.up();
    for (name, args) in [("salt", ["*", "test.ping"]), ("salt-run", ["manage.up", "timeout=1"])] {
        let mut command = std::process::Command::new(program(name));
        command.args(["-c", &master.conf()]).args(args).uid(FRED).gid(FRED).env("HOME", "/").current_dir("/");
        let output = command.output().expect("it runs");
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(said.contains("Permission denied") && !said.contains("Is master running"), "{name}: {said}");
        assert_eq!(output.status.code(), Some(1), "{name}: {said}");
    }
}
