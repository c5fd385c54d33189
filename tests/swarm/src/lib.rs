//! A swarm: thousands of simulated minions in one process, to load a master.
//!
//! Each has its own id, RSA key, authentication, session key, subscription and request connection, over real sockets
//! and with the real cryptography of `brine-protocol`. A master cannot distinguish them from minions. The swarm is only
//! a load generator: it implements a handful of functions, runs nothing, stores only its keys on disk, and trusts the
//! first master key that it sees.
//!
//! Two optimisations, which the master cannot notice: a publication is verified and decrypted once for all minions with
//! the same bytes and key, and a minion's constant token is signed once.
//!
//! - [`keys`]: the keys, made of a few primes that are kept in a folder
//! - [`plan`]: the number of minions, their master, and their misbehaviour
//! - [`stats`]: the results
//! - `minion`, `link`, `publications`, `functions`: one simulated minion
//! - [`swarm`]: all minions
//! - [`limits`]: the limit on open files
//! - [`mod@bench`]: benchmarks against a master of its own

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
