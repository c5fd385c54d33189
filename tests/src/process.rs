//! Programs and daemons. A daemon is ended, with the processes it started, when its handle is dropped.
#![allow(clippy::disallowed_methods, reason = "tests start the programs that they test")]

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use crate::wait_for;

/// The folder of Brine's programs: `BRINE_BIN`, else the folder of the cargo profile that built this test.
pub fn program_folder() -> PathBuf {
    if let Some(folder) = std::env::var_os("BRINE_BIN") {
        return PathBuf::from(folder);
    }
    let exe = std::env::current_exe().expect("this test has a path");
    let folder = exe.parent().expect("a program is in a folder");
    // Tests are in target/PROFILE/deps, programs above it.
    folder.parent().filter(|_| folder.ends_with("deps")).unwrap_or(folder).to_path_buf()
}

/// One of Brine's programs.
///
/// # Panics
/// Where it was not built.
pub fn program(name: &str) -> PathBuf {
    let path = program_folder().join(name);
    assert!(path.exists(), "{} is missing: run `make build` first", path.display());
    path
}

/// One of the example modules, such as `hello`.
///
/// # Panics
/// Where it was not built.
pub fn example(name: &str) -> PathBuf {
    let path = program_folder().join("../examples").join(format!("{name}.wasm"));
    assert!(path.exists(), "{} is missing: run `make modules` first", path.display());
    path
}

/// One of the modules that only tests use, such as `large`.
///
/// # Panics
/// Where it was not built.
pub fn testing(name: &str) -> PathBuf {
    let path = program_folder().join("../testing").join(format!("{name}.wasm"));
    assert!(path.exists(), "{} is missing: run `make modules` first", path.display());
    path
}

/// What a program printed, and how it ended.
#[derive(Debug)]
pub struct Output {
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// Exit code; -1 where a signal ended it.
    pub code: i32,
    /// Wall time from start to end.
    pub elapsed: Duration,
}

impl Output {
    /// Standard output as JSON.
    ///
    /// # Panics
    /// Where it is none.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|e| panic!("no JSON ({e}): {self:?}"))
    }

    /// Checks the exit code.
    ///
    /// # Panics
    /// Where it is another one.
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "exit code: {self:?}");
        self
    }
}

/// Runs a program to its end.
///
/// # Panics
/// Where it cannot be started.
pub fn run(program: &Path, args: &[&str]) -> Output {
    run_with(program, args, &[])
}

/// Runs a program to its end with more environment variables.
///
/// # Panics
/// Where it cannot be started.
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
    /// Starts a daemon; what it prints goes to `log`.
    ///
    /// # Panics
    /// Where it cannot be started.
    pub fn start(program: &Path, args: &[&str], log: &Path) -> Self {
        Self::start_with(program, args, &[], log)
    }

    /// The same with more environment variables.
    ///
    /// # Panics
    /// Where it cannot be started.
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

    /// Its process id.
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

    /// Ends it at once, as a crash or `kill -9` would, and waits until it is gone.
    pub fn kill(&mut self) {
        self.signal(Signal::KILL);
        let _ = self.child.wait();
    }

    /// Asks it to end and waits for that.
    ///
    /// # Panics
    /// Where it does not end.
    pub fn terminate(&mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.wait_exit()
    }

    /// Waits until it has ended by itself.
    ///
    /// # Panics
    /// Where it does not end.
    pub fn wait_exit(&mut self) -> ExitStatus {
        let what = format!("{} to end; its log:\n{}", self.name, self.log_text());
        wait_for(&what, || self.child.try_wait().expect("our own child"))
    }

    /// What it has printed so far.
    pub fn log_text(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Waits until its log holds `text`.
    ///
    /// # Panics
    /// Where it does not come.
    pub fn wait_log(&self, text: &str) {
        wait_for(&format!("{text:?} in the log of {}", self.name), || self.log_text().contains(text).then_some(()));
    }

    /// Process ids of its direct children.
    pub fn children(&self) -> Vec<u32> {
        let mut all = Vec::new();
        // Each thread has its own list of the children that it started.
        for task in std::fs::read_dir(format!("/proc/{}/task", self.pid())).into_iter().flatten().flatten() {
            let text = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
            all.extend(text.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
        }
        all
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // The group: Python's daemons fork, and so does a minion its executor.
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
