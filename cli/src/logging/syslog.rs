//! Logs to the system's log service: `log_file: file:///dev/log` or `udp://host:port`, optionally followed by a
//! facility (`file:///dev/log/LOG_DAEMON`). Logging never waits for the service: a line that the service cannot accept
//! at once is dropped, and the console has it too.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, ToSocketAddrs, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;

use tracing::Level;

/// Upper bound on the bytes of one message. Services shorten longer messages, some at one kilobyte.
const MAX_MESSAGE: usize = 8_192;
/// The default port of a service (RFC 5426).
const PORT: u16 = 514;
/// Facilities by their names in Salt's settings, with their codes (RFC 5424).
const FACILITIES: [(&str, u8); 20] = [
    ("LOG_KERN", 0),
    ("LOG_USER", 1),
    ("LOG_MAIL", 2),
    ("LOG_DAEMON", 3),
    ("LOG_AUTH", 4),
    ("LOG_SYSLOG", 5),
    ("LOG_LPR", 6),
    ("LOG_NEWS", 7),
    ("LOG_UUCP", 8),
    ("LOG_CRON", 9),
    ("LOG_AUTHPRIV", 10),
    ("LOG_FTP", 11),
    ("LOG_LOCAL0", 16),
    ("LOG_LOCAL1", 17),
    ("LOG_LOCAL2", 18),
    ("LOG_LOCAL3", 19),
    ("LOG_LOCAL4", 20),
    ("LOG_LOCAL5", 21),
    ("LOG_LOCAL6", 22),
    ("LOG_LOCAL7", 23),
];
/// The default facility.
const USER: u8 = 1;

/// Whether a `log_file` is a URL of a service and not a file.
pub fn is_url(path: &std::path::Path) -> bool {
    path.to_str().is_some_and(|text| text.contains("://"))
}

/// A connection to a log service.
#[derive(Debug)]
pub(super) struct Syslog {
    address: Address,
    facility: u8,
    /// The socket; none until the service answers.
    socket: Option<Socket>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Address {
    Path(PathBuf),
    Udp(String, u16),
}

#[derive(Debug)]
enum Socket {
    Unix(UnixDatagram),
    Udp(UdpSocket),
}

impl Syslog {
    /// Parses the URL.
    ///
    /// # Errors
    /// One line, when the URL names no known service.
    pub(super) fn parse(url: &str) -> Result<Self, String> {
        let wrong = |why: &str| {
            format!(
                "log_file {url}: {why}; use the path of a file, file:///dev/log or udp://HOST:PORT, each with /LOG_FACILITY if need be"
            )
        };
        let facility = |name: &str| {
            let known = FACILITIES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
            known.map(|(_, code)| *code).ok_or_else(|| wrong(&format!("the syslog facility {name} is not known")))
        };
        let (scheme, rest) = url.split_once("://").ok_or_else(|| wrong("it is no URL"))?;
        let (address, facility) = match scheme {
            "file" if rest.starts_with('/') => match rest.rsplit_once('/') {
                Some((path, name)) if name.to_ascii_uppercase().starts_with("LOG_") => {
                    (Address::Path(path.into()), facility(name)?)
                }
                _ => (Address::Path(rest.into()), USER),
            },
            "file" => return Err(wrong("the socket's path is to be absolute")),
            "udp" => {
                let (host, facility) = match rest.split_once('/') {
                    Some((host, name)) if !name.is_empty() => (host, facility(name)?),
                    Some((host, _)) => (host, USER),
                    None => (rest, USER),
                };
                let (host, port) = match host.rsplit_once(':') {
                    Some((name, port)) if !port.ends_with(']') => {
                        (name, port.parse().map_err(|_| wrong("the port is no number"))?)
                    }
                    _ => (host, PORT),
                };
                let host = host.trim_start_matches('[').trim_end_matches(']');
                if host.is_empty() {
                    return Err(wrong("the host is missing"));
                }
                (Address::Udp(host.to_owned(), port), facility)
            }
            "tcp" => return Err(wrong("TCP is not offered, for the lines of a stream run into each other")),
            _ => return Err(wrong("there is no such kind of log")),
        };
        Ok(Self { address, facility, socket: None })
    }

