//! The program: flags, errors, exit codes and signals.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::harness::TestMaster;

#[expect(clippy::disallowed_methods, reason = "the program under test")]
fn salt_master(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_salt-master"));
    command.arg("-c").arg(dir).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
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

fn fails(dir: &Path, flags: &[&str]) -> (Option<i32>, String) {
    let mut child = salt_master(dir).args(flags).spawn().unwrap();
    let code = wait(&mut child);
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    (Some(code), said)
}

fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

fn wait(child: &mut Child) -> i32 {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code().unwrap_or(-1);
        }
        if Instant::now() > deadline {
            let _ = child.kill();
            panic!("it does not end");
        }
        std::thread::yield_now();
    }
}

#[test]
fn it_starts_and_stops_at_a_signal() {
    let dir = tempfile::tempdir().unwrap();
    for name in [rustix::process::Signal::TERM, rustix::process::Signal::INT] {
        config(dir.path(), "");
        let mut child = salt_master(dir.path()).args(["-l", "info"]).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("answers on tcp://127.0.0.1:")));
        assert_eq!(std::fs::read_to_string(dir.path().join("pid")).unwrap(), child.id().to_string());
        // A second master with the same configuration fails with a message.
        let (code, said) = fails(dir.path(), &[]);
        assert_eq!(code, Some(1));
        assert!(said.contains(&format!("already running (pid {}", child.id())), "{said}");
        signal(child.id(), name);
        assert_eq!(wait(&mut child), 0);
        assert!(!dir.path().join("pid").exists());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn it_goes_to_the_background_when_it_answers() {
    let dir = tempfile::tempdir().unwrap();
    config(dir.path(), "");
    let run = salt_master(dir.path()).arg("-d").output().unwrap();
    assert_eq!(run.status.code(), Some(0), "{}", String::from_utf8_lossy(&run.stderr));
    let pid: u32 = std::fs::read_to_string(dir.path().join("pid")).unwrap().parse().unwrap();
    assert!(dir.path().join("sock/master_event_pub.ipc").exists());
    assert_ne!(pid, std::process::id());
    signal(pid, rustix::process::Signal::TERM);
    let deadline = Instant::now() + Duration::from_secs(30);
    while dir.path().join("pid").exists() {
        assert!(Instant::now() < deadline, "it does not end");
        tokio::task::yield_now().await;
    }
    // The foreground process prints errors from before that point.
    config(dir.path(), "keysize: 7");
    let (code, said) = fails(dir.path(), &["-d"]);
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
    let (code, said) = fails(dir.path(), &[]);
    assert_eq!(code, Some(4), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains(&port.to_string()) && said.contains("another salt-master running"), "{said}");
    assert!(!dir.path().join("sock/master_event_pub.ipc").exists(), "nothing of a running master is touched");
}

#[test]
fn mistakes_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let (code, said) = fails(&dir.path().join("gone"), &[]);
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
        let (got, said) = fails(dir.path(), &[]);
        assert_eq!(got, Some(code), "{lines}: {said}");
        assert!(
            words.iter().all(|word| said.contains(word)) && said.trim_end().lines().count() == 1,
            "{lines}: {said}"
        );
    }
    config(dir.path(), "");
    let (code, said) = fails(dir.path(), &["--user", "no-such-user"]);
    assert_eq!(code, Some(67), "{said}");
    std::fs::create_dir(dir.path().join("pki")).unwrap();
    std::fs::write(dir.path().join("pki/master.pem"), "rubbish").unwrap();
    let (code, said) = fails(dir.path(), &[]);
    assert_eq!(code, Some(1));
    assert!(said.contains("master.pem") && said.contains("restore the file"), "{said}");
    let (code, said) = fails(dir.path(), &["--no-such-flag"]);
    assert_ne!(code, Some(0));
    assert!(said.contains("--no-such-flag"), "{said}");
}
