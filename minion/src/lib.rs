//! `salt-minion` and `salt-call`: connect, authenticate, match, run in the sandbox, return.
//!
//! - [`config`]: the settings, checked once · `cli`, `daemon`, [`call`]: the two programs
//! - [`connection`]: the masters, authentication, requests (4506), publications (4505) · [`pki`]: the keys on disk
//! - [`jobs`]: every job's way from its source to its return
//! - [`returns`]: the spool and the delivery of returns · [`broker`]: the operations that modules request from this
//!   host
//! - `states`: the states that a job runs, and what they came to
//! - [`modules`]: modules from the master's file server · [`fileclient`], `filecache`: the file server's client and
//!   cache
//! - [`grains`], [`pillar`]: the minion's own data and the master's data for it · [`events`], `mine`: events and mine
//!   data for the master · `startup`: the states of the start
//! - `beacons`: what modules watch on this host, and the events that they make of it · `schedule`: jobs at their time
//! - `accounts`, `host_names`, `interfaces`, `text_file`, `own_yaml`, `spare_files`, `slots`: this host's users, names, network and small files
//!   · `lines`: a bound on the log
//! - [`minion`]: puts the parts together and runs them from start to end
//!
//! Imports run one way: a module imports only modules further from [`minion`].
//!
//! Invariants: a job's function runs in the sandbox and nowhere else; a publication is a job only when its signature,
//! MAC and serial hold; a return is on disk before it is sent and until the master has acknowledged it; every queue,
//! message and wait has a bound.

#![warn(clippy::print_stdout, clippy::print_stderr)]

mod accounts;
mod beacons;
pub mod broker;
pub mod call;
mod cli;
pub mod config;
pub mod connection;
mod daemon;
pub mod events;
mod filecache;
pub mod fileclient;
pub mod grains;
mod host_names;
mod interfaces;
pub mod jobs;
mod joined;
mod lines;
mod mine;
pub mod minion;
pub mod modules;
mod own_yaml;
mod owner;
pub mod pillar;
pub mod pki;
pub mod receipts;
mod returners;
pub mod returns;
mod schedule;
mod slots;
mod spare_files;
mod startup;
mod states;
mod text_file;
mod weight;

pub use daemon::MinionDaemon;
