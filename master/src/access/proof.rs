//! What of a request says who asks: some short texts, wherever the rest of it is.

use brine_protocol::msgpack::Pick;
use brine_protocol::value::{Value, ValueExt};

use super::address::Address;

/// Who may be asking.
#[derive(Clone, Copy)]
pub(crate) struct Claim<'a> {
    /// What it says about itself.
    pub(crate) load: &'a Value,
    pub(crate) address: Address,
    /// Bytes of the request, which waits for a log-in.
    pub(crate) bytes: usize,
    /// Whether nobody waits for the answer any more.
    pub(crate) is_gone: &'a (dyn Fn() -> bool + Sync),
}

impl<'a> Claim<'a> {
    /// What `identify` and `mint` look at, and what a refusal says of it: all of it single values. Everything else of a request is decoded
    /// for those only who have proved who they are.
    pub(crate) fn pick(way: &[&str]) -> Pick {
        match way {
            ["token" | "eauth" | "username" | "password" | "key" | "user" | "token_expire"]
            | ["front_end", "key" | "address"] => Pick::Scalar,
            ["front_end"] => Pick::Within,
            _ => Pick::Skip,
        }
    }

    pub(crate) fn given(&self, key: &str) -> Option<&'a Value> {
        self.load.get(key).filter(|value| !value.is_nil())
    }

    /// Whether a password has to be looked at, which takes its time.
    pub(crate) fn needs_log_in(&self) -> bool {
        self.given("token").is_none() && self.given("eauth").is_some()
    }
}
