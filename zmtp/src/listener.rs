//! Binds and accepts, with the limits for peers that are not yet known.
//!
//! A listener owns the tasks of its connections. It closes connections beyond the limits at once, so that a flood costs
//! one accept each. When the system has no files or memory left, it pauses instead of retrying in a loop.

use std::{
    fs, io,
    net::{IpAddr, SocketAddr},
    os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{
    net::{TcpListener, TcpSocket, UnixListener, lookup_host},
    sync::watch,
    task::JoinSet,
    time::sleep,
};
use tracing::{debug, warn};

use crate::{
    BindError, Endpoint, Keepalive, SocketLimits,
    addresses::{Addresses, Visit},
    handshake::{Established, SocketType, handshake},
    stream::Stream,
    throttle::Throttle,
};

/// Pause of accepting when the system has no file or memory for another connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Time in which a connection that gives way has closed, unless this process is very busy.
const CLOSING: Duration = Duration::from_millis(50);

/// Connection ids, unique in the process.
static NEXT_CONNECTION: AtomicU64 = AtomicU64::new(1);

/// A bound socket.
#[derive(Debug)]
pub(crate) struct Bound {
    acceptor: Acceptor,
    /// The endpoint with the actual port.
    pub(crate) endpoint: Endpoint,
}

#[derive(Debug)]
enum Acceptor {
    Tcp(TcpListener),
    Unix(UnixListener, #[expect(dead_code, reason = "removes the file when dropped")] SocketFile),
}

/// The file of a Unix socket. On drop, it is removed if it is still the same file.
#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    id: (u64, u64),
}

/// Counters that the listener and its connections share.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) connections: AtomicUsize,
    pub(crate) accepted: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) violations: AtomicU64,
}

/// The properties of the socket that the listener accepts for.
#[derive(Debug, Clone)]
pub(crate) struct ListenerConfig {
    pub(crate) socket_type: SocketType,
    pub(crate) limits: SocketLimits,
    pub(crate) keepalive: Keepalive,
    /// The unit that counts as one address; `None` is exempt from the limits by address.
    pub(crate) who: fn(IpAddr) -> Option<IpAddr>,
}

/// A peer after the handshake.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) established: Established,
    pub(crate) connection: u64,
    pub(crate) address: Option<SocketAddr>,
    /// Its entry among the connections of its address. It does not count as silent yet.
    pub(crate) visit: Visit,
}

impl Peer {
    /// The peer's name for a log.
    pub(crate) fn name(&self) -> String {
        name(self.address)
    }
}

fn name(address: Option<SocketAddr>) -> String {
    address.map_or_else(|| "a local peer".to_owned(), |address| address.to_string())
}

/// Binds and listens.
pub(crate) async fn bind(endpoint: &Endpoint, backlog: u32) -> Result<Bound, BindError> {
    let failed = |source| BindError::Io { endpoint: endpoint.to_string(), source };
    match endpoint {
        Endpoint::Tcp { host, port, .. } => {
            let host = if host == "*" { "0.0.0.0" } else { host.as_str() };
            let unresolved =
                |source| BindError::Resolve { endpoint: endpoint.to_string(), host: host.to_owned(), source };
            let mut error = io::Error::from(io::ErrorKind::AddrNotAvailable);
            for address in lookup_host((host, *port)).await.map_err(unresolved)? {
                match bind_tcp(address, backlog) {
                    Ok(listener) => {
                        let port = listener.local_addr().map_err(failed)?.port();
                        let endpoint = Endpoint::tcp(host, port);
                        return Ok(Bound { acceptor: Acceptor::Tcp(listener), endpoint });
                    }
                    Err(refused) => error = refused,
                }
            }
            Err(failed(error))
        }
        Endpoint::Ipc(path) => {
            let (listener, file) = bind_unix(path, backlog).map_err(failed)?;
            Ok(Bound { acceptor: Acceptor::Unix(listener, file), endpoint: endpoint.clone() })
        }
    }
}

