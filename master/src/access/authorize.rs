//! Decides whether a caller may do what it requests.
//!
//! Two rules are stricter than Salt's `auth_check`. Each function of a job must be allowed; Salt requires only one of
//! them. A job that is allowed only for some minions goes to exactly the minions that were checked; Salt sends the
//! target, and minions unknown to the master decide for themselves.

use brine_protocol::ids::MinionId;
use brine_protocol::value::Value;

use super::permission::{self, Allowed, Permission};
use super::principal::{Principal, Proof, Reaction, User};
use super::{Access, Denied};

/// Allowed for every caller, because clients that wait for a job call it.
pub(super) const ALWAYS_ALLOWED: &str = "saltutil.find_job";

/// The minions that an allowed job goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// All minions that match the target by their own decision.
    Target,
    /// The minions that the master resolved.
    Found,
}

impl Access {
    /// Returns whether `publisher_acl_blacklist` blocks the caller or a function, for every caller.
    pub(crate) fn is_blocked(
        &self,
        principal: &Principal,
        claimed: Option<&str>,
        functions: &[(&str, &[Value])],
    ) -> bool {
        let known = self.known.load();
        let user = |name: &str| known.opts.blocked_users.iter().any(|blocked| blocked.matches(name));
        let function = |name: &str| known.opts.blocked_functions.iter().any(|blocked| blocked.matches(name));
        user(principal.name()) || claimed.is_some_and(user) || functions.iter().any(|(fun, _)| function(fun))
    }
}

impl Principal {
    /// Decides whether a job of these functions may go to `minions`. `resolve` returns the minions of a permission's
    /// target, and none if they are unknown.
    pub(crate) async fn may_publish<R>(
        &self,
        functions: &[(&str, &[Value])],
        minions: &[MinionId],
        resolve: impl FnMut(String) -> R,
    ) -> Option<Extent>
    where
        R: Future<Output = Vec<MinionId>>,
    {
        let permissions: &[Permission] = match self {
            Self::User(User { permissions, .. }) => permissions,
            Self::Reactor(Reaction { permissions: Some(permissions), .. }) => permissions,
            _ => return Some(Extent::Target),
        };
        let functions: Vec<_> = functions.iter().copied().filter(|(fun, _)| *fun != ALWAYS_ALLOWED).collect();
        allowed(permissions, &functions, minions, resolve).await
    }

    /// Checks whether the caller may call the runner or wheel function (`form`) `fun`, given as `module.function`.
    pub(crate) fn may_call(
        &self,
        form: &'static str,
        fun: &str,
        args: &[Value],
        kwargs: &[(String, Value)],
    ) -> Result<(), Denied> {
        let permissions: &[Permission] = match self {
            Self::User(User { permissions, .. }) => permissions,
            Self::Reactor(Reaction { permissions: Some(permissions), .. }) => permissions,
            _ => return Ok(()),
        };
        let Some((module, function)) = fun.split_once('.').filter(|(_, function)| !function.contains('.')) else {
            let message = "A command invocation error occurred: Check syntax.".to_owned();
            return Err(Denied::invocation(message));
        };
        if permission::in_master(permissions, form, module, function, args, kwargs) {
            return Ok(());
        }
        Err(match self {
            Self::User(User { name, proof, .. }) => {
                proof.failed(Some(name).filter(|_| *proof != Proof::Key).map(String::as_str))
            }
            _ => Denied {
                name: "AuthorizationError",
                message: format!("reactor_acl does not permit the {form} function {}", super::shown(fun)),
                why: None,
                told: false,
                wait: None,
            },
        })
    }
}

/// Decides whether a list of permissions allows a job of these functions for `minions`; `resolve` as for
/// [`Principal::may_publish`].
pub(crate) async fn allowed<'a, R>(
    list: impl IntoIterator<Item = &'a Permission> + Clone,
    functions: &[(&str, &[Value])],
    minions: &[MinionId],
    mut resolve: impl FnMut(String) -> R,
) -> Option<Extent>
where
    R: Future<Output = Vec<MinionId>>,
{
    let mut extent = Extent::Target;
    for (fun, arg) in functions {
        let targets = match permission::job(list.clone(), fun, arg) {
            Allowed::Everywhere => continue,
            Allowed::On(targets) => targets,
        };
        extent = Extent::Found;
        let mut covered = false;
        for target in targets {
            let allowed = resolve(target).await;
            covered |= minions.iter().all(|id| allowed.contains(id));
            if covered {
                break;
            }
        }
        if !covered {
            return None;
        }
    }
    Some(extent)
}
