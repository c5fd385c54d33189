//! Reads the configuration file and checks the settings.

use std::path::{Path, PathBuf};

use brine_daemon::connections::{heartbeat, keepalive};
use brine_daemon::trust;
use brine_protocol::config::settings::{self, Setting};
use brine_protocol::config::{Config, Role};
use brine_protocol::ids::Saltenv;
use brine_protocol::value::{Value, ValueExt};
use brine_zmtp::Backoff;

use super::{
    AuthOpts, EventOpts, GrainOpts, JobOpts, MasterAddress, MinionOpts, ModuleOpts, NetOpts, OptsError, ReturnOpts,
    SpoolLimits, StartupStates, id,
};

impl MinionOpts {
    /// Reads `<conf_dir>/minion` and the files that belong to it. `id` comes from the command line.
    ///
    /// # Errors
    /// When a file cannot be read or trusted, or a setting cannot be used.
    pub fn load(conf_dir: &Path, id: Option<&str>) -> Result<Self, OptsError> {
        Self::load_with(conf_dir, id, &[])
    }

    /// Returns what the files of the configuration say of `sandbox` now.
    ///
    /// # Errors
    /// One line: they cannot be read, or somebody else may write one.
    pub(crate) fn sandbox_on_disk(&self) -> Result<Value, String> {
        let trust = |file: &Path| trust::check(file).map_err(|e| e.to_string());
        let config = Config::load_trusted(&self.conf_dir.join("minion"), Role::Minion, &trust);
        config.and_then(|config| config.get(settings::SANDBOX)).map_err(|error| error.to_string())
    }

