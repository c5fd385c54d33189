//! Clear requests to the master (§7).

use std::time::Duration;

use brine_protocol::envelope::Envelope;
use brine_protocol::msgpack::{self, Limits};
use brine_protocol::value::{Value, ValueExt};
use brine_zmtp::{ReqConfig, Requester};

use crate::{ClientError, ClientOpts};

/// Sends one clear request and gives its reply, errors in the reply made errors. It is never repeated: a second `publish`
/// would be a second job.
pub(crate) async fn clear(
    opts: &ClientOpts,
    load: Value,
    timeout: Duration,
    key_problem: Option<&str>,
) -> Result<Value, ClientError> {
    let mut requester = Requester::new(opts.request_endpoint()?, ReqConfig::default());
    let request = Envelope::clear(load).encode();
    let reply = requester.request(request.into(), timeout).await.map_err(ClientError::Timeout)?;
    let reply = msgpack::decode(&reply, &Limits::REQUEST).map_err(|error| ClientError::Reply(error.to_string()))?;
    refused(&reply, key_problem).map_or(Ok(reply), Err)
}

/// The error in a reply: a map with `error` (a map of name and message, or text), a bare text, or nothing at all.
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
