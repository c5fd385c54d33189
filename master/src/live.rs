//! What of the settings can change while the master runs (SIGHUP). All or nothing: what cannot be used leaves everything as it is.
//!
//! The table of settings says which these are. The others count from the next start: ports, folders, keys and sizes, which tasks and files
//! were made with.

use std::path::PathBuf;
use std::time::Duration;

use brine_protocol::ids::Saltenv;
use brine_protocol::target::Nodegroups;
use brine_protocol::value::Value;

use crate::config::{FileOpts, MasterOpts};
use crate::fileserver::FileServer;
use crate::master::Master;
use crate::mine::MineRules;
use crate::peer::PeerRules;
use crate::quotas::QuotaOpts;

/// The live settings that no part keeps for itself.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) nodegroups: Nodegroups,
    /// `keep_jobs_seconds`; none keeps jobs for ever.
    pub(crate) keep_jobs: Option<Duration>,
    pub(crate) quotas: QuotaOpts,
    /// `file_roots` and `pillar_roots`: each environment's folders.
    pub(crate) file_roots: Vec<(Saltenv, Vec<PathBuf>)>,
    pub(crate) pillar_roots: Vec<(Saltenv, Vec<PathBuf>)>,
    pub(crate) told_to_minions: Value,
    pub(crate) shown: Value,
}

impl Live {
    pub(crate) fn new(opts: &MasterOpts) -> Self {
        Self {
            nodegroups: opts.nodegroups.clone(),
            keep_jobs: opts.keep_jobs,
            quotas: opts.quotas,
            file_roots: opts.files.roots.clone(),
            pillar_roots: opts.pillar_roots.clone(),
            told_to_minions: opts.told_to_minions.clone(),
            shown: opts.shown.clone(),
        }
    }
}

impl Master {
    /// Takes up new settings.
    pub(crate) fn reload(&self, opts: &MasterOpts) -> Result<(), String> {
        // Python's files of the job cache lie where their hash says.
        let files = FileOpts { hash_type: self.opts.files.hash_type, ..opts.files.clone() };
        let files = FileServer::new(&files, &self.opts.cachedir)?;
        let mine = MineRules::read(opts.mine_get.as_ref(), &opts.nodegroups)?;
        let peer = PeerRules::read(opts)?;
        let access = self.access.read(opts.access.clone());
        let access = access.map_err(|error| format!("the keys of local users cannot be prepared: {error}"))?;
        self.files.replace(&files);
        self.access.replace(access);
        self.mine.replace(mine);
        self.peer.replace(peer);
        self.gate.replace(opts.auth.clone());
        self.live.store(Live::new(opts).into());
        Ok(())
    }
}
