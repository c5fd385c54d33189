//! The settings of salt-api, from the master's configuration file.

use std::path::PathBuf;
use std::time::Duration;

use brine_client::ClientOpts;
use brine_daemon::args::DaemonArgs;
use brine_daemon::{ProcessError, trust};
use brine_protocol::config::{Config, ConfigError, Role, settings};
use brine_protocol::exit;
use brine_protocol::nodes::node_name;
use brine_protocol::target::Nodegroups;
use brine_protocol::value::{Value, ValueExt as _};

use crate::chunk::Client;
use crate::pages::{AppOpts, Paths};
use crate::rules::Rules;

/// What salt-api reads from the configuration.
#[derive(Debug, Clone)]
pub struct ApiOpts {
    /// The user to run as.
    pub user: String,
    /// The file with the process id.
    pub pidfile: PathBuf,
    /// The address to bind.
    pub host: String,
    /// The port to bind.
    pub port: u16,
    /// The certificate; none to serve without TLS.
    pub tls: Option<TlsFiles>,
    /// The clients that are offered.
    pub clients: Vec<Client>,
    /// Names in `netapi_enable_clients` that are no client here, such as `ssh`.
    pub unknown_clients: Vec<String>,
    /// Who may speak to salt-api, by address and origin.
    pub rules: Rules,
    /// The groups that targets may name.
    pub groups: Nodegroups,
    /// Longest wait for the result of a runner.
    pub rest_timeout: Duration,
    /// Where the master is, if it is on this host.
    pub master: ClientOpts,
    /// Where it is otherwise.
    pub remote: Option<RemoteOpts>,
    /// Where its paths are.
    pub paths: Paths,
    /// The pages for browsers.
    pub app: AppOpts,
    /// Whether `/stats` answers everybody.
    pub open_stats: bool,
    /// Settings of Salt's that are accepted without effect.
    pub ignored: Vec<String>,
}

/// A master on another host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteOpts {
    /// Its name or address.
    pub host: String,
    /// Its port for salt-api.
    pub port: u16,
    /// The name of this salt-api there.
    pub name: String,
    /// The fingerprint of its key.
    pub finger: Option<String>,
    /// The folder of this salt-api's own key.
    pub pki_dir: PathBuf,
    /// The bits of a new one.
    pub bits: usize,
}

/// The files of a certificate, each in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate.
    pub crt: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// The certificates between it and the root's.
    pub chain: Option<PathBuf>,
}

/// Why salt-api cannot use its configuration.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// A setting is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Passwords would cross the network in clear text.
    #[error(
        "there is no certificate: set ssl_crt and ssl_key below rest_cherrypy in {}, or disable_ssl: True there, if only this host or a \
         proxy with TLS reaches the port", .0.display()
    )]
    NoCertificate(PathBuf),
    /// Nobody knows where the master is.
    #[error("api_master needs api_port as well, the port of that master for salt-api: set it in {}", .0.display())]
    NoPort(PathBuf),
    /// A name that cannot be one.
    #[error("{0:?} cannot be the name of this salt-api: set api_id, of letters, digits and . _ - between them")]
    Name(String),
    /// A path that cannot be one.
    #[error("rest_cherrypy: {0} must be a path of letters, digits and . _ - such as /{1}, and none of salt-api's own")]
    Path(&'static str, &'static str),
    /// Two paths that are one.
    #[error("rest_cherrypy: {0} and {1} must be different paths")]
    SamePath(&'static str, &'static str),
}

