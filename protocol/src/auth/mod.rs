//! Authentication (§3): how a minion and a master come to share a publish and a session key.
//!
//! The minion's side is [`MinionAuth`] → [`AuthAttempt`] → [`AuthOutcome`]; the master's side is [`AuthRequest`] with its
//! reply builders.

mod master;
mod minion;

pub use master::{Accepted, AuthRefusal, AuthRequest, publish_key_signature};
pub use minion::{AuthAttempt, AuthError, AuthOutcome, Credentials, MinionAuth};

#[cfg(test)]
mod tests;
