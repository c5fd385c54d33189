//! Tests with real programs of the machine.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use brine_kit::is_root;
use brine_protocol::value::{Value, ValueExt};
use brine_sandbox::{Caller, Grants, HostError, JobContext, Names, ProcessGrant, ProcessOp, ProcessRun, Sha256Hex};

use super::Processes;

mod allowed;
mod ending;
mod outcome;
mod surroundings;
mod users;

const ANY: fn() -> ProcessGrant = || ProcessGrant {
    programs: Names::Any,
    users: Names::Any,
    groups: Names::Any,
    env: Names::Any,
    cwd: Names::Any,
    ..ProcessGrant::default()
};

fn only(programs: &[&str]) -> ProcessGrant {
    ProcessGrant { programs: names(programs), ..ProcessGrant::default() }
}

fn names(names: &[&str]) -> Names {
    Names::Only(names.iter().map(ToString::to_string).collect())
}

fn caller(process: ProcessGrant) -> Caller {
    let mut grants = Grants::default();
    grants.process = process;
    let job = JobContext {
        jid: "20260101000000000000".into(),
        function: "cmd.run".into(),
        user: "root".into(),
        minion_id: "m1".into(),
        test: false,
        master: None,
        timeout_ms: None,
        called_by: None,
    };
    let module = "cmd".parse().unwrap();
    Caller::new(Arc::new(job), module, Sha256Hex::from([0; 32]), Arc::new(grants), Duration::from_secs(60))
}

fn argv(argv: &[&str]) -> ProcessRun {
    ProcessRun { argv: argv.iter().map(ToString::to_string).collect(), ..ProcessRun::default() }
}

fn sh(script: &str) -> ProcessRun {
    argv(&["/bin/sh", "-c", script])
}

async fn run_with(process: ProcessGrant, asked: ProcessRun) -> Result<Value, HostError> {
    Processes::new().answer(&caller(process), ProcessOp::Run(Box::new(asked))).await
}

async fn run(asked: ProcessRun) -> Value {
    run_with(ANY(), asked).await.unwrap()
}

async fn refused(asked: ProcessRun) -> String {
    match run_with(ANY(), asked).await {
        Err(HostError::Failed(why)) => why,
        other => panic!("{other:?}"),
    }
}

fn bytes<'a>(value: &'a Value, key: &str) -> &'a [u8] {
    value.get(key).unwrap().bytes().unwrap()
}

fn stdout(value: &Value) -> String {
    String::from_utf8_lossy(bytes(value, "stdout")).into_owned()
}

fn number(value: &Value, key: &str) -> Option<i64> {
    value.get(key).unwrap().as_i64()
}

/// A folder that only its owner can write, whatever the umask is.
fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    dir
}

fn script(path: &Path, text: &str, mode: u32) -> String {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Polls until a condition outside of the test is true.
async fn until(what: &str, mut so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !so() {
        assert!(Instant::now() < deadline, "{what}: not within 10 s");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Whether the process exists and is not a zombie.
fn lives(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| !stat.rsplit_once(')').unwrap().1.trim_start().starts_with('Z'))
}

fn exists(pid: i32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

fn read_pid(path: &Path) -> Option<i32> {
    fs::read_to_string(path).ok().filter(|text| text.ends_with('\n'))?.trim().parse().ok()
}
