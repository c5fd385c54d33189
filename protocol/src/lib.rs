//! Salt's protocol: values, envelopes, keys, jobs, targets, events and configuration files.
//!
//! This crate has everything on which a master, a minion and a client must agree, and none of their behaviour. Sections
//! (§) in the comments are those of `PROTOCOL.md`.
//!
//! * [`value`], [`msgpack`]: Salt's values and their two MessagePack flavours (§2)
//! * [`ids`], [`secret`]: checked types for names from outside, and types that do not print
//! * [`keys`], [`crypticle`]: RSA keys and the AES payload (§2.2, §4)
//! * [`envelope`], [`auth`], [`request`], [`publication`]: messages on 4506 and 4505 (§2.1, §3, §4, §5)
//! * [`sealed`]: publications between a Brine master and a Brine minion (§5.5); [`receiver`]: what a minion makes of both forms
//! * [`nodes`]: what a master and salt-api say to each other
//! * [`job`], [`target`], [`event`]: jobs, their targets, and the event bus (§6.2, §8, §9, §10)
//! * [`text`]: how foreign text is displayed to people
//! * [`trusted_path`], [`files`]: opens configured files and folders without following other users' symlinks; writes files
//!   atomically
//! * [`config`], [`args`], [`exit`], [`pyrepr`]: code that the programs share (§11, §12)
//!
//! Decoders accept hostile bytes: they are bounded, recurse only to a limit, do not allocate by a claimed length, and
//! never panic.

#![warn(clippy::print_stdout, clippy::print_stderr)]

pub mod args;
pub mod auth;
pub mod config;
pub mod crypticle;
pub mod envelope;
pub mod event;
pub mod exit;
pub mod files;
pub mod ids;
pub mod job;
pub mod keys;
pub mod msgpack;
pub mod nodes;
pub mod presence;
pub mod publication;
pub mod receiver;
pub mod request;
pub mod sealed;
pub mod secret;
pub mod target;
pub mod trusted_path;

pub use brine_text as text;
pub use brine_values as value;
pub use brine_values::pyrepr;
pub use rmpv;

/// The release of Salt that Brine behaves like, as `saltversion` tells it: templates compare it, mostly by its first two parts.
pub const SALT_RELEASE: [u64; 2] = [3008, 3];

#[cfg(test)]
mod vectors;
