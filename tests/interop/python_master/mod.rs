//! A Python salt-master drives Brine minions. Every command here is Python's.
//!
//! There is one scenario for each configuration of the master, because each start takes seconds:
//!
//! - [`everyday`]: the defaults, two Brine minions beside a Python one
//! - [`rotation`]: keys that change, masters that restart
//! - [`signatures`]: everything signed and verified that Salt can sign, other algorithms, filtered publications
//! - [`swarm`]: the load generator's minions, which the master cannot distinguish from others

mod client;
mod everyday;
mod rotation;
mod signatures;
mod swarm;
