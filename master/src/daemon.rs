//! salt-master as a process: the implementation of [`run::Daemon`] for [`brine_daemon::run`].

use std::path::PathBuf;

use brine_daemon::ProcessError;
use brine_daemon::args::DaemonArgs;
use brine_daemon::folders::Folder;
use brine_daemon::limits::OpenFiles;
use brine_daemon::run::{self, EndFuture};
use brine_protocol::config::Config;

use crate::server::{self, preflight};
use crate::{MasterOpts, Server, settings};

/// The program salt-master.
#[derive(Debug)]
pub struct MasterDaemon {
    config: Config,
    opts: MasterOpts,
}

impl run::Daemon for MasterDaemon {
    const NAME: &'static str = "salt-master";
    const ABOUT: &'static str = "Runs a Salt master: sends jobs to minions and keeps what they return";

    fn load(args: &DaemonArgs) -> Result<Self, ProcessError> {
        settings::load(args).map(|(config, opts)| Self { config, opts })
    }

    fn config(&self) -> &Config {
        &self.config
    }

    fn user(&self) -> &str {
        &self.opts.user
    }

    fn folders(&self) -> Vec<Folder> {
        server::folders(&self.opts)
    }

    fn files(&self) -> Vec<PathBuf> {
        std::iter::once(self.opts.pidfile.clone()).chain(self.opts.audit.path.clone()).collect()
    }

    fn check_host(&self, open_files: OpenFiles) {
        open_files.compare_with_keys(&self.opts.keys.pki_dir.join("minions"));
        preflight::look(&self.config, &self.opts);
    }

    async fn start(self) -> Result<impl run::RunningDaemon, ProcessError> {
        let failed = |error: crate::MasterStartError| ProcessError::new(error.exit_code(), error.to_string());
        let server = Server::start(self.opts).await.map_err(failed)?;
        Ok(RunningMaster { config: self.config, server })
    }
}

struct RunningMaster {
    config: Config,
    server: Server,
}

impl run::RunningDaemon for RunningMaster {
    fn status(&self) -> String {
        self.server.status()
    }

    async fn reload(&mut self, args: &DaemonArgs) {
        if let Some(config) = settings::reload(args, &self.config, &self.server) {
            self.config = config;
        }
    }

    fn dump(&self) {
        self.server.dump();
    }

    fn profile(&self) {
        self.server.profile();
    }

    async fn stop(self, _ended: EndFuture) -> Result<(), ProcessError> {
        self.server.stop().await;
        Ok(())
    }
}
