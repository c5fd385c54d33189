//! What happens on one connection, and when it has to be closed because nothing happens, or too much that leads to nothing.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::Response;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Time for the head of a request, from accept (the handshake of TLS included) or from the end of the request before.
pub const HEAD_TIME: Duration = Duration::from_secs(10);
/// Time after which a connection without a request under way is closed, or one whose client takes no answer.
const IDLE_TIME: Duration = Duration::from_secs(60);
/// Upper bound on the requests of a connection that its client gave up on. Each may have cost the master something.
const GIVEN_UP_MAX: usize = 100;
/// Upper bound on the bytes of an answer that are handed over at once: so many more are taken when these are gone.
const PIECE_MAX: usize = 64 << 10;

/// The traffic of a connection.
#[derive(Debug)]
pub struct Traffic {
    state: Mutex<State>,
    given_up: CancellationToken,
}

#[derive(Debug)]
struct State {
    /// When something happened last.
    last: Instant,
    /// Whether a request came.
    is_begun: bool,
    /// Requests that are worked on, and answers that wait for what there is to say, such as the next event.
    busy: usize,
    given_up: usize,
}

/// What to do with a connection.
#[derive(Debug, PartialEq, Eq)]
pub enum Check {
    /// Close it.
    Close,
    /// Check again at this time.
    At(Instant),
}

impl Traffic {
    /// Of a connection that was accepted then.
    pub fn new(accepted: Instant) -> Arc<Self> {
        let state = State { last: accepted, is_begun: false, busy: 0, given_up: 0 };
        Arc::new(Self { state: Mutex::new(state), given_up: CancellationToken::new() })
    }

    /// Judges the connection now.
    pub fn check(&self) -> Check {
        let now = Instant::now();
        let state = self.state();
        let until = match (state.is_begun, state.busy) {
            (false, _) => state.last + HEAD_TIME,
            (true, 0) => state.last + IDLE_TIME,
            (true, _) => now + IDLE_TIME,
        };
        if until <= now { Check::Close } else { Check::At(until) }
    }

    /// Waits until the client has given up on too many requests. Cancel-safe.
    pub async fn given_up(&self) {
        self.given_up.cancelled().await;
    }

