//! From a configuration file to checked settings.

use std::path::{Path, PathBuf};
use std::time::Duration;

use brine_daemon::trust;
use brine_protocol::config::{Config, ConfigError, Role};
use brine_protocol::ids::Saltenv;
use brine_protocol::value::{Value, ValueExt};
use brine_zmtp::{Backoff, Heartbeat, Keepalive};

use super::SpoolLimits;
use super::{AuthOpts, EventOpts, JobOpts, MasterOpts, MinionOpts, ModuleOpts, NetOpts, OptsError, ReturnOpts, id};

impl MinionOpts {
    /// Reads `<conf_dir>/minion` and what belongs to it. `id` comes from the command line.
    pub fn load(conf_dir: &Path, id: Option<&str>) -> Result<Self, OptsError> {
        Self::load_with(conf_dir, id, &[])
    }

    /// As [`MinionOpts::load`], with settings that the command line overrules.
    pub fn load_with(conf_dir: &Path, id: Option<&str>, overrides: &[(&str, Value)]) -> Result<Self, OptsError> {
        // Also the folders that hold nothing yet, and the files that are read later.
        for beside in ["minion.d", "minion_id", "grains", "module_keys"] {
            trust::check(&conf_dir.join(beside))?;
        }
        let trust = |file: &Path| trust::check(file).map_err(|e| e.to_string());
        let mut config = Config::load_trusted(&conf_dir.join("minion"), Role::Minion, &trust)?;
        for (key, value) in overrides {
            config.set(key, value.clone());
        }
        Self::from_config(config, id)
    }

