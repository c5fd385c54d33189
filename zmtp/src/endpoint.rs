//! The address that a socket binds or connects to: `tcp://host:port`, `tcp://source:port;host:port`, `ipc://path`. IPv6
//! addresses have brackets, as in libzmq.

use std::{fmt, path::PathBuf, str::FromStr};

/// Upper bound on the path of a Unix socket on Linux (`sun_path` without its NUL).
const MAX_IPC_PATH_LEN: usize = 107;

/// A place on the network or in the file system.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// A TCP address.
    Tcp {
        /// A name or an address, without brackets. `*` binds to every IPv4 address.
        host: String,
        /// The port. 0 lets the system choose when binding.
        port: u16,
        /// The local address to connect from (`tcp://source:port;host:port`); port 0 lets the system choose.
        source: Option<(String, u16)>,
    },
    /// A Unix stream socket.
    Ipc(PathBuf),
}

/// A text that is not an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not an endpoint: {why}")]
pub struct EndpointError {
    text: String,
    why: &'static str,
}

impl Endpoint {
    /// A TCP endpoint without a source address. Brackets around an IPv6 address are removed.
    pub fn tcp(host: impl Into<String>, port: u16) -> Endpoint {
        let host = host.into();
        let host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
            Some(inner) => inner.to_owned(),
            None => host,
        };
        Endpoint::Tcp { host, port, source: None }
    }

    /// An IPC endpoint.
    pub fn ipc(path: impl Into<PathBuf>) -> Endpoint {
        Endpoint::Ipc(path.into())
    }

    /// The port, for TCP.
    pub fn port(&self) -> Option<u16> {
        match self {
            Endpoint::Tcp { port, .. } => Some(*port),
            Endpoint::Ipc(_) => None,
        }
    }
}

impl FromStr for Endpoint {
    type Err = EndpointError;

    fn from_str(text: &str) -> Result<Endpoint, EndpointError> {
        parse(text).map_err(|why| EndpointError { text: text.to_owned(), why })
    }
}

fn parse(text: &str) -> Result<Endpoint, &'static str> {
    if let Some(address) = text.strip_prefix("tcp://") {
        let (source, address) = match address.split_once(';') {
            Some((source, address)) => (Some(host_and_port(source)?), address),
            None => (None, address),
        };
        let (host, port) = host_and_port(address)?;
        return Ok(Endpoint::Tcp { host, port, source });
    }
    if let Some(path) = text.strip_prefix("ipc://") {
        return match path {
            "" => Err("the path is missing"),
            path if path.contains('\0') => Err("the path has a NUL in it"),
            path if path.len() > MAX_IPC_PATH_LEN => Err("the path is longer than the 107 bytes a Unix socket allows"),
            path => Ok(Endpoint::Ipc(PathBuf::from(path))),
        };
    }
    Err("it must start with tcp:// or ipc://")
}

fn host_and_port(text: &str) -> Result<(String, u16), &'static str> {
    let (host, port) = text.rsplit_once(':').ok_or("the port is missing (tcp://host:port)")?;
    let port = match port {
        "*" => 0,
        // `u16::from_str` accepts a leading plus.
        port if !port.bytes().all(|digit| digit.is_ascii_digit()) => return Err("the port is not a number"),
        port => port.parse().map_err(|_| "the port is not a number from 0 to 65535")?,
    };
    let host = match host.strip_prefix('[') {
        Some(rest) => {
            let inner = rest.strip_suffix(']').ok_or("the bracket is not closed")?;
            inner
                .split('%')
                .next()
                .unwrap_or(inner)
                .parse::<std::net::Ipv6Addr>()
                .map_err(|_| "not an IPv6 address")?;
            inner
        }
        None if host.contains(':') => return Err("an IPv6 address must stand in brackets"),
        None => host,
    };
    match host {
        "" => Err("the host is missing"),
        host if host.bytes().any(|byte| byte.is_ascii_control() || matches!(byte, b' ' | b'/' | b'[' | b']')) => {
            Err("the host has a character that no host name has")
        }
        host => Ok((host.to_owned(), port)),
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Endpoint::Tcp { host, port, source } => {
                f.write_str("tcp://")?;
                if let Some((host, port)) = source {
                    write_host_and_port(f, host, *port)?;
                    f.write_str(";")?;
                }
                write_host_and_port(f, host, *port)
            }
            Endpoint::Ipc(path) => write!(f, "ipc://{}", path.display()),
        }
    }
}

fn write_host_and_port(f: &mut fmt::Formatter<'_>, host: &str, port: u16) -> fmt::Result {
    if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_endpoints() {
        for text in [
            "tcp://127.0.0.1:4506",
            "tcp://salt:4505",
            "tcp://[::1]:4506",
            "tcp://[fe80::1%eth0]:4506",
            "tcp://10.0.0.2:0;10.0.0.1:4506",
            "tcp://[::1]:7;[::1]:4506",
            "ipc:///run/salt/x.ipc",
        ] {
            assert_eq!(text.parse::<Endpoint>().unwrap().to_string(), text);
        }
        assert_eq!("tcp://*:*".parse::<Endpoint>().unwrap(), Endpoint::tcp("*", 0));
        assert_eq!(Endpoint::tcp("[::1]", 1).to_string(), "tcp://[::1]:1");
    }

    #[test]
    fn refuses_what_is_not_an_endpoint() {
        let long = format!("ipc:///{}", "x".repeat(MAX_IPC_PATH_LEN));
        for (text, why) in [
            ("", "must start with"),
            ("udp://a:1", "must start with"),
            ("tcp://", "port is missing"),
            ("tcp://host", "port is missing"),
            ("tcp://:1", "host is missing"),
            ("tcp://host:", "0 to 65535"),
            ("tcp://host:+1", "not a number"),
            ("tcp://host:65536", "0 to 65535"),
            ("tcp://::1:4506", "in brackets"),
            ("tcp://[::1:4506", "not closed"),
            ("tcp://[host]:4506", "not an IPv6"),
            ("tcp://a b:1", "character"),
            ("tcp://;host:1", "port is missing"),
            ("ipc://", "path is missing"),
            ("ipc://a\0b", "NUL"),
            (&long, "longer"),
        ] {
            let error = text.parse::<Endpoint>().unwrap_err().to_string();
            assert!(error.contains(why), "{text:?}: {error}");
        }
    }
}
