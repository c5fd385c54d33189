//! What the master does, as its configuration says: Salt's keys and defaults (§12), read and checked once at the start.

use std::path::PathBuf;
use std::time::Duration;

use brine_protocol::config::settings::{self, Folders, Setting};
use brine_protocol::config::{Config, ConfigError};
use brine_protocol::event::Framing;
use brine_protocol::ids::Saltenv;
use brine_protocol::keys::SignAlg;
use brine_protocol::target::Nodegroups;
use brine_protocol::value::{Value, ValueExt as _, map};
use brine_zmtp::{Heartbeat, Keepalive};

pub use crate::access::AccessOpts;
pub use crate::audit::AuditOpts;
pub use crate::event_return::EventReturnOpts;
pub use crate::hash_type::HashType;
pub use crate::jobs::JobCacheOpts;
use crate::jobs::ReturnerName;
use crate::keys::Room;
pub use crate::quotas::QuotaOpts;

/// The master's settings.
#[derive(Debug, Clone)]
pub struct MasterOpts {
    /// `id`: the master's name, which the dropfile must hold.
    pub id: String,
    /// `user`: whom the master runs as.
    pub user: String,
    /// `interface`.
    pub interface: String,
    /// `publish_port`; 0 lets the system choose.
    pub publish_port: u16,
    /// `ret_port`; 0 lets the system choose.
    pub ret_port: u16,
    /// `zmq_backlog`.
    pub backlog: u32,
    /// `pub_hwm`.
    pub pub_hwm: usize,
    /// `zmq_filtering`.
    pub zmq_filtering: bool,
    /// `zmq_heartbeat_ivl`, `zmq_heartbeat_timeout`.
    pub heartbeat: Heartbeat,
    /// `tcp_keepalive*`.
    pub keepalive: Keepalive,
    /// `max_request_size`.
    pub max_request_size: usize,
    /// `max_return_size`.
    pub max_return_size: usize,
    /// What one minion may make the master keep.
    pub quotas: QuotaOpts,
    /// `max_connections`, `max_connections_per_address`, `max_silent_per_address`, `max_subscriptions`: what peers may have of each port.
    /// Brine's own keys.
    pub connections: ConnectionOpts,

    /// `pki_dir`.
    pub pki_dir: PathBuf,
    /// `cachedir`.
    pub cachedir: PathBuf,
    /// `sock_dir`.
    pub sock_dir: PathBuf,
    /// `pidfile`.
    pub pidfile: PathBuf,
    /// `keysize`.
    pub keysize: usize,
    /// The main configuration file.
    pub conf_file: PathBuf,
    /// `default_include`.
    pub default_include: String,

    /// Which minions are let in, and how.
    pub auth: AuthOpts,
    /// Who else may use the master.
    pub access: AccessOpts,
    /// The audit log.
    pub audit: AuditOpts,
    /// `publish_session`: how long a session key is used.
    pub publish_session: Duration,
    /// `rotate_aes_key`.
    pub rotate_aes_key: bool,
    /// `ping_on_rotate`.
    pub ping_on_rotate: bool,
    /// `publish_signing_algorithm`.
    pub publish_signing_algorithm: SignAlg,
    /// `request_server_ttl`, seconds; 0 is off.
    pub request_server_ttl: u64,
    /// `master_sign_pubkey`.
    pub master_sign_pubkey: bool,
    /// `master_sign_key_name`.
    pub master_sign_key_name: String,
    /// `allow_minion_key_revoke`.
    pub allow_minion_key_revoke: bool,

    /// `timeout`: how long the master's own jobs wait for minions.
    pub timeout: Duration,
    /// `gather_job_timeout`: how long it then waits to hear who still works on them.
    pub gather_job_timeout: Duration,
    /// `runner_returns`: what runners return is kept with the jobs.
    pub runner_returns: bool,
    /// `pillar_roots`, for the wheel.
    pub pillar_roots: Vec<(Saltenv, Vec<PathBuf>)>,
    /// `loop_interval`.
    pub loop_interval: Duration,
    /// `presence_events`.
    pub presence_events: bool,
    /// `keep_jobs_seconds`; none keeps jobs for ever.
    pub keep_jobs: Option<Duration>,
    /// `job_cache`, `ext_job_cache`, `master_job_cache` and the settings of returners.
    pub job_cache: JobCacheOpts,
    /// `job_cache_store_endtime`: jobs are shown with the time of their last return.
    pub job_cache_store_endtime: bool,
    /// `event_return` and what goes with it.
    pub event_return: EventReturnOpts,
    /// `python_job_files`: whether each job leaves the two files that Python's LocalClient looks for. Brine's own key.
    pub python_job_files: bool,
    /// `minion_data_cache`.
    pub minion_data_cache: bool,
    /// `nodegroups`.
    pub nodegroups: Nodegroups,
    /// `minion_data_cache_events`.
    pub minion_data_cache_events: bool,
    /// `mine_get`: which minions may ask the mine for what; none: all for all.
    pub mine_get: Option<Value>,
    /// `peer`: which minions may publish what; none: nobody anything.
    pub peer: Option<Value>,
    /// `peer_run`: which minions may run which runners; none: nobody any.
    pub peer_run: Option<Value>,
    /// `require_minion_sign_messages`: returns without a signature are refused.
    pub require_signed_returns: bool,
    /// `drop_messages_signature_fail`: returns with a wrong signature are refused. Unlike Salt's, it is on unless turned off.
    pub refuse_badly_signed_returns: bool,

