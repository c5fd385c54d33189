//! Programs and daemons. Dropping a daemon's handle ends the daemon and the processes that it started.
#![allow(clippy::disallowed_methods, reason = "tests start the programs that they test")]

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::wait_for;

/// Returns the folder of Brine's programs: `BRINE_BIN`, or else the folder of the cargo profile that built this test.
pub fn program_folder() -> PathBuf {
    if let Some(folder) = std::env::var_os("BRINE_BIN") {
        return PathBuf::from(folder);
    }
    let exe = std::env::current_exe().expect("this test has a path");
    let folder = exe.parent().expect("a program is in a folder");
    // Tests are in target/PROFILE/deps, the programs one level above.
    folder.parent().filter(|_| folder.ends_with("deps")).unwrap_or(folder).to_path_buf()
}

/// Returns one of Brine's programs.
///
/// # Panics
/// If it was not built.
pub fn program(name: &str) -> PathBuf {
    let path = program_folder().join(name);
    assert!(path.exists(), "{} is missing: run `make build` first", path.display());
    path
}

/// Returns one of the example modules, such as `hello`.
///
/// # Panics
/// If it was not built.
pub fn example(name: &str) -> PathBuf {
    let path = program_folder().join("../examples").join(format!("{name}.wasm"));
    assert!(path.exists(), "{} is missing: run `make modules` first", path.display());
    path
}

/// Returns one of the modules that only tests use, such as `large`.
///
/// # Panics
/// If it was not built.
pub fn testing(name: &str) -> PathBuf {
    let path = program_folder().join("../testing").join(format!("{name}.wasm"));
    assert!(path.exists(), "{} is missing: run `make modules` first", path.display());
    path
}

/// The output of a program and its exit code.
#[derive(Debug)]
pub struct Output {
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// The exit code; -1 if a signal ended it.
    pub code: i32,
    /// Wall time from start to end.
    pub elapsed: Duration,
}

impl Output {
    /// Parses standard output as JSON.
    ///
    /// # Panics
    /// If it is not JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("no JSON ({e}): {self:?}"))
    }

    /// Checks the exit code.
    ///
    /// # Panics
    /// If it is another one.
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "exit code: {self:?}");
        self
    }
}

/// Runs a program to its end.
///
/// # Panics
/// If it cannot be started.
pub fn run(program: &Path, args: &[&str]) -> Output {
    run_with(program, args, &[])
}

/// Runs a program to its end with additional environment variables.
///
/// # Panics
/// If it cannot be started.
pub fn run_with(program: &Path, args: &[&str], env: &[(&str, &str)]) -> Output {
    let start = Instant::now();
    let output = Command::new(program)
        .args(args)
        .envs(env.iter().copied())
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|e| panic!("cannot start {}: {e}", program.display()));
    Output {
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        code: output.status.code().unwrap_or(-1),
        elapsed: start.elapsed(),
    }
}

/// A running daemon in a process group of its own.
pub struct Daemon {
    child: Child,
    name: String,
    log: PathBuf,
}

impl Daemon {
    /// Starts a daemon whose output goes to `log`.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start(program: &Path, args: &[&str], log: &Path) -> Self {
        Self::start_with(program, args, &[], log)
    }

    /// Like [`Daemon::start`], with additional environment variables.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start_with(program: &Path, args: &[&str], env: &[(&str, &str)], log: &Path) -> Self {
        let file = File::options().create(true).append(true).open(log).expect("a log file in the test's own folder");
        let child = Command::new(program)
            .args(args)
            .envs(env.iter().copied())
            .stdin(Stdio::null())
            .stdout(file.try_clone().expect("a second handle"))
            .stderr(file)
            .process_group(0)
            .spawn()
            .unwrap_or_else(|e| panic!("cannot start {}: {e}", program.display()));
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Self { child, name, log: log.to_path_buf() }
    }

    /// Returns its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    fn rustix_pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        let _ = kill_process(self.rustix_pid(), signal);
    }

    /// Kills it at once, as in a crash, and waits until it has ended.
    pub fn kill(&mut self) {
        self.signal(Signal::KILL);
        let _ = self.child.wait();
    }

    /// Sends SIGTERM and waits for its end.
    ///
    /// # Panics
    /// If it does not end.
    pub fn terminate(&mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.wait_exit()
    }

    /// Waits until it has ended by itself.
    ///
    /// # Panics
    /// If it does not end.
    pub fn wait_exit(&mut self) -> ExitStatus {
        let what = format!("{} to end; its log:\n{}", self.name, self.log_text());
        wait_for(&what, || self.child.try_wait().expect("our own child"))
    }

    /// Returns its output so far.
    pub fn log_text(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Waits until its log contains `text`.
    ///
    /// # Panics
    /// If the text does not appear.
    pub fn wait_log(&self, text: &str) {
        wait_for(&format!("{text:?} in the log of {}", self.name), || self.log_text().contains(text).then_some(()));
    }

    /// Returns the process ids of its direct children.
    pub fn children(&self) -> Vec<u32> {
        let mut all = Vec::new();
        // Each thread has its own list of the children that it has started.
        for task in std::fs::read_dir(format!("/proc/{}/task", self.pid())).into_iter().flatten().flatten() {
            let text = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
            all.extend(text.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
        }
        all
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // The whole group, because Python's daemons fork and a minion starts its executor.
        let _ = kill_process_group(self.rustix_pid(), Signal::TERM);
        let end = Instant::now() + Duration::from_secs(3);
        while Instant::now() < end && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = kill_process_group(self.rustix_pid(), Signal::KILL);
        let _ = self.child.wait();
        if std::thread::panicking() {
            let text = self.log_text();
            let tail = text.lines().rev().take(40).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join("\n");
            eprintln!("---- the end of the log of {} ({})\n{tail}", self.name, self.log.display());
        }
    }
}
