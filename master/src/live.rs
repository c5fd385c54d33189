//! What of the settings can change while the master runs (SIGHUP). All or nothing: what cannot be used leaves everything as it is.
//!
//! What is not here counts from the next start: ports, folders, keys and sizes, which tasks and files were made with.

use std::path::PathBuf;
use std::time::Duration;

use brine_protocol::ids::Saltenv;
use brine_protocol::target::Nodegroups;
use brine_protocol::value::{Value, ValueExt};

use crate::config::{FileOpts, MasterOpts};
use crate::fileserver::FileServer;
use crate::master::Master;
use crate::mine::MineRules;
use crate::peer::PeerRules;
use crate::quotas::QuotaOpts;

/// The settings that count at once, besides those of logs and those that minions are told.
const SETTINGS: &[&str] = &[
    "file_roots",
    "pillar_roots",
    "file_ignore_glob",
    "file_ignore_regex",
    "fileserver_followsymlinks",
    "file_buffer_size",
    "file_recv",
    "file_recv_max_size",
    "file_recv_quota",
    "file_recv_quota_count",
    "minion_rate",
    "minion_rate_bytes",
    "minion_return_quota",
    "minion_return_quota_count",
    "nodegroups",
    "keep_jobs_seconds",
    "mine_get",
    "peer",
    "peer_run",
    "auto_accept",
    "open_mode",
    "max_minions",
    "autosign_file",
    "autoreject_file",
    "autosign_timeout",
    "autosign_grains_dir",
    "permissive_pki_access",
    "max_pending_keys",
    "max_pending_keys_per_address",
    "external_auth",
    "publisher_acl",
    "publisher_acl_blacklist",
    "client_acl_verify",
    "permissive_acl",
    "sharedsecret",
    "token_expire",
    "token_expire_user_override",
];

/// The names of all of them.
pub fn settings(opts: &MasterOpts) -> Vec<&str> {
    let told = opts.told_to_minions.entries().unwrap_or_default().iter().filter_map(|(key, _)| key.text());
    SETTINGS.iter().copied().chain(told).collect()
}

/// Those that no part keeps for itself.
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
