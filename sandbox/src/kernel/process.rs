//! Starts one executor process: with one end of a socket pair as its standard input and nothing else, behind the walls
//! that its modules' direct grants allow.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use brine_sandbox_walls::{Cgroup, KeptDirectory, Spec, Walls};
use brine_sandbox_wire::{Connection, DirectGrants, FromExecutor, Receiver, Sender, ToExecutor, VERSION};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, ChildStderr};

use crate::kernel::cgroup::{Group, GroupBounds, Groups};
use crate::kernel::spawn::{Start, spawn};
use crate::kernel::user::{self, User};

/// Time from the start to `Ready`. It takes milliseconds, longer on a machine that swaps.
const READY: Duration = Duration::from_secs(10);
/// Bound on the bytes of one line on the executor's standard error, and on the lines in one life. Engine warnings and a
/// panic fit.
const MAX_LINE: u64 = 2_048;
const MAX_LINES: usize = 200;
/// Processes and threads of the sandbox's own user, over all executors.
const MAX_THREADS: u64 = 4_096;
/// Threads of one executor.
const THREADS: u64 = 512;
/// Memory of an executor beside its instances: the engine, modules, messages.
const MEMORY: u64 = 768 << 20;
/// Memory of a running call beside its instance's memory: a stack and messages.
const MEMORY_PER_CALL: u64 = 8 << 20;
/// The same for a call that waits for something outside: an equal stack, of which it touches little.
const MEMORY_PER_WAITING: u64 = 3 << 20;

/// The executor's program and how to start it.
#[derive(Debug, Clone)]
pub(crate) struct ExecutorProgram {
    pub(crate) path: PathBuf,
    /// Calls that may have begun in it at the same time. Further calls wait in the minion.
    pub(crate) max_running: usize,
    /// How many of these may compute at the same time.
    pub(crate) computing: usize,
    /// Bytes of memory of all instances together.
    pub(crate) memory: u64,
    /// The process's user. None: the minion's own user.
    pub(crate) user: Option<User>,
    /// Whether an executor with an incomplete second wall is refused.
    pub(crate) whole: bool,
    /// Control groups, or why there are none.
    pub(crate) groups: Result<Groups, String>,
    /// The running executors.
    pub(crate) living: Living,
}

/// The running executors and the walls around each, for the report.
#[derive(Debug, Clone, Default)]
pub(crate) struct Living {
    processes: Arc<Mutex<BTreeMap<u32, (DirectGrants, Walls)>>>,
    /// The shortcomings that were already logged.
    said: Arc<Mutex<BTreeSet<String>>>,
}

impl Living {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, (DirectGrants, Walls)>> {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Logs what the second wall lacks, once for each shortcoming.
    pub(crate) fn say(&self, lacking: &[String], of: &str) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        for what in lacking {
            if said.insert(what.clone()) {
                tracing::warn!("the second wall around {of} is not whole: {what}");
            }
        }
    }

    /// Says something of the walls around one executor, without a copy of all. None if it does not run.
    pub(crate) fn walls<T>(&self, pid: u32, say: impl FnOnce(&Walls) -> T) -> Option<T> {
        self.lock().get(&pid).map(|(_, walls)| say(walls))
    }

    /// Returns process id, grants and walls of each executor.
    pub(crate) fn all(&self) -> Vec<(u32, DirectGrants, Walls)> {
        self.lock().iter().map(|(pid, (direct, walls))| (*pid, direct.clone(), walls.clone())).collect()
    }
}

/// A running executor that has sent `Ready`.
pub(crate) struct Process {
    pub(crate) child: Child,
    pub(crate) pid: u32,
    pub(crate) sender: Sender<ToExecutor>,
    pub(crate) receiver: Receiver<FromExecutor>,
    /// The executor's end of the socket, which holds the bytes that it has not read yet.
    pub(crate) other_end: OtherEnd,
    /// Keeps the process registered as running.
    pub(crate) life: Life,
}

/// The minion's copy of the executor's end of the socket. While it is open, the connection outlives the process.
pub(crate) struct OtherEnd(OwnedFd);

impl OtherEnd {
    /// Ends the connection after the process has ended. Returns the number of sent bytes that the process had not read.
    pub(crate) fn close(&self) -> u64 {
        let unread = Connection::unread(&self.0).unwrap_or(0);
        Connection::hang_up(&self.0);
        unread
    }
}

/// Registers a process as running. Dropping it removes the registration and the control group.
pub(crate) struct Life {
    living: Living,
    pid: u32,
    _group: Option<Group>,
}

impl Drop for Life {
    fn drop(&mut self) {
        self.living.lock().remove(&self.pid);
    }
}