fn bind_tcp(address: SocketAddr, backlog: u32) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // A restarted master must not wait until the connections of its predecessor time out.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(backlog)
}

fn bind_unix(path: &Path, backlog: u32) -> io::Result<(UnixListener, SocketFile)> {
    // A socket without a listener was left by a killed process. Other files stay.
    if fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket()) {
        match std::os::unix::net::UnixStream::connect(path) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path)?,
            _ => return Err(io::ErrorKind::AddrInUse.into()),
        }
    }
    let socket = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None)?;
    socket.bind(&socket2::SockAddr::unix(path)?)?;
    // The mode is set before listening, so that no process connects under other permissions.
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    let file = fs::symlink_metadata(path)?;
    let file = SocketFile { path: path.to_owned(), id: (file.dev(), file.ino()) };
    socket.set_nonblocking(true)?;
    socket.listen(i32::try_from(backlog).unwrap_or(i32::MAX))?;
    Ok((UnixListener::from_std(socket.into())?, file))
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let still_this = fs::symlink_metadata(&self.path).is_ok_and(|file| (file.dev(), file.ino()) == self.id);
        if still_this {
            // If removing fails, the next bind removes the file.
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Acceptor {
    async fn accept(&self, keepalive: &Keepalive) -> io::Result<Stream> {
        match self {
            Acceptor::Tcp(listener) => Stream::tcp(listener.accept().await?.0, keepalive),
            Acceptor::Unix(listener, _) => Ok(Stream::Unix(listener.accept().await?.0)),
        }
    }
}

impl Bound {
    /// Accepts until `stop` is true, then waits for the connections to end. `serve` runs one connection and watches
    /// `stop` itself. Dropping this future ends all connections.
    pub(crate) async fn run<F>(
        self,
        config: ListenerConfig,
        counters: Arc<Counters>,
        mut stop: watch::Receiver<bool>,
        serve: impl Fn(Peer) -> F + Clone + Send + 'static,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let addresses = Addresses::new(&config.limits, config.who);
        let mut tasks = JoinSet::new();
        let mut refusals = Throttle::default();
        loop {
            let stream = tokio::select! {
                accepted = self.acceptor.accept(&config.keepalive) => accepted,
                Some(_) = tasks.join_next() => continue,
                // A dropped sender also means stop.
                _ = stop.wait_for(|stop| *stop) => break,
            };
            let stream = match stream {
                Ok(stream) => stream,
                Err(error) if is_out_of_resources(&error) => {
                    warn!("{}: accepting pauses: {error}", self.endpoint);
                    tokio::select! {
                        () = sleep(ACCEPT_PAUSE) => continue,
                        _ = stop.wait_for(|stop| *stop) => break,
                    }
                }
                // The peer left before it was accepted.
                Err(_) => continue,
            };
            while tasks.try_join_next().is_some() {}
            let address = stream.peer_addr();
            let connection = NEXT_CONNECTION.fetch_add(1, Ordering::Relaxed);
            let is_full = tasks.len() >= config.limits.max_connections;
            let admission = if is_full && !addresses.make_room(address) {
                Err("there are as many connections as its limit allows")
            } else {
                addresses.enter(address, connection)
            };
            if is_full && admission.is_ok() {
                // Otherwise a flood would outrun the connections that give way.
                tokio::select! {
                    _ = tasks.join_next() => {}
                    () = sleep(CLOSING) => {}
                    _ = stop.wait_for(|stop| *stop) => break,
                }
            }
            let mut visit = match admission {
                Ok(visit) => visit,
                Err(why) => {
                    counters.refused.fetch_add(1, Ordering::Relaxed);
                    if let Some(more) = refusals.pass() {
                        warn!("{}: refused {}: {why} (and {more} more)", self.endpoint, name(address));
                    }
                    continue;
                }
            };
            counters.accepted.fetch_add(1, Ordering::Relaxed);
            let (socket_type, deadline) = (config.socket_type, config.limits.handshake);
            let (counters, serve, mut stop) = (Arc::clone(&counters), serve.clone(), stop.clone());
            tasks.spawn(async move {
                let established = tokio::select! {
                    established = handshake(stream, socket_type, None, deadline) => established,
                    () = visit.gives_way() => return debug!("{} left in its handshake for others", name(address)),
                    _ = stop.wait_for(|stop| *stop) => return,
                };
                visit.is_through();
                match established {
                    Ok(established) => {
                        let _connected = Connected::new(&counters);
                        serve(Peer { established, connection, address, visit }).await;
                    }
                    Err(error) => {
                        if error.is_violation() {
                            counters.violations.fetch_add(1, Ordering::Relaxed);
                        }
                        debug!("{}: {error}", name(address));
                    }
                }
            });
        }
        drop(self.acceptor);
        while tasks.join_next().await.is_some() {}
    }
}

/// Errors that an immediate retry would only repeat (accept(2)): out of files, buffers or memory.
fn is_out_of_resources(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let errors = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM].map(Errno::raw_os_error);
    error.raw_os_error().is_some_and(|error| errors.contains(&error))
}

