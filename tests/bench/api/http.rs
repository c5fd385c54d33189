//! HTTP over TLS: one connection for each caller, kept between its calls as clients of salt-api keep it.

use std::net::Ipv4Addr;
use std::sync::Arc;

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// The name in the server's certificate.
pub(super) const NAME: &str = "localhost";

/// A server that callers connect to.
#[derive(Clone)]
pub(super) struct Address {
    port: u16,
    tls: TlsConnector,
}

impl Address {
    /// A server on this port of loopback, which is trusted by this certificate (PEM).
    pub(super) fn new(port: u16, certificate: &str) -> Self {
        let mut roots = RootCertStore::empty();
        let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).expect("our own certificate");
        roots.add(certificate).expect("our own certificate");
        let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("ring has them")
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self { port, tls: TlsConnector::from(Arc::new(config)) }
    }

    async fn connect(&self) -> SendRequest<Full<Bytes>> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).await.expect("salt-api listens");
        stream.set_nodelay(true).expect("TCP");
        let name = ServerName::try_from(NAME).expect("a name");
        let stream = self.tls.connect(name, stream).await.expect("TLS");
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.expect("HTTP");
        tokio::spawn(connection);
        sender
    }
}

/// One caller.
pub(super) struct Caller {
    address: Address,
    token: String,
    sender: Option<SendRequest<Full<Bytes>>>,
}

impl Caller {
    /// A caller with this token, which is empty before the log-in.
    pub(super) fn new(address: &Address, token: &str) -> Self {
        Self { address: address.clone(), token: token.to_owned(), sender: None }
    }

    /// Sends a request. A connection that the server has closed is made again.
    pub(super) async fn send(&mut self, method: Method, path: &str, body: &serde_json::Value) -> Response<Incoming> {
        let usable = match &mut self.sender {
            Some(sender) => sender.ready().await.is_ok(),
            None => false,
        };
        if !usable {
            self.sender = Some(self.address.connect().await);
        }
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let mut request = Request::builder().method(method).uri(path).header("Host", NAME);
        if !self.token.is_empty() {
            request = request.header("X-Auth-Token", &self.token);
        }
        if !body.is_empty() {
            request = request.header("Content-Type", "application/json");
        }
        let request = request.body(Full::new(Bytes::from(body))).expect("a request");
        let sender = self.sender.as_mut().expect("just connected");
        sender.send_request(request).await.expect("salt-api answers")
    }

    /// Posts a body, and returns the status and the whole answer.
    pub(super) async fn post(&mut self, path: &str, body: &serde_json::Value) -> (StatusCode, Bytes) {
        let response = self.send(Method::POST, path, body).await;
        let status = response.status();
        (status, response.into_body().collect().await.expect("the whole answer").to_bytes())
    }
}
