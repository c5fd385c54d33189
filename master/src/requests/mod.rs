//! Requests on 4506 (§4.2, §6, §7): a closed choice of envelopes and of commands, and a reply to every one of them.
//!
//! `mod.rs` receives and answers; [`lanes`] and [`auths`] bound how much of what happens at a time; [`clear`] and [`minion`] are the two tables of
//! commands; the rest is one file a command or family.

mod auths;
mod clear;
mod events;
mod failed_states;
mod lanes;
mod minion;
mod pillar;
mod quota;
mod returns;
mod sent;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use brine_protocol::envelope::{Envelope, EnvelopeError};
use brine_protocol::keys::KeyError;
use brine_protocol::msgpack::{self, DecodeError};
use brine_protocol::request::clear_reply;
use brine_protocol::value::Value;
use brine_zmtp::{Incoming, Reply, Router};
use bytes::Bytes;
use futures_util::FutureExt;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::master::Master;
use crate::refusals::{Stranger, Who};
pub(crate) use auths::Auths;
use auths::Waiting;
pub(crate) use clear::strip_secrets;
pub(crate) use lanes::Lanes;
pub(crate) use returns::{all_true, fun_text, worst_retcode};
pub(crate) use sent::SentTo;

/// A handler that takes longer has failed; its sender gets an answer all the same. A minion waits 60 s.
const DEADLINE: Duration = Duration::from_secs(55);
/// What may be decoded of an envelope that is not small: a clear publish with a long list of ids.
const LARGE_ENVELOPE: msgpack::Limits = msgpack::Limits { max_bytes: usize::MAX, max_depth: 64, max_items: 1 << 18 };

/// Why a request has no proper answer. Its text is for the log; the sender gets Salt's general text and nothing else.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Fault(String);

impl Fault {
    pub(crate) fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

impl From<KeyError> for Fault {
    fn from(error: KeyError) -> Self {
        Self(error.to_string())
    }
}

impl From<crate::keys::KeyError> for Fault {
    fn from(error: crate::keys::KeyError) -> Self {
        Self(error.to_string())
    }
}

impl From<crate::jobs::StoreError> for Fault {
    fn from(error: crate::jobs::StoreError) -> Self {
        Self(error.to_string())
    }
}

/// Receives until `stop`, then lets what is in work finish within `grace`.
pub(crate) async fn serve(master: Arc<Master>, mut router: Router, stop: CancellationToken, grace: Duration) {
    let lanes = Arc::clone(&master.lanes);
    let tasks = TaskTracker::new();
    loop {
        // The place first: when all are taken, senders wait in their sockets and not in our memory.
        let place = tokio::select! {
            place = lanes.place() => place,
            () = stop.cancelled() => break,
        };
        let incoming = tokio::select! {
            incoming = router.recv() => incoming,
            () = stop.cancelled() => break,
        };
        let Some(Incoming { payload, reply }) = incoming else { break };
        let (master, lanes, tracker) = (Arc::clone(&master), Arc::clone(&lanes), tasks.clone());
        tasks.spawn(async move {
            let large = payload.len() > msgpack::Limits::UNAUTHENTICATED.max_bytes;
            let turn = if large { Lanes::large(&lanes).await } else { None };
            let work = async move {
                let len = payload.len();
                match guarded(&master, &reply, answer(&master, &lanes, payload, &reply)).await {
                    Ok(Answer::Now(answer)) => drop(reply.send(answer.into()).await),
                    // It waits without a place, so that others find one.
                    Ok(Answer::Auth { load, version }) => {
                        Auths::take(&master, &tracker, Waiting { load, version, len, reply }).await;
                    }
                    // A peer that has gone needs no answer.
                    Err(refusal) => drop(reply.send(refusal).await),
                }
                drop((turn, place));
            };
            if large {
                // Decrypting and decoding megabytes takes long enough to hold up a thread that others need.
                let runtime = tokio::runtime::Handle::current();
                let _ = tokio::task::spawn_blocking(move || runtime.block_on(work)).await;
            } else {
                work.await;
            }
        });
    }
    tasks.close();
    let _ = tokio::time::timeout(grace, tasks.wait()).await;
    router.close(grace).await;
}

/// An answer, whatever happens: nothing that a request makes go wrong may leave its sender waiting (CVE-2023-20897).
async fn guarded<T>(
    master: &Arc<Master>,
    reply: &Reply,
    work: impl Future<Output = Result<T, Fault>>,
) -> Result<T, Bytes> {
    let work = AssertUnwindSafe(Box::pin(work)).catch_unwind();
    let fault = match tokio::time::timeout(DEADLINE, work).await {
        Ok(Ok(Ok(answer))) => return Ok(answer),
        Ok(Ok(Err(fault))) => fault,
        Ok(Err(_panic)) => Fault::new("its handler panicked: this is a bug in salt-master, please report it"),
        Err(_) => Fault::new(format!("its handler took longer than {} s", DEADLINE.as_secs())),
    };
    // Strangers can cause this as fast as the network goes.
    let said = format!("a request from {} failed: {fault}", sender(reply));
    master.refusals.log(Who::Stranger(Stranger::Request), &said);
    Err(clear_reply(&Value::from("Some exception handling minion payload")).into())
}

/// What becomes of a request.
enum Answer {
    /// This is sent back.
    Now(Vec<u8>),
    /// It is an `_auth`, which waits for its turn.
    Auth { load: Value, version: u64 },
}

async fn answer(master: &Arc<Master>, lanes: &Lanes, payload: Bytes, reply: &Reply) -> Result<Answer, Fault> {
    // What has many items waits for its turn: decoding multiplies its size. What is large has its turn already.
    let small = msgpack::Limits::UNAUTHENTICATED;
    let (envelope, _turn) = if payload.len() > small.max_bytes {
        (Envelope::decode(&payload, &LARGE_ENVELOPE), None)
    } else {
        match Envelope::decode(&payload, &small) {
            Err(EnvelopeError::Decode(DecodeError::TooMuch { .. })) => {
                let turn = lanes.many_items().await;
                (Envelope::decode(&payload, &LARGE_ENVELOPE), turn)
            }
            envelope => (envelope, None),
        }
    };
    drop(payload);
    match envelope {
        Ok(Envelope::Clear { load, version }) => clear::answer(master, load, version, reply).await,
        Ok(Envelope::Aes(envelope)) => minion::answer(master, &envelope, reply).await.map(Answer::Now),
        Err(error) => {
            tracing::debug!("a request from {} was refused: {error}", sender(reply));
            Ok(Answer::Now(clear_reply(&error.reply())))
        }
    }
}

fn sender(reply: &Reply) -> String {
    reply.peer().address.map_or_else(|| "a local socket".to_owned(), |address| address.to_string())
}
