//! Clear requests to the master (§7).

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use brine_protocol::envelope::Envelope;
use brine_protocol::msgpack::{self, Limits};
use brine_protocol::value::{Value, ValueExt};
use brine_zmtp::{ReqConfig, Requester};

use crate::{ClientError, ClientOpts};

/// Connections kept open between requests. Each serves one request at a time; further ones are opened when needed and
/// closed afterwards.
const MAX_IDLE: usize = 4;

/// Sends one clear request and returns its reply; an error in the reply becomes an error. The request is never
/// repeated, because a second `publish` would be a second job.
pub(crate) async fn clear(
    opts: &ClientOpts,
    load: Value,
    timeout: Duration,
    key_problem: Option<&str>,
) -> Result<Value, ClientError> {
    Requests::default().clear(opts, load, timeout, key_problem).await
}

/// The open connections of a client to the master.
#[derive(Debug)]
pub struct Requests {
    idle: Mutex<Vec<Requester>>,
    idle_max: usize,
}

impl Default for Requests {
    fn default() -> Self {
        Self::keeping(MAX_IDLE)
    }
}

impl Requests {
    /// Keeps up to this number of connections open between requests.
    pub const fn keeping(idle_max: usize) -> Self {
        Self { idle: Mutex::new(Vec::new()), idle_max }
    }

    /// Sends one clear request, on an open connection if there is one, and returns its reply; an error in the reply
    /// becomes an error, with `key_problem` as its reason if the caller was not identified. The request is never
    /// repeated, because a second `publish` would be a second job.
    ///
    /// # Errors
    /// When the master cannot be reached or refuses.
    pub async fn clear(
        &self,
        opts: &ClientOpts,
        load: Value,
        timeout: Duration,
        key_problem: Option<&str>,
    ) -> Result<Value, ClientError> {
        let kept = self.take();
        let mut requester = match kept {
            Some(requester) => requester,
            None => Requester::new(opts.request_endpoint()?, ReqConfig::default()),
        };
        let request = Envelope::clear(load).encode();
        let reply = requester.request(request.into(), timeout).await.map_err(ClientError::Timeout)?;
        self.keep(requester);
        let reply = decode(&reply)?;
        refused(&reply, key_problem).map_or(Ok(reply), Err)
    }

    /// Takes an idle socket with an open connection. Drops disconnected ones, and those of a runtime that has ended.
    fn take(&self) -> Option<Requester> {
        let mut idle = self.idle();
        idle.retain(Requester::is_connected);
        idle.pop()
    }

    fn keep(&self, requester: Requester) {
        let mut idle = self.idle();
        if idle.len() < self.idle_max {
            idle.push(requester);
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Requester>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Decodes a reply.
///
/// # Errors
/// When it makes no sense.
pub fn decode(reply: &[u8]) -> Result<Value, ClientError> {
    msgpack::decode(reply, &Limits::REQUEST).map_err(|error| ClientError::Reply(error.to_string()))
}

/// Returns the error of a reply, if it has one.
pub fn error(reply: &Value) -> Option<ClientError> {
    refused(reply, None)
}

/// The error in a reply: a map with `error` (a map of name and message, or text), a bare text, or no content.
fn refused(reply: &Value, key_problem: Option<&str>) -> Option<ClientError> {
    let authentication = |message: &str| ClientError::Authentication {
        message: message.to_owned(),
        reason: key_problem.map(str::to_owned),
    };
    if let Some(text) = reply.text() {
        return Some(match text {
            "" => authentication(
                "Failed to authenticate! This is most likely because this user is not permitted to execute commands, but \
                 there is a small possibility that a disk error occurred (check disk/inode usage).",
            ),
            text => ClientError::Refused(text.to_owned()),
        });
    }
    let error = reply.get("error").filter(|error| error.truthy())?;
    let Some(name) = error.get_text("name") else { return Some(ClientError::Refused(error.python_str())) };
    let message = error.get_text("message").unwrap_or(name);
    Some(match name {
        "AuthorizationError" => ClientError::Authorization(message.to_owned()),
        name if name.contains("Authentication") => authentication(message),
        _ => ClientError::Refused(message.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use brine_protocol::value::map;

    use super::*;

    #[test]
    fn errors_in_replies() {
        let named = |name: &str| map([("error", map([("name", name), ("message", "words")]))]);
        let check = |reply: Value| refused(&reply, None);
        assert!(
            matches!(check(named("AuthenticationError")), Some(ClientError::Authentication { message, .. }) if message == "words")
        );
        assert!(matches!(check(named("EauthAuthenticationError")), Some(ClientError::Authentication { .. })));
        assert!(matches!(check(named("AuthorizationError")), Some(ClientError::Authorization(m)) if m == "words"));
        assert!(matches!(check(named("SaltInvocationError")), Some(ClientError::Refused(m)) if m == "words"));
        assert!(
            matches!(check(map([("error", "Master failed to assign jid")])), Some(ClientError::Refused(m)) if m.contains("jid"))
        );
        assert!(matches!(check(Value::from("bad load")), Some(ClientError::Refused(m)) if m == "bad load"));
        assert!(matches!(check(Value::from("")), Some(ClientError::Authentication { .. })));
        assert!(check(map([("enc", "clear")])).is_none());
        assert!(check(map([("error", Value::Nil)])).is_none());
    }
}
