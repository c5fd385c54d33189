//! A Python salt-master drives Brine minions. Every command here is Python's.
//!
//! One scenario a configuration of the master, since each takes seconds to start:
//!
//! - [`everyday`]: the defaults, two Brine minions beside a Python one
//! - [`rotation`]: keys that change, masters that go and come back
//! - [`signatures`]: everything signed and verified that Salt can sign, other algorithms, filtered publications
//! - [`swarm`]: the load generator's minions, which it cannot tell from others

mod client;
mod everyday;
mod rotation;
mod signatures;
mod swarm;