/// Counts a connection as long as it exists.
struct Connected<'a>(&'a Counters);

impl<'a> Connected<'a> {
    fn new(counters: &'a Counters) -> Connected<'a> {
        counters.connections.fetch_add(1, Ordering::Relaxed);
        Connected(counters)
    }
}

impl Drop for Connected<'_> {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_connection_over_the_cap_is_closed_at_once_and_may_come_back() {
        use tokio::{io::AsyncReadExt, net::TcpStream, time::timeout};
        const DEADLINE: Duration = Duration::from_secs(20);

        let bound = bind(&Endpoint::tcp("127.0.0.1", 0), 10).await.unwrap();
        let address = ("127.0.0.1", bound.endpoint.port().unwrap());
        let config = ListenerConfig {
            socket_type: SocketType::Pub,
            limits: SocketLimits { max_half_open_per_address: 2, ..SocketLimits::default() },
            keepalive: Keepalive::default(),
            // In this test, loopback is not exempt.
            who: Some,
        };
        let counters = Arc::new(Counters::default());
        let (_stop, stopped) = watch::channel(false);
        let listening = tokio::spawn(bound.run(config, Arc::clone(&counters), stopped, |_| async {}));

        let mut greeting = [0; 64];
        let mut kept = Vec::new();
        for _ in 0..2 {
            let mut stream = TcpStream::connect(address).await.unwrap();
            timeout(DEADLINE, stream.read_exact(&mut greeting)).await.unwrap().unwrap();
            kept.push(stream);
        }
        let mut refused = TcpStream::connect(address).await.unwrap();
        assert_eq!(timeout(DEADLINE, refused.read(&mut greeting)).await.unwrap().unwrap(), 0);
        assert_eq!(counters.refused.load(Ordering::Relaxed), 1);