impl ApiOpts {
    /// Reads the settings.
    ///
    /// # Errors
    /// When one has a wrong value, or there is neither a certificate nor `disable_ssl`.
    pub fn from_config(config: &Config) -> Result<Self, SettingsError> {
        let path = |setting| config.find(setting).map(|path: Option<String>| path.map(|path| config.dir().join(path)));
        let tls = match (path(settings::API_SSL_CRT)?, path(settings::API_SSL_KEY)?) {
            _ if config.get(settings::API_DISABLE_SSL)? => None,
            (Some(crt), Some(key)) => Some(TlsFiles { crt, key, chain: path(settings::API_SSL_CHAIN)? }),
            _ => return Err(SettingsError::NoCertificate(config.path().to_owned())),
        };
        let app = AppOpts {
            page: path(settings::API_APP)?,
            path: own_path(&config.get(settings::API_APP_PATH)?).ok_or(SettingsError::Path("app_path", "app"))?,
            folder: path(settings::API_STATIC)?,
            folder_path: own_path(&config.get(settings::API_STATIC_PATH)?)
                .ok_or(SettingsError::Path("static_path", "static"))?,
            icon: path(settings::API_FAVICON)?,
        };
        let paths = Paths {
            prefix: match config.get(settings::API_ROOT_PREFIX)?.trim_matches('/') {
                "" => String::new(),
                prefix => own_path(prefix).ok_or(SettingsError::Path("root_prefix", "salt"))?,
            },
            hook: match config.get(settings::API_WEBHOOK_URL)?.trim_matches('/') {
                HOOK => format!("/{HOOK}"),
                other => own_path(other).ok_or(SettingsError::Path("webhook_url", HOOK))?,
            },
        };
        let own = [("app_path", &app.path), ("static_path", &app.folder_path), ("webhook_url", &paths.hook)];
        for (at, (name, one)) in own.iter().enumerate() {
            if let Some((other, _)) = own[at + 1..].iter().find(|(_, path)| path == one) {
                return Err(SettingsError::SamePath(name, other));
            }
        }
        let named = config.get(settings::NETAPI_ENABLE_CLIENTS)?;
        let (known, unknown_clients) = named.into_iter().partition::<Vec<_>, _>(|name| Client::parse(name).is_some());
        Ok(Self {
            user: config.get(settings::USER)?,
            pidfile: config.get(settings::API_PIDFILE)?,
            host: config.get(settings::API_HOST)?,
            port: config.get(settings::API_PORT)?,
            tls,
            clients: known.iter().filter_map(|name| Client::parse(name)).collect(),
            unknown_clients,
            rules: Rules::from_config(config)?,
            groups: config.value(settings::NODEGROUPS.row.name).map(Nodegroups::new).unwrap_or_default(),
            rest_timeout: config.get(settings::REST_TIMEOUT)?,
            master: ClientOpts::new(config)?,
            remote: remote(config)?,
            paths,
            app,
            open_stats: config.get(settings::API_STATS_DISABLE_AUTH)?,
            ignored: ignored(config),
        })
    }
}

/// The path of hooks, unless `webhook_url` names another one.
const HOOK: &str = "hook";

/// Reads where a master on another host is.
fn remote(config: &Config) -> Result<Option<RemoteOpts>, SettingsError> {
    let Some(host) = config.find(settings::API_MASTER)?.filter(|host| !host.is_empty()) else { return Ok(None) };
    let port = config.get(settings::API_LINK_PORT)?;
    if port == 0 {
        return Err(SettingsError::NoPort(config.path().to_owned()));
    }
    let name = match config.find(settings::API_ID)? {
        Some(name) => name,
        // The master's own name has such an end unless it is set.
        None => config.get(settings::ID)?.trim_end_matches("_master").to_owned(),
    };
    if node_name(&name).is_none() {
        return Err(SettingsError::Name(name));
    }
    Ok(Some(RemoteOpts {
        host: host.trim_start_matches('[').trim_end_matches(']').to_owned(),
        port,
        name,
        finger: config.find(settings::API_MASTER_FINGER)?,
        pki_dir: config.get(settings::API_PKI_DIR)?,
        bits: config.get(settings::KEYSIZE)?,
    }))
}

/// The first parts of salt-api's own paths.
const OWN_PATHS: [&str; 16] = [
    "login",
    "logout",
    "token",
    "minions",
    "run",
    "jobs",
    "keys",
    "events",
    "ws",
    HOOK,
    "stats",
    "v1",
    "openapi.json",
    "console",
    "favicon.ico",
    "index",
];

/// Returns a path that the configuration names as `/a/b`; none if it cannot be one.
fn own_path(text: &str) -> Option<String> {
    let path = text.trim_matches('/');
    let is_part = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
    };
    let first = path.split('/').next().unwrap_or_default();
    (path.split('/').all(is_part) && !OWN_PATHS.contains(&first)).then(|| format!("/{path}"))
}

/// The keys of `rest_cherrypy` that are no setting here.
fn ignored(config: &Config) -> Vec<String> {
    let own = settings::REST_CHERRYPY.row.name;
    let keys = config.value(own).and_then(Value::entries).unwrap_or_default().iter().filter_map(|(key, _)| key.text());
    let is_known = |key: &str| {
        settings::rows().any(|row| row.name.strip_prefix(own).and_then(|rest| rest.strip_prefix(':')) == Some(key))
    };
    keys.filter(|key| !is_known(key)).map(str::to_owned).collect()
}

