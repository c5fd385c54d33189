//! Clear requests (§7): `_auth` of minions, and what local callers ask for.

use std::sync::Arc;

use brine_protocol::request::clear_reply;
use brine_protocol::value::{Value, ValueExt, empty_map, map};

use super::Fault;
use super::lanes::Lanes;
use crate::master::Master;
use crate::{auth, publish, runners};

/// Every clear command there is (CVE-2020-11651).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Command {
    Auth,
    Ping,
    Publish,
    Runner,
    Wheel,
    GetToken,
    MkToken,
}

impl Command {
    fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "_auth" => Self::Auth,
            "ping" => Self::Ping,
            "publish" => Self::Publish,
            "runner" => Self::Runner,
            "wheel" => Self::Wheel,
            "get_token" => Self::GetToken,
            "mk_token" => Self::MkToken,
            _ => return None,
        })
    }
}

pub(super) async fn answer(master: &Arc<Master>, lanes: &Lanes, load: Value, version: u64) -> Result<Vec<u8>, Fault> {
    if version < master.opts.auth.minimum_auth_version {
        return Ok(clear_reply(&Value::from("bad load")));
    }
    let Some(command) = load.get_text("cmd").and_then(Command::parse) else {
        return Ok(clear_reply(&empty_map()));
    };
    let reply = match command {
        Command::Auth => {
            let Some(_turn) = lanes.auth().await else {
                return Err(Fault::new("too many minions authenticate at once"));
            };
            return auth::answer(master, &load, version).await;
        }
        Command::Ping => load,
        Command::Publish => publish::answer(master, load).await?,
        Command::Runner => runners::answer_runner(master, &load),
        Command::Wheel => runners::answer_wheel(master, &load).await,
        // No external authentication is configured, so no token was ever made: an unknown one (§7.3).
        Command::GetToken => match load.get("token") {
            Some(token) if token.truthy() => empty_map(),
            _ => Value::from(false),
        },
        // As for wrong credentials.
        Command::MkToken => Value::from(""),
    };
    Ok(clear_reply(&reply))
}

/// Who may ask: whoever can read the master's local key. `Err` is the reply's `error`.
pub(crate) fn check_local_caller(master: &Master, load: &Value) -> Result<(), Value> {
    let error = |name: &str, message: String| map([("name", name.to_owned()), ("message", message)]);
    if load.get("token").is_some_and(ValueExt::truthy) {
        let message = "Authentication failure of type \"token\" occurred.".to_owned();
        return Err(error("TokenAuthenticationError", message));
    }
    if load.get("eauth").is_some_and(ValueExt::truthy) {
        let user: String = load.get_text("username").unwrap_or("UNKNOWN").chars().take(64).collect();
        let message = format!("Authentication failure of type \"eauth\" occurred for user {user}.");
        return Err(error("EauthAuthenticationError", message));
    }
    if load.get_text("key").is_some_and(|key| master.local_keys.accepts(key)) {
        return Ok(());
    }
    Err(error("UserAuthenticationError", "Authentication failure of type \"user\" occurred.".to_owned()))
}

/// Removes what proves who somebody is, before a request is shown or stored.
pub(crate) fn strip_secrets(load: &mut Value) {
    if let Value::Map(entries) = load {
        entries.retain(|(name, _)| {
            !name
                .text()
                .is_some_and(|name| matches!(name, "key" | "token" | "password" | "eauth" | "tok" | "nonce" | "sig"))
        });
        for (name, value) in entries {
            if name.text() == Some("kwargs") {
                strip_secrets(value);
            }
        }
    }
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

    #[test]
    fn secrets_go_at_both_levels() {
        let mut load = map([
            ("fun", Value::from("x.y")),
            ("key", Value::from("k")),
            (
                "kwargs",
                map([("token", Value::from("t")), ("password", Value::from("p")), ("metadata", Value::from("m"))]),
            ),
        ]);
        strip_secrets(&mut load);
        assert_eq!(load, map([("fun", Value::from("x.y")), ("kwargs", map([("metadata", "m")]))]));
    }
}
