//! The minion's settings: Salt's keys and defaults, read and checked once and passed on as types.
//!
//! Related settings are one struct, which the part that they configure owns.

mod id;
mod read;
mod returners;

use std::path::PathBuf;
use std::time::Duration;

use brine_protocol::config::{Config, ConfigError};
use brine_protocol::ids::{MinionId, Saltenv};
use brine_protocol::keys::{EncAlg, SignAlg};
use brine_protocol::value::Value;
use brine_zmtp::{Backoff, Endpoint, Heartbeat, Keepalive};

pub use brine_sandbox::{Package, PackageError};
pub use id::IdSource;
pub(crate) use returners::returner_names;

/// Why the settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OptsError {
    /// A file, or the form of a setting.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A setting whose value cannot be used.
    #[error("the setting `{key}` in {file} {why}")]
    Setting {
        /// The key.
        key: String,
        /// The main configuration file.
        file: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A file that other users may change.
    #[error(transparent)]
    Untrusted(#[from] brine_daemon::trust::Untrusted),
    /// The minion's id.
    #[error("{why}; set `id` in {file}")]
    Id {
        /// What is wrong.
        why: String,
        /// The main configuration file.
        file: PathBuf,
    },
}

impl OptsError {
    /// Salt's exit code.
    pub fn exit_code(&self) -> i32 {
        brine_protocol::exit::USAGE
    }
}

/// All settings of a minion.
#[derive(Debug, Clone)]
pub struct MinionOpts {
    /// The minion's id.
    pub id: MinionId,
    /// The folder of the configuration.
    pub conf_dir: PathBuf,
    /// `pki_dir`
    pub pki_dir: PathBuf,
    /// `cachedir`
    pub cachedir: PathBuf,
    /// The grains file beside the configuration.
    pub grains_file: PathBuf,
    /// `grains`
    pub grains: Value,
    /// How grains are collected.
    pub collecting: GrainOpts,
    /// `user`
    pub user: String,
    /// `pidfile`
    pub pidfile: PathBuf,
    /// Where the master is.
    pub master: MasterAddress,
    /// How to authenticate.
    pub auth: AuthOpts,
    /// How to communicate with the master.
    pub net: NetOpts,
    /// How jobs are taken.
    pub jobs: JobOpts,
    /// How returns are kept and sent.
    pub returns: ReturnOpts,
    /// The events that the minion sends by itself.
    pub events: EventOpts,
    /// Where modules come from.
    pub modules: ModuleOpts,
    /// `mine_interval`, in minutes; none without `mine_enabled`.
    pub mine_interval: Option<Duration>,
    /// `startup_states` with `sls_list` and `top_file`.
    pub startup_states: Option<StartupStates>,
    /// `sandbox`, as written; the sandbox reads it.
    pub sandbox: Value,
    /// The whole configuration, for modules that read settings.
    pub config: Config,
}

/// The states that run at the start.
#[derive(Debug, Clone, PartialEq)]
pub enum StartupStates {
    /// Those of the top file.
    Highstate,
    /// Those of these SLS files: `sls_list`.
    Sls(Value),
    /// Those of another top file: `top_file`.
    Top(String),
}

/// How grains are collected.
#[derive(Debug, Clone)]
pub struct GrainOpts {
    /// `grains_cache_expiration`, with `grains_cache`.
    pub cache: Option<Duration>,
    /// `grains_refresh_every`, in minutes; none if it is 0.
    pub refresh_every: Option<Duration>,
    /// `grains_deep_merge`
    pub deep_merge: bool,
    /// `grains_blacklist`
    pub blacklist: Vec<String>,
}

/// Where the master is.
#[derive(Debug, Clone)]
pub struct MasterAddress {
    /// A name or an address.
    pub host: String,
    /// `master_port`, or the port in `master`.
    pub port: u16,
    /// `publish_port`, if it overrides the port that the master announces.
    pub publish_port: Option<u16>,
    /// `source_address` with `source_ret_port` and `source_publish_port`.
    pub source: Option<(String, u16, u16)>,
}

impl MasterAddress {
    /// The endpoint of requests.
    pub fn request_endpoint(&self) -> Endpoint {
        self.endpoint(self.port, self.source.as_ref().map(|(address, ret, _)| (address.clone(), *ret)))
    }

    /// The endpoint of publications; `said` is the port that the master announced.
    pub fn publish_endpoint(&self, said: u16) -> Endpoint {
        let port = self.publish_port.unwrap_or(said);
        self.endpoint(port, self.source.as_ref().map(|(address, _, publish)| (address.clone(), *publish)))
    }

    fn endpoint(&self, port: u16, source: Option<(String, u16)>) -> Endpoint {
        Endpoint::Tcp { host: self.host.clone(), port, source }
    }
}

/// How to authenticate (PROTOCOL §3.4).
#[derive(Debug, Clone)]
pub struct AuthOpts {
    /// `acceptance_wait_time`
    pub wait: Duration,
    /// `acceptance_wait_time_max`: if set, the wait doubles up to this time.
    pub wait_max: Duration,
    /// `auth_timeout`
    pub timeout: Duration,
    /// `auth_tries`
    pub tries: u32,
    /// `random_reauth_delay`: upper bound on the random wait before the minion authenticates again after a change of
    /// the master's key.
    pub reauth_delay: Duration,
    /// `rejected_retry`
    pub rejected_retry: bool,
    /// `master_finger`
    pub master_finger: String,
    /// `open_mode`
    pub open_mode: bool,
    /// `verify_master_pubkey_sign`: the name of the file with the signing key.
    pub verify_key: Option<PathBuf>,
    /// `autosign_grains`
    pub autosign_grains: Vec<String>,
    /// `keysize`
    pub keysize: usize,
    /// `encryption_algorithm`
    pub enc_algo: EncAlg,
    /// `signing_algorithm`
    pub sig_algo: SignAlg,
    /// `minion_sign_messages`
    pub sign_messages: bool,
    /// `require_sealed`
    pub require_sealed: bool,
}

/// How to communicate with the master.
#[derive(Debug, Clone)]
pub struct NetOpts {
    /// `zmq_filtering`
    pub filtering: bool,
    /// `recon_default`, `recon_max`, `recon_randomize`
    pub backoff: Backoff,
    /// `tcp_keepalive*`
    pub keepalive: Keepalive,
    /// `zmq_heartbeat_ivl`, `zmq_heartbeat_timeout`: heartbeats detect a master that vanished without closing its
    /// connection.
    pub heartbeat: Heartbeat,
    /// `request_channel_timeout`
    pub request_timeout: Duration,
    /// `request_channel_tries`
    pub request_tries: u32,
}

/// How jobs are taken.
#[derive(Debug, Clone)]
pub struct JobOpts {
    /// `minion_jid_queue_hwm`
    pub seen_jids: usize,
    /// `process_count_max`: jobs at once; others wait. Where Salt has no limit, the sandbox's limit applies.
    pub running_max: Option<usize>,
    /// `multifunc_ordered`
    pub multifunc_ordered: bool,
    /// `test`: functions change nothing and report what they would do.
    pub test: bool,
    /// `return`: modules that are given all returns.
    pub returners: Vec<String>,
    /// `drain_timeout`: time that running jobs get after a signal to end, 10 s by default.
    pub drain: Duration,
}

/// How returns are kept and sent.
#[derive(Debug, Clone)]
pub struct ReturnOpts {
    /// `return_retry_timer`, `return_retry_timer_max`
    pub retry: (Duration, Duration),
    /// `spool_max_bytes`, `spool_max_count`
    pub limits: SpoolLimits,
    /// `receipts`, `receipts_max_bytes`: how many bytes of receipts are kept; none: no receipts are made.
    pub receipts: Option<u64>,
}

/// How much the spool may hold.
#[derive(Debug, Clone, Copy)]
pub struct SpoolLimits {
    /// Bytes of all files.
    pub max_bytes: u64,
    /// Files.
    pub max_count: usize,
}

/// The events that the minion sends by itself.
#[derive(Debug, Clone)]
pub struct EventOpts {
    /// `enable_legacy_startup_events`
    pub legacy_start: bool,
    /// `start_event_grains`
    pub start_grains: Vec<String>,
    /// `ping_interval`, in minutes; none if it is 0.
    pub ping: Option<Duration>,
}

/// Where modules come from.
#[derive(Debug, Clone)]
pub struct ModuleOpts {
    /// `saltenv` (or `environment`), else `base`.
    pub saltenv: Saltenv,
    /// `autoload_dynamic_modules`: fetch modules at start and when a job names an unknown one.
    pub autoload: bool,
    /// `clean_dynamic_modules`: a sync removes the modules that the master no longer has.
    pub clean: bool,
}
