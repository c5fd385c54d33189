//! Connections: accepted up to a bound, with TLS, and with a time for each step that a stranger can draw out.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::address::PeerAddress;
use crate::places::{Places, counted};
use crate::router::{self, without_empty_parts};
use crate::state::Api;
use crate::stream::Stream;
use crate::tls::{HTTP2, Tls};
use crate::traffic::{Check, HEAD_TIME, Traffic};

/// Upper bound on connections. A further one waits in the system's queue.
const CONNECTIONS_MAX: usize = 10_000;
/// Upper bound on the connections of one address. A further one is closed.
const CONNECTIONS_OF_ONE: usize = 256;
/// Upper bound on the bytes of a request's head.
const HEAD_MAX: usize = 16 << 10;
/// The pause after an error of accept, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Time that requests under way have when the process ends.
const END_TIME: Duration = Duration::from_secs(5);

/// Upper bound on the requests under way in a connection of HTTP/2.
const STREAMS_MAX: u32 = 64;
/// Upper bound on the streams that a client opened and gave up on before they were looked at ("rapid reset").
const RESETS_MAX: usize = 20;
/// Upper bound on the streams that we reset because the client broke the protocol.
const ERRORS_MAX: usize = 64;
/// Bytes that a client may send ahead: of one stream, and of a connection.
const STREAM_WINDOW: u32 = 64 << 10;
const CONNECTION_WINDOW: u32 = 256 << 10;
/// Upper bound on the bytes of a stream that wait to be sent.
const SEND_MAX: usize = 64 << 10;
/// How often a client of HTTP/2 is asked whether it is there, and how long it may take to answer.
const PING_TIME: Duration = Duration::from_secs(20);

/// A server of connections.
#[derive(Debug)]
pub struct Server {
    stop: CancellationToken,
    tasks: TaskTracker,
    free: Arc<Semaphore>,
}

impl Server {
    /// Accepts connections until [`Server::stop`].
    pub fn start(listener: TcpListener, tls: Option<Arc<Tls>>, api: Arc<Api>) -> Self {
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let free = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        let server = Self { stop, tasks, free };
        let router = router::router(Arc::clone(&api));
        let acceptor = Acceptor { tls, router, stop: server.stop.clone(), tasks: server.tasks.clone() };
        server.tasks.spawn(accept(listener, acceptor, api, Arc::clone(&server.free)));
        server
    }

    /// Returns the number of connections.
    pub fn connections(&self) -> usize {
        CONNECTIONS_MAX - self.free.available_permits()
    }

    /// Lets the requests under way end, for a while.
    pub async fn stop(self) {
        self.stop.cancel();
        self.tasks.close();
        let _ = tokio::time::timeout(END_TIME, self.tasks.wait()).await;
    }
}

/// What each connection needs.
#[derive(Clone)]
struct Acceptor {
    tls: Option<Arc<Tls>>,
    router: Router,
    stop: CancellationToken,
    tasks: TaskTracker,
}

async fn accept(listener: TcpListener, acceptor: Acceptor, api: Arc<Api>, free: Arc<Semaphore>) {
    let of_one = Places::new(CONNECTIONS_MAX, CONNECTIONS_OF_ONE);
    let accepting = async {
        loop {
            let Ok(one) = Arc::clone(&free).acquire_owned().await else { return };
            let (stream, peer) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!("a connection was not accepted: {error}");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let address = peer.ip().to_canonical();
            let Some(own) = of_one.take(counted(address, &api.live().rules.trusted_proxies)) else {
                tracing::debug!("{address} has {CONNECTIONS_OF_ONE} connections: a further one is closed");
                continue;
            };
            let stream = Stream::new(stream, (one, own));
            acceptor.tasks.spawn(connection(stream, peer, acceptor.clone()));
        }
    };
    tokio::select! {
        () = acceptor.stop.cancelled() => {}
        () = accepting => {}
    }
}