        kept.pop();
        timeout(DEADLINE, async {
            // Repeats until the listener has noticed that one left.
            while TcpStream::connect(address).await.unwrap().read_exact(&mut greeting).await.is_err() {}
        })
        .await
        .unwrap();
        listening.abort();
    }

    /// Peers that are silent after the handshake are closed, the oldest first, and the next peer is served.
    #[tokio::test]
    async fn silent_connections_of_an_address_are_bounded() {
        use crate::{PubConfig, Publisher, Router, RouterConfig};
        const DEADLINE: Duration = Duration::from_secs(20);
        const MAX: usize = 5;
        // In this test, loopback is not exempt.
        fn everybody(address: IpAddr) -> Option<IpAddr> {
            Some(address)
        }
        let limits = SocketLimits { max_silent_per_address: MAX, ..SocketLimits::default() };
        let local = Endpoint::tcp("127.0.0.1", 0);
        let config = PubConfig { limits: limits.clone(), ..PubConfig::default() };
        let publisher = Publisher::bind_for(&local, config, everybody).await.unwrap();
        let config = RouterConfig { limits, ..RouterConfig::default() };
        let mut router = Router::bind_for(&local, config, everybody).await.unwrap();
        let (to_publish, to_ask) = (publisher.endpoint().clone(), router.endpoint().clone());
        let answering = async {
            while let Some(incoming) = router.recv().await {
                let _ = incoming.reply.send(incoming.payload).await;
            }
        };
        let crowd = async {
            for (endpoint, kind, says) in
                [(to_publish, "SUB", &b"\x04\x0b\x09SUBSCRIBEx"[..]), (to_ask, "REQ", &b"\x01\0\0\x01x"[..])]
            {
                let mut peers = Vec::new();
                for n in 0..4 * MAX {
                    let mut peer = through(&endpoint, kind).await;
                    if n == 0 {
                        // A subscription ends the silence on a PUB; a message has no lasting effect on a ROUTER.
                        tokio::io::AsyncWriteExt::write_all(&mut peer, says).await.unwrap();
                        if kind == "SUB" {
                            publisher.wait_for_subscribers(1).await;
                        }
                    }
                    peers.push(peer);
                }
                let mut ended = 0;
                for peer in &mut peers[usize::from(kind == "SUB")..3 * MAX] {
                    let mut rest = Vec::new();
                    tokio::io::AsyncReadExt::read_to_end(peer, &mut rest).await.unwrap();
                    ended += 1;
                }
                assert!(ended >= 2 * MAX, "{kind}");
                if kind == "SUB" {
                    assert_eq!(publisher.stats().subscribers, 1);
                    while publisher.stats().connections > MAX + 1 {
                        tokio::task::yield_now().await;
                    }
                }
            }
        };
        let all = async {
            tokio::select! { () = crowd => {}, () = answering => {} }
        };
        tokio::time::timeout(DEADLINE, all).await.unwrap();
    }

    /// Connects a peer and completes its handshake.
    async fn through(endpoint: &Endpoint, kind: &str) -> tokio::net::TcpStream {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let address = ("127.0.0.1", endpoint.port().unwrap());
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let mut greeting = [0; 64];
        stream.read_exact(&mut greeting).await.unwrap();
        stream.write_all(&greeting).await.unwrap();
        let ready = crate::frame::encode_command(&crate::frame::Command::Ready(crate::frame::ReadyProperties {
            socket_type: bytes::Bytes::copy_from_slice(kind.as_bytes()),
            identity: bytes::Bytes::new(),
        }));
        stream.write_all(&ready).await.unwrap();
        let mut theirs = [0; 2];
        stream.read_exact(&mut theirs).await.unwrap();
        let mut theirs = vec![0; usize::from(theirs[1])];
        stream.read_exact(&mut theirs).await.unwrap();
        stream
    }

    #[test]
    fn pauses_only_when_the_system_is_short() {
        for (error, pauses) in [
            (rustix::io::Errno::MFILE, true),
            (rustix::io::Errno::NOMEM, true),
            (rustix::io::Errno::CONNABORTED, false),
        ] {
            assert_eq!(is_out_of_resources(&error.into()), pauses);
        }
    }

    #[tokio::test]
    async fn takes_over_a_socket_that_nobody_listens_on_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.ipc");
        let endpoint = Endpoint::ipc(&path);
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let bound = bind(&endpoint, 1).await.unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let error = bind(&endpoint, 1).await.unwrap_err().to_string();
        assert!(error.contains("in use"), "{error}");
        drop(bound);
        assert!(!path.exists());
        fs::write(&path, "a file").unwrap();
        assert!(bind(&endpoint, 1).await.is_err());
        assert_eq!(fs::read(&path).unwrap(), b"a file");
    }
}