    /// As [`MinionOpts::load`], with settings that the command line overrides.
    ///
    /// # Errors
    /// As [`MinionOpts::load`].
    pub fn load_with(conf_dir: &Path, id: Option<&str>, overrides: &[(&str, Value)]) -> Result<Self, OptsError> {
        // This includes folders that are still empty and files that are read later.
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
    ///
    /// # Errors
    /// When a setting or the minion's id cannot be used.
    pub fn from_config(mut config: Config, id: Option<&str>) -> Result<Self, OptsError> {
        let (id, source) = id::find(&config, id)?;
        config.set(settings::ID.row.name, id.as_str());
        tracing::debug!("the minion's id {id} comes from {source}");

        let conf_dir = config.dir().to_owned();
        let pki_dir = config.get(settings::PKI_DIR)?;
        // `zeromq` is the only transport.
        config.get(settings::TRANSPORT)?;
        let mine = config.find(settings::MINE_INTERVAL)?.filter(|interval| !interval.is_zero());
        let mine_enabled = config.get(settings::MINE_ENABLED)?;
        Ok(Self {
            grains_file: conf_dir.join("grains"),
            grains: config.get(settings::GRAINS)?,
            collecting: collecting(&config)?,
            cachedir: config.get(settings::CACHEDIR)?,
            user: config.get(settings::USER)?,
            pidfile: config.get(settings::PIDFILE)?,
            master: master(&config)?,
            auth: auth(&config, &pki_dir)?,
            net: net(&config)?,
            jobs: jobs(&config)?,
            returns: ReturnOpts {
                retry: (config.get(settings::RETURN_RETRY_TIMER)?, config.get(settings::RETURN_RETRY_TIMER_MAX)?),
                limits: SpoolLimits {
                    max_bytes: config.get(settings::SPOOL_MAX_BYTES)?,
                    max_count: config.get(settings::SPOOL_MAX_COUNT)?,
                },
                receipts: match config.get(settings::RECEIPTS)? {
                    true => Some(config.get(settings::RECEIPTS_MAX_BYTES)?),
                    false => None,
                },
            },
            events: EventOpts {
                legacy_start: config.get(settings::ENABLE_LEGACY_STARTUP_EVENTS)?,
                start_grains: config.get(settings::START_EVENT_GRAINS)?,
                ping: config.find(settings::PING_INTERVAL)?.filter(|interval| !interval.is_zero()),
            },
            modules: ModuleOpts {
                saltenv: match config.find(settings::SALTENV)? {
                    None => Saltenv::base(),
                    Some(env) => {
                        env.parse().map_err(|e| wrong(&config, settings::SALTENV, format!("cannot be used: {e}")))?
                    }
                },
                autoload: config.get(settings::AUTOLOAD_DYNAMIC_MODULES)?,
                clean: config.get(settings::CLEAN_DYNAMIC_MODULES)?,
            },
            mine_interval: mine.filter(|_| mine_enabled),
            startup_states: startup_states(&config)?,
            sandbox: config.get(settings::SANDBOX)?,
            id,
            conf_dir,
            pki_dir,
            config,
        })
    }

    /// The folder of fetched modules.
    pub fn modules_dir(&self) -> PathBuf {
        self.cachedir.join("modules")
    }
}

fn wrong<T>(config: &Config, setting: Setting<T>, why: String) -> OptsError {
    OptsError::Setting { key: setting.row.name.to_owned(), file: config.path().to_owned(), why }
}

fn auth(config: &Config, pki_dir: &Path) -> Result<AuthOpts, OptsError> {
    let sign_key = config.get(settings::MASTER_SIGN_KEY_NAME)?;
    let verify = config.get(settings::VERIFY_MASTER_PUBKEY_SIGN)?;
    Ok(AuthOpts {
        wait: config.get(settings::ACCEPTANCE_WAIT_TIME)?,
        wait_max: config.get(settings::ACCEPTANCE_WAIT_TIME_MAX)?,
        timeout: config.get(settings::AUTH_TIMEOUT)?,
        tries: config.get(settings::AUTH_TRIES)?,
        reauth_delay: config.get(settings::RANDOM_REAUTH_DELAY)?,
        rejected_retry: config.get(settings::REJECTED_RETRY)?,
        master_finger: config.get(settings::MASTER_FINGER)?,
        open_mode: config.get(settings::OPEN_MODE)?,
        verify_key: verify.then(|| pki_dir.join(format!("{sign_key}.pub"))),
        autosign_grains: config.get(settings::AUTOSIGN_GRAINS)?,
        keysize: config.get(settings::KEYSIZE)?,
        enc_algo: config.get_parsed(settings::ENCRYPTION_ALGORITHM)?,
        sig_algo: config.get_parsed(settings::SIGNING_ALGORITHM)?,
        sign_messages: config.get(settings::MINION_SIGN_MESSAGES)?,
        require_sealed: config.get(settings::REQUIRE_SEALED)?,
    })
}

fn collecting(config: &Config) -> Result<GrainOpts, OptsError> {
    let (cached, expires) = (config.get(settings::GRAINS_CACHE)?, config.get(settings::GRAINS_CACHE_EXPIRATION)?);
    Ok(GrainOpts {
        cache: cached.then_some(expires),
        refresh_every: Some(config.get(settings::GRAINS_REFRESH_EVERY)?).filter(|every| !every.is_zero()),
        deep_merge: config.get(settings::GRAINS_DEEP_MERGE)?,
        blacklist: config.get(settings::GRAINS_BLACKLIST)?,
    })
}

fn startup_states(config: &Config) -> Result<Option<StartupStates>, OptsError> {
    Ok(match config.get(settings::STARTUP_STATES)?.as_str() {
        "" => None,
        "sls" => Some(StartupStates::Sls(config.get(settings::SLS_LIST)?)),
        "top" => Some(StartupStates::Top(config.get(settings::TOP_FILE)?)),
        // Any other word, as in Salt.
        _ => Some(StartupStates::Highstate),
    })
}

fn jobs(config: &Config) -> Result<JobOpts, OptsError> {
    Ok(JobOpts {
        seen_jids: config.get(settings::MINION_JID_QUEUE_HWM)?,
        running_max: usize::try_from(config.get(settings::PROCESS_COUNT_MAX)?).ok().filter(|n| *n > 0),
        multifunc_ordered: config.get(settings::MULTIFUNC_ORDERED)?,
        test: config.find(settings::TEST)?.unwrap_or_default(),
        drain: config.get(settings::DRAIN_TIMEOUT)?,
        returners: returners(&config.get(settings::RETURN)?),
    })
}

/// The names in a list, or in a text with commas.
fn returners(said: &Value) -> Vec<String> {
    let text = match said {
        Value::Array(names) => names.iter().map(ValueExt::python_str).collect::<Vec<_>>().join(","),
        other => other.text().unwrap_or_default().to_owned(),
    };
    super::returner_names(&text).into_iter().map(str::to_owned).collect()
}

fn net(config: &Config) -> Result<NetOpts, OptsError> {
    Ok(NetOpts {
        filtering: config.get(settings::ZMQ_FILTERING)?,
        backoff: Backoff {
            initial: config.get(settings::RECON_DEFAULT)?,
            max: config.get(settings::RECON_MAX)?,
            randomize: config.get(settings::RECON_RANDOMIZE)?,
        },
        keepalive: keepalive(config)?,
        heartbeat: heartbeat(config)?,
        request_timeout: config.get(settings::REQUEST_CHANNEL_TIMEOUT)?,
        request_tries: config.get(settings::REQUEST_CHANNEL_TRIES)?,
    })
}

/// The first of the configured masters. The minion does not use the others.
fn master(config: &Config) -> Result<MasterAddress, OptsError> {
    let masters = config.find(settings::MASTER)?.unwrap_or_default();
    let first = masters.iter().map(|m| m.trim()).find(|m| !m.is_empty());
    let Some(first) = first else { return Err(wrong(config, settings::MASTER, "names no master".into())) };
    if masters.len() > 1 {
        tracing::warn!("several masters are configured; this minion uses the first, {first}");
    }
    let default_port = config.get(settings::MASTER_PORT)?;
    let (host, port) =
        split_host_port(first).ok_or_else(|| wrong(config, settings::MASTER, format!("is no host: {first}")))?;
    let source = match config.find(settings::SOURCE_ADDRESS)? {
        None => None,
        Some(address) => {
            Some((address, config.get(settings::SOURCE_RET_PORT)?, config.get(settings::SOURCE_PUBLISH_PORT)?))
        }
    };
    // Salt's own default for `publish_port` is 4506. Salt lets any other value override the port that the master
    // announces.
    let publish_port = Some(config.get(settings::PUBLISH_PORT)?).filter(|port| *port != 4506);
    Ok(MasterAddress { host: host.to_owned(), port: port.unwrap_or(default_port), publish_port, source })
}

/// Splits `host`, `host:port`, `v6`, `[v6]` and `[v6]:port`.
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
        _ => Some((text, None)), // an IPv6 address without brackets
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use brine_protocol::config::settings::SettingKind;
    use brine_protocol::value::{ValueExt as _, map};

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

