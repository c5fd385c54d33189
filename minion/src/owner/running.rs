//! What runs now on this host, and what it uses: asked for only while somebody looks.
//!
//! The minion and each `salt-call` run jobs. Each answers on a socket of its own in `proc.running/`, which only the minion's user may
//! enter, with the calls that its sandbox runs. Who looks reads the records of jobs in `proc/`, and asks the processes that they name.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use brine_protocol::msgpack;
use brine_protocol::text;
use brine_protocol::value::{Value, ValueExt, map};
use brine_sandbox::{RunningCall, Sandbox};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinHandle;
use tracing::debug;

use crate::jobs::{MASTER, PID, ProcDir, SALT_CALL};

/// The end of the folder's name, which begins with that of the records' folder.
const SUFFIX: &str = ".running";
/// Time for one question, in which the sandbox asks its executors.
const ANSWER: Duration = Duration::from_secs(2);
/// Bytes of an answer: a call takes some 200, and four thousand where a master chose its names so that no answer would be whole.
const ANSWER_MAX: u64 = 16 << 20;
/// Jobs and calls of an answer, and processes that are asked.
const JOBS_MAX: usize = 1_000;
const CALLS_MAX: usize = 4_096;
const PROCESSES_MAX: usize = 32;
/// Characters of a name.
const NAME_MAX: usize = 128;

/// Answers other processes of this host until it is dropped.
#[derive(Debug)]
pub(crate) struct Answering {
    path: PathBuf,
    task: JoinHandle<()>,
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.task.abort();
        let _ = fs::remove_file(&self.path);
    }
}

/// Answers who asks what this process runs. None if there can be no socket: then its jobs are listed without what they use.
pub(crate) fn answer(procs: &ProcDir, sandbox: &Arc<Sandbox>) -> Option<Answering> {
    let folder = folder(procs);
    if let Err(error) = crate::spare_files::private_dir(&folder) {
        debug!("{}: {error}", folder.display());
        return None;
    }
    let path = folder.join(std::process::id().to_string());
    // Of an earlier process with this number.
    let _ = fs::remove_file(&path);
    sweep(&folder);
    let listener = match bind(&path) {
        Ok(listener) => listener,
        Err(error) => {
            debug!("{}: {error}", path.display());
            return None;
        }
    };
    let sandbox = Arc::downgrade(sandbox);
    let task = tokio::spawn(async move {
        loop {
            let Ok((mut stream, _)) = listener.accept().await else {
                // No more open files.
                tokio::time::sleep(ANSWER).await;
                continue;
            };
            let Some(sandbox) = sandbox.upgrade() else { return };
            let calls = sandbox.running().await;
            drop(sandbox);
            let said = Value::Array(calls.iter().take(CALLS_MAX).map(of_call).collect());
            // Who does not read what he asked for keeps the next one waiting for a moment only.
            let _ = tokio::time::timeout(ANSWER, stream.write_all(&msgpack::encode_network(&said))).await;
        }
    });
    Some(Answering { path, task })
}

/// The folder of the sockets, each named by its process.
fn folder(procs: &ProcDir) -> PathBuf {
    let mut name = procs.path().file_name().unwrap_or_default().to_owned();
    name.push(SUFFIX);
    procs.path().with_file_name(name)
}

/// Removes the sockets of processes that were killed.
fn sweep(folder: &Path) {
    for item in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = item.file_name();
        let pid = name.to_str().and_then(|name| name.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists()) {
            let _ = fs::remove_file(item.path());
        }
    }
}

/// A socket's name has a hundred bytes at most, and the folder's path may be longer: it is named by its open directory.
fn bind(path: &Path) -> io::Result<UnixListener> {
    by_short_name(path, |short| UnixListener::bind(short))
}

fn by_short_name<T>(path: &Path, open: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    use std::os::fd::AsRawFd as _;
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let folder = fs::File::open(folder)?;
    open(&Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name))
}

