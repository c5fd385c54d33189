//! Clear requests (§7): `_auth` of minions, and what local callers ask for.

use std::sync::Arc;

use brine_protocol::request::clear_reply;
use brine_protocol::value::{Value, ValueExt, empty_map};
use brine_zmtp::Reply;

use super::{Answer, Fault};
use crate::access::{self, From};
use crate::master::Master;
use crate::{publish, runners};

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

    const fn name(self) -> &'static str {
        match self {
            Self::Auth => "_auth",
            Self::Ping => "ping",
            Self::Publish => "publish",
            Self::Runner => "runner",
            Self::Wheel => "wheel",
            Self::GetToken => "get_token",
            Self::MkToken => "mk_token",
        }
    }
}

pub(super) async fn answer(master: &Arc<Master>, load: Value, version: u64, reply: &Reply) -> Result<Answer, Fault> {
    if version < master.opts.auth.minimum_auth_version {
        return Ok(Answer::Now(clear_reply(&Value::from("bad load"))));
    }
    let Some(command) = load.get_text("cmd").and_then(Command::parse) else {
        return Ok(Answer::Now(clear_reply(&empty_map())));
    };
    // An `_auth` is timed where it is answered.
    let _timed = (command != Command::Auth).then(|| master.timings.during(command.name()));
    let answer = match command {
        Command::Auth => return Ok(Answer::Auth { load, version }),
        Command::Ping => load,
        Command::Publish => publish::answer(master, load, origin(reply)).await?,
        Command::Runner => runners::answer_runner(master, &load, origin(reply)).await,
        Command::Wheel => runners::answer_wheel(master, &load, origin(reply)).await,
        Command::GetToken => master.access.get_token(&load),
        Command::MkToken => access::mk_token(master, &load, origin(reply)).await,
    };
    Ok(Answer::Now(clear_reply(&answer)))
}

/// Whether a request came from this host, or from where.
fn origin(reply: &Reply) -> From {
    match reply.peer().address.map(|address| address.ip().to_canonical()) {
        Some(address) if !address.is_loopback() => From::Network(address),
        _ => From::Here,
    }
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
    use brine_protocol::value::map;

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
