//! Messages between the minion's broker and an executor, over one stream socket pair (the executor's fd 0).
//!
//! A frame is a big-endian `u32` length and that many bytes of MessagePack (with named fields, so that either end can
//! describe what it received). `Load` carries one open file by `SCM_RIGHTS`. An escaped guest controls its executor, so
//! every frame is bounded, memory is reserved only for bytes that have arrived and never for an announced length, and
//! malformed input is a typed error that makes the connection unusable.
//!
//! - [`messages`]: the messages in both directions; a guest's request is an operation of `brine_capabilities`
//! - [`frame`]: the bytes of one frame
//! - [`connection`]: the socket, sender and receiver

pub mod connection;
mod error;
pub mod frame;
pub mod messages;

pub use connection::{Connection, Inbox, Received, Receiver, Sender};
pub use error::WireError;
pub use messages::{
    FailKind, Foreseen, FromExecutor, HostError, InUse, JobContext, Limits, LogLevel, MAX_FRAME, Message, Outcome,
    Record, Run, Sha256Hex, StateContext, ToExecutor, Usage,
};

pub use brine_capabilities::ops::*;
pub use brine_capabilities::{
    BeaconEdit, Change, Chunk, Content, DirectGrants, Directory, HttpRequest, ListKind, NetworkRule, Owner, PathAccess,
    ProcessRun, ScheduleChange, SchedulePlace, Wanted, Watch, hosts, special,
};
pub use serde_bytes::ByteBuf;

/// The version of this protocol. `Ready` carries it, and the minion refuses an executor with another version.
pub const VERSION: u32 = 10;

/// Upper bound on the broker requests of one call that have no answer yet. A guest waits for each answer except those of its look-ups of
/// names, which are asynchronous: an executor has fewer look-ups than this open, so that one more request fits. The minion ends an executor
/// that has more requests open.
pub const MAX_OPEN_REQUESTS: u32 = 4;
