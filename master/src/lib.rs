//! salt-master: requests, publishing, keys, jobs, file server and the event bus. One process on tokio, without workers
//! to tune.
//!
//! * `config`: the settings, read and checked once; each part defines its own with `options`
//! * [`server`]: starts and ends a master on its `ports` · `daemon`, `settings`, `live_settings`: the program's
//!   configuration, and the settings that can change while it runs
//! * [`keys`], `auth`, `sessions`: which minions may work with this master (PROTOCOL.md §3)
//! * `requests`: requests on 4506: a closed table of commands, a reply to every request (§4.2, §6, §7)
//! * `dispatch`: the one way of a job to the minions, for every caller; `targets`: resolves targets to minions;
//!   `publisher`: the thread that signs jobs and sends them on 4505 (§5)
//! * `nodes`: requests and events of salt-api
//! * `returns`: the one way of a return into the master (§6.2)
//! * [`jobs`]: the job store: a return is acknowledged when it is on disk
//! * [`bus`]: events for all subscribers, in this process and on the two local sockets (§8)
//! * `access`: identifies callers, and decides what users may do by key, log-in or token (§7); `admission`: identifies
//!   callers and reports refusals; `audit`: the log of all privileged actions
//! * `minion_data`: grains and pillars of minions, as far as targets need them; `sandbox_reports`: what minions report of
//!   their modules; `queries`: what salt-api's console reads of all this
//! * `reactor`: what events start; `cause`, `chains`: how an event is known as the effect of a reaction
//! * `engines`: modules in the sandbox that see events and speak to hosts
//! * `throttle`, `quotas`, `refusals`, `lanes`, `of_one`: bounds on what one peer can make the master store, announce and do at a
//!   time
//! * `fileserver`: `file_roots` (§6.5); `pillar`: compiles the minions' pillars (§6.4); `mine`: data that minions share with each other; `peer`: jobs and runners that
//!   minions start; `runners`: functions that run on the master (§7.3); `maintenance`: periodic tasks; `presence`:
//!   finds the connected minions
//!
//! Modules import one way, without cycles (`tools/check-imports.py`).
//!
//! The channel proves the sender of a request: handlers get a [`brine_protocol::ids::MinionId`] that was proved with
//! the minion's session key and its accepted key, and never use an id from a payload.

#![warn(clippy::print_stdout, clippy::print_stderr)]

mod access;
mod admission;
mod audit;
mod auth;
mod bucket;
pub mod bus;
mod cause;
mod chains;
mod config;
mod daemon;
mod dispatch;
mod engines;
mod event_return;
mod fault;
mod files;
mod fileserver;
pub mod jobs;
mod key_removal;
pub mod keys;
mod lanes;
mod live_settings;
mod maintenance;
mod mine;
mod minion_data;
mod minion_events;
mod nodes;
mod of_one;
mod peer;
mod pillar;
mod ports;
mod presence;
mod private_ops;
mod publisher;
mod queries;
mod quotas;
mod reactor;
mod refusals;
mod replay;
mod requests;
mod returns;
mod runners;
mod sandbox_reports;
pub mod server;
mod sessions;
mod settings;
mod targets;
mod throttle;

pub use config::MasterOpts;
pub use daemon::MasterDaemon;
pub use server::{MasterStartError, Server};