    /// `event_publisher_framing`: how events stand on `master_event_pub.ipc` (§0.2). Brine's own key.
    pub event_framing: Framing,
    /// `max_event_size`.
    pub max_event_size: usize,

    /// The file server.
    pub files: FileOpts,
    /// What wheel `config.values` tells: the configuration without secrets.
    pub shown: Value,
    /// What `_master_opts` tells minions (§6.1), by key.
    pub told_to_minions: Value,
}

/// What peers may have of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionOpts {
    /// `max_connections`.
    pub all: usize,
    /// `max_connections_per_address`.
    pub per_address: usize,
    /// `max_silent_per_address`.
    pub silent_per_address: usize,
    /// `max_subscriptions`: of one connection to `publish_port`.
    pub subscriptions: usize,
}

/// Who is let in (§3.2, §3.7).
#[derive(Debug, Clone)]
pub struct AuthOpts {
    /// `auto_accept`.
    pub auto_accept: bool,
    /// `open_mode`.
    pub open_mode: bool,
    /// `max_minions`; 0 is no bound.
    pub max_minions: usize,
    /// `autosign_file`.
    pub autosign_file: Option<PathBuf>,
    /// `autoreject_file`.
    pub autoreject_file: Option<PathBuf>,
    /// `autosign_timeout`.
    pub autosign_timeout: Duration,
    /// `autosign_grains_dir`.
    pub autosign_grains_dir: Option<PathBuf>,
    /// `permissive_pki_access`.
    pub permissive_pki_access: bool,
    /// `auth_events`.
    pub auth_events: bool,
    /// `auth_events_autosign_grains`: the acts whose events tell the grains that the minion sent to be signed by.
    pub auth_events_autosign_grains: Vec<String>,
    /// `minimum_auth_version` (CVE-2025-62349).
    pub minimum_auth_version: u64,
    /// `max_pending_keys`, `max_pending_keys_per_address`: keys that may wait for an operator. Brine's own keys.
    pub room: Room,
}

/// The file server's settings.
#[derive(Debug, Clone)]
pub struct FileOpts {
    /// `file_roots`: each environment's folders, the first that has a path wins.
    pub roots: Vec<(Saltenv, Vec<PathBuf>)>,
    /// `file_buffer_size`: bytes of a chunk.
    pub buffer_size: usize,
    /// `hash_type`.
    pub hash_type: HashType,
    /// `fileserver_followsymlinks`.
    pub follow_symlinks: bool,
    /// `file_ignore_glob`.
    pub ignore_glob: Vec<String>,
    /// `file_ignore_regex`.
    pub ignore_regex: Vec<String>,
    /// `file_recv`.
    pub recv: bool,
    /// `file_recv_max_size`, in bytes.
    pub recv_max: u64,
    /// `file_recv_quota`, in bytes, and `file_recv_quota_count`: of all files of one minion; 0 is no bound. Brine's own keys.
    pub recv_quota: (u64, u64),
}

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

/// The ones that a request with `env_only` gets.
const ENV_ONLY: [&str; 3] = ["top_file_merging_strategy", "env_order", "default_top"];

