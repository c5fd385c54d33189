//! Runs module instances: with wasmtime's runtime and no compiler, without privileges, and with access to the granted
//! directories only.
//!
//! The executor is a child process of the minion. Its fd 0 is a socket (`brine-sandbox-wire`) on which it receives
//! compiled modules as open files and calls to run. Every call gets an instance of its own with its own budget. The
//! executor implements some imports itself (`log`, `job`, WASI's clocks, randomness and standard streams) and forwards
//! the others to the minion's broker.
//!
//! - [`serve`]: the socket's loop: loads and drops modules, starts and kills calls, passes replies on
//! - [`load`], [`modules`]: compiled code, its functions and their types
//! - [`value`]: conversion between Salt's values and component values
//! - [`links`], [`host`]: the imports of a guest, one file for each interface
//! - [`call`], [`guest`]: one call, from its message to its `Done`, and the data of its instance; [`line`]: its messages
//!   to the minion
//! - [`foreseen`]: answers that came with a call
//! - [`activity`], [`memory`]: whether a call computes or waits; its share of the memory for all calls
//! - [`params`]: parameters with static types
//! - [`recorder`]: records the calls of the host, or answers them from a recording
//! - [`request`]: bounds on the requests to the minion
//! - [`files`]: the files of a call; [`directories`]: the granted directories and paths below them; [`open`]: opens a
//!   path; [`narrower`]: a read-only directory within a writable one
//! - [`budget`]: bytes and files that a call may write there; [`stdio`]: its standard output, which is logged
//! - [`network`]: addresses that a call may connect to
//! - [`refused`]: what was refused here, for the owner of the host; [`told`]: each once
//! - [`outcome`]: the messages of failed calls; [`failure`]: failed requests of a guest
//! - [`ticker`]: the clock that interrupts running guests
//!
//! There are two runtimes: the socket uses the main thread and guests use threads of their own, so that a busy guest
//! does not delay the socket.

pub mod activity;
pub mod budget;
pub mod call;
pub mod directories;
pub mod failure;
pub mod files;
pub mod foreseen;
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
pub mod planned;
pub mod recorder;
pub mod refused;
pub mod request;
pub mod serve;
pub mod stdio;
pub mod ticker;
pub mod told;
pub mod value;

pub use serve::{ServeError, ServeOptions, serve};
