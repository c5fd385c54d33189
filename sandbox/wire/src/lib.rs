//! Messages between the minion's broker and an executor, over one stream socket pair (the executor's fd 0).
//!
//! A frame is a big-endian `u32` length and that many bytes of MessagePack (named fields, so that either end can tell what
//! it got). `Load` carries one open file by `SCM_RIGHTS`. The executor is what an escaped guest would speak through: every
//! frame is bounded, memory is reserved for what has arrived and never for what a length claims, and whatever is malformed is a
//! typed error after which the connection is of no more use.
//!
//! - [`messages`]: what is said, both ways; what a guest asks is an operation of `brine_capabilities`
//! - [`frame`]: bytes of one frame
//! - [`connection`]: the socket, sender and receiver

pub mod connection;
mod error;
pub mod frame;
pub mod messages;

pub use connection::{Connection, Inbox, Received, Receiver, Sender};
pub use error::WireError;
pub use messages::{
    FailKind, FromExecutor, HostError, JobContext, Limits, LogLevel, MAX_FRAME, Message, Outcome, Run, Sha256Hex,
    ToExecutor, Usage,
};

pub use brine_capabilities::ops::*;
pub use brine_capabilities::{DirectGrants, Directory, HttpRequest, ListKind, NetworkRule, ProcessRun, hosts};
pub use serde_bytes::ByteBuf;

/// The version of this protocol; `Ready` carries it and the minion refuses an executor of another one.
pub const VERSION: u32 = 4;