    /// Checks a configuration.
    pub fn from_config(mut config: Config, id: Option<&str>) -> Result<Self, OptsError> {
        let file = config.path().to_owned();
        let setting = |key: &str, why: String| OptsError::Setting { key: key.to_owned(), file: file.clone(), why };
        let (id, source) = id::find(&config, id)?;
        config.set("id", id.as_str());
        tracing::debug!("the minion's id {id} comes from {source}");

        let conf_dir = config.dir().to_owned();
        let pki_dir = config.get_path("pki_dir")?;
        let master = master(&config)?;
        let transport = config.get_str("transport")?;
        if transport != "zeromq" {
            return Err(setting("transport", format!("is `{transport}`; this minion speaks zeromq")));
        }
        let algorithm = |key: &str| config.get_str(key);
        let enc_algo = algorithm("encryption_algorithm")?;
        let sig_algo = algorithm("signing_algorithm")?;
        let verify_key = match config.get_bool("verify_master_pubkey_sign")? {
            false => None,
            true => {
                let name = config.opt_str("master_sign_key_name")?.unwrap_or_else(|| "master_sign".to_owned());
                Some(pki_dir.join(format!("{name}.pub")))
            }
        };
        let auth = AuthOpts {
            wait: config.get_duration("acceptance_wait_time")?,
            wait_max: config.get_duration("acceptance_wait_time_max")?,
            timeout: config.get_duration("auth_timeout")?,
            tries: u32::try_from(config.get_u64("auth_tries")?).unwrap_or(u32::MAX).max(1),
            reauth_delay: config.get_duration("random_reauth_delay")?,
            rejected_retry: config.get_bool("rejected_retry")?,
            master_finger: config.opt_str("master_finger")?.unwrap_or_default(),
            open_mode: config.get_bool("open_mode")?,
            verify_key,
            autosign_grains: list_or_empty(&config, "autosign_grains")?,
            keysize: usize::try_from(config.get_u64("keysize")?).unwrap_or(usize::MAX),
            enc_algo: enc_algo
                .parse()
                .map_err(|_| setting("encryption_algorithm", format!("is unknown: {enc_algo}")))?,
            sig_algo: sig_algo.parse().map_err(|_| setting("signing_algorithm", format!("is unknown: {sig_algo}")))?,
            sign_messages: config.get_bool("minion_sign_messages")?,
        };
        let modules = ModuleOpts {
            saltenv: match config.opt_str("saltenv")? {
                None => Saltenv::base(),
                Some(env) => env.parse().map_err(|e| setting("saltenv", format!("cannot be used: {e}")))?,
            },
            autoload: optional(&config, "autoload_dynamic_modules", Config::get_bool)?.unwrap_or(true),
            clean: optional(&config, "clean_dynamic_modules", Config::get_bool)?.unwrap_or(true),
        };
        let returns = ReturnOpts {
            retry: (config.get_duration("return_retry_timer")?, config.get_duration("return_retry_timer_max")?),
            limits: SpoolLimits {
                max_bytes: optional(&config, "spool_max_bytes", Config::get_u64)?
                    .unwrap_or(SpoolLimits::default().max_bytes),
                max_count: optional(&config, "spool_max_count", Config::get_u64)?
                    .map_or(SpoolLimits::default().max_count, |n| usize::try_from(n).unwrap_or(usize::MAX)),
            },
        };
        let mine_enabled = config.get_bool("mine_enabled")?;
        let mine = optional(&config, "mine_interval", Config::get_f64)?.filter(|minutes| *minutes > 0.0);
        let mine = mine.filter(|minutes| minutes.is_finite()).filter(|_| mine_enabled);
        let ping = optional(&config, "ping_interval", Config::get_f64)?.unwrap_or(0.0);
        Ok(Self {
            grains_file: conf_dir.join("grains"),
            grains: config.value("grains").cloned().unwrap_or(Value::Nil),
            cachedir: config.get_path("cachedir")?,
            user: config.opt_str("user")?.unwrap_or_default(),
            pidfile: config.get_path("pidfile")?,
            net: net(&config)?,
            jobs: JobOpts {
                seen_jids: usize::try_from(config.get_u64("minion_jid_queue_hwm")?).unwrap_or(usize::MAX).min(100_000),
                running_max: usize::try_from(config.get_i64("process_count_max")?).ok().filter(|n| *n > 0),
                multifunc_ordered: config.get_bool("multifunc_ordered")?,
                drain: optional(&config, "drain_timeout", Config::get_duration)?.unwrap_or(Duration::from_secs(10)),
            },
            events: EventOpts {
                legacy_start: config.get_bool("enable_legacy_startup_events")?,
                start_grains: list_or_empty(&config, "start_event_grains")?,
                ping: (ping > 0.0 && ping.is_finite()).then(|| Duration::from_secs_f64((ping * 60.0).min(1e9))),
            },
            mine_interval: mine.map(|minutes| Duration::from_secs_f64((minutes * 60.0).min(1e9))),
            sandbox: config.value("sandbox").cloned().unwrap_or(Value::Nil),
            id,
            conf_dir,
            pki_dir,
            master,
            auth,
            returns,
            modules,
            config,
        })
    }

    /// Where fetched modules are kept.
    pub fn modules_dir(&self) -> PathBuf {
        self.cachedir.join("modules")
    }
}

fn net(config: &Config) -> Result<NetOpts, OptsError> {
    let positive = |key: &str| config.get_i64(key).map(|n| u64::try_from(n).ok().map(Duration::from_secs));
    let default = Heartbeat::default();
    let interval = optional(config, "zmq_heartbeat_ivl", Config::get_duration_ms)?;
    let initial = config.get_duration_ms("recon_default")?;
    let max = config.get_duration_ms("recon_max")?;
    let randomize = config.get_bool("recon_randomize")?;
    Ok(NetOpts {
        filtering: config.get_bool("zmq_filtering")?,
        backoff: Backoff { initial, max, randomize },
        keepalive: Keepalive {
            enabled: config.get_bool("tcp_keepalive")?,
            idle: positive("tcp_keepalive_idle")?,
            interval: positive("tcp_keepalive_intvl")?,
            count: u32::try_from(config.get_i64("tcp_keepalive_cnt")?).ok(),
        },
        heartbeat: Heartbeat {
            interval: interval.map_or(default.interval, |i| (!i.is_zero()).then_some(i)),
            timeout: optional(config, "zmq_heartbeat_timeout", Config::get_duration_ms)?.unwrap_or(default.timeout),
        },
        request_timeout: config.get_duration("request_channel_timeout")?,
        request_tries: u32::try_from(config.get_u64("request_channel_tries")?).unwrap_or(u32::MAX).max(1),
    })
}

