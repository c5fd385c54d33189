//! Whether a caller may do what it asks.
//!
//! Where this is stricter than Salt's `auth_check`: each function of a job must be allowed, where Salt is content with one of them; and a
//! job that is allowed for some minions only goes to exactly those that were checked, where Salt sends the target and lets every minion
//! that it did not know of decide for itself.

use brine_protocol::ids::MinionId;
use brine_protocol::value::Value;

use super::permission::{self, Allowed, Permission};
use super::principal::{Principal, Proof, User};
use super::{Access, Denied};

/// Every caller may ask about jobs: waiting for a job does so.
const ALWAYS_ALLOWED: &str = "saltutil.find_job";

/// The minions that an allowed job goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Whoever finds that it is meant.
    Target,
    /// Those that the master found.
    Found,
}

impl Access {
    /// Whether nobody at all may do this: `publisher_acl_blacklist`.
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
    /// Whether a job of these functions may go to `minions`. `resolve` tells whom a permission's target means; nobody, if that is not known.
    pub(crate) async fn may_publish<R>(
        &self,
        functions: &[(&str, &[Value])],
        minions: &[MinionId],
        resolve: impl FnMut(String) -> R,
    ) -> Option<Extent>
    where
        R: Future<Output = Vec<MinionId>>,
    {
        let Self::User(User { permissions, .. }) = self else { return Some(Extent::Target) };
        let functions: Vec<_> = functions.iter().copied().filter(|(fun, _)| *fun != ALWAYS_ALLOWED).collect();
        allowed(permissions, &functions, minions, resolve).await
    }

    /// Whether the caller may call this runner or wheel function (`form`), as `module.function`.
    pub(crate) fn may_call(
        &self,
        form: &'static str,
        fun: &str,
        args: &[Value],
        kwargs: &[(String, Value)],
    ) -> Result<(), Denied> {
        let Self::User(User { name, proof, permissions, .. }) = self else { return Ok(()) };
        let Some((module, function)) = fun.split_once('.').filter(|(_, function)| !function.contains('.')) else {
            let message = "A command invocation error occurred: Check syntax.".to_owned();
            return Err(Denied::invocation(message));
        };
        if permission::in_master(permissions, form, module, function, args, kwargs) {
            return Ok(());
        }
        Err(proof.failed(Some(name).filter(|_| *proof != Proof::Key).map(String::as_str)))
    }
}

/// Whether a list of permissions allows a job of these functions for `minions`; `resolve` as for [`Principal::may_publish`].
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
