//! The user of a token that watches events: what it may see, and until when.

use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use brine_protocol::ids::MinionId;
use brine_protocol::value::Value;

use super::principal::{Principal, Proof, User};
use super::{Access, Address, allowed, permission};

/// The user of a token that watches events.
#[derive(Debug, Clone)]
pub(crate) struct Viewer {
    principal: Principal,
    /// The system, the name in it, and the groups: callers with the same ones have the same rights.
    who: (String, String, Vec<String>),
    /// Seconds of the Unix epoch.
    expire: f64,
    all_events: bool,
}

impl Viewer {
    /// Returns what viewers with the same rights have in common.
    pub(crate) const fn who(&self) -> &(String, String, Vec<String>) {
        &self.who
    }

    /// Returns the user's name.
    pub(crate) fn name(&self) -> &str {
        self.principal.name()
    }

    /// Returns whether the user's list has `@events`.
    pub(crate) const fn has_all_events(&self) -> bool {
        self.all_events
    }

    /// Returns whether the token has expired.
    pub(crate) fn is_over(&self) -> bool {
        self.expire <= SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
    }

    /// Returns whether the user could have called this runner.
    pub(crate) fn may_run(&self, fun: &str, args: &[Value], kwargs: &[(String, Value)]) -> bool {
        self.principal.may_call("runner", fun, args, kwargs).is_ok()
    }
}

impl Access {
    /// Returns the user of a token.
    pub(crate) fn viewer(&self, token: &str) -> Option<Viewer> {
        let token = self.token(&Value::from(token))?;
        let permissions = self.permissions_of(&token.eauth, &token.name, &token.groups)?;
        let expire = token.expire();
        let all_events = permission::all_events(&permissions);
        let who = (token.eauth, token.name.clone(), token.groups);
        let user = User { name: token.name, address: Address::Here, proof: Proof::Token, permissions };
        Some(Viewer { principal: Principal::User(user), who, expire, all_events })
    }

    /// Returns whether the token of a viewer still counts, as far as its files tell.
    pub(crate) fn has_token(&self, token: &str) -> bool {
        let standing = self.known.load().static_tokens.as_ref().is_some_and(|tokens| tokens.user_of(token).is_some());
        standing || self.tokens.is_there(token)
    }

    /// Returns a number that changes whenever permissions may have changed.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Returns whether a name is that of users who may do everything, whose jobs nobody else owns by the name.
    pub(crate) fn is_masters(&self, name: &str) -> bool {
        // What the reactor starts has its name as user, which anybody could have too.
        name.starts_with("sudo_") || name == super::REACTOR || self.masters.iter().any(|master| master == name)
    }

    /// Returns whether the viewer could have published a job of these functions to these minions; `resolve` as for
    /// [`Principal::may_publish`]. What is allowed to everybody so that clients can wait does not count.
    pub(crate) async fn could_publish<R>(
        &self,
        viewer: &Viewer,
        functions: &[(&str, &[Value])],
        minions: &[MinionId],
        resolve: impl FnMut(String) -> R,
    ) -> bool
    where
        R: Future<Output = Vec<MinionId>>,
    {
        let Principal::User(User { permissions, .. }) = &viewer.principal else { return false };
        !self.is_blocked(&viewer.principal, None, functions)
            && allowed(permissions, functions, minions, resolve).await.is_some()
    }
}
