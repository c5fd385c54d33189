//! `/events`: server-sent events, and `/ws`: the same over a WebSocket.

use std::convert::Infallible;
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code, rejection};
use axum::extract::{RawQuery, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use futures_util::stream;
use serde_json::json;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::address::ClientAddress;
use crate::json;
use crate::link::{Cursor, Watch, Watched};
use crate::problem::Problem;
use crate::state::Shared;
use crate::watchers::Watcher;

/// The header with the place after which a stream resumes.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// The first line: browsers come back after so many milliseconds.
const RETRY: &str = "retry: 400\n";
/// A comment, so that proxies and both ends know that the other is there.
const ALIVE: &str = ":\n\n";
const ALIVE_EACH: Duration = Duration::from_secs(15);
/// Upper bound on the bytes of events that are written together.
const CHUNK_MAX: usize = 64 << 10;
/// The tag that stands for events that are missing.
const LOST: &str = "brine/events/lost";
/// The first message of a WebSocket's client.
const READY: &str = "websocket client ready";
/// Time for that message.
const READY_TIME: Duration = Duration::from_secs(30);
/// Upper bound on the bytes of a client's message.
const MESSAGE_MAX: usize = 4 << 10;
/// Upper bound on the bytes that wait to be written to a WebSocket.
const WRITE_MAX: usize = 64 << 20;
/// A WebSocket's client that reads nothing for this long is cut off.
const STALL: Duration = Duration::from_secs(60);

/// `GET /events`.
pub async fn events(
    State(api): Shared,
    Extension(from): Extension<ClientAddress>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    // As in Salt, so that no client believes that a token counts here, whatever it calls it.
    if query.is_some_and(|query| !query.is_empty()) {
        return Err(Problem::bad("/events takes no query; the token belongs into X-Auth-Token or the cookie"));
    }
    let (caller, _) = api.caller(&headers, from).await?;
    let after = match headers.get(LAST_EVENT_ID).filter(|id| !id.is_empty()) {
        None => None,
        Some(id) => Some(parse(id).ok_or_else(|| Problem::bad("Last-Event-ID is not the id of an event"))?),
    };
    let place = api.watchers.take()?;
    let watch = api.link.watch(&caller, after).await?;
    let mut response = Response::new(Body::from_stream(stream::unfold(Sse::new(watch, place), Sse::next)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream;charset=utf-8"));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-store"));
    Ok(response)
}

fn parse(id: &HeaderValue) -> Option<Cursor> {
    id.to_str().ok()?.parse().ok()
}

/// A stream of server-sent events.
struct Sse {
    watch: Watch,
    place: Watcher,
    alive: tokio::time::Interval,
    began: bool,
}

impl Sse {
    fn new(watch: Watch, place: Watcher) -> Self {
        Self { watch, place, alive: ticks(), began: false }
    }

    /// Waits for the next bytes.
    async fn next(mut self) -> Option<(Result<Bytes, Infallible>, Self)> {
        if !self.began {
            self.began = true;
            return Some((Ok(Bytes::from_static(RETRY.as_bytes())), self));
        }
        let item = tokio::select! {
            item = self.watch.next() => item?,
            _ = self.alive.tick() => return Some((Ok(Bytes::from_static(ALIVE.as_bytes())), self)),
            () = self.place.closing.cancelled() => return None,
        };
        self.alive.reset();
        let first = sse(&item);
        let Some(Some(second)) = self.watch.ready() else { return Some((Ok(first), self)) };
        let mut chunk = BytesMut::from(first);
        chunk.extend_from_slice(&sse(&second));
        while chunk.len() < CHUNK_MAX
            && let Some(Some(next)) = self.watch.ready()
        {
            chunk.extend_from_slice(&sse(&next));
        }
        Some((Ok(chunk.freeze()), self))
    }
}

fn ticks() -> tokio::time::Interval {
    let mut ticks = interval_at(Instant::now() + ALIVE_EACH, ALIVE_EACH);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// An item as text; `id` comes last, because the awk script of Salt's documentation reads the first line.
fn sse(item: &Watched) -> Bytes {
    match item {
        Watched::Event { cursor, event } => event.sse(|event| format(&event.tag, &event.json, *cursor)),
        Watched::Lost { cursor, count } => format(LOST, &lost(*count), *cursor).into(),
    }
}

fn format(tag: &str, json: &str, cursor: Cursor) -> String {
    // A line's end would begin another field.
    let tag = tag.replace(['\r', '\n'], " ");
    format!("tag: {tag}\ndata: {json}\nid: {cursor}\n\n")
}

/// What stands for missing events: how many, or null if nobody knows, because another start of the master had them.
fn lost(count: Option<u64>) -> String {
    let stamp = brine_protocol::event::stamp();
    json::line_of(&json!({"data": {"lost": count, "_stamp": stamp}, "tag": LOST}))
}

/// `GET /ws`.
pub async fn ws(
    State(api): Shared,
    Extension(from): Extension<ClientAddress>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, rejection::WebSocketUpgradeRejection>,
) -> Result<Response, Problem> {
    let (caller, _) = api.caller(&headers, from).await?;
    let upgrade = upgrade.map_err(|_| Problem::bad("This is no WebSocket's request"))?;
    let place = api.watchers.take()?;
    let watch = api.link.watch(&caller, None).await?;
    let upgrade = upgrade.max_message_size(MESSAGE_MAX).max_frame_size(MESSAGE_MAX).max_write_buffer_size(WRITE_MAX);
    Ok(upgrade.on_upgrade(move |socket| async move {
        let closing = place.closing.clone();
        tokio::select! {
            () = serve(socket, watch) => {}
            () = closing.cancelled() => {}
        }
        drop(place);
    }))
}

async fn serve(mut socket: WebSocket, mut watch: Watch) {
    let ready = async {
        while let Some(Ok(message)) = socket.recv().await {
            if matches!(&message, Message::Text(text) if text.as_str() == READY) {
                return true;
            }
        }
        false
    };
    if !tokio::time::timeout(READY_TIME, ready).await.unwrap_or(false) {
        return;
    }
    let mut alive = ticks();
    loop {
        let message = tokio::select! {
            item = watch.next() => match item {
                Some(item) => Message::Text(data(&item)),
                None => {
                    let frame = CloseFrame { code: close_code::POLICY, reason: Utf8Bytes::from_static("The token has ended") };
                    let _ = tokio::time::timeout(STALL, socket.send(Message::Close(Some(frame)))).await;
                    return;
                }
            },
            message = socket.recv() => match message {
                // Pings are answered by the library.
                Some(Ok(message)) if !matches!(message, Message::Close(_)) => continue,
                _ => return,
            },
            _ = alive.tick() => Message::Ping(Bytes::new()),
        };
        if !matches!(tokio::time::timeout(STALL, socket.send(message)).await, Ok(Ok(()))) {
            return;
        }
    }
}

fn data(item: &Watched) -> Utf8Bytes {
    match item {
        Watched::Event { event, .. } => frame(&event.json).into(),
        Watched::Lost { count, .. } => frame(&lost(*count)).into(),
    }
}

fn frame(json: &str) -> String {
    format!("data: {json}\n\n")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use brine_protocol::event::Event;
    use brine_protocol::value::{Value, map};

    use super::*;
    use crate::link::Shown;

    /// As recorded from 3008.5, with `id` after it.
    #[test]
    fn an_event_is_written_as_salt_writes_it() {
        let data = map([("jid", Value::from("1")), ("return", Value::from("a\nb"))]);
        let event = Arc::new(Shown::new(&Event { tag: "salt/job/1/ret/m1".to_owned(), data }));
        let cursor = Cursor { epoch: 7, seq: 9 };
        let text = sse(&Watched::Event { cursor, event: Arc::clone(&event) });
        assert_eq!(
            text,
            "tag: salt/job/1/ret/m1\ndata: {\"data\": {\"jid\": \"1\", \"return\": \"a\\nb\"}, \"tag\": \"salt/job/1/ret/m1\"}\n\
             id: 0000000000000007-9\n\n"
        );
        assert!(frame(&event.json).starts_with("data: {\"data\": {"));
        let event = Arc::new(Shown::new(&Event { tag: "a\nid: x".to_owned(), data: map([("x", 1)]) }));
        let text = sse(&Watched::Event { cursor, event });
        assert!(text.starts_with(b"tag: a id: x\ndata: "), "a tag begins no field");
        let text = String::from_utf8(sse(&Watched::Lost { cursor, count: None }).to_vec()).unwrap();
        assert!(text.starts_with("tag: brine/events/lost\ndata: {\"data\": {\"lost\": null, "), "{text}");
    }
}
