//! salt-api as a process: the hooks for [`brine_daemon::run`].

use std::path::PathBuf;
use std::sync::Arc;

use brine_daemon::args::DaemonArgs;
use brine_daemon::folders::Folder;
use brine_daemon::pidfile::PidFile;
use brine_daemon::run::{self, EndFuture};
use brine_daemon::{ProcessError, reload};
use brine_protocol::config::Config;
use brine_protocol::exit;
use tokio::net::TcpListener;

use crate::chunk::Client;
use crate::link::{MasterLink, Remote};
use crate::listen::Server;
use crate::pki::NodePki;
use crate::settings::{self, ApiOpts, RemoteOpts};
use crate::state::{Api, Live};
use crate::tls::Tls;

/// The program salt-api.
#[derive(Debug)]
pub struct ApiDaemon {
    config: Config,
    opts: ApiOpts,
}

impl run::Daemon for ApiDaemon {
    const NAME: &'static str = "salt-api";
    const ABOUT: &'static str = "Serves Salt's REST interface, in front of a master on this host or another one";

    fn load(args: &DaemonArgs) -> Result<Self, ProcessError> {
        settings::load(args).map(|(config, opts)| Self { config, opts })
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn user(&self) -> &str {
        &self.opts.user
    }

    /// The folders of the master are the master's.
    fn folders(&self) -> Vec<Folder> {
        self.opts.remote.iter().map(keys_folder).collect()
    }

    fn files(&self) -> Vec<PathBuf> {
        vec![self.opts.pidfile.clone()]
    }

    async fn start(self) -> Result<impl run::RunningDaemon, ProcessError> {
        let Self { config, opts } = self;
        let pid_file = PidFile::take(<Self as run::Daemon>::NAME, &opts.pidfile)?;
        let usage = |why: String| ProcessError::new(exit::USAGE, why);
        let tls = opts.tls.as_ref().map(Tls::read).transpose().map_err(usage)?.map(Arc::new);
        let host = opts.host.trim_start_matches('[').trim_end_matches(']');
        let bound =
            TcpListener::bind((host, opts.port)).await.and_then(|listener| Ok((listener.local_addr()?, listener)));
        let (address, listener) = bound.map_err(|error| {
            let why = format!(
                "cannot listen on {host} port {}: {error}; set host and port below rest_cherrypy in {}",
                opts.port,
                config.path().display()
            );
            ProcessError::new(exit::GENERIC, why)
        })?;
        let link = Arc::new(link(&opts).await?);
        let api = Arc::new(Api::new(link, tls.is_some(), opts.paths.clone(), opts.app.clone(), live(&opts)));
        let server = Server::start(listener, tls.clone(), Arc::clone(&api));
        let scheme = if tls.is_some() { "https" } else { "http" };
        tracing::info!("answering at {scheme}://{address}");
        if !opts.unknown_clients.is_empty() {
            let names = opts.unknown_clients.join(", ");
            tracing::warn!("netapi_enable_clients: {names} is not offered; there are {}", Client::names());
        }
        if !opts.ignored.is_empty() {
            tracing::info!("rest_cherrypy: {} has no effect here", opts.ignored.join(", "));
        }
        if opts.clients.is_empty() {
            tracing::warn!("netapi_enable_clients is empty: nobody can run anything by salt-api");
        }
        Ok(RunningApi { config, api, tls, server, status: format!("{scheme}://{address}"), _pid_file: pid_file })
    }
}

fn keys_folder(remote: &RemoteOpts) -> Folder {
    Folder::private("api_pki_dir", &remote.pki_dir)
}

/// Makes the way to the master.
async fn link(opts: &ApiOpts) -> Result<MasterLink, ProcessError> {
    let Some(remote) = opts.remote.clone() else { return Ok(MasterLink::local(opts.master.clone())) };
    keys_folder(&remote).prepare("salt-api")?;
    let RemoteOpts { host, port, name, finger, pki_dir, bits } = remote;
    let failed = |why: String| ProcessError::new(exit::GENERIC, why);
    // Making a key takes seconds.
    let opening = tokio::task::spawn_blocking(move || NodePki::open(&pki_dir, bits, finger));
    let pki = opening.await.map_err(|error| failed(error.to_string()))?.map_err(|error| failed(error.to_string()))?;
    tracing::info!("this is {name} to the master at {host}, with the key {}", pki.fingerprint());
    let remote = Remote::new(host, port, name, pki).map_err(failed)?;
    Ok(MasterLink::remote(opts.master.clone(), remote))
}

fn live(opts: &ApiOpts) -> Live {
    Live {
        clients: opts.clients.clone(),
        rules: opts.rules.clone(),
        groups: opts.groups.clone(),
        rest_timeout: opts.rest_timeout,
        open_stats: opts.open_stats,
    }
}

struct RunningApi {
    config: Config,
    api: Arc<Api>,
    tls: Option<Arc<Tls>>,
    server: Server,
    status: String,
    _pid_file: Option<PidFile>,
}

impl RunningApi {
    fn take_up(&self, args: &DaemonArgs) -> Result<Config, String> {
        let (config, opts) = settings::load(args).map_err(|error| error.to_string())?;
        if let (Some(tls), Some(files)) = (&self.tls, &opts.tls) {
            tls.replace(files)?;
        }
        self.api.set(live(&opts));
        reload::logs(&config)?;
        Ok(config)
    }
}

impl run::RunningDaemon for RunningApi {
    fn status(&self) -> String {
        self.status.clone()
    }

    async fn reload(&mut self, args: &DaemonArgs) {
        match self.take_up(args) {
            Ok(config) => {
                reload::report(&self.config, &config);
                self.config = config;
            }
            Err(why) => tracing::error!("the configuration is not taken up, the one before stays: {why}"),
        }
    }

    fn dump(&self) {
        let up = if self.api.link.is_up() { "is there" } else { "is away" };
        let (connections, streams) = (self.server.connections(), self.api.watchers.taken());
        tracing::warn!("the master {up}; {connections} connections, {streams} streams of events");
    }

    fn profile(&self) {
        tracing::warn!("salt-api has no profile");
    }

    async fn stop(self, _ended: EndFuture) -> Result<(), ProcessError> {
        self.api.watchers.close();
        self.server.stop().await;
        Ok(())
    }
}