/// Starts the program and waits until it is ready. An error is one line. The minion sets up the user and the control
/// group; the executor sets up the rest (landlock, seccomp, limits) before `Ready`, from the direct grants of its
/// modules.
pub(crate) async fn start(program: &ExecutorProgram, direct: &DirectGrants) -> Result<Process, String> {
    let path = &program.path;
    let user = match direct.user.as_deref() {
        Some(name) => user::of_a_module(name)?,
        None => program.user.clone(),
    };
    let (spec, left_out) = spec(program, direct, user.as_ref()).await;
    let mut args = vec!["--max-running".to_owned(), program.max_running.to_string()];
    args.extend(spec.options());
    let (connection, theirs) = Connection::pair().map_err(|error| format!("no socket pair: {error}"))?;
    let other_end = theirs.try_clone().map_err(|error| format!("no socket pair: {error}"))?;
    let other_end = OtherEnd(other_end);
    let start = Start { program: path.clone(), args, user: user.clone(), socket: Some(theirs), stdout: false };
    let mut child = spawn(start).await?;
    let pid = child.id().ok_or("it ended at once")?;
    if let Some(stderr) = child.stderr.take() {
        // Ends with the process.
        tokio::spawn(log_lines(pid, stderr));
    }
    let bounds = GroupBounds { memory: spec.memory.unwrap_or(program.memory), pids: THREADS };
    // The process has done nothing yet: it waits for the minion's first message.
    let (group, cgroup) =
        match program.groups.as_ref().map_err(Clone::clone).and_then(|groups| groups.make(pid, bounds)) {
            Ok(group) => {
                let said = group.said.clone();
                (Some(group), said)
            }
            Err(why) => (None, Cgroup::NotAvailable(why)),
        };
    let (sender, mut receiver) = connection.minion();
    let first = tokio::time::timeout(READY, async {
        tokio::select! {
            biased;
            first = receiver.recv() => first,
            _ = child.wait() => {
                other_end.close();
                receiver.recv().await
            }
        }
    });
    let first = first.await;
    let mut walls = match first.map(|received| received.map(|received| received.message)) {
        Ok(Ok(FromExecutor::Ready { version: VERSION, walls, .. })) => walls.bounded(),
        Ok(Ok(FromExecutor::Ready { version, .. })) => {
            return Err(format!("{} speaks version {version} of the protocol, not {VERSION}", path.display()));
        }
        Ok(Ok(other)) => return Err(format!("{} began with {other:?}", path.display())),
        Ok(Err(error)) => {
            let status = end(&mut child).await;
            return Err(format!("{} {} before it was ready ({error})", path.display(), how(status)));
        }
        Err(_) => return Err(format!("{} was not ready within {} s", path.display(), READY.as_secs())),
    };
    if let Ok(status) = std::fs::read_to_string(format!("/proc/{pid}/status")) {
        observe(&status, user.as_ref(), &mut walls);
    }
    walls.cgroup = cgroup;
    walls.notes.extend(left_out);
    let lacking = walls.lacking();
    if program.whole && !lacking.is_empty() {
        return Err(format!(
            "the second wall is not whole, and sandbox: require_second_wall is set: {}",
            lacking.join("; ")
        ));
    }
    program.living.say(&lacking, "an executor");
    program.living.lock().insert(pid, (direct.clone(), walls));
    let life = Life { living: program.living.clone(), pid, _group: group };
    Ok(Process { child, pid, sender, receiver, other_end, life })
}

/// Returns what the executor with these grants may keep, and one line for each directory that it cannot have. The other
/// directories still count.
async fn spec(program: &ExecutorProgram, direct: &DirectGrants, user: Option<&User>) -> (Spec, Vec<String>) {
    let mut spec = Spec::executor();
    let mut left_out = Vec::new();
    for directory in &direct.directories {
        let path = &directory.path;
        match crate::kernel::directories::why_left_out(path).await {
            None => spec.directories.push(KeptDirectory { path: path.clone(), writable: directory.writable }),
            Some(why) => left_out.push(format!("the granted directory {path} {why}: it is left out")),
        }
    }
    spec.connect = direct.network.iter().map(|rule| rule.ports).collect();
    spec.connect.sort_unstable();
    spec.connect.dedup();
    // If other processes have the same user, their number must not count against the executor's bound.
    spec.processes = user.is_some_and(|user| user.own).then_some(MAX_THREADS);
    let computing = program.computing.min(program.max_running) as u64;
    let waiting = program.max_running as u64 - computing;
    let calls = computing * MEMORY_PER_CALL + waiting * MEMORY_PER_WAITING;
    spec.memory = Some(program.memory.saturating_add(calls).saturating_add(MEMORY));
    (spec, left_out)
}

/// Overrides the executor's own report with what the kernel reports about it.
fn observe(status: &str, user: Option<&User>, walls: &mut Walls) {
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next());
    let number = |name: &str| field(name).and_then(|value| value.parse::<u32>().ok());
    if let Some(uid) = number("Uid:") {
        walls.uid = uid;
        if user.is_some_and(|user| user.uid != uid) {
            walls.missing.push(format!("it runs as user {uid}, which is not the one it was given"));
        }
    }
    // Some kernels are built without these lines.
    walls.no_new_privs &= number("NoNewPrivs:") != Some(0);
    walls.seccomp &= number("Seccomp:").is_none_or(|mode| mode == 2);
}

