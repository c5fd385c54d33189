//! One HTTP request and its response on a connection of its own.

use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::{Either, select};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::{HeaderMap, Method, Response, StatusCode, header};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::{Tls, Url};

/// Upper bound on the addresses tried for one name.
const MAX_ATTEMPTS: usize = 4;
/// Time to wait for one address before the next one is tried.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Upper bounds on the lines and bytes of a response's head. Some servers send policies of several KiB.
const MAX_ANSWER_HEADERS: usize = 128;
const MAX_HEAD: usize = 64 << 10;
/// Upper bounds on the informational responses (`100 Continue`, `103 Early Hints`) before the response, and on the
/// bytes of all their headers. Real servers send one or two.
const MAX_INFORMATIONAL: usize = 16;
const MAX_INFORMATIONAL_BYTES: usize = MAX_HEAD;

/// A request. It does not print: headers and body may hold secrets.
pub struct Request {
    /// The method.
    pub method: Method,
    /// Where it goes.
    pub url: Url,
    /// Headers by [`crate::headers`].
    pub headers: HeaderMap,
    /// The body.
    pub body: Vec<u8>,
}

/// A response.
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The body, complete.
    pub body: Vec<u8>,
}

/// Sends a request to the first of these addresses that answers, and reads the response. A body of more than
/// `max_body` bytes is an error. The connection ends with the future.
///
/// # Errors
/// One line.
pub async fn exchange(
    tls: &Tls,
    addresses: impl IntoIterator<Item = IpAddr>,
    request: &Request,
    max_body: u64,
) -> Result<Answer, String> {
    let url = &request.url;
    let mut why = String::from("there is no address");
    let mut connected = None;
    for address in addresses.into_iter().take(MAX_ATTEMPTS) {
        match tokio::time::timeout(CONNECT_TIMEOUT, TcpStream::connect(SocketAddr::new(address, url.port))).await {
            Ok(Ok(stream)) => {
                connected = Some(stream);
                break;
            }
            Ok(Err(e)) => why = format!("cannot connect to {address}: {e}"),
            Err(_) => why = format!("cannot connect to {address}: no answer within {CONNECT_TIMEOUT:?}"),
        }
    }
    let Some(stream) = connected else { return Err(why) };
    let _ = stream.set_nodelay(true);
    if !url.https {
        return converse(stream, request, max_body).await;
    }
    let name = ServerName::try_from(url.host.clone()).map_err(|_| "it is no name for TLS".to_owned())?;
    let connector = tls.connector().await?;
    let stream = connector.connect(name, stream).await.map_err(|e| format!("TLS failed: {e}"))?;
    converse(stream, request, max_body).await
}

async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send,
    asked: &Request,
    max_body: u64,
) -> Result<Answer, String> {
    let mut builder = http1::Builder::new();
    builder.max_headers(MAX_ANSWER_HEADERS).max_buf_size(MAX_HEAD);
    let (mut sender, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(|e| e.to_string())?;
    let mut request = hyper::Request::builder().method(asked.method.clone()).uri(&asked.url.path);
    if let Some(headers) = request.headers_mut() {
        headers.clone_from(&asked.headers);
    }
    let mut request = request
        .header(header::HOST, asked.url.authority())
        .header(header::CONNECTION, "close")
        .body(Full::new(Bytes::copy_from_slice(&asked.body)))
        .map_err(|e| e.to_string())?;
    let preliminaries = Arc::new(Preliminaries::default());
    let count = Arc::clone(&preliminaries);
    hyper::ext::on_informational(&mut request, move |informational| {
        count.add(informational.headers().iter().map(|(name, value)| name.as_str().len() + value.len()).sum());
    });
    let work = pin!(async {
        let response = sender.send_request(request).await.map_err(|e| said(&e))?;
        read(response, max_body).await
    });
    // The connection is polled inside this future, so it ends with the future.
    let exchange = pin!(async {
        match select(work, pin!(connection)).await {
            Either::Left((answer, _)) => answer,
            Either::Right((_, work)) => work.await,
        }
    });
    match select(exchange, pin!(preliminaries.too_many.notified())).await {
        Either::Left((answer, _)) => answer,
        Either::Right(_) => Err(format!(
            "more than {MAX_INFORMATIONAL} informational answers, or {MAX_INFORMATIONAL_BYTES} bytes of them, came before the answer"
        )),
    }
}

/// Counts informational responses. hyper would read any number of them.
#[derive(Default)]
struct Preliminaries {
    count: AtomicUsize,
    bytes: AtomicUsize,
    too_many: Notify,
}

impl Preliminaries {
    fn add(&self, bytes: usize) {
        let count = self.count.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        let bytes = self.bytes.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if count > MAX_INFORMATIONAL || bytes > MAX_INFORMATIONAL_BYTES {
            self.too_many.notify_one();
        }
    }
}

async fn read(response: Response<Incoming>, max: u64) -> Result<Answer, String> {
    let too_large = || format!("the answer is larger than {max} bytes");
    let (head, mut incoming) = response.into_parts();
    let announced = head.headers.get(header::CONTENT_LENGTH).and_then(|n| n.to_str().ok()?.parse::<u64>().ok());
    let has_body = hyper::body::Body::size_hint(&incoming).exact() != Some(0);
    if has_body && announced.is_some_and(|n| n > max) {
        return Err(too_large());
    }
    let mut body = Vec::new();
    while let Some(frame) = incoming.frame().await {
        // Modules get no trailers.
        let Ok(data) = frame.map_err(|e| said(&e))?.into_data() else { continue };
        if (body.len() + data.len()) as u64 > max {
            return Err(too_large());
        }
        body.extend_from_slice(&data);
    }
    Ok(Answer { status: head.status, headers: head.headers, body })
}

/// Formats the error with its cause, because "error reading a body" alone does not help.
fn said(error: &hyper::Error) -> String {
    let cause = std::error::Error::source(error).map_or_else(String::new, |cause| format!(": {cause}"));
    format!("{error}{cause}")
}
