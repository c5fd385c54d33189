//! What the module `postgres` and the modules of its states share.
//!
//! - [`given`]: the arguments of functions and states
//! - [`password`]: the hashes that PostgreSQL keeps of passwords
//! - [`scram`]: how a client proves that it knows a password
//! - [`roles`]: the states of users and groups
//! - [`states`]: what all states need: the server's arguments, calls of the module `postgres`

#![warn(missing_docs)]

pub mod given;
pub mod password;
pub mod roles;
pub mod scram;
pub mod states;
