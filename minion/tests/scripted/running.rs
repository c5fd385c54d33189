//! A minion in the test's process.

use std::path::Path;
use std::sync::Arc;

use brine_minion::config::MinionOpts;
use brine_minion::minion::{MakeRuntime, Minion, MinionError};
use brine_minion::runtime::Runtime;
use brine_protocol::config::{Config, Role};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::master::{DEADLINE, Master, key};
use crate::modules::Modules;

pub const ID: &str = "m1";

pub struct Running {
    pub modules: Arc<Modules>,
    end: Option<oneshot::Sender<()>>,
    task: JoinHandle<Result<(), MinionError>>,
}

/// The settings of a minion below `dir`, with short waits between tries.
pub fn opts(dir: &Path, master: &Master, more: &str) -> MinionOpts {
    let pki = dir.join("pki");
    if !pki.join("minion.pem").exists() {
        std::fs::create_dir_all(&pki).unwrap();
        std::fs::set_permissions(&pki, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
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

/// Makes the stand-in for the sandbox and passes it to the test.
pub fn stand_in() -> (MakeRuntime, oneshot::Receiver<Arc<Modules>>) {
    let (send, receive) = oneshot::channel();
    let make = Box::new(move |broker, _jobs| -> futures_util::future::BoxFuture<'static, _> {
        Box::pin(async move {
            let modules = Modules::new(broker);
            let _ = send.send(Arc::clone(&modules));
            let runtime: Arc<dyn Runtime> = modules;
            Ok(runtime)
        })
    });
    (make, receive)
}

pub async fn start_with(opts: MinionOpts) -> Running {
    let (make, receive) = stand_in();
    let minion = Minion::prepare(opts, make).await.unwrap();
    let (end, ended) = oneshot::channel();
    let task = tokio::spawn(minion.run(async move {
        let _ = ended.await;
    }));
    Running { modules: receive.await.unwrap(), end: Some(end), task }
}

impl Running {
    /// Ends the minion in order.
    pub async fn end(mut self) -> Result<(), MinionError> {
        let _ = self.end.take().unwrap().send(());
        self.result().await
    }

    /// Waits until the minion ends by itself.
    pub async fn result(&mut self) -> Result<(), MinionError> {
        tokio::time::timeout(DEADLINE, &mut self.task).await.expect("the minion does not end").unwrap()
    }

    /// Ends the minion as a crash would.
    pub async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
    }
}

/// The returns that wait in the spool.
pub fn spooled(dir: &std::path::Path) -> usize {
    std::fs::read_dir(dir.join("cache/spool")).unwrap().count()
}

/// Waits until the spool is empty: after the master's reply, the acknowledgement is still on its way.
pub async fn emptied(dir: &std::path::Path) {
    let waited = tokio::time::timeout(DEADLINE, async {
        while spooled(dir) > 0 {
            tokio::task::yield_now().await;
        }
    });
    waited.await.expect("the spool is not emptied");
}
