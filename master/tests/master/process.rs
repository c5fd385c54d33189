//! The program: flags, errors, exit codes and signals.

use std::path::Path;

use brine_kit::process::{Daemon, signal};
use brine_kit::wait::until;

use super::harness::TestMaster;

/// Starts the program. Its log is outside of its folder, which may be missing.
fn salt_master(dir: &Path, flags: &[&str]) -> (Daemon, tempfile::NamedTempFile) {
    let log = tempfile::NamedTempFile::new().unwrap();
    let args = [&["-c", dir.to_str().unwrap()], flags].concat();
    (Daemon::start(Path::new(env!("CARGO_BIN_EXE_salt-master")), &args, log.path()), log)
}

fn config(dir: &Path, lines: &str) {
    let top = dir.display();
    let user = "root";
    let text = format!(
        "interface: 127.0.0.1\npublish_port: 0\nret_port: 0\npki_dir: {top}/pki\ncachedir: {top}/cache\nsock_dir: {top}/sock\n\
         pidfile: {top}/pid\nmax_open_files: 64\nlog_file: {top}/log\nuser: {user}\n{lines}\n"
    );
    std::fs::write(dir.join("master"), text).unwrap();
}

/// Runs the program to its end. Returns its exit code and what it printed.
fn run(dir: &Path, flags: &[&str]) -> (Option<i32>, String) {
    let (mut master, _log) = salt_master(dir, flags);
    (master.wait_exit().code(), master.log_text())
}

#[test]
fn it_starts_and_stops_at_a_signal() {
    let dir = tempfile::tempdir().unwrap();
    for name in [rustix::process::Signal::TERM, rustix::process::Signal::INT] {
        config(dir.path(), "");
        let (mut master, _log) = salt_master(dir.path(), &["-l", "info"]);
        master.wait_log("answers on tcp://127.0.0.1:");
        assert_eq!(std::fs::read_to_string(dir.path().join("pid")).unwrap(), master.pid().to_string());
        // A second master with the same configuration fails with a message.
        let (code, said) = run(dir.path(), &[]);
        assert_eq!(code, Some(1));
        assert!(said.contains(&format!("already running (pid {}", master.pid())), "{said}");
        master.signal(name);
        assert_eq!(master.wait_exit().code(), Some(0));
        assert!(!dir.path().join("pid").exists());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_goes_to_the_background_when_it_answers() {
    let dir = tempfile::tempdir().unwrap();
    config(dir.path(), "");
    let (code, said) = run(dir.path(), &["-d"]);
    assert_eq!(code, Some(0), "{said}");
    let pid: u32 = std::fs::read_to_string(dir.path().join("pid")).unwrap().parse().unwrap();
    assert!(dir.path().join("sock/master_event_pub.ipc").exists());
    assert_ne!(pid, std::process::id());
    signal(pid, rustix::process::Signal::TERM);
    until("its end", || !dir.path().join("pid").exists()).await;
    // The foreground process prints errors from before that point.
    config(dir.path(), "keysize: 7");
    let (code, said) = run(dir.path(), &["-d"]);
    assert_eq!(code, Some(64));
    assert!(said.contains("keysize"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_in_use_is_named_with_what_to_do() {
    let running = TestMaster::start("").await;
    let dir = tempfile::tempdir().unwrap();
    let port = running.server().request_endpoint().port().unwrap();
    config(dir.path(), "");
    let text = std::fs::read_to_string(dir.path().join("master")).unwrap();
    let text = text.replacen("ret_port: 0", &format!("ret_port: {port}"), 1);
    std::fs::write(dir.path().join("master"), text).unwrap();
    let (code, said) = run(dir.path(), &[]);
    assert_eq!(code, Some(4), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains(&port.to_string()) && said.contains("another salt-master running"), "{said}");
    assert!(!dir.path().join("sock/master_event_pub.ipc").exists(), "nothing of a running master is touched");
}

#[test]
fn mistakes_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let (code, said) = run(&dir.path().join("gone"), &[]);
    assert!(code == Some(64) && said.contains("gone does not exist") && said.lines().count() == 1, "{code:?} {said}");
    for (lines, code, words) in [
        ("file_buffer_size: many", 64, &["file_buffer_size"][..]),
        ("publish_port: 70000", 64, &["publish_port"]),
        ("hash_type: md5", 64, &["hash_type", "sha256"]),
        ("file_ignore_regex: ['(']", 64, &["file_ignore_regex"]),
        ("a: [", 64, &["master"]),
        ("event_publisher_framing: x", 64, &["event_publisher_framing", "bare"]),
    ] {
        config(dir.path(), lines);
        let (got, said) = run(dir.path(), &[]);
        assert_eq!(got, Some(code), "{lines}: {said}");
        assert!(
            words.iter().all(|word| said.contains(word)) && said.trim_end().lines().count() == 1,
            "{lines}: {said}"
        );
    }
    config(dir.path(), "");
    let (code, said) = run(dir.path(), &["--user", "no-such-user"]);
    assert_eq!(code, Some(67), "{said}");
    std::fs::create_dir(dir.path().join("pki")).unwrap();
    std::fs::write(dir.path().join("pki/master.pem"), "rubbish").unwrap();
    let (code, said) = run(dir.path(), &[]);
    assert_eq!(code, Some(1));
    assert!(said.contains("master.pem") && said.contains("restore the file"), "{said}");
    let (code, said) = run(dir.path(), &["--no-such-flag"]);
    assert_ne!(code, Some(0));
    assert!(said.contains("--no-such-flag"), "{said}");
}
