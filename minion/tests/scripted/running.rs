//! A minion in the test's process.

use std::path::Path;
use std::sync::Arc;

use brine_kit::files::set_mode;
use brine_kit::wait::Deadline;
use brine_minion::config::MinionOpts;
use brine_minion::jobs::Functions;
use brine_minion::minion::{MakeSandbox, Minion, MinionError, sandbox_with};
use brine_protocol::config::{Config, Role};
use brine_sandbox::{Preparing, Sandbox};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::functions::Scripted;
use crate::master::{DEADLINE, Master, key};
use crate::modules::package;

pub const ID: &str = "m1";

pub struct Running {
    pub sandbox: Arc<Sandbox>,
    pub functions: Arc<Scripted>,
    end: Option<oneshot::Sender<()>>,
    task: JoinHandle<Result<(), MinionError>>,
    runtime: OwnRuntime,
}

/// The runtime of one minion: with it end all tasks that the minion began, as with a process.
struct OwnRuntime(Option<Runtime>);

impl OwnRuntime {
    fn new() -> Self {
        Self(Some(tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()))
    }

    fn runtime(&self) -> &Runtime {
        self.0.as_ref().expect("it is taken only where this ends")
    }
}

impl Drop for OwnRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Returns the settings of a minion below `dir`, with short waits between tries.
pub fn opts(dir: &Path, master: &Master, more: &str) -> MinionOpts {
    let pki = dir.join("pki");
    if !pki.join("minion.pem").exists() {
        std::fs::create_dir_all(&pki).unwrap();
        set_mode(&pki, 0o700);
        key(1).write_private(&pki.join("minion.pem")).unwrap();
    }
    let mut lines = vec![
        format!("id: {ID}"),
        "master: 127.0.0.1".to_owned(),
        format!("master_port: {}", master.request_port),
        "acceptance_wait_time: 0.02".to_owned(),
        "auth_timeout: 5".to_owned(),
        "recon_default: 20".to_owned(),
        "recon_max: 100".to_owned(),
        "return_retry_timer: 0.05".to_owned(),
        "return_retry_timer_max: 0.1".to_owned(),
        "request_channel_timeout: 3".to_owned(),
        "autoload_dynamic_modules: False".to_owned(),
    ];
    for (key, folder) in [("root_dir", ""), ("pki_dir", "/pki"), ("cachedir", "/cache"), ("sock_dir", "/run")] {
        lines.push(format!("{key}: {}{folder}", dir.display()));
    }
    let key_of = |line: &str| line.split(':').next().unwrap_or_default().to_owned();
    for line in more.lines() {
        lines.retain(|l| key_of(l) != key_of(line));
        lines.push(line.to_owned());
    }
    let text = lines.join("\n");
    let config = Config::from_yaml(&text, &dir.join("minion"), Role::Minion).unwrap();
    MinionOpts::from_config(config, None).unwrap()
}

pub async fn start(dir: &Path, master: &Master, more: &str) -> Running {
    start_with(opts(dir, master, more)).await
}

/// Starts a minion, and waits until it is connected and signed in.
pub async fn ready(master: &mut Master, dir: &Path, more: &str) -> Running {
    let minion = start(dir, master, more).await;
    master.expect_start().await;
    master.subscribed().await;
    minion
}

/// Starts a master, and a minion in a folder of its own that is connected and signed in.
pub async fn begin(more: &str) -> (TempDir, Master, Running) {
    let (dir, mut master) = (tempfile::tempdir().unwrap(), Master::start().await);
    let minion = ready(&mut master, dir.path(), more).await;
    (dir, master, minion)
}

/// A sandbox, and the functions that replace its execution of jobs.
pub struct Made {
    pub sandbox: Arc<Sandbox>,
    pub functions: Arc<Scripted>,
}

/// Makes the sandbox and the functions of jobs, and sends both.
pub fn scripted(opts: &MinionOpts) -> (MakeSandbox, oneshot::Receiver<Made>) {
    let (send, receive) = oneshot::channel();
    let package = package(opts.cachedir.parent().unwrap());
    let make_sandbox = sandbox_with(package, opts, None, Preparing::Beside).unwrap();
    let make: MakeSandbox = Box::new(move |broker, jobs| {
        Box::pin(async move {
            let (sandbox, _) = make_sandbox(broker.clone(), jobs).await?;
            let broker = broker.await.expect("the sandbox has it");
            let scripted = Scripted::new(broker, Arc::clone(&sandbox));
            let functions: Arc<dyn Functions> = scripted.clone();
            let _ = send.send(Made { sandbox: Arc::clone(&sandbox), functions: scripted });
            Ok((sandbox, functions))
        })
    });
    (make, receive)
}

pub async fn start_with(opts: MinionOpts) -> Running {
    let (make, receive) = scripted(&opts);
    let (end, ended) = oneshot::channel();
    let runtime = OwnRuntime::new();
    let task = runtime.runtime().spawn(async move {
        let minion = Minion::prepare(opts, make).await.unwrap();
        let ended = async move {
            let _ = ended.await;
        };
        minion.run(ended).await
    });
    let Made { sandbox, functions } = receive.await.unwrap();
    Running { sandbox, functions, end: Some(end), task, runtime }
}

impl Running {
    /// Ends the minion in order.
    pub async fn end(mut self) -> Result<(), MinionError> {
        let _ = self.end.take().unwrap().send(());
        self.result().await
    }

    /// Waits until the minion ends by itself.
    pub async fn result(&mut self) -> Result<(), MinionError> {
        DEADLINE.within(&mut self.task).await.unwrap()
    }

    /// Ends the minion as in a crash: when this returns, none of its tasks runs any more.
    pub async fn kill(mut self) {
        self.task.abort();
        let runtime = self.runtime.0.take().expect("the minion runs");
        tokio::task::spawn_blocking(move || runtime.shutdown_timeout(DEADLINE)).await.unwrap();
    }
}

/// Returns the number of returns in the spool.
pub fn spooled(dir: &std::path::Path) -> usize {
    let slots = std::fs::read(dir.join("cache/spool.spare/slots")).unwrap_or_default();
    let in_slots = slots.chunks(4096).filter(|slot| slot[..4] != [0; 4]).count();
    std::fs::read_dir(dir.join("cache/spool")).unwrap().count() + in_slots
}

/// Waits until the spool is empty: after the master has replied, the acknowledgement is still on its way.
pub async fn emptied(dir: &std::path::Path) {
    DEADLINE.until("the spool is emptied", || spooled(dir) == 0).await;
}
