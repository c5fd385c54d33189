//! Keys on disk: of minions and of nodes (accepted, pending, rejected, denied), of the master, and of local callers.

mod folder;
mod local;
mod master;
mod minions;
mod nodes;
mod opts;
mod strangers;

pub use local::{LocalKeys, LocalUser, users_of_host};
pub use master::{MasterKey, MasterKeyError};
pub use minions::{MinionKey, MinionKeyError, MinionKeys};
pub(crate) use nodes::{NodeKeys, NodeStanding};
pub(crate) use opts::KeyOpts;
pub use strangers::Room;
