//! Keys on disk: of minions and of nodes (accepted, pending, rejected, denied), of the master, and of local callers.

mod local;
mod master;
mod minions;
mod nodes;
mod opts;
mod strangers;

use std::time::Duration;

pub use local::{LocalKeys, LocalUser, users_of_host};
pub use master::{MasterKey, MasterKeyError};
pub use minions::{MinionKey, MinionKeyError, MinionKeys};
pub(crate) use nodes::{NodeKeys, NodeStanding};
pub(crate) use opts::KeyOpts;
pub use strangers::Room;

/// A file or folder that changed more recently than this may change again without another stamp, so nothing of it is cached yet.
const SETTLED: Duration = Duration::from_millis(50);
