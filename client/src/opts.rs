//! The options of clients, from the master's configuration file.

use std::path::PathBuf;
use std::time::Duration;

use brine_protocol::config::{Config, ConfigError, settings};
use brine_zmtp::Endpoint;

use crate::{ClientError, user};

/// The address of the master on this host, and the timeouts.
#[derive(Debug, Clone)]
pub struct ClientOpts {
    /// The configuration file, for messages.
    pub conf_file: PathBuf,
    /// The folder of `.root_key` and the minions' cached data.
    pub cachedir: PathBuf,
    /// The folder of the event bus's sockets.
    pub sock_dir: PathBuf,
    /// The key store.
    pub pki_dir: PathBuf,
    /// The address that the master binds.
    pub interface: String,
    /// The port of requests.
    pub ret_port: u16,
    /// The port of publications. A minion with a connection to it is present.
    pub publish_port: u16,
    /// The user that the master runs as.
    pub master_user: String,
    /// The user that runs this command, under Salt's name (`root`, `sudo_alice`).
    pub user: String,
    /// Time to wait for returns before the client asks which minions still run the job.
    pub timeout: Duration,
    /// Time to wait for the replies to that question.
    pub gather_job_timeout: Duration,
    /// Whether the master caches the minions' grains. Without them, no minion is known to be disconnected.
    pub minion_data_cache: bool,
}

impl ClientOpts {
    /// Reads the options from the master's configuration.
    ///
    /// # Errors
    /// When a required setting has an invalid value.
    pub fn new(config: &Config) -> Result<Self, ConfigError> {
        Ok(Self {
            conf_file: config.path().to_owned(),
            cachedir: config.get(settings::CACHEDIR)?,
            sock_dir: config.get(settings::SOCK_DIR)?,
            pki_dir: config.get(settings::PKI_DIR)?,
            interface: config.get(settings::INTERFACE)?,
            ret_port: config.get(settings::RET_PORT)?,
            publish_port: config.get(settings::PUBLISH_PORT)?,
            master_user: config.get(settings::USER)?,
            user: user::caller_name(),
            timeout: config.get(settings::TIMEOUT)?,
            gather_job_timeout: config.get(settings::GATHER_JOB_TIMEOUT)?,
            minion_data_cache: config.get(settings::MINION_DATA_CACHE)?,
        })
    }

    /// The socket that publishes events.
    pub fn bus_socket(&self) -> PathBuf {
        self.sock_dir.join("master_event_pub.ipc")
    }

    /// The socket for salt-api.
    pub fn api_socket(&self) -> PathBuf {
        self.sock_dir.join(brine_protocol::nodes::SOCKET)
    }

    /// The socket that accepts events.
    pub fn push_socket(&self) -> PathBuf {
        self.sock_dir.join("master_event_pull.ipc")
    }

    /// The endpoint of requests. A master that binds to all addresses is reached over loopback.
    ///
    /// # Errors
    /// When `interface` is not an address.
    pub fn request_endpoint(&self) -> Result<Endpoint, ClientError> {
        let host = match self.interface.as_str() {
            "" | "0.0.0.0" => "127.0.0.1",
            "::" | "[::]" => "::1",
            other => other.trim_start_matches('[').trim_end_matches(']'),
        };
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        let address = format!("tcp://{host}:{}", self.ret_port);
        address.parse().map_err(|error| ClientError::Address { address, reason: format!("{error}") })
    }

    /// The user whose key file is read (§7.1): root and users of sudo use the key of the master's user.
    pub fn key_user(&self) -> &str {
        if self.user == "root" || self.user.starts_with("sudo_") { &self.master_user } else { &self.user }
    }
}
