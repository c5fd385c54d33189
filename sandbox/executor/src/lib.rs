//! Runs module instances: wasmtime's runtime and no compiler, no privileges, nothing to open but the directories that were granted.
//!
//! The executor is a child of the minion. It gets compiled modules as open files and calls to make over the socket that is its fd 0
//! (`brine-sandbox-wire`), gives every call an instance of its own with its budget, and answers what the guest asks either by
//! itself (`log`, `job`, WASI's clocks, randomness and standard streams) or by asking the minion's broker.
//!
//! - [`serve`]: the socket's loop: modules come and go, calls start, are killed, get replies
//! - [`load`], [`modules`]: compiled code, its functions and their types
//! - [`value`]: Salt's values and the component's
//! - [`links`], [`host`]: what a guest can import, one file an interface
//! - [`call`], [`guest`]: one call, from its message to its `Done`, and what its instance may use; [`line`]: its way to the minion
//! - [`activity`], [`memory`]: whether it computes or waits; what it holds of the memory for all
//! - [`params`]: parameters with static types
//! - [`request`]: how large what it asks of the minion may be
//! - [`files`]: what a call has of files; [`directories`]: those that were granted, and paths below them; [`open`]: how a path is
//!   opened; [`narrower`]: one for reading within one for writing
//! - [`budget`]: what it may write and make there; [`stdio`]: its standard output, which is logged
//! - [`network`]: where a call may connect to
//! - [`outcome`]: how a failure reads; [`failure`]: that of what a guest asked for
//! - [`ticker`]: the clock by which running guests are interrupted
//!
//! Two runtimes: the socket has the main thread, guests have threads of their own, so that a busy guest delays neither.

pub mod activity;
pub mod budget;
pub mod call;
pub mod directories;
pub mod failure;
pub mod files;
pub mod guest;
pub mod host;
pub mod line;
pub mod links;
pub mod load;
pub mod memory;
pub mod modules;
pub mod narrower;
pub mod network;
pub mod open;
pub mod outcome;
pub mod params;
pub mod request;
pub mod serve;
pub mod stdio;
pub mod ticker;
pub mod value;

pub use serve::{ServeError, Settings, serve};
