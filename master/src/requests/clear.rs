//! Clear requests (§7): `_auth` of minions, and the requests of local clients.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use brine_protocol::envelope::{Envelope, EnvelopeError};
use brine_protocol::msgpack::{DecodeError, Pick};
use brine_protocol::request::clear_reply;
use brine_protocol::value::{Value, ValueExt, empty_map, map};
use bytes::Bytes;

use super::auths::WaitingAuth;
use super::reply::ReplyTo;
use super::{Arrival, Handlers, LARGE_ENVELOPE, SMALL, guarded, on_its_thread};
use crate::access::{Claim, Denied, Principal};
use crate::dispatch::Dispatcher;
use crate::fault::Fault;
use crate::lanes::{Place, Turn};
use crate::runners;

/// All clear commands (CVE-2020-11651).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Command {
    Auth,
    Ping,
    GetToken,
    TokenPerms,
    Caller(Asks),
}

/// Commands for callers that have proved their identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asks {
    Publish,
    Runner,
    Wheel,
    MkToken,
    EndToken,
    Query,
}

const COMMANDS: [(&str, Command); 10] = [
    ("_auth", Command::Auth),
    ("ping", Command::Ping),
    ("get_token", Command::GetToken),
    ("token_perms", Command::TokenPerms),
    ("publish", Command::Caller(Asks::Publish)),
    ("runner", Command::Caller(Asks::Runner)),
    ("wheel", Command::Caller(Asks::Wheel)),
    ("mk_token", Command::Caller(Asks::MkToken)),
    ("end_token", Command::Caller(Asks::EndToken)),
    ("api_query", Command::Caller(Asks::Query)),
];

impl Command {
    fn parse(name: &str) -> Option<Self> {
        COMMANDS.iter().find(|(known, _)| *known == name).map(|(_, command)| *command)
    }

    fn name(self) -> &'static str {
        COMMANDS.iter().find(|(_, command)| *command == self).map_or("", |(name, _)| name)
    }
}

/// A clear request whose head has been read.
pub(super) struct Clear {
    pub(super) at: Arrival,
    pub(super) payload: Bytes,
    /// The part of the load that [`pick`] selects.
    pub(super) head: Value,
    pub(super) version: u64,
    pub(super) reply: ReplyTo,
}

/// Selects the part of a clear load that is read before the caller is identified.
pub(super) fn pick(way: &[&str]) -> Pick {
    match way {
        ["cmd"] => Pick::Scalar,
        // With a log-in or a token, clients put the proof of a publish into its `kwargs`.
        ["kwargs"] => Pick::Within,
        ["kwargs", within @ ..] | within => Claim::pick(within),
    }
}

/// Answers a clear request, or queues it.
pub(super) async fn take(request: Clear, place: Place) {
    let Clear { at: Arrival { handlers, .. }, head, version, .. } = &request;
    if *version < handlers.opts.minimum_version {
        return request.say(&Value::from("bad load")).await;
    }
    match head.get_text("cmd").and_then(Command::parse) {
        None => request.say(&empty_map()).await,
        Some(Command::Auth) => request.authenticate().await,
        Some(Command::Ping) => {
            let answer = request.small().unwrap_or_else(|error| error.reply());
            request.say(&answer).await;
        }
        Some(Command::GetToken) => {
            let answer = {
                let _timed = handlers.timings.during(Command::GetToken.name());
                handlers.admission.access.get_token(head)
            };
            request.say(&answer).await;
        }
        Some(Command::TokenPerms) => {
            let answer = {
                let _timed = handlers.timings.during(Command::TokenPerms.name());
                handlers.admission.access.token_perms(head)
            };
            request.say(&answer).await;
        }
        Some(Command::Caller(what)) => request.serve(what, place).await,
    }
}

impl Clear {
    async fn say(self, answer: &Value) {
        self.reply.send(clear_reply(answer).into()).await;
    }

    /// Decodes the whole load, if it is small.
    fn small(&self) -> Result<Value, EnvelopeError> {
        load_of(Envelope::decode(&self.payload, &SMALL))
    }

    /// Queues an authentication without a place among the requests in work. `auths` measures the time.
    async fn authenticate(self) {
        let load = self.small();
        let Self { at: Arrival { handlers, tasks }, payload, version, reply, .. } = self;
        // Nodes do not authenticate here.
        let ReplyTo::Port(reply) = reply else { return reply.send(clear_reply(&empty_map()).into()).await };
        match load {
            Ok(load) => handlers.auths.take(&tasks, WaitingAuth { load, version, len: payload.len(), reply }).await,
            Err(error) => {
                let no = async { Err::<Bytes, _>(Fault::new(format!("an _auth request is none: {error}"))) };
                let answer = guarded(&handlers.refusals, || super::sender(&reply), no).await;
                let _ = reply.send(answer.unwrap_or_else(|refusal| refusal)).await;
            }
        }
    }