/// Reads and checks the master's configuration file for salt-api. Its log file and pid file have settings of their own,
/// which take the place of the master's.
///
/// # Errors
/// When the configuration cannot be used, or untrusted users can write it; the error is one line.
pub(crate) fn load(args: &DaemonArgs) -> Result<(Config, ApiOpts), ProcessError> {
    let usage = |why: String| ProcessError::new(exit::USAGE, why);
    let dir = args.conf_dir()?;
    trust::check(&dir.join("master.d")).map_err(|error| usage(error.to_string()))?;
    let trusted = |file: &std::path::Path| trust::check(file).map_err(|error| error.to_string());
    let mut config =
        Config::load_trusted(&dir.join("master"), Role::Master, &trusted).map_err(|error| usage(error.to_string()))?;
    for (own, masters) in [(settings::API_LOGFILE, settings::LOG_FILE), (settings::API_PIDFILE, settings::PIDFILE)] {
        let path = config.get(own).map_err(|error| usage(error.to_string()))?;
        config.set(masters.row.name, path.display().to_string());
    }
    args.overrule(&mut config);
    let mut opts = ApiOpts::from_config(&config).map_err(|error| usage(error.to_string()))?;
    // `--pid-file` overrules the setting that both daemons of a host share.
    opts.pidfile = config.get(settings::PIDFILE).map_err(|error| usage(error.to_string()))?;
    Ok((config, opts))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn read(yaml: &str) -> Result<ApiOpts, SettingsError> {
        ApiOpts::from_config(&Config::from_yaml(yaml, Path::new("/etc/salt/master"), Role::Master).unwrap())
    }

    #[test]
    fn without_a_certificate_it_does_not_start() {
        for refused in ["", "rest_cherrypy: {port: 1}", "rest_cherrypy: {ssl_crt: a}", "rest_cherrypy: {ssl_key: a}"] {
            assert!(matches!(read(refused), Err(SettingsError::NoCertificate(_))), "{refused}");
        }
        assert_eq!(read("rest_cherrypy: {disable_ssl: True}").unwrap().tls, None);
        let tls = read("rest_cherrypy: {ssl_crt: a.crt, ssl_key: /b.key}").unwrap().tls.unwrap();
        assert_eq!((tls.crt.as_path(), tls.key.as_path()), (Path::new("/etc/salt/a.crt"), Path::new("/b.key")));
    }

    #[test]
    fn a_master_elsewhere_has_a_port_and_a_name_for_this_host() {
        let read = |more: &str| read(&format!("rest_cherrypy: {{disable_ssl: True}}\n{more}"));
        assert_eq!(read("api_port: 4510").unwrap().remote, None, "the master's own port");
        assert!(matches!(read("api_master: salt"), Err(SettingsError::NoPort(_))));
        assert!(matches!(read("api_master: salt\napi_port: 1\napi_id: a*"), Err(SettingsError::Name(_))));
        let remote = read("api_master: '[::1]'\napi_port: 4510\nid: web_master").unwrap().remote.unwrap();
        assert_eq!((remote.host.as_str(), remote.port, remote.name.as_str()), ("::1", 4_510, "web"));
        let remote = read("api_master: salt\napi_port: 4510\napi_id: api1\napi_pki_dir: /x").unwrap().remote.unwrap();
        assert_eq!((remote.name.as_str(), remote.finger, remote.pki_dir), ("api1", None, PathBuf::from("/x")));
    }

    #[test]
    fn paths_are_paths() {
        let opts = |more: &str| read(&format!("rest_cherrypy: {{disable_ssl: True, {more}}}"));
        let own =
            opts("root_prefix: /salt/, app: index.html, app_path: gui, static_path: /a/b.c, thread_pool: 5").unwrap();
        assert_eq!(
            (own.paths.prefix.as_str(), own.app.path.as_str(), own.app.folder_path.as_str()),
            ("/salt", "/gui", "/a/b.c")
        );
        assert_eq!(own.app.page.as_deref(), Some(Path::new("/etc/salt/index.html")));
        assert_eq!(own.ignored, ["thread_pool"]);
        assert_eq!(opts("root_prefix: /").unwrap().paths, Paths { prefix: String::new(), hook: "/hook".to_owned() });
        assert_eq!(opts("webhook_url: git/push").unwrap().paths.hook, "/git/push");
        for wrong in [
            "app_path: /",
            "app_path: '/{x}'",
            "static_path: /../x",
            "root_prefix: '/a b'",
            "app_path: /login/x",
            "webhook_url: /run",
            "webhook_url: /",
        ] {
            assert!(matches!(opts(wrong), Err(SettingsError::Path(..))), "{wrong}");
        }
        for twice in ["app_path: static", "static_path: /app", "webhook_url: /app", "webhook_url: static"] {
            assert!(matches!(opts(twice), Err(SettingsError::SamePath(..))), "{twice}");
        }
    }

    #[test]
    fn no_client_is_offered_unless_named() {
        let clients =
            |more: &str| read(&format!("rest_cherrypy: {{disable_ssl: True}}\n{more}")).map(|opts| opts.clients);
        assert_eq!(clients("").unwrap(), []);
        assert_eq!(clients("netapi_enable_clients: [local, wheel]").unwrap(), [Client::Local, Client::Wheel]);
        assert_eq!(clients("netapi_enable_clients: [ssh, local_async]").unwrap(), [Client::LocalAsync]);
    }
}
