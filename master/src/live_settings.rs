//! What of the settings can change while the master runs (SIGHUP). All or nothing: what cannot be used leaves everything as it is.
//!
//! The table of settings says which these are. The others count from the next start: ports, folders, keys and sizes, which tasks and files
//! were made with.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use brine_protocol::config::{Config, ConfigError, settings};
use brine_protocol::target::Nodegroups;
use brine_protocol::value::{Value, ValueExt as _, map};

use crate::fileserver::{Roots, roots};
use crate::options::options;
use crate::quotas::QuotaOpts;

options! {
    /// The live settings that no part keeps for itself.
    #[derive(Debug, Clone)]
    pub(crate) struct LiveSettings from c {
        pub(crate) nodegroups: Nodegroups = Nodegroups::new(&c.get(settings::NODEGROUPS)?),
        /// `keep_jobs_seconds`; none keeps jobs for ever.
        pub(crate) keep_jobs: Option<Duration> =
            Some(c.get(settings::KEEP_JOBS_SECONDS)?).filter(|keep| !keep.is_zero()),
        pub(crate) quotas: QuotaOpts = QuotaOpts::from_config(c)?,
        pub(crate) file_roots: Roots = roots(c, settings::FILE_ROOTS)?,
        pub(crate) pillar_roots: Roots = roots(c, settings::PILLAR_ROOTS)?,
        /// What `_master_opts` tells minions (§6.1), by key.
        pub(crate) told_to_minions: Value = told(c)?,
        /// What wheel `config.values` tells: the configuration without secrets.
        pub(crate) shown: Value = shown(c),
    }
}

/// The ones that count now, for all parts.
pub(crate) type SharedSettings = Arc<ArcSwap<LiveSettings>>;

/// What `_master_opts` tells besides the environments (§6.1); minions take every one of them for granted.
fn told(c: &Config) -> Result<Value, ConfigError> {
    let told = [
        settings::TOP_FILE_MERGING_STRATEGY,
        settings::ENV_ORDER,
        settings::DEFAULT_TOP,
        settings::RENDERER,
        settings::FAILHARD,
        settings::STATE_TOP,
        settings::STATE_TOP_SALTENV,
        settings::NODEGROUPS,
        settings::STATE_AUTO_ORDER,
        settings::STATE_EVENTS,
        settings::STATE_AGGREGATE,
        settings::JINJA_ENV,
        settings::JINJA_SLS_ENV,
        settings::JINJA_LSTRIP_BLOCKS,
        settings::JINJA_TRIM_BLOCKS,
    ];
    let told = told.map(|setting| c.get(setting).map(|value| (setting.row.name, value)));
    Ok(map(told.into_iter().collect::<Result<Vec<_>, _>>()?))
}

/// What of the configuration is told: Salt's own options, and the master's name.
fn shown(c: &Config) -> Value {
    let mut shown = c.shown();
    shown.insert("id", c.value("id").cloned().unwrap_or(Value::Nil));
    shown
}
