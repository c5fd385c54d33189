//! Connections: accepted up to a bound, with TLS, and with a time for each step that a stranger can draw out.

use std::io;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ServerConfig};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::address::ClientAddress;
use crate::router::without_slash;
use crate::settings::TlsFiles;

/// Upper bound on connections. A further one waits in the system's queue.
const CONNECTIONS_MAX: usize = 10_000;
/// Time for the handshake of TLS.
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);
/// Time for the head of a request, from accept or from the end of the request before.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// Upper bound on the bytes of a request's head.
const HEAD_MAX: usize = 16 << 10;
/// Upper bound on the bytes of a file of certificates or keys.
const PEM_MAX: u64 = 1 << 20;
/// The pause after an error of accept, such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Time that requests under way have when the process ends.
const END_TIME: Duration = Duration::from_secs(5);

/// TLS, with certificates that can be replaced.
#[derive(Debug)]
pub struct Tls(RwLock<Arc<ServerConfig>>);

impl Tls {
    /// Reads the certificates.
    ///
    /// # Errors
    /// One line, when they cannot be used.
    pub fn read(files: &TlsFiles) -> Result<Self, String> {
        server_config(files).map(|config| Self(RwLock::new(config)))
    }

    /// Reads the certificates anew, for connections from now on.
    ///
    /// # Errors
    /// One line, when they cannot be used; those before stay.
    pub fn replace(&self, files: &TlsFiles) -> Result<(), String> {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = server_config(files)?;
        Ok(())
    }

    fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

fn server_config(files: &TlsFiles) -> Result<Arc<ServerConfig>, String> {
    let read = |path: &Path| {
        brine_files::read_named_text(path, PEM_MAX)
            .map_err(|error| format!("{} cannot be read: {error}", path.display()))
    };
    let wrong = |path: &Path, error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let mut chain = Vec::new();
    for path in std::iter::once(&files.crt).chain(&files.chain) {
        let text = read(path)?;
        let certificates = CertificateDer::pem_slice_iter(text.as_bytes()).collect::<Result<Vec<_>, _>>();
        let certificates = certificates.map_err(|error| wrong(path, &error))?;
        if certificates.is_empty() {
            return Err(wrong(path, &"there is no certificate in it"));
        }
        chain.extend(certificates);
    }
    let key = brine_protocol::secret::Secret::new(read(&files.key)?);
    // The error of a key never repeats the key.
    let key = PrivateKeyDer::from_pem_slice(key.expose().as_bytes());
    let key = key.map_err(|_| wrong(&files.key, &"there is no private key in it"))?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error: rustls::Error| wrong(&files.crt, &error))?;
    Ok(Arc::new(config))
}

/// A server of connections.
#[derive(Debug)]
pub struct Server {
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Server {
    /// Accepts connections until [`Server::stop`].
    pub fn start(listener: TcpListener, tls: Option<Arc<Tls>>, router: Router) -> Self {
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        tasks.spawn(accept(listener, tls, router, stop.clone(), tasks.clone()));
        Self { stop, tasks }
    }

    /// Returns the number of connections.
    pub fn connections(&self) -> usize {
        // Without the task that accepts.
        self.tasks.len().saturating_sub(1)
    }

    /// Lets the requests under way end, for a while.
    pub async fn stop(self) {
        self.stop.cancel();
        self.tasks.close();
        let _ = tokio::time::timeout(END_TIME, self.tasks.wait()).await;
    }
}

async fn accept(
    listener: TcpListener,
    tls: Option<Arc<Tls>>,
    router: Router,
    stop: CancellationToken,
    tasks: TaskTracker,
) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let accepting = async {
        loop {
            let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
            match listener.accept().await {
                Ok((stream, peer)) => {
                    let from = ClientAddress(peer.ip().to_canonical());
                    tasks.spawn(connection(stream, from, tls.clone(), router.clone(), stop.clone(), place));
                }
                Err(error) => {
                    tracing::warn!("a connection was not accepted: {error}");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = accepting => {}
    }
}

async fn connection(
    stream: TcpStream,
    from: ClientAddress,
    tls: Option<Arc<Tls>>,
    router: Router,
    stop: CancellationToken,
    place: OwnedSemaphorePermit,
) {
    let _ = stream.set_nodelay(true);
    match tls {
        None => serve(stream, from, router, stop).await,
        Some(tls) => {
            let handshake = tokio::time::timeout(HANDSHAKE_TIME, tls.acceptor().accept(stream)).await;
            match handshake.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
                Ok(stream) => serve(stream, from, router, stop).await,
                Err(error) => tracing::debug!("a TLS handshake failed: {error}"),
            }
        }
    }
    drop(place);
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    from: ClientAddress,
    router: Router,
    stop: CancellationToken,
) {
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        if let Some(uri) = without_slash(request.uri()) {
            *request.uri_mut() = uri;
        }
        request.extensions_mut().insert(from);
        router.call(request.map(Body::new))
    });
    let connection = http1::Builder::new()
        // Without a timer, hyper silently waits for ever.
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(HEAD_MAX)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!("a connection ended: {error}");
    }
}
