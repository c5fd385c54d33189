//! How many requests there are at once, and how much of bodies. What counts as work is only a request that came whole:
//! otherwise a few hundred slow bodies would keep everybody else out.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::extract::Request;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::places::{Place, Places};

/// Upper bound on requests, in all and of one address, whole or not. With HTTP/2 a connection has many.
const OPEN_MAX: usize = 16_384;
const OPEN_OF_ONE: usize = 1_024;
/// Upper bound on the requests that are worked on, in all and of one address.
const BUSY_MAX: usize = 1_024;
const BUSY_OF_ONE: usize = 256;
/// Upper bound on the bytes of all bodies, until their requests are answered.
const BYTES_MAX: usize = 128 << 20;
/// The bytes of a body that do not count for that bound, so that large bodies never keep a log-in out.
const BYTES_FREE: usize = 8 << 10;

/// There are too many requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("too many requests are under way")]
pub struct Busy;

/// The work of a process.
#[derive(Debug)]
pub struct Work {
    open: Arc<Places>,
    busy: Arc<Places>,
    bytes: Arc<Semaphore>,
}

impl Default for Work {
    fn default() -> Self {
        Self {
            open: Places::new(OPEN_MAX, OPEN_OF_ONE),
            busy: Places::new(BUSY_MAX, BUSY_OF_ONE),
            bytes: Arc::new(Semaphore::new(BYTES_MAX)),
        }
    }
}

/// The share of one request, free again when the last copy is dropped.
#[derive(Debug, Clone)]
pub struct Share(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    _open: Place,
    places: Arc<Places>,
    address: Option<IpAddr>,
    busy: Mutex<Option<Place>>,
    bytes: Mutex<Option<OwnedSemaphorePermit>>,
}

impl Work {
    /// Takes a share for a request of this address (see [`crate::places::counted`]), which lasts as long as the share.
    /// While its body comes, it does not count as work.
    ///
    /// # Errors
    /// When there are too many.
    pub fn enter(&self, address: Option<IpAddr>, request: Request) -> Result<(Share, Request), Busy> {
        let inner = Inner {
            _open: self.open.take(address).ok_or(Busy)?,
            places: Arc::clone(&self.busy),
            address,
            busy: Mutex::default(),
            bytes: Mutex::default(),
        };
        let share = Share(Arc::new(inner));
        share.begin()?;
        let mut request = request;
        request.extensions_mut().insert(share.clone());
        if request.body().is_end_stream() {
            return Ok((share, request));
        }
        let counted =
            |inner| Counted { inner, share: share.clone(), bytes: Arc::clone(&self.bytes), read: 0, is_waiting: false };
        let request = request.map(|body| Body::new(counted(body)));
        Ok((share, request))
    }
}

impl Share {
    fn begin(&self) -> Result<(), Busy> {
        let mut busy = self.0.busy.lock().unwrap_or_else(PoisonError::into_inner);
        if busy.is_none() {
            *busy = Some(self.0.places.take(self.0.address).ok_or(Busy)?);
        }
        Ok(())
    }

