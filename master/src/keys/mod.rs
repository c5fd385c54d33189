//! Keys on disk: the minions' (accepted, pending, rejected, denied), the master's own, and those of local callers.

mod held;
mod local;
mod master;
mod store;

pub use held::Room;
pub use local::{LocalKeys, LocalUser, users_of_host};
pub use master::{MasterKey, MasterKeyError};
pub use store::{KeyError, KeyState, KeyStore, MinionKey};