/// The first of the configured masters. (Going on to the next one when it fails is failover, which comes later.)
fn master(config: &Config) -> Result<MasterOpts, OptsError> {
    let setting = |key: &str, why: String| OptsError::Setting { key: key.into(), file: config.path().to_owned(), why };
    let masters = config.get_list("master")?;
    let first = masters.iter().map(|m| m.trim()).find(|m| !m.is_empty());
    let Some(first) = first else { return Err(setting("master", "names no master".into())) };
    if masters.len() > 1 {
        tracing::warn!("several masters are configured; this minion uses the first, {first}");
    }
    let default_port = config.get_port("master_port")?;
    let (host, port) = split_host_port(first).ok_or_else(|| setting("master", format!("is no host: {first}")))?;
    let source = match config.opt_str("source_address")? {
        None => None,
        Some(address) => {
            let port = |key| optional(config, key, Config::get_port).map(Option::unwrap_or_default);
            Some((address, port("source_ret_port")?, port("source_publish_port")?))
        }
    };
    // Salt takes a `publish_port` other than its own odd default, 4506, for one that overrules the master.
    let publish_port = optional(config, "publish_port", Config::get_port)?.filter(|port| *port != 4506);
    Ok(MasterOpts { host: host.to_owned(), port: port.unwrap_or(default_port), publish_port, source })
}

/// `host`, `host:port`, `v6`, `[v6]`, `[v6]:port`.
fn split_host_port(text: &str) -> Option<(&str, Option<u16>)> {
    if let Some(rest) = text.strip_prefix('[') {
        let (host, rest) = rest.split_once(']')?;
        return match rest.strip_prefix(':') {
            Some(port) => Some((host, Some(port.parse().ok()?))),
            None => rest.is_empty().then_some((host, None)),
        };
    }
    match text.matches(':').count() {
        0 => Some((text, None)),
        1 => {
            let (host, port) = text.split_once(':')?;
            (!host.is_empty()).then_some((host, Some(port.parse().ok()?)))
        }
        _ => Some((text, None)), // a bare IPv6 address
    }
}

fn optional<T>(
    config: &Config,
    key: &str,
    get: impl FnOnce(&Config, &str) -> Result<T, ConfigError>,
) -> Result<Option<T>, ConfigError> {
    match config.value(key) {
        None => Ok(None),
        Some(value) if value.text() == Some("") => Ok(None),
        Some(_) => get(config, key).map(Some),
    }
}

