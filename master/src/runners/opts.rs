//! What the configuration says of runners and the wheel.

use std::path::PathBuf;
use std::time::Duration;

use brine_protocol::config::{Config, ConfigError, settings};
use brine_protocol::target::Nodegroups;

use crate::hash_type::HashType;

/// The settings of the functions.
#[derive(Debug, Clone)]
pub(crate) struct RunnerOpts {
    /// `id`: the master's name, under which what runners return is kept.
    pub(super) id: String,
    /// `user`, in whose name jobs are published.
    pub(super) user: String,
    /// `cachedir`.
    pub(super) cachedir: PathBuf,
    /// The main configuration file.
    pub(super) conf_file: PathBuf,
    /// `default_include`.
    pub(super) default_include: String,
    /// `timeout`: how long a runner's jobs wait for minions.
    pub(super) timeout: Duration,
    /// `gather_job_timeout`: how long they then wait to hear which minions still work on them.
    pub(super) gather_job_timeout: Duration,
    /// `runner_returns`: what runners return is kept with the jobs.
    pub(super) keeps_returns: bool,
    /// `job_cache_store_endtime`: jobs are shown with the time of their last return.
    pub(super) shows_end: bool,
    /// `hash_type`: how fingerprints of keys are made.
    pub(super) hash_type: HashType,
    /// `nodegroups`.
    pub(super) nodegroups: Nodegroups,
}

impl RunnerOpts {
    pub(crate) fn from_config(c: &Config) -> Result<Self, ConfigError> {
        Ok(Self {
            id: c.get(settings::ID)?,
            user: c.get(settings::USER)?,
            cachedir: c.get(settings::CACHEDIR)?,
            conf_file: c.path().to_owned(),
            default_include: c.find(settings::DEFAULT_INCLUDE)?.unwrap_or_default(),
            timeout: c.get(settings::TIMEOUT)?,
            gather_job_timeout: c.get(settings::GATHER_JOB_TIMEOUT)?,
            keeps_returns: c.get(settings::RUNNER_RETURNS)?,
            shows_end: c.get(settings::JOB_CACHE_STORE_ENDTIME)?,
            hash_type: HashType::from_config(c)?,
            nodegroups: Nodegroups::new(&c.get(settings::NODEGROUPS)?),
        })
    }
}