impl MasterOpts {
    /// Reads and checks the settings.
    ///
    /// # Errors
    /// When an option has a value of a wrong type or form; the error names option, file and what is expected.
    pub fn from_config(c: &Config) -> Result<Self, ConfigError> {
        let keep_jobs = c.get(settings::KEEP_JOBS_SECONDS)?;
        Ok(Self {
            id: c.get(settings::ID)?,
            user: c.get(settings::USER)?,
            interface: c.get(settings::INTERFACE)?,
            publish_port: c.get(settings::PUBLISH_PORT)?,
            ret_port: c.get(settings::RET_PORT)?,
            backlog: c.get(settings::ZMQ_BACKLOG)?,
            pub_hwm: c.get(settings::PUB_HWM)?,
            zmq_filtering: c.get(settings::ZMQ_FILTERING)?,
            heartbeat: heartbeat(c)?,
            keepalive: keepalive(c)?,
            max_request_size: c.get(settings::MAX_REQUEST_SIZE)?,
            max_return_size: c.get(settings::MAX_RETURN_SIZE)?,
            quotas: QuotaOpts {
                rate: c.get(settings::MINION_RATE)?,
                rate_bytes: c.get(settings::MINION_RATE_BYTES)?,
                returns_bytes: c.get(settings::MINION_RETURN_QUOTA)?,
                returns: c.get(settings::MINION_RETURN_QUOTA_COUNT)?,
                events_kept: !ReturnerName::of_events(c)?.is_empty(),
            },
            connections: connections(c)?,
            pki_dir: c.get(settings::PKI_DIR)?,
            cachedir: c.get(settings::CACHEDIR)?,
            sock_dir: c.get(settings::SOCK_DIR)?,
            pidfile: c.get(settings::PIDFILE)?,
            keysize: c.get(settings::KEYSIZE)?,
            conf_file: c.path().to_owned(),
            default_include: c.find(settings::DEFAULT_INCLUDE)?.unwrap_or_default(),
            auth: auth(c)?,
            access: AccessOpts::from_config(c)?,
            audit: AuditOpts {
                path: c.find(settings::AUDIT_LOG)?,
                required: c.get(settings::AUDIT_LOG_REQUIRED)?,
                hide: c.get(settings::AUDIT_LOG_HIDE)?,
            },
            publish_session: c.get(settings::PUBLISH_SESSION)?,
            rotate_aes_key: c.get(settings::ROTATE_AES_KEY)?,
            ping_on_rotate: c.get(settings::PING_ON_ROTATE)?,
            publish_signing_algorithm: c.get_parsed(settings::PUBLISH_SIGNING_ALGORITHM)?,
            request_server_ttl: c.get(settings::REQUEST_SERVER_TTL)?,
            master_sign_pubkey: c.get(settings::MASTER_SIGN_PUBKEY)?,
            master_sign_key_name: c.get(settings::MASTER_SIGN_KEY_NAME)?,
            allow_minion_key_revoke: c.get(settings::ALLOW_MINION_KEY_REVOKE)?,
            timeout: c.get(settings::TIMEOUT)?,
            gather_job_timeout: c.get(settings::GATHER_JOB_TIMEOUT)?,
            runner_returns: c.get(settings::RUNNER_RETURNS)?,
            pillar_roots: roots(c, settings::PILLAR_ROOTS)?,
            loop_interval: c.get(settings::LOOP_INTERVAL)?,
            presence_events: c.get(settings::PRESENCE_EVENTS)?,
            keep_jobs: (!keep_jobs.is_zero()).then_some(keep_jobs),
            job_cache: JobCacheOpts::from_config(c)?,
            job_cache_store_endtime: c.get(settings::JOB_CACHE_STORE_ENDTIME)?,
            event_return: EventReturnOpts::from_config(c)?,
            python_job_files: c.get(settings::PYTHON_JOB_FILES)?,
            minion_data_cache: c.get(settings::MINION_DATA_CACHE)?,
            nodegroups: Nodegroups::new(&c.get(settings::NODEGROUPS)?),
            minion_data_cache_events: c.get(settings::MINION_DATA_CACHE_EVENTS)?,
            mine_get: c.find(settings::MINE_GET)?,
            peer: c.find(settings::PEER)?,
            peer_run: c.find(settings::PEER_RUN)?,
            require_signed_returns: c.get(settings::REQUIRE_MINION_SIGN_MESSAGES)?,
            refuse_badly_signed_returns: c.get(settings::DROP_MESSAGES_SIGNATURE_FAIL)?,
            event_framing: match c.get(settings::EVENT_PUBLISHER_FRAMING)?.as_str() {
                "prefixed" => Framing::Prefixed,
                _ => Framing::Bare,
            },
            max_event_size: c.get(settings::MAX_EVENT_SIZE)?,
            files: files(c)?,
            shown: shown(c),
            told_to_minions: told(c)?,
        })
    }

    /// What a minion is told that asks for the environments only.
    pub(crate) fn is_env_only(key: &str) -> bool {
        ENV_ONLY.contains(&key)
    }
}

