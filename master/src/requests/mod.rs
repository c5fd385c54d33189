//! Requests on 4506 (§4.2, §6, §7): closed sets of envelopes and commands, and a reply to every request.
//!
//! `mod.rs` receives and answers; [`crate::lanes`] and [`auths`] bound the concurrent requests; [`clear`] and
//! [`minion`] have the two tables of commands; each other file has one command or family.
//!
//! Two rules keep many requests from blocking others. A request that waits for its turn to authenticate or log in has
//! no place among the requests in work. Of a clear request only some short texts are decoded until they have proved the
//! caller.

mod auths;
mod clear;
mod minion;
pub(crate) mod node;
mod peer_keys;
mod pillar;
mod reply;
mod shares;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use brine_daemon::profile::Timings;
use brine_protocol::config::settings;
use brine_protocol::envelope::{Envelope, EnvelopeError, Head};
use brine_protocol::msgpack;
use brine_protocol::options;
use brine_protocol::request::clear_reply;
use brine_protocol::value::{Value, map};
use brine_zmtp::{Incoming, Reply, Router};
use bytes::Bytes;
use futures_util::FutureExt;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::admission::Admission;
use crate::dispatch::Dispatcher;
use crate::fault::Fault;
use crate::fileserver::FileServer;
use crate::key_removal::KeyRemoval;
use crate::keys::MinionKeys;
use crate::lanes::{Lanes, Place, Turn};
use crate::live_settings::SharedSettings;
use crate::mine::Mine;
use crate::minion_events::MinionEvents;
use crate::peer::Peer;
use crate::queries::Queries;
use crate::refusals::{Refusals, Stranger, Who};
use crate::returns::ReturnIntake;
use crate::runners::Runners;
use crate::sessions::Sessions;
use crate::throttle::Throttle;
pub(crate) use auths::Auths;
use clear::Clear;
pub(crate) use node::OpenHooks;
pub(crate) use peer_keys::PeerKeys;
pub(crate) use pillar::PillarRequests;
pub(crate) use reply::NodeReply;
pub(crate) use shares::Shares;

/// Time limit of a handler. After it the sender gets the answer to a failed request. A minion waits 60 s.
const DEADLINE: Duration = Duration::from_secs(55);
/// Bounds on requests of strangers, and on what is decoded before the sender is proved.
const SMALL: msgpack::Limits = msgpack::Limits::UNAUTHENTICATED;
/// Bounds on a large envelope: a clear publish with a long list of ids.
const LARGE_ENVELOPE: msgpack::Limits = msgpack::Limits { max_bytes: usize::MAX, max_depth: 64, max_items: 1 << 18 };

options! {
    /// Which requests are accepted.
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct RequestOpts from c {
        /// `minimum_auth_version` (CVE-2025-62349).
        minimum_version: u64 = c.get(settings::MINIMUM_AUTH_VERSION)?,
        /// `request_server_ttl` in seconds; 0 is off.
        ttl: u64 = c.get(settings::REQUEST_SERVER_TTL)?,
        bytes_max: usize = c.get(settings::MAX_REQUEST_SIZE)?,
        may_revoke: bool = c.get(settings::ALLOW_MINION_KEY_REVOKE)?,
    }
}

/// The parts that handle the commands of the two tables.
pub(crate) struct Handlers {
    pub(crate) opts: RequestOpts,
    pub(crate) live: SharedSettings,
    pub(crate) keys: Arc<MinionKeys>,
    pub(crate) key_removal: Arc<KeyRemoval>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) auths: Arc<Auths>,
    pub(crate) admission: Admission,
    pub(crate) dispatcher: Arc<Dispatcher>,
    pub(crate) returns: Arc<ReturnIntake>,
    pub(crate) events: MinionEvents,
    pub(crate) pillars: PillarRequests,
    pub(crate) runners: Runners,
    pub(crate) peer: Arc<Peer>,
    pub(crate) queries: Arc<Queries>,
    pub(crate) files: Arc<FileServer>,
    pub(crate) mine: Arc<Mine>,
    pub(crate) refusals: Arc<Refusals>,
    pub(crate) throttle: Arc<Throttle>,
    pub(crate) lanes: Lanes,
    pub(crate) shares: Arc<Shares>,
    pub(crate) peer_keys: PeerKeys,
    pub(crate) open_hooks: OpenHooks,
    /// Durations of requests, by command.
    pub(crate) timings: Arc<Timings>,
}

/// The parts that answer a request.
struct Arrival {
    handlers: Arc<Handlers>,
    tasks: TaskTracker,
}

