//! The minion as a whole, and the part of it that runs without a master.

mod base;
mod control;
mod error;
mod local;
mod sandbox;
mod serve;

pub(crate) use base::Base;
pub use control::MinionControl;
pub use error::MinionError;
pub use local::Local;
pub use sandbox::{ComingBroker, MakeSandbox, package_sandbox, sandbox_settings, sandbox_with};
pub use serve::Minion;
