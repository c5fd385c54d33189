//! What of the settings can change while the master runs (SIGHUP). All or nothing: what cannot be used leaves everything as it is.
//!
//! The table of settings says which these are. The others count from the next start: ports, folders, keys and sizes, which tasks and files
//! were made with.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use brine_protocol::ids::Saltenv;
use brine_protocol::target::Nodegroups;
use brine_protocol::value::Value;

use crate::config::MasterOpts;
use crate::quotas::QuotaOpts;

/// The live settings that no part keeps for itself.
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
