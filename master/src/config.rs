//! What the master does, as its configuration says: Salt's keys and defaults (§12), read and checked once at the start.

use std::path::PathBuf;
use std::time::Duration;

use brine_protocol::config::{Config, ConfigError};
use brine_protocol::event::Framing;
use brine_protocol::ids::Saltenv;
use brine_protocol::keys::SignAlg;
use brine_protocol::target::Nodegroups;
use brine_protocol::value::{Value, ValueExt as _, map};
use brine_zmtp::{Heartbeat, Keepalive, Limits};

pub use crate::access::AccessOpts;
pub use crate::audit::AuditOpts;
pub use crate::event_return::EventReturnOpts;
pub use crate::hash_type::HashType;
pub use crate::jobs::JobCacheOpts;
use crate::jobs::ReturnerName;
use crate::keys::Room;
pub use crate::quotas::QuotaOpts;

/// A return of more bytes is not stored; what comes instead says so. Brine's own key, `max_return_size`.
const RETURN_BYTES_MAX: u64 = 16 << 20;
/// `minion_rate`: a minion of a busy host sends a few a second, and one that was cut off brings what it has kept within a minute.
const MINION_RATE: u64 = 250;
/// `minion_rate_bytes`. The largest return at once, and one of half a megabyte eight times a second.
const MINION_RATE_BYTES: u64 = 4 << 20;
/// `minion_return_quota`: a return of ten megabytes every quarter of an hour.
const MINION_RETURN_QUOTA: u64 = 1 << 30;
/// `minion_return_quota_count`: a job each second.
const MINION_RETURNS: u64 = 100_000;
/// `file_recv_quota`, MiB: ten files of the largest size.
const FILE_RECV_MIB: u64 = 1_024;
/// `file_recv_quota_count`.
const FILE_RECV_COUNT: u64 = 10_000;
/// Keys that wait for an operator: twice as many as the largest fleets that come at once. Anybody can send one.
const PENDING_MAX: u64 = 20_000;
/// The same from one address, behind which may be a site; it takes ten addresses to make the keys of others go.
const PENDING_OF_ADDRESS_MAX: u64 = 2_000;
/// Requests of more bytes are refused. Brine's own key, `max_request_size`; a file pushed by cp.push is in chunks.
const REQUEST_BYTES_MAX: u64 = 64 << 20;

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

/// What `_master_opts` tells besides the environments (§6.1), with Salt's defaults; minions take every one of them for granted.
fn told(c: &Config) -> Value {
    let nil = || Value::Nil;
    let no = || Value::from(false);
    let defaults = [
        ("top_file_merging_strategy", Value::from("merge")),
        ("env_order", Value::Array(Vec::new())),
        ("default_top", Value::from("base")),
        ("renderer", Value::from("jinja|yaml")),
        ("failhard", no()),
        ("state_top", Value::from("salt://top.sls")),
        ("state_top_saltenv", nil()),
        ("nodegroups", Value::Map(Vec::new())),
        ("state_auto_order", Value::from(true)),
        ("state_events", no()),
        ("state_aggregate", no()),
        ("jinja_env", Value::Map(Vec::new())),
        ("jinja_sls_env", Value::Map(Vec::new())),
        ("jinja_lstrip_blocks", no()),
        ("jinja_trim_blocks", no()),
    ];
    map(defaults.map(|(key, default)| (key, c.value(key).cloned().unwrap_or(default))))
}

/// The ones that a request with `env_only` gets.
const ENV_ONLY: [&str; 3] = ["top_file_merging_strategy", "env_order", "default_top"];

