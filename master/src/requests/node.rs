//! Requests of a node (salt-api) for its callers: the clear commands, and hooks.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use brine_protocol::envelope::{Envelope, Head};
use brine_protocol::ids::EventTag;
use brine_protocol::request::clear_reply;
use brine_protocol::value::{Value, ValueExt, map};
use bytes::Bytes;
use tokio_util::task::TaskTracker;

use super::clear::{self, Clear};
use super::reply::{NodeReply, ReplyTo};
use super::{Arrival, Handlers, LARGE_ENVELOPE, SMALL, guarded};
use crate::access::{Claim, Denied, Principal};
use crate::bucket::{Bucket, Size};
use crate::fault::Fault;
use crate::runners;

/// The command of hooks, which 4506 does not have.
const FIRE_HOOK: &str = "fire_hook";
/// The tag of a hook without one of its own; the others are below it.
const HOOKS: &str = "salt/netapi/hook";
/// Upper bound on the characters of a hook's tag.
const TAG_MAX: usize = 1_024;
/// Hooks without a token (`webhook_disable_auth`). Anybody may send them, so they must not fill the bus.
const OF_NOBODY: Size = Size { most: 500.0, each_second: 100.0 };

/// The hooks of callers without a token.
#[derive(Debug)]
pub(crate) struct OpenHooks(Mutex<Bucket>);

impl Default for OpenHooks {
    fn default() -> Self {
        Self(Mutex::new(Bucket::full(OF_NOBODY, Instant::now())))
    }
}

/// Answers a request of a node.
pub(crate) async fn take(handlers: Arc<Handlers>, tasks: TaskTracker, payload: Bytes, reply: NodeReply) {
    let place = handlers.lanes.place().await;
    let reply = ReplyTo::Node(reply);
    match Head::decode(&payload, &LARGE_ENVELOPE, &clear::pick) {
        Ok(Head::Clear { load, .. }) if load.get_text("cmd") == Some(FIRE_HOOK) => {
            let answer = guarded(&handlers.refusals, || reply.sender(), hook(&handlers, &payload, &load, &reply)).await;
            reply.send(answer.map_or_else(|refusal| refusal, |answer| clear_reply(&answer).into())).await;
        }
        Ok(Head::Clear { load, version }) => {
            clear::take(Clear { at: Arrival { handlers, tasks }, payload, head: load, version, reply }, place).await;
        }
        // Keys and sessions are no matter of nodes.
        Ok(Head::Aes) => reply.send(clear_reply(&Value::from("bad load")).into()).await,
        Err(error) => reply.send(clear_reply(&error.reply()).into()).await,
    }
}

/// Fires the event of a hook: with a token, or without one if the master's own configuration allows that.
async fn hook(handlers: &Handlers, payload: &Bytes, head: &Value, reply: &ReplyTo) -> Result<Value, Fault> {
    let _timed = handlers.timings.during(FIRE_HOOK);
    let claim = Claim { load: head, address: reply.address(), bytes: payload.len(), is_gone: &|| false };
    let by = if claim.given("token").is_none() && handlers.live.load().open_hooks {
        let mut bucket = handlers.open_hooks.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if !bucket.take(OF_NOBODY, 1.0, 0.0, now) {
            let wait = bucket.missing(OF_NOBODY, 1.0, 0.0, now);
            return Ok(clear::too_many("too many hooks", wait));
        }
        drop(bucket);
        Principal::nobody("webhook", reply.address())
    } else {
        match handlers.admission.admit(&clear::by_token(&claim), "hook").await {
            Ok(by) => by,
            Err(denied) => return Ok(runners::refusal(&denied)),
        }
    };
    let large = payload.len() > SMALL.max_bytes;
    let _turn = if large { Some(handlers.lanes.large().await) } else { None };
    let mut load = match clear::load_of(Envelope::decode(payload, &LARGE_ENVELOPE)) {
        Ok(load) => load,
        Err(error) => return Ok(error.reply()),
    };
    let refused = |why: &str| runners::refusal(&Denied::invocation(why.to_owned()));
    let is_below = |tag: &str| tag.strip_prefix(HOOKS).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let tag = load.get_text("tag").filter(|tag| is_below(tag) && !tag.ends_with('/') && tag.chars().count() <= TAG_MAX);
    let Some(tag) = tag.filter(|tag| EventTag::try_from(*tag).is_ok()).map(str::to_owned) else {
        return Ok(refused("this is not the tag of a hook"));
    };
    match load.remove("data") {
        // The stamp is the master's.
        Some(mut data @ Value::Map(_)) => {
            data.remove("_stamp");
            handlers.admission.bus.fire_by(by, tag, data);
            Ok(map([("success", true)]))
        }
        _ => Ok(refused("the data of a hook is a map")),
    }
}
