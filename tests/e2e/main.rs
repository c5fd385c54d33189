//! End to end: real daemons and commands on loopback, in temporary folders.

mod commands;
mod failures;
mod keys;
mod modules;
mod ping;
mod sandbox;
mod targets;