/// What of the configuration is told: Salt's own options, and the master's name.
fn shown(c: &Config) -> Value {
    let mut shown = c.shown();
    shown.insert("id", c.value("id").cloned().unwrap_or(Value::Nil));
    shown
}

fn auth(c: &Config) -> Result<AuthOpts, ConfigError> {
    Ok(AuthOpts {
        auto_accept: c.get(settings::AUTO_ACCEPT)?,
        open_mode: c.get(settings::OPEN_MODE)?,
        max_minions: c.get(settings::MAX_MINIONS)?,
        autosign_file: c.find(settings::AUTOSIGN_FILE)?,
        autoreject_file: c.find(settings::AUTOREJECT_FILE)?,
        autosign_timeout: c.get(settings::AUTOSIGN_TIMEOUT)?,
        autosign_grains_dir: c.find(settings::AUTOSIGN_GRAINS_DIR)?,
        permissive_pki_access: c.get(settings::PERMISSIVE_PKI_ACCESS)?,
        auth_events: c.get(settings::AUTH_EVENTS)?,
        auth_events_autosign_grains: c.get(settings::AUTH_EVENTS_AUTOSIGN_GRAINS)?,
        minimum_auth_version: c.get(settings::MINIMUM_AUTH_VERSION)?,
        room: Room {
            all: c.get(settings::MAX_PENDING_KEYS)?,
            of_address: c.get(settings::MAX_PENDING_KEYS_PER_ADDRESS)?,
        },
    })
}

fn connections(c: &Config) -> Result<ConnectionOpts, ConfigError> {
    Ok(ConnectionOpts {
        all: c.get(settings::MAX_CONNECTIONS)?,
        per_address: c.get(settings::MAX_CONNECTIONS_PER_ADDRESS)?,
        silent_per_address: c.get(settings::MAX_SILENT_PER_ADDRESS)?,
        subscriptions: c.get(settings::MAX_SUBSCRIPTIONS)?,
    })
}

fn files(c: &Config) -> Result<FileOpts, ConfigError> {
    let mebibytes = |setting| c.get(setting).map(|count: u64| count << 20);
    Ok(FileOpts {
        roots: roots(c, settings::FILE_ROOTS)?,
        buffer_size: c.get(settings::FILE_BUFFER_SIZE)?,
        hash_type: HashType::parse(&c.get(settings::HASH_TYPE)?).unwrap_or(HashType::Sha256),
        follow_symlinks: c.get(settings::FILESERVER_FOLLOWSYMLINKS)?,
        ignore_glob: c.get(settings::FILE_IGNORE_GLOB)?,
        ignore_regex: c.get(settings::FILE_IGNORE_REGEX)?,
        recv: c.get(settings::FILE_RECV)?,
        recv_max: mebibytes(settings::FILE_RECV_MAX_SIZE)?,
        recv_quota: (mebibytes(settings::FILE_RECV_QUOTA)?, c.get(settings::FILE_RECV_QUOTA_COUNT)?),
    })
}

/// Environments and their folders.
fn roots(c: &Config, setting: Setting<Folders>) -> Result<Vec<(Saltenv, Vec<PathBuf>)>, ConfigError> {
    let mut roots = Vec::new();
    for (env, paths) in c.find(setting)?.unwrap_or_default() {
        let env = Saltenv::try_from(env.as_str())
            .map_err(|_| c.wrong(setting.row.name, "a map of environments to folders"))?;
        let dir = c.dir().to_owned();
        roots.push((env, paths.into_iter().map(|path| dir.join(path)).collect()));
    }
    Ok(roots)
}

fn heartbeat(c: &Config) -> Result<Heartbeat, ConfigError> {
    let interval = c.get(settings::ZMQ_HEARTBEAT_IVL)?;
    Ok(Heartbeat {
        interval: (!interval.is_zero()).then_some(interval),
        timeout: c.get(settings::ZMQ_HEARTBEAT_TIMEOUT)?,
    })
}

fn keepalive(c: &Config) -> Result<Keepalive, ConfigError> {
    let seconds =
        |setting| c.get(setting).map(|n: i64| u64::try_from(n).ok().filter(|n| *n > 0).map(Duration::from_secs));
    Ok(Keepalive {
        enabled: c.get(settings::TCP_KEEPALIVE)?,
        idle: seconds(settings::TCP_KEEPALIVE_IDLE)?,
        interval: seconds(settings::TCP_KEEPALIVE_INTVL)?,
        count: u32::try_from(c.get(settings::TCP_KEEPALIVE_CNT)?).ok().filter(|n| *n > 0),
    })
}
