//! The identity of a caller: one type for everything that the master serves, made where the identity is proved.

use std::fmt;

use brine_protocol::ids::MinionId;

use super::address::Address;
use super::permission::Permission;

/// The proved identity of a caller, or of the source of an event.
#[derive(Debug, Clone)]
pub(crate) enum Principal {
    /// The master itself: its maintenance, and jobs of runners, which were permitted and recorded with the runner.
    Master,
    /// Root of this host or the master's own user, proved by the master's own key or by the socket that only its user
    /// can open. May do everything.
    Root {
        /// The name that the caller gives; empty on that socket.
        name: String,
        /// The origin of the request.
        address: Address,
    },
    /// A user with the permissions that the configuration lists.
    User(User),
    /// An accepted minion, proved by its session and its token.
    Minion(MinionId),
}

/// A user with permissions from the configuration.
#[derive(Debug, Clone)]
pub(crate) struct User {
    pub(super) name: String,
    pub(super) address: Address,
    pub(super) proof: Proof,
    pub(super) permissions: Vec<Permission>,
}

/// How a user proved its identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Proof {
    /// By its own key, which `publisher_acl` gives it.
    Key,
    /// By a token.
    Token,
    /// By a log-in.
    Eauth,
}

impl Principal {
    /// Returns the name for events, jobs and logs.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Master => "master",
            Self::Root { name, .. } | Self::User(User { name, .. }) => name,
            Self::Minion(id) => id.as_str(),
        }
    }

    /// Returns the method of the proof.
    pub(crate) const fn method(&self) -> &'static str {
        match self {
            Self::Master => "master",
            Self::Root { .. } | Self::User(User { proof: Proof::Key, .. }) => "key",
            Self::User(User { proof: Proof::Token, .. }) => "token",
            Self::User(User { proof: Proof::Eauth, .. }) => "eauth",
            Self::Minion(_) => "minion",
        }
    }

    /// Returns the origin of the request; `None` for a minion, whose address proves nothing.
    pub(crate) const fn address(&self) -> Option<Address> {
        match self {
            Self::Root { address, .. } | Self::User(User { address, .. }) => Some(*address),
            Self::Master | Self::Minion(_) => None,
        }
    }

    /// Makes the principal of a local program that pushed an event over the socket of the master's own user.
    pub(crate) fn local_program() -> Self {
        Self::Root { name: String::new(), address: Address::Here }
    }

    /// Makes the principal of a caller that proved nothing and may do nothing; the name is a label.
    pub(crate) fn nobody(name: &str, address: Address) -> Self {
        Self::User(User { name: name.to_owned(), address, proof: Proof::Token, permissions: Vec::new() })
    }

    /// Returns whether the caller is root of this host or the master's own user. Only their events cause actions of the
    /// master.
    pub(crate) const fn is_root(&self) -> bool {
        matches!(self, Self::Root { .. })
    }

    /// Returns whether the caller is a minion. Its events never count as the master's or this host's.
    pub(crate) const fn is_minion(&self) -> bool {
        matches!(self, Self::Minion(_))
    }
}

/// The name in the `user` field of a runner's run.
impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Minion(id) => write!(f, "minion {id}"),
            other => f.write_str(other.name()),
        }
    }
}
