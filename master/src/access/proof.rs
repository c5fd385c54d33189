//! The fields of a request that prove its caller: some short texts, decoded before the rest.

use brine_protocol::msgpack::Pick;
use brine_protocol::value::{Value, ValueExt};

use super::address::Address;

/// A request whose caller is to be identified.
#[derive(Clone, Copy)]
pub(crate) struct Claim<'a> {
    /// The fields that [`Claim::pick`] selects, or the whole load.
    pub(crate) load: &'a Value,
    pub(crate) address: Address,
    /// Size of the request, which stays in memory during a log-in.
    pub(crate) bytes: usize,
    /// Returns whether the client has gone.
    pub(crate) is_gone: &'a (dyn Fn() -> bool + Sync),
}

impl<'a> Claim<'a> {
    /// Selects the fields that `identify`, `mint` and the report of a refusal read; all are single values. The rest of
    /// a request is decoded only after its caller is proved.
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

    /// Returns whether a password must be checked, which takes time.
    pub(crate) fn needs_log_in(&self) -> bool {
        self.given("token").is_none() && self.given("eauth").is_some()
    }
}
