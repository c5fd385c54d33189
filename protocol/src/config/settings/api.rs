//! salt-api: Salt's REST interface.

use std::path::PathBuf;
use std::time::Duration;

use super::*;

settings! { AREA = "salt-api";
    /// Settings of salt-api's web server, the keys below. Other keys of Salt's rest_cherrypy are accepted without effect.
    REST_CHERRYPY: Value = mapping("rest_cherrypy", master(NONE)).private();
    /// Port of salt-api.
    API_PORT: u16 = port("rest_cherrypy:port", master("8000"));
    /// Address that salt-api binds.
    API_HOST: String = text("rest_cherrypy:host", master("0.0.0.0"));
    /// Certificate of salt-api (PEM). Without it and without `disable_ssl`, salt-api does not start.
    API_SSL_CRT: String = text("rest_cherrypy:ssl_crt", master(NONE)).live();
    /// Private key of the certificate (PEM).
    API_SSL_KEY: String = text("rest_cherrypy:ssl_key", master(NONE)).live();
    /// Further certificates between salt-api's and the root's (PEM).
    API_SSL_CHAIN: String = text("rest_cherrypy:ssl_chain", master(NONE)).live();
    /// Serve without TLS: passwords and tokens then cross the network in clear text, unless a proxy on this host adds TLS.
    API_DISABLE_SSL: bool = truth("rest_cherrypy:disable_ssl", master("false"));
    /// Events that callers of salt-api see: `permitted`, those of their own jobs and of what they could have started, or `all`.
    API_EVENTS_FOR: String = choice("rest_cherrypy:events_for", master("permitted"), &["permitted", "all"]).live();
    /// Fire the events of `/hook` without a token, for senders that cannot log in. Anybody who reaches the port can then fire them.
    API_WEBHOOK_DISABLE_AUTH: bool = truth("rest_cherrypy:webhook_disable_auth", master("false")).live();
    /// Path of hooks.
    API_WEBHOOK_URL: String = text("rest_cherrypy:webhook_url", master("/hook"));
    /// Addresses and networks of the proxies before salt-api: from these alone it takes the caller's address out of `X-Forwarded-For`.
    API_TRUSTED_PROXIES: Vec<String> = list("rest_cherrypy:trusted_proxies", master("[]")).live();
    /// Addresses and networks that may use salt-api at all. Empty: all.
    API_AUTHORIZED_IPS: Vec<String> = list("rest_cherrypy:authorized_ips", master("[]")).live();
    /// Addresses from which users may use salt-api, as in `users: {ann: [192.0.2.7], '*': ['*']}`. Without it: from all.
    API_ACL: Value = mapping("rest_cherrypy:api_acl", master(NONE)).private().live();
    /// Offer log-in and log-out, and accept the session's cookie; otherwise only tokens in headers, and `/run`.
    API_ENABLE_SESSIONS: bool = truth("rest_cherrypy:enable_sessions", master("true")).live();
    /// Origins of other sites whose pages may use salt-api, as in `https://console.example`; `*`: all, but never with a cookie.
    API_CORS_ORIGINS: Vec<String> = list("rest_cherrypy:cors_origins", master("[]")).live();
    /// What stands before each path of salt-api.
    API_ROOT_PREFIX: String = text("rest_cherrypy:root_prefix", master("/"));
    /// Page of an application for browsers. Every path answers it to who accepts HTML.
    API_APP: String = text("rest_cherrypy:app", master(NONE));
    /// Path of that page.
    API_APP_PATH: String = text("rest_cherrypy:app_path", master("/app"));
    /// Folder whose files salt-api serves.
    API_STATIC: String = text("rest_cherrypy:static", master(NONE));
    /// Path of that folder.
    API_STATIC_PATH: String = text("rest_cherrypy:static_path", master("/static"));
    /// Icon that browsers ask for at `/favicon.ico`.
    API_FAVICON: String = text("rest_cherrypy:favicon", master(NONE));
    /// Answer `/stats` without a log-in.
    API_STATS_DISABLE_AUTH: bool = truth("rest_cherrypy:stats_disable_auth", master("false")).live();
    /// Clients that salt-api offers: `local`, `local_async`, `local_batch`, `local_subset`, `runner`, `runner_async`, `wheel`, `wheel_async`.
    NETAPI_ENABLE_CLIENTS: Vec<String> = list("netapi_enable_clients", master("[]")).live();
    /// Wait of salt-api for the result of a runner or of the wheel, unless the call has a `timeout` of its own.
    REST_TIMEOUT: Duration = seconds("rest_timeout", master("300"), 1..=86_400).live();
    /// Port of the master for salt-api on other hosts, whose keys `salt-key --nodes` accepts; 0: none. There: where the master listens.
    API_LINK_PORT: u16 = port("api_port", master("0"));
    /// Address that the master binds for that port. Without it: `interface`.
    API_INTERFACE: String = text("api_interface", master(NONE));
    /// Of a salt-api on another host: its master's name or address, for `api_port`. Without it: the master on this host.
    API_MASTER: String = text("api_master", master(NONE));
    /// Fingerprint of that master's key, as `salt-key -f master.pub` shows it there. Without it, the first key that it shows is trusted.
    API_MASTER_FINGER: String = text("api_master_finger", master(NONE));
    /// Name of this salt-api at that master. Without it: the host's name.
    API_ID: String = text("api_id", master(NONE));
    /// Folder of this salt-api's key, and of the key of the master that it trusts.
    API_PKI_DIR: PathBuf = path("api_pki_dir", master("/etc/salt/pki/api"));
    /// Log file of salt-api.
    API_LOGFILE: PathBuf = path("api_logfile", master("/var/log/salt/api"));
    /// File with salt-api's process id.
    API_PIDFILE: PathBuf = path("api_pidfile", master("/var/run/salt-api.pid"));
}
