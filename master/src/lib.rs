//! salt-master: requests, publishing, keys, jobs, file server and the event bus. One process on tokio, no workers to tune.
//!
//! * [`config`]: the settings, read and checked once
//! * [`server`]: starting and ending a master · `daemon`, `settings`, [`live`]: its configuration as a program, and what of it can change while it runs
//! * [`keys`], `auth`, `sessions`: who may work with this master (PROTOCOL.md §3)
//! * `requests`: what comes in on 4506: a closed table of commands, a reply to every request (§4.2, §6, §7)
//! * `publish`, `publisher`: a job on its way out, and the one task that signs and sends it on 4505 (§5)
//! * [`jobs`]: the job store: a return is acknowledged when it is on disk
//! * [`bus`]: events to everyone who listens, here and on the two local sockets (§8)
//! * `access`: what local callers may do, by key, log-in or token (§7); `audit`: who did what, written down
//! * `facts`: grains and pillars of minions, as far as targets ask for them
//! * `fileserver`: `file_roots` (§6.5); `mine`: what minions show to each other; `peer`: what they ask of each other; `runners`: functions that run here (§7.3); `maintenance`: what has to be done now and then; `presence`: who is connected
//!
//! Who sent a request is what its channel proved: handlers get a [`brine_protocol::ids::MinionId`] that was proved with the minion's session
//! key and its accepted key, and never look at an id in a payload.

#![warn(clippy::print_stdout, clippy::print_stderr)]

mod access;
mod audit;
mod auth;
mod bucket;
pub mod bus;
pub mod config;
mod daemon;
mod event_return;
mod facts;
mod files;
mod fileserver;
pub mod jobs;
pub mod keys;
pub mod live;
mod maintenance;
mod master;
mod mine;
mod peer;
mod presence;
mod private_ops;
mod publish;
mod publisher;
mod quotas;
mod refusals;
mod replay;
mod requests;
mod runners;
pub mod server;
mod sessions;
mod settings;

pub use config::MasterOpts;
pub use daemon::Daemon;
pub use server::{Server, StartError};