/// Receives requests until `stop`, then gives the requests in work `grace` to finish.
pub(crate) async fn serve(handlers: Arc<Handlers>, mut router: Router, stop: CancellationToken, grace: Duration) {
    let tasks = TaskTracker::new();
    loop {
        // A place is taken first: when all are in use, requests stay in the senders' sockets and not in the master's
        // memory.
        let place = tokio::select! {
            place = handlers.lanes.place() => place,
            () = stop.cancelled() => break,
        };
        let incoming = tokio::select! {
            incoming = router.recv() => incoming,
            () = stop.cancelled() => break,
        };
        let Some(Incoming { payload, reply }) = incoming else { break };
        let at = Arrival { handlers: Arc::clone(&handlers), tasks: tasks.clone() };
        tasks.spawn(take(at, place, payload, reply));
    }
    tasks.close();
    let _ = tokio::time::timeout(grace, tasks.wait()).await;
    router.close(grace).await;
}

/// Answers one request. Reads its kind and the caller's proof first, which takes little memory whatever the size.
async fn take(at: Arrival, place: Place, payload: Bytes, reply: Reply) {
    match Head::decode(&payload, &LARGE_ENVELOPE, &clear::pick) {
        Ok(Head::Clear { load, version }) => {
            let reply = reply::ReplyTo::Port(reply);
            clear::take(Clear { at, payload, head: load, version, reply }, place).await;
        }
        Ok(Head::Aes) => encrypted(at.handlers, place, payload, reply).await,
        Err(error) => refuse(&error, reply).await,
    }
}

/// Returns the reply to a request above the size limit. Salt's clients read `error`, and Brine's minions read `msg`.
pub(crate) fn too_long(length: u64, max: usize) -> Bytes {
    let message = format!(
        "The request has {length} bytes, the master takes {max}. Large content belongs into file_roots, from where minions fetch it; \
         the limit is the master's max_return_size for who comes over a new connection, and max_request_size"
    );
    let error = map([("name", "SaltInvocationError"), ("message", &message)]);
    clear_reply(&map([("error", error), ("msg", Value::from(message.as_str()))])).into()
}

async fn refuse(error: &EnvelopeError, reply: Reply) {
    tracing::debug!("a request from {} was refused: {error}", sender(&reply));
    // Ignored: the peer may have gone.
    let _ = reply.send(clear_reply(&error.reply()).into()).await;
}

async fn encrypted(handlers: Arc<Handlers>, mut place: Place, payload: Bytes, reply: Reply) {
    let large = payload.len() > SMALL.max_bytes;
    let mut turn = if large { handlers.lanes.large().await } else { Turn::default() };
    let work = async move {
        let handled = async {
            // An encrypted envelope has a handful of values. The load is one of them, and is still encrypted.
            let envelope = Envelope::decode(&payload, &msgpack::Limits { max_bytes: usize::MAX, ..SMALL });
            drop(payload);
            match envelope {
                Ok(Envelope::Aes(envelope)) => {
                    minion::answer(&handlers, &envelope, &reply, &mut place, &mut turn).await.map(Ok)
                }
                Ok(Envelope::Clear { .. }) => Err(Fault::new("an envelope was read in two ways")),
                Err(error) => Ok(Err(error)),
            }
        };
        match guarded(&handlers.refusals, || sender(&reply), handled).await {
            Ok(Ok(answer)) => drop(reply.send(answer.into()).await),
            Ok(Err(error)) => refuse(&error, reply).await,
            Err(refusal) => drop(reply.send(refusal).await),
        }
        drop((turn, place));
    };
    on_its_thread(large, work).await;
}

/// Runs large requests on a blocking thread, because decrypting and decoding megabytes would delay other tasks.
async fn on_its_thread(large: bool, work: impl Future<Output = ()> + Send + 'static) {
    if large {
        let runtime = tokio::runtime::Handle::current();
        let _ = tokio::task::spawn_blocking(move || runtime.block_on(work)).await;
    } else {
        work.await;
    }
}

/// Runs `work` with a time limit and returns an error reply if it fails, so that no failure leaves the sender without
/// an answer (CVE-2023-20897).
async fn guarded<T>(
    refusals: &Refusals,
    sender: impl FnOnce() -> String,
    work: impl Future<Output = Result<T, Fault>>,
) -> Result<T, Bytes> {
    let work = AssertUnwindSafe(Box::pin(work)).catch_unwind();
    let fault = match tokio::time::timeout(DEADLINE, work).await {
        Ok(Ok(Ok(answer))) => return Ok(answer),
        Ok(Ok(Err(fault))) => fault,
        Ok(Err(_panic)) => Fault::new("its handler panicked: this is a bug in salt-master, please report it"),
        Err(_) => Fault::new(format!("its handler took longer than {} s", DEADLINE.as_secs())),
    };
    // Rate-limited, because strangers can cause failures at network speed.
    let said = format!("a request from {} failed: {fault}", sender());
    refusals.log(Who::Stranger(Stranger::Request), &said);
    Err(clear_reply(&Value::from("Some exception handling minion payload")).into())
}

fn sender(reply: &Reply) -> String {
    reply.peer().address.map_or_else(|| "a local socket".to_owned(), |address| address.to_string())
}