fn list_or_empty(config: &Config, key: &str) -> Result<Vec<String>, ConfigError> {
    optional(config, key, Config::get_list).map(Option::unwrap_or_default)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opts(text: &str) -> Result<MinionOpts, OptsError> {
        let dir = tempfile::tempdir().unwrap();
        let config = Config::from_yaml(text, &dir.path().join("minion"), Role::Minion)?;
        MinionOpts::from_config(config, None)
    }

    #[test]
    fn salts_defaults() {
        let opts = opts("id: m1\n").unwrap();
        assert_eq!(opts.id.as_str(), "m1");
        assert_eq!((opts.master.host.as_str(), opts.master.port), ("salt", 4506));
        assert_eq!(opts.master.publish_port, None);
        assert_eq!(opts.auth.wait, Duration::from_secs(10));
        assert_eq!((opts.auth.timeout, opts.auth.tries), (Duration::from_secs(5), 7));
        assert_eq!(opts.jobs.seen_jids, 100);
        assert_eq!(opts.jobs.running_max, None);
        assert_eq!(opts.net.request_timeout, Duration::from_secs(60));
        assert!(opts.events.legacy_start && opts.events.ping.is_none());
        assert_eq!(opts.returns.retry, (Duration::from_secs(5), Duration::from_secs(10)));
        assert_eq!(opts.pki_dir, Path::new("/etc/salt/pki/minion"));
    }

    #[test]
    fn masters_take_many_forms() {
        for (text, host, port) in [
            ("a.example", "a.example", 4506),
            ("a.example:5506", "a.example", 5506),
            ("'[::1]:5506'", "::1", 5506),
            ("'::1'", "::1", 4506),
            ("[b.example, c.example]", "b.example", 4506),
        ] {
            let opts = opts(&format!("id: m1\nmaster: {text}\n")).unwrap();
            assert_eq!((opts.master.host.as_str(), opts.master.port), (host, port), "{text}");
        }
        for text in ["''", "[]", "a:b:", "':4506'", "a:notaport"] {
            if let Ok(opts) = opts(&format!("id: m1\nmaster: {text}\n")) {
                assert_eq!(text, "a:b:", "{:?}", opts.master); // looks like IPv6; connecting says so
            }
        }
    }

    /// Each file that is read, and each folder that holds one.
    #[test]
    fn what_others_may_write_is_not_read() {
        use std::os::unix::fs::PermissionsExt;
        let root = tempfile::tempdir().unwrap();
        let chmod = |path: &Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        let (conf, more) = (root.path().join("conf"), root.path().join("more"));
        for dir in [&conf, &more, &conf.join("minion.d"), &conf.join("module_keys")] {
            std::fs::create_dir(dir).unwrap();
            chmod(dir, 0o755);
        }
        for (file, text) in [
            ("conf/minion", "id: m1\ninclude: ../more/*.yaml\n"),
            ("conf/minion.d/grants.conf", "log_level: info\n"),
            ("conf/minion_id", "m1"),
            ("conf/grains", "role: x"),
            ("more/a.yaml", "include: b.inc\n"),
            ("more/b.inc", "test: True\n"),
        ] {
            std::fs::write(root.path().join(file), text).unwrap();
            chmod(&root.path().join(file), 0o644);
        }
        assert_eq!(MinionOpts::load(&conf, None).unwrap().config.value("test"), Some(&Value::from(true)));
        for path in [
            "conf",
            "conf/minion",
            "conf/minion.d",
            "conf/minion.d/grants.conf",
            "conf/minion_id",
            "conf/grains",
            "conf/module_keys",
            "more",
            "more/a.yaml",
            "more/b.inc",
        ] {
            let path = root.path().join(path);
            let good = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
            for bad in [good | 0o020, good | 0o002, good | 0o1002] {
                chmod(&path, bad);
                let error = MinionOpts::load(&conf, None).unwrap_err();
                let said = error.to_string();
                let mend = format!("mode {bad:04o}, owner");
                assert!(said.contains(&mend) && said.contains(&format!("chmod go-w {}", path.display())), "{said}");
                assert_eq!((said.lines().count(), error.exit_code()), (1, 64));
            }
            chmod(&path, good);
        }
        // A folder that could get files later.
        std::fs::remove_file(conf.join("minion.d/grants.conf")).unwrap();
        chmod(&conf.join("minion.d"), 0o777);
        assert!(MinionOpts::load(&conf, None).is_err());
    }

    #[test]
    fn a_setting_that_cannot_be_used_is_named() {
        for (text, named) in [
            ("transport: tcp", "transport"),
            ("signing_algorithm: MD5", "signing_algorithm"),
            ("encryption_algorithm: none", "encryption_algorithm"),
            ("master: ''", "master"),
            ("id: a/b", "id"),
            ("saltenv: ../x", "saltenv"),
            ("auth_timeout: soon", "auth_timeout"),
        ] {
            let text = if text.starts_with("id") { text.to_owned() } else { format!("id: m1\n{text}") };
            let error = opts(&text).unwrap_err();
            assert!(error.to_string().contains(named), "{text}: {error}");
            assert_eq!(error.exit_code(), 64);
        }
    }
}
