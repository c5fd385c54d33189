//! The settings of runners and the wheel.

use std::path::PathBuf;
use std::time::Duration;

use brine_protocol::config::settings;
use brine_protocol::options;

use brine_fileserver::HashType;

options! {
    /// The settings of the functions.
    #[derive(Debug, Clone)]
    pub(crate) struct RunnerOpts from c {
        /// `id`: the master's name, under which returns of runners are stored.
        pub(super) id: String = c.get(settings::ID)?,
        /// `user`: the user of published jobs.
        pub(super) user: String = c.get(settings::USER)?,
        pub(super) cachedir: PathBuf = c.get(settings::CACHEDIR)?,
        /// The main configuration file.
        pub(super) conf_file: PathBuf = c.path().to_owned(),
        pub(super) default_include: String = c.find(settings::DEFAULT_INCLUDE)?.unwrap_or_default(),
        /// `timeout`: time that a runner's jobs wait for minions.
        pub(super) timeout: Duration = c.get(settings::TIMEOUT)?,
        /// `gather_job_timeout`: time to wait for the minions' reports whether they still run a job.
        pub(super) gather_job_timeout: Duration = c.get(settings::GATHER_JOB_TIMEOUT)?,
        /// `runner_returns`: returns of runners are stored with the jobs.
        pub(super) keeps_returns: bool = c.get(settings::RUNNER_RETURNS)?,
        /// `job_cache_store_endtime`: jobs are shown with the time of their last return.
        pub(super) shows_end: bool = c.get(settings::JOB_CACHE_STORE_ENDTIME)?,
        /// `minion_data_cache`: minions' grains and pillar are kept.
        pub(super) has_data: bool = c.get(settings::MINION_DATA_CACHE)?,
        /// `hash_type`: the algorithm for fingerprints of keys.
        pub(super) hash_type: HashType = HashType::from_config(c)?,
    }
}
