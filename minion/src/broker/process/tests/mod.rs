//! Tests with real programs of the machine.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use brine_kit::files::{mode, set_mode};
use brine_kit::is_root;
use brine_kit::process::{exists, lives};
use brine_kit::wait::Deadline;
use brine_kit_sandbox::job;
use brine_protocol::value::{Value, ValueExt};
use brine_sandbox::{Caller, Grants, HostError, Names, ProcessGrant, ProcessOp, ProcessRun};

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

/// The deadline for what the end of a job ends.
const SOON: Duration = Duration::from_secs(10);

fn only(programs: &[&str]) -> ProcessGrant {
    ProcessGrant { programs: names(programs), ..ProcessGrant::default() }
}

fn names(names: &[&str]) -> Names {
    Names::Only(names.iter().map(ToString::to_string).collect())
}

fn caller(process: ProcessGrant) -> Caller {
    let mut grants = Grants::default();
    grants.process = process;
    brine_kit_sandbox::caller(job("20260101000000000000", "cmd.run"), "cmd", grants)
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
    set_mode(dir.path(), 0o755);
    dir
}

fn script(path: &Path, text: &str, mode: u32) -> String {
    fs::write(path, text).unwrap();
    set_mode(path, mode);
    path.to_str().unwrap().to_owned()
}

fn read_pid(path: &Path) -> Option<i32> {
    fs::read_to_string(path).ok().filter(|text| text.ends_with('\n'))?.trim().parse().ok()
}
