//! What of the settings can change while the master runs (SIGHUP). All or nothing: what cannot be used leaves everything as it is.
//!
//! What is not here counts from the next start: ports, folders, keys and sizes, which tasks and files were made with.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use brine_protocol::ids::Saltenv;
use brine_protocol::target::Nodegroups;
use brine_protocol::value::{Value, ValueExt};

use crate::config::MasterOpts;
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
pub fn names(opts: &MasterOpts) -> Vec<&str> {
    let told = opts.told_to_minions.entries().unwrap_or_default().iter().filter_map(|(key, _)| key.text());
    SETTINGS.iter().copied().chain(told).collect()
}

/// Those that no part keeps for itself.
#[derive(Debug)]
pub(crate) struct LiveSettings {
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

/// The ones that count now, for all parts.
pub(crate) type SharedSettings = Arc<ArcSwap<LiveSettings>>;

impl LiveSettings {
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
