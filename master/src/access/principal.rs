//! The identity of a caller: one type for everything that the master serves, made where the identity is proved.

use std::fmt;
use std::sync::Arc;

use brine_protocol::ids::MinionId;

use super::address::Address;
use super::permission::Permission;

/// Salt's name for the user of what the reactor starts.
pub(crate) const REACTOR: &str = "Reactor";

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
    /// The master's reactor, in one reaction.
    Reactor(Reaction),
    /// An engine of this master, by its name: a module that fires events, and may do nothing else.
    Engine(Arc<str>),
}

/// A reaction of the reactor: its rights, and what led to it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reaction {
    /// `reactor_acl`; `None` permits everything.
    pub(super) permissions: Option<Arc<[Permission]>>,
    /// The entries of the reactor that led to it, each by what it started, the first one first. The last is its own.
    chain: Arc<[u64]>,
}

impl Reaction {
    pub(crate) fn new(permissions: Option<Arc<[Permission]>>, chain: Arc<[u64]>) -> Self {
        Self { permissions, chain }
    }

    /// Returns the entries of the reactor that led to it.
    pub(crate) const fn chain(&self) -> &Arc<[u64]> {
        &self.chain
    }
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
            Self::Reactor(_) => REACTOR,
            Self::Engine(name) => name,
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
            Self::Reactor(_) => "reactor",
            Self::Engine(_) => "engine",
        }
    }

    /// Returns the origin of the request; `None` for a minion, whose address proves nothing.
    pub(crate) const fn address(&self) -> Option<Address> {
        match self {
            Self::Root { address, .. } | Self::User(User { address, .. }) => Some(*address),
            Self::Master | Self::Minion(_) | Self::Reactor(_) | Self::Engine(_) => None,
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

    /// Returns whether the events of the caller never count as the master's or this host's: those of minions and engines.
    pub(crate) const fn is_foreign(&self) -> bool {
        matches!(self, Self::Minion(_) | Self::Engine(_))
    }

    /// Returns whether the caller is a minion.
    pub(crate) const fn is_minion(&self) -> bool {
        matches!(self, Self::Minion(_))
    }
}

/// The name in the `user` field of a runner's run.
impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Minion(id) => write!(f, "minion {id}"),
            Self::Engine(name) => write!(f, "engine {name}"),
            other => f.write_str(other.name()),
        }
    }
}
