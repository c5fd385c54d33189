//! Authentication (§3): establishes the publish key and the session key between a master and a minion.
//!
//! The minion's side is [`MinionAuth`] → [`AuthAttempt`] → [`AuthOutcome`]; the master's side is [`AuthRequest`] with
//! its reply builders.

mod master;
mod minion;

pub use master::{Accepted, AuthRefusal, AuthRequest, publish_key_signature};
pub use minion::{AuthAttempt, AuthError, AuthOutcome, Credentials, MinionAuth};

#[cfg(test)]
mod tests;
