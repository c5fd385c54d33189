//! The beacon `journald` beside a journal of the test's own.

use std::path::Path;

use brine_kit::programs::program;
use brine_kit::wait::wait_for;
use brine_tests::namespace::MountNamespace;
use brine_tests::salt::{Kind, Master, Minion};
use serde_json::{Value, json};

const DAEMON: &str = "/lib/systemd/systemd-journald";
/// Neither the host's journal nor its kernel's log is in it.
const MOUNT: &str = "mount --make-rprivate / && mount -t tmpfs -o mode=0755 brine-journal /run && \
                     mkdir -p /run/systemd/journald.conf.d /run/log/journal && \
                     printf '[Journal]\\nStorage=volatile\\nReadKMsg=no\\nAudit=no\\nForwardToSyslog=no\\nRateLimitBurst=0\\n' \
                     > /run/systemd/journald.conf.d/own.conf";
const CONFIG: &str = "beacons:\n  journald:\n    - interval: 1\n    - services:\n        web: {SYSLOG_IDENTIFIER: brine-web}\n        \
                      urgent: {SYSLOG_IDENTIFIER: brine-web, PRIORITY: 3}\n\
                      sandbox: {modules: {journald.beacons: {process: [/usr/bin/journalctl]}}}\n";

#[test]
fn entries_of_the_journal_are_told_as_journalctl_shows_them() {
    if !Path::new(DAEMON).exists() || !Path::new("/usr/bin/systemd-cat").exists() {
        return brine_kit::missing("systemd-journald", "install systemd");
    }
    if !brine_kit::is_root() {
        return;
    }
    let Some(host) = MountNamespace::new(MOUNT, &[]) else { return };
    let master = Master::start("");
    let events = master.events();
    let mut minion = Minion::prepare(Kind::Brine, "web1", master.ret_port, CONFIG);
    let journald = host.daemon(Path::new(DAEMON), &[], &minion.path("journald.out"));
    wait_for("the journal's socket", || host.inside(Path::new("/run/systemd/journal/stdout")).exists().then_some(()));
    let write = |identifier: &str, priority: &str, text: &str| {
        let words = ["--identifier", identifier, "--priority", priority, "echo", text];
        host.run(Path::new("systemd-cat"), &words).exits(0);
    };
    write("brine-web", "info", "before the minion");
    master.accept_with(&mut minion, |minion| {
        let words = ["-c", &minion.conf(), "-l", "debug"];
        minion.daemon = Some(host.daemon(&program("salt-minion"), &words, &minion.path("minion.out")));
    });
    let told = |service: &str| -> Vec<Value> {
        let tag = format!("salt/beacon/web1/journald/{service}");
        events.all().into_iter().filter(|(of, _)| *of == tag).map(|(_, data)| data).collect()
    };
    // The first look only finds where the journal ends.
    let mut tries = 0;
    let first = wait_for("a first event", || {
        tries += 1;
        write("brine-web", "info", &format!("try {tries}"));
        told("web").into_iter().next()
    });
    assert!(first["MESSAGE"].as_str().is_some_and(|text| text.starts_with("try ")), "{first}");
    write("brine-other", "info", "not asked for");
    write("brine-web", "err", "one that fails: \u{e4}\u{1f512} \"quoted\"");
    // A rotation by the daemon: what was before is not told again, and what comes after is.
    host.run(Path::new("journalctl"), &["--rotate"]).exits(0);
    for n in 0..10 {
        write("brine-web", "notice", &format!("after the rotation {n}"));
    }
    wait_for("the last entry", || {
        told("web").iter().any(|data| data["MESSAGE"] == "after the rotation 9").then_some(())
    });
    let urgent = told("urgent");
    assert_eq!(urgent.len(), 1, "{urgent:?}");
    // Each entry since the first that was told, once and in order, as journalctl has it.
    let shown =
        host.run(Path::new("journalctl"), &["--output=json", "--no-pager", "SYSLOG_IDENTIFIER=brine-web"]).exits(0);
    let entries: Vec<Value> = shown.stdout.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let from = entries.iter().position(|entry| entry["MESSAGE"] == first["MESSAGE"]).expect("it is there");
    let told = told("web");
    assert!(from > 0 && entries.len() - from > 10, "{from} of {}", entries.len());
    assert_eq!(told.len(), entries.len() - from, "{told:?}");
    for (event, entry) in told.iter().zip(&entries[from..]) {
        let text = |key: &str| entry[key].as_str().unwrap_or_else(|| panic!("no {key} in {entry}")).to_owned();
        let number = |key: &str| json!(text(key).parse::<i64>().expect("a number"));
        for key in ["MESSAGE", "SYSLOG_IDENTIFIER", "_TRANSPORT", "_HOSTNAME"] {
            assert_eq!(event[key], entry[key], "{key}");
        }
        for key in ["PRIORITY", "_PID", "_UID", "_GID"] {
            assert_eq!(event[key], number(key), "{key}");
        }
        let boot = text("_BOOT_ID");
        let parts = [&boot[..8], &boot[8..12], &boot[12..16], &boot[16..20], &boot[20..]];
        assert_eq!(event["_BOOT_ID"], json!(format!("UUID('{}')", parts.join("-"))));
        let fields = |value: &Value| value.as_object().expect("a dict").keys().cloned().collect::<Vec<_>>();
        let odd: Vec<String> = fields(event).into_iter().filter(|key| entry[key].is_null()).collect();
        assert!(odd.iter().all(|key| ["id", "_stamp"].contains(&key.as_str())), "{odd:?}");
        let left: Vec<String> = fields(entry).into_iter().filter(|key| event[key].is_null()).collect();
        assert!(left.is_empty(), "{left:?}");
    }
    drop(minion);
    drop(journald);
}