/// A call as its process tells it to others.
fn of_call(call: &RunningCall) -> Value {
    let count = |n: u128| Value::from(u64::try_from(n).unwrap_or(u64::MAX));
    let or_nil = |known: Option<u64>| known.map_or(Value::Nil, Value::from);
    let name = |name: &str| Value::from(text::short(name, NAME_MAX));
    let mut said = map([
        ("jid", Value::from(call.job.jid.as_str())),
        ("function", name(&call.job.function)),
        ("called_by", call.job.called_by.as_deref().map_or(Value::Nil, name)),
        ("ms", count(call.elapsed.as_millis())),
        ("ms_max", Value::from(call.wall_ms)),
        ("memory", or_nil(call.memory)),
        ("memory_max", Value::from(call.memory_max)),
        ("cpu_ms", call.cpu.map_or(Value::Nil, |cpu| count(cpu.as_millis()))),
        ("cpu_ms_max", Value::from(call.cpu_ms)),
    ]);
    if let Some(state) = &call.job.state {
        said.insert("state", name(&state.id));
    }
    said
}

/// Asks another process.
async fn ask(path: &Path) -> io::Result<Vec<Value>> {
    let stream = by_short_name(path, |short| {
        let stream = std::os::unix::net::UnixStream::connect(short)?;
        stream.set_nonblocking(true)?;
        UnixStream::from_std(stream)
    })?;
    let mut bytes = Vec::new();
    let read = async { stream.take(ANSWER_MAX).read_to_end(&mut bytes).await };
    tokio::time::timeout(ANSWER, read).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    let odd = |_| io::Error::from(io::ErrorKind::InvalidData);
    match msgpack::decode(&bytes, &msgpack::Limits::DISK).map_err(odd)? {
        Value::Array(calls) => Ok(calls),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// The answer of `sandbox.running`: the jobs that run on this host but this one, with their calls. A master sees its own jobs.
pub(crate) async fn list(procs: &Arc<ProcDir>, sandbox: &Sandbox, master: Option<&str>, except: &str) -> Value {
    let records = {
        let (procs, master, except) = (Arc::clone(procs), master.map(str::to_owned), except.to_owned());
        // Reads one file for each job.
        tokio::task::spawn_blocking(move || procs.running_of(master.as_deref(), &except)).await.unwrap_or_default()
    };
    let mut calls: HashMap<(u64, String), Vec<Value>> = HashMap::new();
    let pids: BTreeSet<u64> = records.iter().filter_map(|job| job.get_u64(PID)).collect();
    for pid in pids.into_iter().take(PROCESSES_MAX) {
        let said = if pid == u64::from(std::process::id()) {
            sandbox.running().await.iter().map(of_call).collect()
        } else {
            let path = folder(procs).join(pid.to_string());
            // A process that ends meanwhile, or one of an earlier version, tells nothing.
            ask(&path).await.unwrap_or_else(|error| {
                debug!("{}: {error}", path.display());
                Vec::new()
            })
        };
        for call in said.into_iter().take(CALLS_MAX) {
            if let Some(jid) = call.get_text("jid") {
                calls.entry((pid, jid.to_owned())).or_default().push(shown_call(&call));
            }
        }
    }
    let jobs = records.iter().take(JOBS_MAX).map(|job| {
        let of = |key: &str| text::short(job.get_text(key).unwrap_or_default(), NAME_MAX);
        let (pid, jid) = (job.get_u64(PID).unwrap_or_default(), of("jid"));
        let functions = match job.get("fun") {
            Some(Value::Array(all)) => {
                all.iter().take(JOBS_MAX).filter_map(ValueExt::text).collect::<Vec<_>>().join(", ")
            }
            one => one.and_then(ValueExt::text).unwrap_or_default().to_owned(),
        };
        // What a master publishes says what it likes of its target.
        let own = job.get_text("tgt") == Some(SALT_CALL) && job.get_text(MASTER).is_none();
        map([
            ("function", Value::from(text::short(&functions, NAME_MAX))),
            ("user", Value::from(of("user"))),
            ("from", Value::from(if own { SALT_CALL } else { "master" })),
            ("master", job.get_text(MASTER).map_or(Value::Nil, Value::from)),
            ("pid", Value::from(pid)),
            ("calls", Value::Array(calls.remove(&(pid, jid.clone())).unwrap_or_default())),
            ("jid", Value::from(jid)),
        ])
    });
    Value::Array(jobs.collect())
}

/// A call without its jid, and with nothing but what one has.
fn shown_call(call: &Value) -> Value {
    let name = |key: &str| call.get_text(key).map_or(Value::Nil, |name| Value::from(text::short(name, NAME_MAX)));
    let number = |key: &str| call.get_u64(key).map_or(Value::Nil, Value::from);
    let names = ["function", "called_by", "state"].map(|key| (key, name(key)));
    let numbers = ["ms", "ms_max", "memory", "memory_max", "cpu_ms", "cpu_ms_max"].map(|key| (key, number(key)));
    map(names.into_iter().chain(numbers).filter(|(key, value)| *key != "state" || !value.is_nil()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        // Longer than the name of a socket may be.
        let procs = ProcDir::open(&dir.path().join("p".repeat(200)), false).unwrap();
        let folder = folder(&procs);
        crate::spare_files::private_dir(&folder).unwrap();
        (dir, folder)
    }

    #[tokio::test]
    async fn a_process_is_asked_by_a_name_of_any_length_and_its_answer_is_bounded() {
        let (_dir, folder) = opened();
        let path = folder.join("1");
        assert!(ask(&path).await.is_err(), "nobody answers");
        let listener = bind(&path).unwrap();
        let one = map([("jid", Value::from("1")), ("function", Value::from("x".repeat(1_000)))]);
        let good = msgpack::encode_network(&Value::Array(vec![one]));
        let endless = vec![0x90; 2 << 20];
        for (said, calls) in [(good, Some(1)), (b"\xc1".to_vec(), None), (b"\x01".to_vec(), None), (endless, None)] {
            let serve = async {
                let (mut stream, _) = listener.accept().await.unwrap();
                // It is closed on before all was written where the answer is too long.
                let _ = stream.write_all(&said).await;
            };
            let (answer, ()) = tokio::join!(ask(&path), serve);
            assert_eq!(answer.ok().map(|calls| calls.len()), calls);
        }
    }

    #[test]
    fn sockets_of_processes_that_were_killed_go() {
        let (_dir, folder) = opened();
        let file = |name: String| {
            let path = folder.join(name);
            fs::write(&path, "").unwrap();
            path
        };
        let (own, dead) = (file(std::process::id().to_string()), file(u32::MAX.to_string()));
        let other = file("notes".to_owned());
        sweep(&folder);
        assert!(own.exists() && other.exists() && !dead.exists());
    }

    /// A master names its states, and must not hide by it what runs.
    #[test]
    fn names_do_not_make_an_answer_too_long() {
        let mut job = brine_kit_sandbox::job("20260102030405678901", &"f".repeat(1 << 20));
        job.called_by = Some("c".repeat(1 << 20));
        job.state = Some(brine_sandbox::StateContext { id: "\u{1}".repeat(256 << 10), ..Default::default() });
        let call = RunningCall {
            job: Arc::new(job),
            number: 1,
            elapsed: Duration::from_secs(1),
            wall_ms: 1,
            cpu_ms: 1,
            memory: None,
            memory_max: 1,
            cpu: None,
        };
        let said = msgpack::encode_network(&of_call(&call));
        assert!((said.len() * CALLS_MAX) as u64 <= ANSWER_MAX, "{}", said.len());
    }

    #[test]
    fn what_another_process_says_of_a_call_is_cut_to_what_a_call_has() {
        let long = "y".repeat(1_000);
        let said = map([
            ("function", Value::from(long.as_str())),
            ("memory", Value::from("much")),
            ("cpu_ms", Value::from(7)),
            ("other", Value::from(long.as_str())),
        ]);
        let shown = shown_call(&said);
        assert!(shown.get_text("function").unwrap().chars().count() <= NAME_MAX + 1);
        assert_eq!(
            (shown.get("memory"), shown.get_u64("cpu_ms"), shown.get("other")),
            (Some(&Value::Nil), Some(7), None)
        );
    }
}
