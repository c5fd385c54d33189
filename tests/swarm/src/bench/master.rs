//! The measured master: a separate process, with the kernel's statistics about it.

#![expect(clippy::disallowed_methods, reason = "a load generator starts the master that it measures; it is no minion")]

use std::io::Read as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use brine_client::{ClientOpts, LocalClient};
use brine_protocol::config::{Config, Role};
use rustix::process::{Pid, Signal, kill_process};

use super::{BenchOpts, DEADLINE};

/// Clock ticks for each second in /proc, the same on every Linux.
const TICKS: f64 = 100.0;

pub(super) struct Master {
    child: Option<Child>,
    folder: tempfile::TempDir,
    program: PathBuf,
    under: Vec<String>,
    pub(super) ret_port: u16,
}

impl Master {
    /// Starts a master that accepts every key and waits until it listens.
    pub(super) async fn start(opts: &BenchOpts) -> Result<Self, String> {
        let program = opts.bin.join("salt-master");
        if !program.exists() {
            return Err(format!("{} is missing: build it, or name its folder by --bin", program.display()));
        }
        let failed = |error: std::io::Error| error.to_string();
        // A short path, because the path of a unix socket has 107 characters at most.
        let folder = tempfile::Builder::new().prefix("brine-s").tempdir_in("/tmp").map_err(failed)?;
        let [publish_port, ret_port] = free_ports().map_err(failed)?;
        let dir = folder.path().display();
        for sub in ["conf", "srv"] {
            std::fs::create_dir_all(folder.path().join(sub)).map_err(failed)?;
        }
        let text = format!(
            "interface: 127.0.0.1\npublish_port: {publish_port}\nret_port: {ret_port}\nroot_dir: {dir}\npki_dir: {dir}/pki\n\
             cachedir: {dir}/cache\nsock_dir: {dir}/sock\nlog_file: {dir}/log\npidfile: {dir}/master.pid\nuser: root\nauto_accept: True\n\
             timeout: 120\nfile_roots:\n  base: [{dir}/srv]\n{}\n",
            opts.config
        );
        std::fs::write(folder.path().join("conf/master"), text).map_err(failed)?;
        let mut master = Self { child: None, folder, program, under: opts.under.clone(), ret_port };
        master.up().await?;
        Ok(master)
    }

    /// Starts the daemon and waits until it listens.
    pub(super) async fn up(&mut self) -> Result<(), String> {
        let mut words: Vec<&std::ffi::OsStr> = self.under.iter().map(std::ffi::OsStr::new).collect();
        words.push(self.program.as_os_str());
        let output = std::fs::File::create(self.folder.path().join("out")).map_err(|error| error.to_string())?;
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).arg("-c").arg(self.folder.path().join("conf")).args(["-l", "warning"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(output);
        self.child = Some(command.spawn().map_err(|error| format!("{}: {error}", self.program.display()))?);
        let bus = self.folder.path().join("sock/master_event_pub.ipc");
        let started = Instant::now();
        while std::os::unix::net::UnixStream::connect(&bus).is_err() || self.pid().is_err() {
            if started.elapsed() > DEADLINE {
                return Err(format!("the master did not start: {}", self.said()));
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    }

    /// Ends it like an operator.
    pub(super) async fn down(&mut self) -> Result<(), String> {
        let pid = i32::try_from(self.pid()?).ok().and_then(Pid::from_raw).ok_or("the pid file holds no pid")?;
        kill_process(pid, Signal::TERM).map_err(|error| error.to_string())?;
        let Some(mut child) = self.child.take() else { return Ok(()) };
        let started = Instant::now();
        while child.try_wait().map_err(|error| error.to_string())?.is_none() {
            if started.elapsed() > DEADLINE {
                return Err("the master did not end".to_owned());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    }

    /// Returns its output on standard error.
    pub(super) fn said(&self) -> String {
        let mut text = String::new();
        let file = std::fs::File::open(self.folder.path().join("out"));
        let _ = file.and_then(|mut file| file.read_to_string(&mut text));
        text
    }

    pub(super) fn conf(&self) -> PathBuf {
        self.folder.path().join("conf")
    }

    pub(super) fn path(&self, relative: &str) -> PathBuf {
        self.folder.path().join(relative)
    }

    /// Returns a command of the same build for this master.
    pub(super) fn command(&self, name: &str) -> Command {
        let mut command = Command::new(self.program.with_file_name(name));
        command.arg("-c").arg(self.conf()).stdin(Stdio::null());
        command
    }

    pub(super) fn client(&self) -> Result<LocalClient, String> {
        let config = Config::load(&self.conf().join("master"), Role::Master).map_err(|error| error.to_string())?;
        Ok(LocalClient::new(ClientOpts::new(&config).map_err(|error| error.to_string())?))
    }

    fn pid(&self) -> Result<u32, String> {
        let text = std::fs::read_to_string(self.path("master.pid")).map_err(|error| error.to_string())?;
        text.trim().parse().map_err(|_| "the pid file holds no pid".to_owned())
    }

    fn proc(&self, file: &str) -> Result<String, String> {
        let path = Path::new("/proc").join(self.pid()?.to_string()).join(file);
        std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Returns its proportional set size in MiB.
    pub(super) fn pss_mib(&self) -> Result<f64, String> {
        kib(&self.proc("smaps_rollup")?, "Pss:").map(|kib| kib / 1024.0)
    }

    /// Returns its peak memory in MiB.
    pub(super) fn peak_mib(&self) -> Result<f64, String> {
        kib(&self.proc("status")?, "VmHWM:").map(|kib| kib / 1024.0)
    }

    /// Returns its CPU time in seconds.
    pub(super) fn cpu(&self) -> Result<f64, String> {
        let stat = self.proc("stat")?;
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<f64>().ok());
        // Fields 14 and 15 of proc(5). The first field after the name is number 3.
        Ok((ticks(11).ok_or("/proc has no utime")? + ticks(12).ok_or("/proc has no stime")?) / TICKS)
    }
}

impl Drop for Master {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            if let Some(pid) = self.pid().ok().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw) {
                let _ = kill_process(pid, Signal::TERM);
            }
            let _ = child.wait();
        }
    }
}

fn kib(text: &str, name: &str) -> Result<f64, String> {
    let line = text.lines().find(|line| line.starts_with(name));
    let value = line.and_then(|line| line.split_whitespace().nth(1)).and_then(|value| value.parse().ok());
    value.ok_or_else(|| format!("/proc has no {name}"))
}

fn free_ports() -> std::io::Result<[u16; 2]> {
    let [a, b] = [TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?];
    Ok([a.local_addr()?.port(), b.local_addr()?.port()])
}