    /// The minion refuses each file that it reads, and each folder of such files, if others may write to it.
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
        // A folder without files, to which others could add files later.
        std::fs::remove_file(conf.join("minion.d/grants.conf")).unwrap();
        chmod(&conf.join("minion.d"), 0o777);
        assert!(MinionOpts::load(&conf, None).is_err());
    }

    #[test]
    fn a_number_out_of_range_is_an_error_and_not_another_number() {
        for (text, expected) in [
            ("auth_tries: 0", "auth_tries in FILE must be a whole number of attempts from 1 to 1000000, not 0"),
            ("keysize: 1024", "keysize in FILE must be a whole number of bits from 2048 to 8192, not 1024"),
            ("request_channel_tries: 0", "request_channel_tries in FILE must be a whole number of attempts from 1"),
            (
                "minion_jid_queue_hwm: 100001",
                "minion_jid_queue_hwm in FILE must be a whole number of jobs from 0 to 100000",
            ),
            ("mine_interval: -1", "mine_interval in FILE must be a number of minutes from 0 to 10000000, not -1"),
            ("mine_interval: .inf", "mine_interval in FILE must be a number of minutes from 0 to 10000000, not inf"),
            ("ping_interval: 1e9", "ping_interval in FILE must be a number of minutes from 0 to 10000000"),
            ("process_count_max: -2", "process_count_max in FILE must be a whole number of jobs from -1 to 1000000"),
            ("tcp_keepalive_cnt: 128", "tcp_keepalive_cnt in FILE must be a whole number of checks from -1 to 127"),
            ("spool_max_count: -1", "spool_max_count in FILE must be a whole number of returns, 0 or more, not -1"),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let file = dir.path().join("minion");
            let config = Config::from_yaml(&format!("id: m1\n{text}"), &file, Role::Minion).unwrap();
            let error = MinionOpts::from_config(config, None).unwrap_err();
            let expected = expected.replace("FILE", file.to_str().unwrap());
            assert!(error.to_string().contains(&expected), "{text}: {error}");
            assert_eq!(error.exit_code(), 64);
        }
    }

    /// The sandbox checks its settings itself. The table must have the same defaults and ranges.
    #[test]
    fn the_table_says_of_the_sandbox_what_it_does() {
        let read = |name: &str, value: Value| {
            let nested = name.rsplit(':').fold(value, |value, key| map([(key, value)]));
            brine_sandbox::Settings::read(nested.get("sandbox").unwrap())
        };
        let default = format!("{:?}", brine_sandbox::Settings::default());
        let rows = || settings::rows().filter(|row| row.name.starts_with("sandbox:"));
        for row in rows() {
            let side = row.minion.unwrap();
            if !side.default.is_empty() {
                assert_eq!(format!("{:?}", read(row.name, side.value()).unwrap()), default, "{}", row.name);
            }
            let (good, bad) = match row.kind {
                SettingKind::Integer { min, max, .. } => (vec![min, max], vec![min - 1, max + 1]),
                SettingKind::Size { min, max } => {
                    let [min, max] = [min, max].map(|bound| i64::try_from(bound).unwrap());
                    (vec![min, max], vec![min - 1, max + 1])
                }
                SettingKind::Span => (vec![1, 86_400], vec![0, 86_401]),
                _ => continue,
            };
            assert!(good.iter().all(|n| read(row.name, Value::from(*n)).is_ok()), "{}", row.name);
            assert!(bad.iter().all(|n| read(row.name, Value::from(*n)).is_err()), "{}", row.name);
        }
        // The table lists all settings: the sandbox names its settings in the error about an unknown one.
        let names = |of: &str| {
            let error = read(&format!("{of}:nothing"), Value::from(1)).unwrap_err().to_string();
            error.rsplit_once("; there are ").unwrap().1.replace(" and ", ", ").split(", ").map(str::to_owned).collect()
        };
        for of in ["sandbox", "sandbox:limits", "sandbox:compile", "sandbox:recordings"] {
            let mut known: Vec<String> = names(of);
            let prefix = format!("{of}:");
            let below = rows().filter_map(|row| row.name.strip_prefix(&prefix).filter(|key| !key.contains(':')));
            let mut in_table: Vec<&str> = below.collect();
            known.sort();
            in_table.sort_unstable();
            assert_eq!(known, in_table, "{of}");
        }
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