    /// Identifies the caller and runs its command.
    async fn serve(self, what: Asks, place: Place) {
        let Self { at: Arrival { handlers, .. }, payload, head, reply, .. } = self;
        let timings = Arc::clone(&handlers.timings);
        let _timed = timings.during(Command::Caller(what).name());
        let kwargs = head.get("kwargs").filter(|kwargs| {
            ["token", "eauth"].into_iter().any(|key| kwargs.get(key).is_some_and(|value| !value.is_nil()))
        });
        let proof = if what == Asks::Publish { kwargs.unwrap_or(&head) } else { &head };
        let is_gone = || reply.is_gone();
        let claim = Claim { load: proof, address: reply.address(), bytes: payload.len(), is_gone: &is_gone };
        let claim = if reply.is_node() && what != Asks::MkToken { by_token(&claim) } else { claim };
        let place = if what == Asks::MkToken || claim.needs_log_in() {
            // A log-in waits in its own queue, which drops requests of peers that have gone.
            drop(place);
            None
        } else {
            Some(place)
        };
        let admitting = async {
            Ok(match what {
                Asks::MkToken => {
                    Admitted::Answered(match (handlers.admission.mk_token(&claim).await, reply.is_node()) {
                        (Ok(data), _) => data,
                        (Err(Denied { wait: Some(wait), message, .. }), true) => too_many(&message, wait),
                        // An empty text, as Salt answers.
                        (Err(_), _) => Value::from(""),
                    })
                }
                _ => match handlers.admission.admit(&claim, Command::Caller(what).name()).await {
                    Ok(caller) => Admitted::As(caller),
                    Err(denied) => Admitted::Answered(refused(&handlers.dispatcher, what, &payload, &head, &denied)),
                },
            })
        };
        let admitted = match guarded(&handlers.refusals, || reply.sender(), admitting).await {
            Ok(Admitted::As(caller)) => Ok(caller),
            Ok(Admitted::Answered(answer)) => Err(clear_reply(&answer).into()),
            Err(refusal) => Err(refusal),
        };
        let caller = match admitted {
            Ok(caller) => caller,
            Err(refusal) => {
                reply.send(refusal).await;
                return;
            }
        };
        let place = match place {
            Some(place) => place,
            None if reply.is_gone() => return,
            None => handlers.lanes.place().await,
        };
        run(handlers, what, caller, payload, reply, place).await;
    }
}

/// Runs a caller's command.
async fn run(handlers: Arc<Handlers>, what: Asks, caller: Principal, payload: Bytes, reply: ReplyTo, place: Place) {
    let large = payload.len() > SMALL.max_bytes;
    let mut turn = if large { handlers.lanes.large().await } else { Turn::default() };
    let work = async move {
        let handled = async {
            let mut envelope = Envelope::decode(&payload, if large { &LARGE_ENVELOPE } else { &SMALL });
            if !large && let Err(EnvelopeError::Decode(DecodeError::TooMuch { .. })) = envelope {
                // Decoding multiplies the size of a request with many values.
                turn = handlers.lanes.many_items().await;
                envelope = Envelope::decode(&payload, &LARGE_ENVELOPE);
            }
            drop(payload);
            let load = match load_of(envelope) {
                Ok(load) => load,
                Err(error) => return Ok(error.reply()),
            };
            match what {
                Asks::Publish => handlers.dispatcher.answer(load, &caller).await,
                Asks::Runner => Ok(handlers.runners.answer_runner(&load, &caller)),
                Asks::Wheel => Ok(handlers.runners.answer_wheel(&load, &caller).await),
                Asks::EndToken => Ok(handlers.admission.end_token(&load, &caller)),
                Asks::Query => handlers.queries.answer(load, caller).await,
                Asks::MkToken => Err(Fault::new("a token was made already")),
            }
        };
        let answer = guarded(&handlers.refusals, || reply.sender(), handled).await;
        reply.send(answer.map_or_else(|refusal| refusal, |answer| clear_reply(&answer).into())).await;
        drop((turn, place));
    };
    on_its_thread(large, work).await;
}

/// An identified caller, or the answer to a request that ends here.
enum Admitted {
    As(Principal),
    Answered(Value),
}

fn refused(dispatcher: &Dispatcher, what: Asks, payload: &[u8], head: &Value, denied: &Denied) -> Value {
    match what {
        Asks::Publish => {
            // If the refusal is reported, its event has the whole load if that is small, otherwise the head.
            let load = denied.told.then(|| load_of(Envelope::decode(payload, &SMALL)).ok()).flatten();
            dispatcher.refuse(load.unwrap_or_else(|| head.clone()), denied)
        }
        _ => runners::refusal(denied),
    }
}

pub(super) fn load_of(envelope: Result<Envelope, EnvelopeError>) -> Result<Value, EnvelopeError> {
    match envelope? {
        Envelope::Clear { load, .. } => Ok(load),
        Envelope::Aes(_) => Err(EnvelopeError::Malformed("it is encrypted")),
    }
}

/// A proof that is none.
static NO_TOKEN: LazyLock<Value> = LazyLock::new(|| map([("token", "")]));

/// The same claim, in which only a token counts: what nodes pass on proves nothing else.
pub(super) fn by_token<'a>(claim: &Claim<'a>) -> Claim<'a> {
    let load = if claim.given("token").is_some() { claim.load } else { &*NO_TOKEN };
    Claim { load, ..*claim }
}

/// The answer to a node whose caller has to wait.
pub(super) fn too_many(message: &str, wait: Duration) -> Value {
    let error = [("name", "TooMany".into()), ("message", message.into()), ("retry_after", wait.as_secs_f64().into())];
    map([("error", map::<_, Value>(error))])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_table_is_called() {
        for name in [
            "",
            "_send_pub",
            "__init__",
            "_prep_pub",
            "destroy",
            "publish_token",
            "_auth ",
            "AUTH",
            "run_func",
            "_return",
        ] {
            assert_eq!(Command::parse(name), None, "{name}");
        }
    }
}
