//! salt-master: requests, publishing, keys, jobs, file server and the event bus. One process on tokio, no workers to tune.
//!
//! * `config`: the settings, read and checked once; each part has its own, by `options`
//! * [`server`]: starting and ending a master, on its `ports` · `daemon`, `settings`, `live_settings`: its configuration as a program, and what of it can change while it runs
//! * [`keys`], `auth`, `sessions`: who may work with this master (PROTOCOL.md §3)
//! * `requests`: what comes in on 4506: a closed table of commands, a reply to every request (§4.2, §6, §7)
//! * `dispatch`: the one way of a job out, whoever asks for it; `targets`: whom it means; `publisher`: the thread that signs and sends it on 4505 (§5)
//! * `returns`: the one way of a return in (§6.2)
//! * [`jobs`]: the job store: a return is acknowledged when it is on disk
//! * [`bus`]: events to everyone who listens, here and on the two local sockets (§8)
//! * `access`: who asks, and what users may do by key, log-in or token (§7); `admission`: the door; `audit`: who did what, written down
//! * `minion_data`: grains and pillars of minions, as far as targets ask for them
//! * `throttle`, `quotas`, `refusals`, `lanes`: how much one peer can make the master keep, tell and do at a time
//! * `fileserver`: `file_roots` (§6.5); `mine`: what minions show to each other; `peer`: what they ask of each other; `runners`: functions that run here (§7.3); `maintenance`: what has to be done now and then; `presence`: who is connected
//!
//! Modules import one way: none is reached again by what it imports (`tools/check-imports.py`).
//!
//! Who sent a request is what its channel proved: handlers get a [`brine_protocol::ids::MinionId`] that was proved with the minion's session
//! key and its accepted key, and never look at an id in a payload.

#![warn(clippy::print_stdout, clippy::print_stderr)]

mod access;
mod admission;
mod audit;
mod auth;
mod bucket;
pub mod bus;
mod config;
mod daemon;
mod dispatch;
mod event_return;
mod fault;
mod files;
mod fileserver;
mod hash_type;
pub mod jobs;
mod key_removal;
pub mod keys;
mod lanes;
mod live_settings;
mod maintenance;
mod mine;
mod minion_data;
mod minion_events;
mod options;
mod peer;
mod ports;
mod presence;
mod private_ops;
mod publisher;
mod quotas;
mod refusals;
mod replay;
mod requests;
mod returns;
mod runners;
pub mod server;
mod sessions;
mod settings;
mod targets;
mod throttle;

pub use config::MasterOpts;
pub use daemon::Daemon;
pub use server::{Server, StartError};
