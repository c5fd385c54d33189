//! Which minions and jobs a caller may see in the master's own data: those that its permissions for jobs reach.

use brine_protocol::value::Value;

use super::authorize::ALWAYS_ALLOWED;
use super::permission::{self, Allowed};
use super::principal::{Principal, Reaction, User};

impl Principal {
    /// Returns the minions for which the caller has some permission for jobs.
    pub(crate) fn reach(&self) -> Allowed {
        match self {
            Self::Master | Self::Root { .. } => Allowed::Everywhere,
            Self::User(User { permissions, .. }) => permission::any_job(permissions),
            Self::Reactor(Reaction { permissions: None, .. }) => Allowed::Everywhere,
            Self::Reactor(Reaction { permissions: Some(permissions), .. }) => permission::any_job(permissions),
            Self::Minion(_) | Self::Engine(_) => Allowed::On(Vec::new()),
        }
    }

    /// Returns whether the caller may learn of every event.
    pub(crate) fn sees_all_events(&self) -> bool {
        match self {
            Self::Master | Self::Root { .. } => true,
            Self::User(User { permissions, .. }) => permission::all_events(permissions),
            Self::Reactor(Reaction { permissions, .. }) => {
                permissions.as_ref().is_none_or(|permissions| permission::all_events(permissions.iter()))
            }
            Self::Minion(_) | Self::Engine(_) => false,
        }
    }

    /// Returns all targets that the caller's permissions for jobs name.
    pub(crate) fn job_targets(&self) -> Vec<String> {
        match self {
            Self::User(User { permissions, .. }) => permission::job_targets(permissions),
            Self::Reactor(Reaction { permissions: Some(permissions), .. }) => permission::job_targets(permissions),
            _ => Vec::new(),
        }
    }

    /// Returns the minions on which the caller may run a function with these arguments.
    pub(crate) fn reach_of(&self, fun: &str, arg: &[Value]) -> Allowed {
        match self {
            Self::Master | Self::Root { .. } => Allowed::Everywhere,
            Self::User(_) if fun == ALWAYS_ALLOWED => Allowed::Everywhere,
            Self::User(User { permissions, .. }) => permission::job(permissions, fun, arg),
            Self::Reactor(Reaction { permissions: None, .. }) => Allowed::Everywhere,
            Self::Reactor(_) if fun == ALWAYS_ALLOWED => Allowed::Everywhere,
            Self::Reactor(Reaction { permissions: Some(permissions), .. }) => {
                permission::job(permissions.iter(), fun, arg)
            }
            Self::Minion(_) | Self::Engine(_) => Allowed::On(Vec::new()),
        }
    }
}
