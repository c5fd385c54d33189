//! Starts and ends a master. The start makes folders, ports, keys and tasks in the order in which a failure costs
//! least.

mod assemble;
mod dump;
mod master;
pub mod preflight;

use std::sync::Arc;
use std::time::Duration;

use brine_daemon::ProcessError;
use brine_daemon::folders::Folder;
use brine_daemon::pidfile::PidFile;
use brine_tls::IdentityError;
use brine_zmtp::{BindError, Endpoint, PubConfig, Publisher, Router, RouterConfig};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::bus::{Bus, SocketError};
use crate::config::MasterOpts;
use crate::jobs::StoreError;
use crate::keys::{MasterKeyError, MinionKeyError};
use crate::nodes::Nodes;
use crate::ports::{PortOpts, within_files};
use crate::requests;
use assemble::{Configured, Opened};
use master::Master;

/// Time that requests in work get to finish when the master stops.
const GRACE: Duration = Duration::from_secs(5);
/// Salt's exit code for a port in use.
const EXIT_PORT: i32 = 4;

/// The reason why the master does not start.
#[derive(Debug, thiserror::Error)]
pub enum MasterStartError {
    /// A folder is unusable, or another master with this configuration runs.
    #[error("{0}")]
    Process(#[from] ProcessError),
    /// The master's key is unusable.
    #[error("{0}")]
    MasterKey(#[from] MasterKeyError),
    /// The minions' keys are unusable.
    #[error("{0}")]
    Keys(#[from] MinionKeyError),
    /// A file in `cachedir`, or the audit log, is unusable.
    #[error("cannot prepare {what} in {path}: {why}", path = path.display())]
    Cache {
        /// The purpose of the file.
        what: &'static str,
        /// `cachedir`, or the audit log's path.
        path: std::path::PathBuf,
        /// The error of the system.
        why: std::io::Error,
    },
    /// A port cannot be bound.
    #[error("{source}. {hint}")]
    Bind {
        /// The port and the error of the system.
        source: BindError,
        /// What to do.
        hint: String,
    },
    /// The port for salt-api on other hosts cannot be bound.
    #[error(
        "cannot listen on {address} port {port} for salt-api on other hosts: {why}; set api_interface and api_port"
    )]
    ApiPort {
        /// The address.
        address: String,
        /// The port.
        port: u16,
        /// The error of the system.
        why: std::io::Error,
    },
    /// The master's key is none for TLS.
    #[error("api_port cannot be served: {0}")]
    ApiKey(#[from] IdentityError),
    /// The system cannot start another thread.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
    /// A socket of the event bus cannot be made.
    #[error("{0}")]
    Bus(#[from] SocketError),
    /// The job store cannot be opened.
    #[error("{0}")]
    Jobs(#[from] StoreError),
    /// A setting of the file server, the mine or peers is wrong; the text names it.
    #[error("{0}")]
    Settings(String),
    /// The task that reads or makes the master's key failed.
    #[error("the master's key was neither read nor made: {0}")]
    KeyTask(tokio::task::JoinError),
    /// The master's key cannot sign.
    #[error("the master's key cannot be used: {0}")]
    Private(#[from] brine_protocol::keys::KeyError),
}

impl MasterStartError {
    /// Returns the process's exit code.
    pub const fn exit_code(&self) -> i32 {
        match self {
            Self::Bind { .. } | Self::ApiPort { .. } => EXIT_PORT,
            Self::Process(error) => error.exit_code(),
            Self::Settings(_) => brine_protocol::exit::USAGE,
            _ => brine_protocol::exit::GENERIC,
        }
    }
}

/// A running master. Dropping it leaves its tasks running; end it with [`Server::stop`].
pub struct Server {
    requests: Endpoint,
    publish: Endpoint,
    master: Master,
    nodes: Arc<Nodes>,
    publisher: Publisher,
    stop: CancellationToken,
    serving: JoinHandle<()>,
    maintaining: JoinHandle<()>,
    /// Held while a profile is made.
    profiling: Arc<Semaphore>,
    _pid: Option<PidFile>,
}

impl Server {
    /// Starts a master, which then answers requests.
    ///
    /// # Errors
    /// If anything that the master needs is missing or in use. Parts made until then end with the runtime.
    pub async fn start(opts: MasterOpts) -> Result<Self, MasterStartError> {
        let configured = Configured::read(&opts)?;
        for folder in folders(&opts) {
            folder.prepare("salt-master")?;
        }
        let pid = PidFile::take("salt-master", &opts.pidfile)?;
        // The ports come before anything that another running master with the same configuration would notice.
        let (router, publisher) = bind(&opts.ports).await?;
        let (requests, publish) = (router.endpoint().clone(), publisher.endpoint().clone());
        let api_port = bind_api(&opts.ports).await?;
        let opened = Opened::open(&opts).await?;
        let remote = api_port.map(|listener| opened.remote(&opts, listener)).transpose()?;
        let kept_events = opened.keep_events(&opts);
        let port = publish.port().unwrap_or(opts.ports.publish_port);
        let master = assemble::assemble(opts, configured, &opened, publisher.clone(), port)?;
        // All parts of the master that see events have subscribed: no event from outside comes before them.
        opened.listen(&master.opts)?;
        let nodes = Nodes::listen(&master.handlers, &master.opts.bus.sock_dir, remote)?;
        let stop = CancellationToken::new();
        let maintaining = tokio::spawn(assemble::maintain(&master, kept_events, stop.clone()));
        let serving = requests::serve(Arc::clone(&master.handlers), router, stop.clone(), GRACE);
        let serving = tokio::spawn(serving);
        let profiling = Arc::new(Semaphore::new(1));
        let server =
            Self { requests, publish, master, nodes, publisher, stop, serving, maintaining, profiling, _pid: pid };
        tracing::info!("salt-master {} {}", env!("CARGO_PKG_VERSION"), server.status());
        Ok(server)
    }

    /// Returns the endpoint for requests, with the bound port.
    pub const fn request_endpoint(&self) -> &Endpoint {
        &self.requests
    }

    /// Returns the endpoint for publications, with the bound port.
    pub const fn publish_endpoint(&self) -> &Endpoint {
        &self.publish
    }

    /// Returns the event bus.
    pub fn bus(&self) -> &Bus {
        &self.master.bus
    }

    /// Opens the audit log's file again by its name, after log rotation (at SIGHUP). Does nothing without an audit log.
    ///
    /// # Errors
    /// If the file cannot be opened; the master then continues with the old file.
    pub fn reopen_audit_log(&self) -> std::io::Result<()> {
        self.master.audit.reopen()
    }

    /// Waits until at least `count` minions are subscribed to publications.
    pub async fn wait_for_subscribers(&self, count: usize) {
        self.publisher.wait_for_subscribers(count).await;
    }

    /// Describes the master in one line.
    pub fn status(&self) -> String {
        format!("answers on {} and publishes on {}", self.requests, self.publish)
    }

    /// Applies the settings that can change while the master runs.
    ///
    /// # Errors
    /// If a setting is unusable; nothing has changed then.
    pub fn reload(&self, opts: &MasterOpts) -> Result<(), String> {
        self.master.reload(opts)
    }

    /// Stops accepting requests, gives those in work a few seconds, and ends. Everything acknowledged is on disk.
    pub async fn stop(self) {
        self.stop.cancel();
        let (_, ()) = tokio::join!(self.serving, self.nodes.close(GRACE));
        let _ = self.maintaining.await;
        self.master.jobs.close().await;
        self.publisher.close(GRACE).await;
        self.master.bus.close(GRACE).await;
        tracing::info!("salt-master has stopped");
    }
}

/// Returns the folders of a master. Existing ones keep their mode, except the folder of the keys.
pub fn folders(opts: &MasterOpts) -> Vec<Folder> {
    vec![
        Folder { private: !opts.gate.permissive_pki_access, ..Folder::private("pki_dir", &opts.keys.pki_dir) },
        Folder::new("cachedir", &opts.cachedir, 0o750),
        Folder::new("cachedir", opts.cachedir.join("jobs"), 0o750),
        Folder::new("cachedir", opts.cachedir.join("proc"), 0o750),
        Folder::new("sock_dir", &opts.bus.sock_dir, 0o755),
    ]
}

async fn bind(opts: &PortOpts) -> Result<(Router, Publisher), MasterStartError> {
    let failed = |port: &'static str| {
        let interface = opts.interface.clone();
        move |source: BindError| {
            let hint = match &source {
                BindError::Io { source, .. } if source.kind() == std::io::ErrorKind::AddrInUse => {
                    format!("Is there another salt-master running? Stop it, or set another {port}")
                }
                _ => format!(
                    "Set interface (now {interface}) to an address of this host and {port} to a port it may use"
                ),
            };
            MasterStartError::Bind { source, hint }
        }
    };
    let limits = within_files(&opts.limits, brine_daemon::limits::most_open_files());
    let config = RouterConfig {
        limits: limits.clone(),
        heartbeat: opts.heartbeat,
        keepalive: opts.keepalive,
        backlog: opts.backlog,
        too_long: Some(requests::too_long),
    };
    let at = Endpoint::tcp(opts.interface.as_str(), opts.ret_port);
    let router = Router::bind(&at, config).await.map_err(failed("ret_port"))?;
    let config = PubConfig {
        limits,
        heartbeat: opts.heartbeat,
        keepalive: opts.keepalive,
        hwm: opts.pub_hwm,
        backlog: opts.backlog,
    };
    let at = Endpoint::tcp(opts.interface.as_str(), opts.publish_port);
    let publisher = Publisher::bind(&at, config).await.map_err(failed("publish_port"))?;
    Ok((router, publisher))
}

/// Binds the port for salt-api on other hosts, if there is one.
async fn bind_api(opts: &PortOpts) -> Result<Option<TcpListener>, MasterStartError> {
    let (address, port) = (&opts.api_interface, opts.api_port);
    if port == 0 {
        return Ok(None);
    }
    let host = address.trim_start_matches('[').trim_end_matches(']');
    match TcpListener::bind((host, port)).await {
        Ok(listener) => Ok(Some(listener)),
        Err(why) => Err(MasterStartError::ApiPort { address: address.clone(), port, why }),
    }
}