    /// A request came.
    pub fn begin(self: &Arc<Self>) -> Handling {
        let mut state = self.state();
        state.is_begun = true;
        state.busy += 1;
        state.last = Instant::now();
        Handling { traffic: Some(Arc::clone(self)) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn busy(&self, is_busy: bool) {
        let mut state = self.state();
        state.busy = if is_busy { state.busy + 1 } else { state.busy.saturating_sub(1) };
        state.last = Instant::now();
    }
}

/// A request that is worked on.
#[derive(Debug)]
pub struct Handling {
    traffic: Option<Arc<Traffic>>,
}

impl Handling {
    /// There is an answer.
    pub fn answer(mut self, response: Response) -> hyper::Response<Answer> {
        let traffic = self.traffic.take();
        if let Some(traffic) = &traffic {
            traffic.busy(false);
        }
        response.map(|inner| Answer { inner, rest: Bytes::new(), is_busy: false, traffic })
    }
}

impl Drop for Handling {
    fn drop(&mut self) {
        // Without an answer: hyper drops what nobody waits for.
        let Some(traffic) = self.traffic.take() else { return };
        traffic.busy(false);
        let mut state = traffic.state();
        state.given_up += 1;
        if state.given_up > GIVEN_UP_MAX {
            traffic.given_up.cancel();
        }
    }
}

/// The body of an answer.
#[derive(Debug)]
pub struct Answer {
    inner: Body,
    /// What was not handed over yet of the last piece.
    rest: Bytes,
    /// Whether it waits for what there is to say.
    is_busy: bool,
    traffic: Option<Arc<Traffic>>,
}

impl Answer {
    fn set_busy(&mut self, is_busy: bool) {
        if let Some(traffic) = &self.traffic
            && is_busy != self.is_busy
        {
            traffic.busy(is_busy);
            self.is_busy = is_busy;
        }
    }

    fn piece(&mut self) -> Frame<Bytes> {
        // Between two pieces, it is the client that lets us wait.
        if let Some(traffic) = &self.traffic {
            traffic.state().last = Instant::now();
        }
        let length = self.rest.len().min(PIECE_MAX);
        Frame::data(self.rest.split_to(length))
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.set_busy(false);
    }
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if !self.rest.is_empty() {
            return Poll::Ready(Some(Ok(self.piece())));
        }
        let next = Pin::new(&mut self.inner).poll_frame(cx);
        self.set_busy(next.is_pending());
        match next {
            Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                Ok(data) => {
                    self.rest = data;
                    Poll::Ready(Some(Ok(self.piece())))
                }
                Err(other) => Poll::Ready(Some(Ok(other))),
            },
            other => other,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (inner, rest) = (self.inner.size_hint(), self.rest.len() as u64);
        let mut hint = SizeHint::new();
        hint.set_lower(inner.lower() + rest);
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper + rest);
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_head_comes_within_ten_seconds_of_accept() {
        let traffic = Traffic::new(Instant::now());
        tokio::time::advance(HEAD_TIME - SECOND).await;
        assert_eq!(traffic.check(), Check::At(Instant::now() + SECOND));
        tokio::time::advance(SECOND).await;
        assert_eq!(traffic.check(), Check::Close);
    }

    #[tokio::test(start_paused = true)]
    async fn idle_connections_end_and_busy_ones_stay() {
        let traffic = Traffic::new(Instant::now());
        let handling = traffic.begin();
        tokio::time::advance(IDLE_TIME * 100).await;
        assert_eq!(traffic.check(), Check::At(Instant::now() + IDLE_TIME), "a long job");
        let (send, events) = tokio::sync::mpsc::channel::<Result<Bytes, std::io::Error>>(1);
        let events = futures_util::stream::unfold(events, async |mut events| Some((events.recv().await?, events)));
        let mut answer = handling.answer(Response::new(Body::from_stream(events))).into_body();
        send.send(Ok(Bytes::from_static(b"event"))).await.unwrap();
        answer.frame().await.unwrap().unwrap();
        let waiting = answer.frame();
        tokio::select! { biased; _ = waiting => panic!("no event"), () = std::future::ready(()) => {} }
        tokio::time::advance(IDLE_TIME * 100).await;
        assert_eq!(traffic.check(), Check::At(Instant::now() + IDLE_TIME), "a stream without events");
        send.send(Ok(Bytes::from_static(b"event"))).await.unwrap();
        answer.frame().await.unwrap().unwrap();
        tokio::time::advance(IDLE_TIME).await;
        assert_eq!(traffic.check(), Check::Close, "nobody takes the next event");
    }

    #[tokio::test(start_paused = true)]
    async fn requests_that_are_given_up_end_the_connection() {
        let traffic = Traffic::new(Instant::now());
        for _ in 0..GIVEN_UP_MAX {
            drop(traffic.begin());
            drop(traffic.begin().answer(Response::default()));
        }
        assert!(!traffic.given_up.is_cancelled());
        drop(traffic.begin());
        assert!(traffic.given_up.is_cancelled() && traffic.state().busy == 0);
    }

    #[tokio::test]
    async fn an_answer_comes_in_pieces() {
        let text = vec![b'x'; PIECE_MAX * 2 + 1];
        let traffic = Traffic::new(Instant::now());
        let mut answer = traffic.begin().answer(Response::new(Body::from(text.clone()))).into_body();
        let mut lengths = Vec::new();
        assert_eq!(answer.size_hint().exact(), Some(text.len() as u64));
        while !answer.is_end_stream() {
            lengths.push(answer.frame().await.unwrap().unwrap().into_data().unwrap().len());
            let left = text.len() - lengths.iter().sum::<usize>();
            assert_eq!(answer.size_hint().exact(), Some(left as u64));
        }
        assert_eq!(lengths, [PIECE_MAX, PIECE_MAX, 1]);
    }
}