impl MasterOpts {
    /// Reads and checks the settings.
    ///
    /// # Errors
    /// When an option has a value of a wrong type or form; the error names option, file and what is expected.
    pub fn from_config(c: &Config) -> Result<Self, ConfigError> {
        let keep_seconds = u64_or(c, "keep_jobs_seconds", 86_400)?;
        Ok(Self {
            id: c.opt_str("id")?.unwrap_or_else(default_id),
            user: c.opt_str("user")?.unwrap_or_else(|| "root".to_owned()),
            interface: c.get_str("interface")?,
            publish_port: c.get_port("publish_port")?,
            ret_port: c.get_port("ret_port")?,
            backlog: u32::try_from(u64_or(c, "zmq_backlog", 1_000)?)
                .map_err(|_| c.wrong("zmq_backlog", "a small number"))?,
            pub_hwm: to_usize(c, "pub_hwm", u64_or(c, "pub_hwm", 1_000)?.max(1))?,
            zmq_filtering: bool_or(c, "zmq_filtering", false)?,
            heartbeat: heartbeat(c)?,
            keepalive: keepalive(c)?,
            max_request_size: to_usize(c, "max_request_size", u64_or(c, "max_request_size", REQUEST_BYTES_MAX)?)?,
            max_return_size: to_usize(c, "max_return_size", u64_or(c, "max_return_size", RETURN_BYTES_MAX)?)?,
            quotas: QuotaOpts {
                rate: u64_or(c, "minion_rate", MINION_RATE)?,
                rate_bytes: u64_or(c, "minion_rate_bytes", MINION_RATE_BYTES)?,
                returns_bytes: u64_or(c, "minion_return_quota", MINION_RETURN_QUOTA)?,
                returns: u64_or(c, "minion_return_quota_count", MINION_RETURNS)?,
                events_kept: !ReturnerName::of_events(c)?.is_empty(),
            },
            connections: connections(c)?,
            pki_dir: c.get_path("pki_dir")?,
            cachedir: c.get_path("cachedir")?,
            sock_dir: c.get_path("sock_dir")?,
            pidfile: path_or(c, "pidfile", "/var/run/salt-master.pid")?,
            keysize: match u64_or(c, "keysize", 2_048)? {
                bits @ 2_048..=8_192 => to_usize(c, "keysize", bits)?,
                _ => return Err(c.wrong("keysize", "a number of bits from 2048 to 8192")),
            },
            conf_file: c.path().to_owned(),
            default_include: c.opt_str("default_include")?.unwrap_or_default(),
            auth: auth(c)?,
            access: AccessOpts::from_config(c)?,
            audit: AuditOpts {
                path: opt_path(c, "audit_log")?,
                required: bool_or(c, "audit_log_required", false)?,
                hide: list_or_empty(c, "audit_log_hide")?,
            },
            publish_session: duration_or(c, "publish_session", 86_400)?,
            rotate_aes_key: bool_or(c, "rotate_aes_key", true)?,
            ping_on_rotate: bool_or(c, "ping_on_rotate", false)?,
            publish_signing_algorithm: match c.opt_str("publish_signing_algorithm")? {
                Some(name) => name
                    .parse()
                    .map_err(|_| c.wrong("publish_signing_algorithm", "PKCS1v15-SHA1 or PKCS1v15-SHA224"))?,
                None => SignAlg::default(),
            },
            request_server_ttl: u64_or(c, "request_server_ttl", 0)?,
            master_sign_pubkey: bool_or(c, "master_sign_pubkey", false)?,
            master_sign_key_name: c.opt_str("master_sign_key_name")?.unwrap_or_else(|| "master_sign".to_owned()),
            allow_minion_key_revoke: bool_or(c, "allow_minion_key_revoke", true)?,
            timeout: duration_or(c, "timeout", 5)?,
            gather_job_timeout: duration_or(c, "gather_job_timeout", 10)?,
            runner_returns: bool_or(c, "runner_returns", true)?,
            pillar_roots: roots(c, "pillar_roots")?,
            loop_interval: duration_or(c, "loop_interval", 60)?.max(Duration::from_secs(1)),
            presence_events: bool_or(c, "presence_events", false)?,
            keep_jobs: (keep_seconds > 0).then(|| Duration::from_secs(keep_seconds)),
            job_cache: JobCacheOpts::from_config(c)?,
            job_cache_store_endtime: bool_or(c, "job_cache_store_endtime", false)?,
            event_return: EventReturnOpts::from_config(c)?,
            python_job_files: bool_or(c, "python_job_files", true)?,
            minion_data_cache: bool_or(c, "minion_data_cache", true)?,
            nodegroups: c.value("nodegroups").map(Nodegroups::new).unwrap_or_default(),
            minion_data_cache_events: bool_or(c, "minion_data_cache_events", true)?,
            mine_get: c.value("mine_get").cloned(),
            peer: c.value("peer").cloned(),
            peer_run: c.value("peer_run").cloned(),
            require_signed_returns: bool_or(c, "require_minion_sign_messages", false)?,
            refuse_badly_signed_returns: bool_or(c, "drop_messages_signature_fail", true)?,
            event_framing: match c.opt_str("event_publisher_framing")?.as_deref() {
                None | Some("bare") => Framing::Bare,
                Some("prefixed") => Framing::Prefixed,
                Some(_) => {
                    return Err(c.wrong("event_publisher_framing", "bare (3007, 3008 clients) or prefixed (3006)"));
                }
            },
            max_event_size: to_usize(c, "max_event_size", u64_or(c, "max_event_size", 1_048_576)?)?,
            files: files(c)?,
            shown: shown(c),
            told_to_minions: told(c),
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
        auto_accept: bool_or(c, "auto_accept", false)?,
        open_mode: bool_or(c, "open_mode", false)?,
        max_minions: to_usize(c, "max_minions", u64_or(c, "max_minions", 0)?)?,
        autosign_file: opt_path(c, "autosign_file")?,
        autoreject_file: opt_path(c, "autoreject_file")?,
        autosign_timeout: Duration::from_secs(u64_or(c, "autosign_timeout", 120)?.saturating_mul(60)),
        autosign_grains_dir: opt_path(c, "autosign_grains_dir")?,
        permissive_pki_access: bool_or(c, "permissive_pki_access", false)?,
        auth_events: bool_or(c, "auth_events", true)?,
        auth_events_autosign_grains: list_or_empty(c, "auth_events_autosign_grains")?,
        minimum_auth_version: u64_or(c, "minimum_auth_version", 3)?,
        room: Room {
            all: to_usize(c, "max_pending_keys", u64_or(c, "max_pending_keys", PENDING_MAX)?)?,
            of_address: {
                let key = "max_pending_keys_per_address";
                to_usize(c, key, u64_or(c, key, PENDING_OF_ADDRESS_MAX)?)?
            },
        },
    })
}

fn connections(c: &Config) -> Result<ConnectionOpts, ConfigError> {
    let defaults = Limits::default();
    let count = |key: &'static str, default: usize| match u64_or(c, key, default as u64)? {
        0 => Err(c.wrong(key, "a number of 1 or more")),
        count => to_usize(c, key, count),
    };
    Ok(ConnectionOpts {
        all: count("max_connections", defaults.max_connections)?,
        per_address: count("max_connections_per_address", defaults.max_connections_per_address)?,
        silent_per_address: count("max_silent_per_address", defaults.max_silent_per_address)?,
        subscriptions: count("max_subscriptions", defaults.max_subscriptions)?,
    })
}