    fn wait(&self) {
        self.0.busy.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    fn keep(&self, more: OwnedSemaphorePermit) {
        let mut bytes = self.0.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        match bytes.as_mut() {
            Some(bytes) => bytes.merge(more),
            None => *bytes = Some(more),
        }
    }
}

/// A body that counts itself.
struct Counted {
    inner: Body,
    share: Share,
    bytes: Arc<Semaphore>,
    read: usize,
    is_waiting: bool,
}

impl Counted {
    fn count(&mut self, length: usize) -> Result<(), Busy> {
        let before = self.read.max(BYTES_FREE);
        self.read += length;
        let more = self.read.saturating_sub(before);
        if more > 0 {
            let more = u32::try_from(more).map_err(|_| Busy)?;
            self.share.keep(Arc::clone(&self.bytes).try_acquire_many_owned(more).map_err(|_| Busy)?);
        }
        Ok(())
    }
}

impl HttpBody for Counted {
    type Data = Bytes;
    type Error = Box<dyn std::error::Error + Send + Sync>;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if !self.is_waiting {
            self.is_waiting = true;
            self.share.wait();
        }
        let next = Pin::new(&mut self.inner).poll_frame(cx);
        match &next {
            Poll::Ready(None) => self.share.begin()?,
            Poll::Ready(Some(Ok(frame))) => {
                let length = frame.data_ref().map_or(0, Bytes::len);
                self.count(length)?;
                if self.inner.is_end_stream() {
                    self.share.begin()?;
                }
            }
            _ => {}
        }
        next.map(|next| next.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// Whether a body ended with [`Busy`].
pub fn is_busy(error: &(dyn std::error::Error + 'static)) -> bool {
    std::iter::successors(Some(error), |error| error.source()).any(|error| error.is::<Busy>())
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;
    use tokio::sync::mpsc;

    use super::*;

    /// A request whose body comes by the sender.
    fn slow() -> (mpsc::UnboundedSender<Bytes>, Request) {
        let (send, pieces) = mpsc::unbounded_channel::<Bytes>();
        let pieces = futures_util::stream::unfold(pieces, async |mut pieces| {
            Some((Ok::<_, Busy>(pieces.recv().await?), pieces))
        });
        (send, Request::new(Body::from_stream(pieces)))
    }

    fn address(n: u32) -> Option<IpAddr> {
        Some(std::net::Ipv4Addr::from_bits(n).into())
    }

    #[tokio::test]
    async fn a_request_counts_once_it_is_whole() {
        let work = Work { busy: Places::new(1, 1), ..Work::default() };
        let (send, request) = slow();
        let (share, request) = work.enter(None, request).unwrap();
        let mut body = request.into_body();
        send.send(Bytes::from_static(b"x")).unwrap();
        body.frame().await.unwrap().unwrap();
        // While the body comes, others work.
        let other = work.enter(None, Request::default()).expect("a place");
        assert_eq!(work.enter(None, Request::default()).map(drop), Err(Busy), "one works");
        drop(send);
        let error = body.frame().await.unwrap().unwrap_err();
        assert!(is_busy(&error), "{error:?}");
        drop((other, body, share));
        assert!(work.enter(None, Request::default()).is_ok(), "what is gone has no place");
    }

    #[tokio::test]
    async fn an_address_has_its_share_of_the_work() {
        let work = Work::default();
        let shares: Vec<_> = (0..BUSY_OF_ONE).map(|_| work.enter(address(1), Request::default()).unwrap()).collect();
        assert!(
            work.enter(address(1), Request::default()).is_err() && work.enter(address(2), Request::default()).is_ok()
        );
        let rest: Vec<_> = (BUSY_OF_ONE..BUSY_MAX).map(|_| work.enter(None, Request::default()).unwrap()).collect();
        assert!(work.enter(None, Request::default()).is_err(), "all places are taken");
        drop((shares, rest));
    }

    /// Bodies that come slowly take no place of the work, but are bounded themselves.
    #[tokio::test]
    async fn slow_bodies_keep_nobody_out() {
        let work = Work::default();
        let mut slow_ones = Vec::new();
        for n in 0..OPEN_MAX {
            let (send, request) = slow();
            let (share, request) = work.enter(address(u32::try_from(n / OPEN_OF_ONE).unwrap()), request).unwrap();
            let mut body = request.into_body();
            let waiting = body.frame();
            tokio::select! { biased; _ = waiting => panic!("nothing came"), () = std::future::ready(()) => {} }
            slow_ones.push((send, share, body));
            if n == 10_000 {
                assert!(work.enter(address(9_999), Request::default()).is_ok());
            }
            if (n + 1) % OPEN_OF_ONE == 0 {
                assert!(work.enter(address(u32::try_from(n / OPEN_OF_ONE).unwrap()), Request::default()).is_err());
            }
        }
        assert!(work.enter(address(9_999), Request::default()).is_err());
    }

    #[tokio::test]
    async fn the_bytes_of_bodies_are_bounded() {
        let work = Work { bytes: Arc::new(Semaphore::new(100)), ..Work::default() };
        let read = async |length: usize| {
            let request = Request::new(Body::from(vec![0; length]));
            let (share, request) = work.enter(None, request).unwrap();
            request.into_body().collect().await.map(|_| share).map_err(|error| is_busy(&error))
        };
        let first = read(BYTES_FREE + 90).await.unwrap();
        assert_eq!(read(BYTES_FREE + 11).await.err(), Some(true));
        assert!(read(BYTES_FREE).await.is_ok(), "a small one");
        drop(first);
        assert!(read(BYTES_FREE + 100).await.is_ok());
    }
}