async fn connection(stream: Stream<TcpStream>, peer: SocketAddr, acceptor: Acceptor) {
    let accepted = Instant::now();
    let _ = stream.get_ref().set_nodelay(true);
    let serving = Serving {
        peer: PeerAddress(peer.ip().to_canonical()),
        router: acceptor.router,
        stop: acceptor.stop,
        traffic: Traffic::new(accepted),
    };
    let Some(tls) = acceptor.tls else { return serving.http1(stream).await };
    let handshake = tokio::time::timeout_at(accepted + HEAD_TIME, tls.acceptor().accept(stream)).await;
    match handshake.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
        Ok(stream) if stream.get_ref().1.alpn_protocol() == Some(HTTP2) => serving.http2(stream).await,
        Ok(stream) => serving.http1(stream).await,
        Err(error) => tracing::debug!("a TLS handshake failed: {error}"),
    }
}

/// The requests of one connection.
struct Serving {
    peer: PeerAddress,
    router: Router,
    stop: CancellationToken,
    traffic: Arc<Traffic>,
}

/// Makes the service of a connection. A macro, because its type has no name.
macro_rules! service {
    ($serving:expr) => {{
        let router = TowerToHyperService::new($serving.router.clone());
        let (peer, traffic) = ($serving.peer, Arc::clone(&$serving.traffic));
        service_fn(move |mut request: hyper::Request<Incoming>| {
            if let Some(uri) = without_empty_parts(request.uri()) {
                *request.uri_mut() = uri;
            }
            request.extensions_mut().insert(peer);
            let handling = traffic.begin();
            let response = router.call(request.map(Body::new));
            async move { Ok::<_, Infallible>(handling.answer(response.await?)) }
        })
    }};
}

impl Serving {
    async fn http1(self, stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) {
        let connection = http1::Builder::new()
            // Without a timer, hyper silently waits for ever.
            .timer(TokioTimer::new())
            // From the end of the request before. For the first one, `Traffic` counts from accept.
            .header_read_timeout(HEAD_TIME)
            .max_buf_size(HEAD_MAX)
            // Scripts look for `X-Auth-Token: ` in what curl prints.
            .title_case_headers(true)
            .serve_connection(TokioIo::new(stream), service!(self))
            .with_upgrades();
        self.drive(connection, |connection| connection.graceful_shutdown()).await;
    }

    async fn http2(self, stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) {
        let connection = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_concurrent_streams(STREAMS_MAX)
            .max_pending_accept_reset_streams(RESETS_MAX)
            .max_local_error_reset_streams(ERRORS_MAX)
            .max_header_list_size(u32::try_from(HEAD_MAX).unwrap_or(u32::MAX))
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_send_buf_size(SEND_MAX)
            .keep_alive_interval(PING_TIME)
            .keep_alive_timeout(PING_TIME)
            .serve_connection(TokioIo::new(stream), service!(self));
        self.drive(connection, |connection| connection.graceful_shutdown()).await;
    }

    /// Runs a connection until it ends, or idles, or the process ends.
    async fn drive<C>(&self, connection: C, finish: impl Fn(Pin<&mut C>))
    where
        C: Future<Output = hyper::Result<()>>,
    {
        let mut connection = std::pin::pin!(connection);
        let mut is_finishing = false;
        let mut check = self.traffic.check();
        loop {
            let at = match check {
                Check::Close => return tracing::debug!("a connection is closed: its client takes too long"),
                Check::At(at) => at,
            };
            tokio::select! {
                ended = connection.as_mut() => {
                    if let Err(error) = ended {
                        tracing::debug!("a connection ended: {error}");
                    }
                    return;
                }
                () = self.stop.cancelled(), if !is_finishing => {
                    is_finishing = true;
                    finish(connection.as_mut());
                }
                () = self.traffic.given_up() => return tracing::debug!("a connection is closed: its client gave up on too many requests"),
                () = tokio::time::sleep_until(at) => check = self.traffic.check(),
            }
        }
    }
}
