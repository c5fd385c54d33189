//! Keys on disk: of minions (accepted, pending, rejected, denied), of the master, and of local callers.

mod folder;
mod local;
mod master;
mod minions;
mod opts;
mod strangers;

pub use local::{LocalKeys, LocalUser, users_of_host};
pub use master::{MasterKey, MasterKeyError};
pub use minions::{MinionKey, MinionKeyError, MinionKeys};
pub(crate) use opts::KeyOpts;
pub use strangers::Room;
