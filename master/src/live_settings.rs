//! The settings that can change while the master runs (SIGHUP). A reload takes up all of them, or none if one is
//! unusable.
//!
//! The table of settings marks them as live. The others (ports, folders, keys, sizes) take effect at the next start,
//! because tasks and files were made with them.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use brine_protocol::config::{Config, settings};
use brine_protocol::options;
use brine_protocol::target::Nodegroups;
use brine_protocol::value::{Value, ValueExt as _};

use crate::fileserver::{Roots, roots};
use crate::quotas::QuotaOpts;

options! {
    /// The live settings that no other part keeps.
    #[derive(Debug, Clone)]
    pub(crate) struct LiveSettings from c {
        pub(crate) nodegroups: Nodegroups = Nodegroups::new(&c.get(settings::NODEGROUPS)?),
        /// `keep_jobs_seconds`; `None` keeps jobs for ever.
        pub(crate) keep_jobs: Option<Duration> =
            Some(c.get(settings::KEEP_JOBS_SECONDS)?).filter(|keep| !keep.is_zero()),
        pub(crate) quotas: QuotaOpts = QuotaOpts::from_config(c)?,
        pub(crate) file_roots: Roots = roots(c, settings::FILE_ROOTS)?,
        pub(crate) pillar_roots: Roots = roots(c, settings::PILLAR_ROOTS)?,
        /// `reactor` has entries: the reactor runs.
        pub(crate) has_reactor: bool = c.get(settings::REACTOR)?.list().is_some_and(|list| !list.is_empty()),
        /// The options in `_master_opts` (§6.1), by key.
        pub(crate) told_to_minions: Value = c.told_to_minions()?,
        /// `rest_cherrypy:events_for`: callers of salt-api see all events.
        pub(crate) events_for_all: bool = c.get(settings::API_EVENTS_FOR)? == "all",
        /// `rest_cherrypy:webhook_disable_auth`: hooks need no token.
        pub(crate) open_hooks: bool = c.get(settings::API_WEBHOOK_DISABLE_AUTH)?,
        /// The configuration without secrets, for wheel `config.values`.
        pub(crate) shown: Value = shown(c),
    }
}

/// The live settings in use, shared by all parts.
pub(crate) type SharedSettings = Arc<ArcSwap<LiveSettings>>;

/// Returns the configuration to show: Salt's own options and the master's name.
fn shown(c: &Config) -> Value {
    let mut shown = c.shown();
    shown.insert("id", c.value("id").cloned().unwrap_or(Value::Nil));
    shown
}
