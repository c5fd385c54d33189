//! brine-pam against PAM itself, with services of the test's own in /etc/pam.d. Where they cannot be made, or `pam_exec` is not there, the
//! tests fail: nobody would notice that CVE-2022-22967 is not tested any more. `BRINE_TEST_WITHOUT_PAM=1` leaves them out, for who works on
//! something else where there is no PAM.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test starts the program that it tests"
)]

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What stands in for a directory of users: `nobody` with a password, `daemon` with one and a locked account.
const SCRIPT: &str = r#"#!/bin/sh
case "$PAM_TYPE" in
auth)
  password=$(tr -d '\0')
  [ "$PAM_USER:$password" = "nobody:right password" ] || [ "$PAM_USER:$password" = "daemon:right password" ] ;;
account) [ "$PAM_USER" = nobody ] ;;
esac
"#;

const LEAVE_OUT: &str = "set BRINE_TEST_WITHOUT_PAM=1 to leave it out";

/// A PAM service that is there until the test ends.
struct Service {
    path: PathBuf,
    _dir: tempfile::TempDir,
}

impl Service {
    /// None where whoever runs the tests left PAM out.
    fn new(name: &str, lines: &str) -> Option<Self> {
        if std::env::var_os("BRINE_TEST_WITHOUT_PAM").is_some() {
            eprintln!("nothing is tested: BRINE_TEST_WITHOUT_PAM is set");
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("check");
        std::fs::write(&script, SCRIPT).unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        let path = Path::new("/etc/pam.d").join(format!("brine-test-{name}-{}", std::process::id()));
        let has_exec = ["/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib", "/lib"]
            .iter()
            .any(|lib| Path::new(lib).join("security/pam_exec.so").exists());
        assert!(has_exec, "PAM cannot be tested: there is no pam_exec here (Debian's libpam-modules); {LEAVE_OUT}");
        let lines = lines.replace("CHECK", &format!("pam_exec.so quiet expose_authtok {}", script.display()));
        if let Err(error) = std::fs::write(&path, lines) {
            panic!(
                "PAM cannot be tested: {} cannot be written: {error}; run this as root, or {LEAVE_OUT}",
                path.display()
            );
        }
        Some(Self { path, _dir: dir })
    }

    fn name(&self) -> &str {
        self.path.file_name().unwrap().to_str().unwrap()
    }

    /// Exit code and groups.
    fn ask(&self, name: &str, password: &str) -> (i32, Vec<String>) {
        ask(&format!("{}\0{name}\0{password}", self.name()))
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn ask(input: &str) -> (i32, Vec<String>) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_brine-pam"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let why = String::from_utf8(output.stderr).unwrap();
    eprintln!("{why}");
    assert!(!why.contains("password\""), "no password is told");
    assert_eq!(output.status.success(), why.is_empty());
    let groups = String::from_utf8(output.stdout).unwrap();
    (output.status.code().unwrap(), groups.split_terminator('\0').map(str::to_owned).collect())
}

#[test]
fn cve_2022_22967_a_password_and_an_account_that_may_be_used() {
    let Some(service) = Service::new("both", "auth required CHECK\naccount required CHECK\n") else { return };
    let (code, groups) = service.ask("nobody", "right password");
    assert_eq!(code, 0);
    assert!(!groups.is_empty(), "the groups are the system's");
    for (name, password) in
        [("nobody", "wrong"), ("nobody", ""), ("nobody", "right password "), ("root", "right password"), ("eve", "x")]
    {
        let (code, groups) = service.ask(name, password);
        // pam_exec says that the system failed when its program says no.
        assert!(code != 0 && groups.is_empty(), "{name} {password:?}: {code}");
    }
    // CVE-2022-22967: the right password of an account that is locked.
    assert_ne!(service.ask("daemon", "right password").0, 0);
}

#[test]
fn who_is_let_in_by_anything_is_let_in() {
    let Some(permit) = Service::new("permit", "auth required pam_permit.so\naccount required pam_permit.so\n") else {
        return;
    };
    assert_eq!(permit.ask("nobody", "anything").0, 0, "so the refusals of the others are PAM's");
    let Some(locked) = Service::new("deny", "auth required pam_permit.so\naccount required pam_deny.so\n") else {
        return;
    };
    assert_eq!(locked.ask("nobody", "anything").0, 1);
    // Users whom only PAM knows are in no group.
    assert_eq!(permit.ask("nobody-of-this-name", "x"), (0, vec![]));
}

#[test]
fn what_is_no_request_is_trouble() {
    for input in [
        "",
        "login",
        "login\0nobody",
        "login\0nobody\0pw\0more",
        "\0nobody\0pw",
        "../passwd\0nobody\0pw",
        "login\0\0pw",
    ] {
        assert_eq!(ask(input), (2, vec![]), "{input:?}");
    }
}
