//! `salt-minion` and `salt-call`: connect, authenticate, match, run in the sandbox, return.
//!
//! - [`config`]: the settings, checked once · `cli`, `daemon`, [`call`]: the two programs
//! - [`connection`]: authentication, the request channel (4506), publications (4505) · [`pki`]: the keys on disk
//! - [`jobs`]: admission, matching, running · [`runtime`]: what is needed of the sandbox · [`returns`]: the spool, delivery
//! - [`modules`]: fetching modules from the master's file server · [`broker`]: what modules get from this host
//! - [`grains`], [`facts`]: what this minion knows of itself · [`events`], [`pillar`], `mine`: what it tells and asks its master
//! - [`minion`]: all of it together, from start to end · `control`: what is told to one that runs
//!
//! Invariants: a job's function runs in the sandbox and nowhere else; a publication is a job only when its signature,
//! MAC and serial hold; a return is on disk before it is sent and until the master has acknowledged it; every queue,
//! message and wait has a bound.

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod broker;
pub mod call;
mod cli;
pub mod config;
pub mod connection;
mod control;
mod daemon;
pub mod events;
pub mod facts;
mod filecache;
pub mod fileclient;
pub mod grains;
pub mod jobs;
mod mine;
pub mod minion;
pub mod modules;
pub mod pillar;
pub mod pki;
pub mod process;
mod recycled;
pub mod returns;
pub mod runtime;

pub use daemon::Daemon;
