//! Keys on disk: the minions' (accepted, pending, rejected, denied), the master's own, and those of local callers.

mod local;
mod master;
mod store;

pub use local::{LocalKeys, LocalUser, users_of_host};
pub use master::{MasterKey, MasterKeyError};
pub use store::{KeyError, KeyState, KeyStore, MinionKey, PENDING_MAX};