fn files(c: &Config) -> Result<FileOpts, ConfigError> {
    Ok(FileOpts {
        roots: roots(c, "file_roots")?,
        buffer_size: match u64_or(c, "file_buffer_size", 1_048_576)? {
            // Above, a chunk would not fit into a peer's message limit.
            bytes @ 1..=16_777_216 => to_usize(c, "file_buffer_size", bytes)?,
            _ => return Err(c.wrong("file_buffer_size", "a number of bytes from 1 to 16777216")),
        },
        hash_type: match c.opt_str("hash_type")? {
            Some(name) => {
                HashType::parse(&name).ok_or_else(|| c.wrong("hash_type", "sha224, sha256, sha384 or sha512"))?
            }
            None => HashType::Sha256,
        },
        follow_symlinks: bool_or(c, "fileserver_followsymlinks", true)?,
        ignore_glob: list_or_empty(c, "file_ignore_glob")?,
        ignore_regex: list_or_empty(c, "file_ignore_regex")?,
        recv: bool_or(c, "file_recv", false)?,
        recv_max: u64_or(c, "file_recv_max_size", 100)?.saturating_mul(1 << 20),
        recv_quota: (
            u64_or(c, "file_recv_quota", FILE_RECV_MIB)?.saturating_mul(1 << 20),
            u64_or(c, "file_recv_quota_count", FILE_RECV_COUNT)?,
        ),
    })
}

