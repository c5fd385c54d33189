//! Who asks for something: one type for all that the master serves, made where their identity is proved.

use std::fmt;

use brine_protocol::ids::MinionId;

use super::address::Address;
use super::permission::Permission;

/// Who asks for something, or fired an event, as the master proved it.
#[derive(Debug, Clone)]
pub(crate) enum Principal {
    /// The master itself: its maintenance, and what a runner asks of minions, which was permitted and recorded with the runner.
    Master,
    /// Root of this host or the master's own user: can read the master's own key, or open the socket that is for its user alone. May do
    /// everything.
    Root {
        /// What it calls itself; empty on that socket.
        name: String,
        /// From where.
        address: Address,
    },
    /// A user, with the rights that the configuration lists.
    User(User),
    /// An accepted minion, by its session and token.
    Minion(MinionId),
}

/// A user whom the configuration gives rights.
#[derive(Debug, Clone)]
pub(crate) struct User {
    pub(super) name: String,
    pub(super) address: Address,
    pub(super) proof: Proof,
    pub(super) permissions: Vec<Permission>,
}

/// How a user proves who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Proof {
    /// Its own key, which `publisher_acl` gives it.
    Key,
    /// A token.
    Token,
    /// A log-in.
    Eauth,
}

impl Principal {
    /// Its name as events, jobs and logs show it.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Master => "master",
            Self::Root { name, .. } | Self::User(User { name, .. }) => name,
            Self::Minion(id) => id.as_str(),
        }
    }

    /// How it proved who it is.
    pub(crate) const fn method(&self) -> &'static str {
        match self {
            Self::Master => "master",
            Self::Root { .. } | Self::User(User { proof: Proof::Key, .. }) => "key",
            Self::User(User { proof: Proof::Token, .. }) => "token",
            Self::User(User { proof: Proof::Eauth, .. }) => "eauth",
            Self::Minion(_) => "minion",
        }
    }

    /// The address it asks from; none for a minion, whose address proves nothing.
    pub(crate) const fn address(&self) -> Option<Address> {
        match self {
            Self::Root { address, .. } | Self::User(User { address, .. }) => Some(*address),
            Self::Master | Self::Minion(_) => None,
        }
    }

    /// A program of this host that pushed an event over the socket of the master's own user.
    pub(crate) fn local_program() -> Self {
        Self::Root { name: String::new(), address: Address::Here }
    }

    /// Whether it is this host's root or the master's own user. Only its events move the master itself.
    pub(crate) const fn is_root(&self) -> bool {
        matches!(self, Self::Root { .. })
    }

    /// Whether it is a minion. What a minion fires is never taken for the master's own or this host's.
    pub(crate) const fn is_minion(&self) -> bool {
        matches!(self, Self::Minion(_))
    }
}

/// As the user of a runner's run.
impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Minion(id) => write!(f, "minion {id}"),
            other => f.write_str(other.name()),
        }
    }
}