    /// Connects to the service.
    pub(super) fn connect(&mut self) -> io::Result<()> {
        self.socket = Some(match &self.address {
            Address::Path(path) => {
                let socket = UnixDatagram::unbound()?;
                socket.set_nonblocking(true)?;
                socket.connect(path)?;
                Socket::Unix(socket)
            }
            Address::Udp(host, port) => {
                let target = (host.as_str(), *port).to_socket_addrs()?.next().ok_or(io::ErrorKind::NotFound)?;
                let socket = match target.is_ipv4() {
                    true => UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?,
                    false => UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0))?,
                };
                socket.set_nonblocking(true)?;
                socket.connect(target)?;
                Socket::Udp(socket)
            }
        });
        Ok(())
    }

    /// Sends a line without its line end. After a restart of the service, this connects again.
    pub(super) fn send(&mut self, level: Level, line: &[u8]) {
        let message = [format!("<{}>", self.facility * 8 + severity(level)).as_bytes(), line].concat();
        let message = &message[..message.len().min(MAX_MESSAGE)];
        if self.try_send(message).is_err() && matches!(self.address, Address::Path(_)) && self.connect().is_ok() {
            let _ = self.try_send(message); // a failure cannot be reported anywhere
        }
    }

    fn try_send(&self, message: &[u8]) -> io::Result<()> {
        let sent = match &self.socket {
            Some(Socket::Unix(socket)) => socket.send(message),
            Some(Socket::Udp(socket)) => socket.send(message),
            None => return Err(io::ErrorKind::NotConnected.into()),
        };
        match sent {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(()),
        }
    }
}

/// The severity code of RFC 5424.
const fn severity(level: Level) -> u8 {
    match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        _ => 7,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_services() {
        let udp = |host: &str, port| Address::Udp(host.to_owned(), port);
        for (url, address, facility) in [
            ("file:///dev/log", Address::Path("/dev/log".into()), 1),
            ("file:///dev/log/LOG_DAEMON", Address::Path("/dev/log".into()), 3),
            ("file:///dev/log/log_local7", Address::Path("/dev/log".into()), 23),
            ("udp://logs", udp("logs", 514), 1),
            ("udp://logs:5145/LOG_KERN", udp("logs", 5145), 0),
            ("udp://[::1]:600/", udp("::1", 600), 1),
            ("udp://[::1]", udp("::1", 514), 1),
        ] {
            let parsed = Syslog::parse(url).unwrap();
            assert_eq!((parsed.address, parsed.facility), (address, facility), "{url}");
        }
        for url in
            ["file://dev/log", "file:///dev/log/LOG_NONE", "udp://", "udp://a:x", "udp://a/none", "tcp://a", "http://a"]
        {
            let why = Syslog::parse(url).unwrap_err();
            assert!(why.contains(url) && why.contains("/dev/log"), "{why}");
        }
    }

    #[test]
    fn a_service_gets_each_line_with_its_level_and_may_start_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let mut syslog = Syslog::parse(&format!("file://{}/LOG_DAEMON", path.display())).unwrap();
        assert!(syslog.connect().is_err());
        syslog.send(Level::ERROR, b"lost");
        let received = |service: &UnixDatagram| {
            let mut buffer = [0; 2 * MAX_MESSAGE];
            let length = service.recv(&mut buffer).unwrap();
            String::from_utf8(buffer[..length].to_vec()).unwrap()
        };
        for _ in 0..2 {
            let _ = std::fs::remove_file(&path);
            let service = UnixDatagram::bind(&path).unwrap();
            service.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
            syslog.send(Level::WARN, b"one");
            assert_eq!(received(&service), "<28>one");
            syslog.send(Level::DEBUG, &[b'x'; 2 * MAX_MESSAGE]);
            assert_eq!(received(&service).len(), MAX_MESSAGE);
        }
    }
}