/// Environments and their folders.
fn roots(c: &Config, key: &'static str) -> Result<Vec<(Saltenv, Vec<PathBuf>)>, ConfigError> {
    let mut roots = Vec::new();
    for (env, paths) in c.get_map_of_lists(key)? {
        let env = Saltenv::try_from(env.as_str()).map_err(|_| c.wrong(key, "a map of environments to folders"))?;
        let dir = c.dir().to_owned();
        roots.push((env, paths.into_iter().map(|path| dir.join(path)).collect()));
    }
    Ok(roots)
}

fn heartbeat(c: &Config) -> Result<Heartbeat, ConfigError> {
    let interval = u64_or(c, "zmq_heartbeat_ivl", 10_000)?;
    let timeout = u64_or(c, "zmq_heartbeat_timeout", 30_000)?;
    Ok(Heartbeat {
        interval: (interval > 0).then(|| Duration::from_millis(interval)),
        timeout: Duration::from_millis(timeout),
    })
}

fn keepalive(c: &Config) -> Result<Keepalive, ConfigError> {
    // -1 leaves it to the system.
    let seconds = |key: &'static str, default: i64| -> Result<Option<Duration>, ConfigError> {
        let value = if c.value(key).is_some() { c.get_i64(key)? } else { default };
        Ok(u64::try_from(value).ok().filter(|s| *s > 0).map(Duration::from_secs))
    };
    let count = if c.value("tcp_keepalive_cnt").is_some() { c.get_i64("tcp_keepalive_cnt")? } else { -1 };
    Ok(Keepalive {
        enabled: bool_or(c, "tcp_keepalive", true)?,
        idle: seconds("tcp_keepalive_idle", 300)?,
        interval: seconds("tcp_keepalive_intvl", -1)?,
        count: u32::try_from(count).ok().filter(|n| *n > 0),
    })
}

fn default_id() -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    format!("{host}_master")
}

fn bool_or(c: &Config, key: &str, default: bool) -> Result<bool, ConfigError> {
    if c.value(key).is_some() { c.get_bool(key) } else { Ok(default) }
}

fn u64_or(c: &Config, key: &str, default: u64) -> Result<u64, ConfigError> {
    if c.value(key).is_some() { c.get_u64(key) } else { Ok(default) }
}

fn duration_or(c: &Config, key: &str, default_seconds: u64) -> Result<Duration, ConfigError> {
    if c.value(key).is_some() { c.get_duration(key) } else { Ok(Duration::from_secs(default_seconds)) }
}

fn path_or(c: &Config, key: &str, default: &str) -> Result<PathBuf, ConfigError> {
    Ok(opt_path(c, key)?.unwrap_or_else(|| PathBuf::from(default)))
}

fn opt_path(c: &Config, key: &str) -> Result<Option<PathBuf>, ConfigError> {
    c.opt_str(key)?.map(|_| c.get_path(key)).transpose()
}

fn list_or_empty(c: &Config, key: &str) -> Result<Vec<String>, ConfigError> {
    if c.value(key).is_some() { c.get_list(key) } else { Ok(Vec::new()) }
}

fn to_usize(c: &Config, key: &str, value: u64) -> Result<usize, ConfigError> {
    usize::try_from(value).map_err(|_| c.wrong(key, "a smaller number"))
}