/// Returns how a process ended. Kills it if it does not end by itself within a grace period.
pub(crate) async fn end(child: &mut Child) -> Option<ExitStatus> {
    const GRACE: Duration = Duration::from_millis(500);
    if let Ok(Ok(status)) = tokio::time::timeout(GRACE, child.wait()).await {
        return Some(status);
    }
    let _ = child.start_kill();
    child.wait().await.ok()
}

/// Describes an exit status in words.
pub(crate) fn how(status: Option<ExitStatus>) -> String {
    match status.map(|status| (status.code(), status.signal())) {
        Some((Some(code), _)) => format!("ended with code {code}"),
        Some((None, Some(signal))) => format!("was killed by signal {signal}"),
        _ => "ended".into(),
    }
}

/// Logs the executor's standard error. An escaped guest may write there, so lines and their number are bounded and
/// control characters are escaped.
async fn log_lines(pid: u32, stderr: ChildStderr) {
    let mut stderr = BufReader::new(stderr);
    for _ in 0..MAX_LINES {
        let mut line = Vec::new();
        match (&mut stderr).take(MAX_LINE).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {
                let text = String::from_utf8_lossy(&line);
                let text = brine_text::line(text.trim_end());
                tracing::warn!(executor = pid, "{text}");
            }
        }
    }
    tracing::warn!(executor = pid, "it has written {MAX_LINES} lines; no more are logged");
    let _: io::Result<u64> = tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await;
}

#[cfg(test)]
mod tests {
    use brine_sandbox_wire::{Directory, NetworkRule};

    use super::*;

    fn program() -> ExecutorProgram {
        ExecutorProgram {
            path: PathBuf::new(),
            max_running: 20,
            computing: 10,
            memory: 1 << 30,
            user: None,
            whole: false,
            groups: Err(String::new()),
            living: Living::default(),
        }
    }

    #[tokio::test]
    async fn what_it_keeps_are_its_grants() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let path = |name: &str| root.join(name).to_str().unwrap().to_owned();
        std::fs::create_dir(path("real")).unwrap();
        std::os::unix::fs::symlink("real", path("link")).unwrap();
        let direct = |name: &str| DirectGrants {
            directories: vec![Directory { path: path(name), writable: true }],
            network: [(443, 443), (80, 90), (443, 443)]
                .map(|ports| NetworkRule { host: "repo.example".into(), ports })
                .into(),
            user: None,
        };
        let own = User { uid: 61_166, gid: 61_166, own: true };
        let (kept, left_out) = spec(&program(), &direct("real"), Some(&own)).await;
        assert_eq!(left_out, [""; 0]);
        assert_eq!(kept.directories, [KeptDirectory { path: path("real"), writable: true }]);
        assert_eq!(kept.connect, [(80, 90), (443, 443)]);
        assert_eq!((kept.processes, kept.memory), (Some(4_096), Some((1 << 30) + (110 << 20) + (768 << 20))));
        // Other processes have the same user.
        let deploy = User { own: false, ..own };
        assert_eq!(spec(&program(), &direct("real"), Some(&deploy)).await.0.processes, None);
        assert_eq!(spec(&program(), &direct("real"), None).await.0.processes, None);
        // Directories that cannot be had are left out; the others are not.
        let (link, real, missing) = (path("link"), path("real"), path("missing"));
        let mut both = direct("link");
        both.directories.extend([direct("missing"), direct("real")].into_iter().flat_map(|it| it.directories));
        let (kept, left_out) = spec(&program(), &both, None).await;
        assert_eq!(kept.directories, [KeptDirectory { path: real.clone(), writable: true }]);
        assert_eq!(
            left_out,
            [
                format!(
                    "the granted directory {link} is {real} by its real name; that is what a grant has to say: it is left out"
                ),
                format!("the granted directory {missing} is not there: it is left out"),
            ]
        );
    }

    /// A report in which an executor claims more than is true.
    #[test]
    fn the_kernel_knows_better() {
        let mut walls =
            Walls { uid: 61_166, no_new_privs: true, hidden: true, seccomp: true, landlock: 6, ..Walls::default() };
        let claimed = User { uid: 61_166, gid: 61_166, own: true };
        observe("Uid:\t61166\t61166\t61166\t61166\nNoNewPrivs:\t1\nSeccomp:\t2\n", Some(&claimed), &mut walls);
        assert_eq!(walls.lacking(), [""; 0]);
        observe("Uid:\t0\t0\t0\t0\nNoNewPrivs:\t0\nSeccomp:\t0\n", Some(&claimed), &mut walls);
        assert_eq!(
            walls.lacking(),
            [
                "it runs as root",
                "no_new_privs is not set",
                "system calls are not filtered (seccomp)",
                "it runs as user 0, which is not the one it was given",
            ]
        );
    }
}
