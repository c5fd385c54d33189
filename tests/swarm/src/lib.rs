//! A swarm: thousands of simulated minions in one process, to see what a master does under load.
//!
//! Each has an id, an RSA key, an authentication, a session key, a subscription and a request connection of its own, over real sockets and
//! with the real cryptography of `brine-protocol`; a master cannot tell them from minions. It is a load generator and no minion: it answers
//! a handful of functions itself, runs nothing, keeps nothing on disk but its keys, and believes the first master key that it sees.
//!
//! Two economies, neither of which the master notices: a publication is verified and decrypted once for all minions that share its bytes and
//! key, and a minion's token, which is the same for ever, is signed once.
//!
//! - [`keys`]: the keys, made of a few primes that are kept in a folder
//! - [`plan`]: how many, whom they work with, and how they misbehave
//! - [`stats`]: what they saw
//! - `minion`, `link`, `publications`, `functions`: one of them
//! - [`swarm`]: all of them
//! - [`limits`]: the files that it takes
//! - [`mod@bench`]: the scale runs against a master of its own

pub mod bench;
mod functions;
pub mod keys;
pub mod limits;
mod link;
mod minion;
pub mod plan;
mod publications;
pub mod stats;
pub mod swarm;

pub use plan::Plan;
pub use stats::{Counts, Report};
pub use swarm::Swarm;
