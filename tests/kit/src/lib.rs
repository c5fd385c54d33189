//! What the tests of several crates need: real programs, real sockets on loopback, temporary folders.
//!
//! - [`wait`]: events and conditions, with a deadline
//! - [`process`]: programs and their output, daemons that end with the test, signals, what /proc says
//! - [`programs`]: where Brine's programs and test modules are
//! - [`files`]: modes, scripts, temporary folders
//! - [`keys`]: RSA keys that are made already
//! - [`ports`]: free ports
//! - [`needs`]: what a test cannot run without
//! - [`throwaway`]: a root of its own, for what changes a host
//! - `logs`, `wat`: features of the same names
//!
//! Where something cannot do what it says, it panics, and so fails the test.
//!
//! This crate depends on no other crate of the workspace, so that unit tests of each can use it. `brine-kit-peer` and
//! `brine-kit-sandbox`, in folders here, are for integration tests; they need the wire and the sandbox.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "only tests use it")]

pub mod files;
pub mod keys;
#[cfg(feature = "logs")]
pub mod logs;
pub mod needs;
pub mod ports;
pub mod process;
pub mod programs;
pub mod throwaway;
pub mod wait;
#[cfg(feature = "wat")]
pub mod wat;

pub use needs::{is_root, missing};
pub use throwaway::ThrowawayRoot;
