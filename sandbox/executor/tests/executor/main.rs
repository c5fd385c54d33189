//! Calls of an executor process, and of its parts. One program, because each has to be linked with the engine; `process.rs` is another, since its
//! tests look at what a process inherits.
#![allow(clippy::unwrap_used, reason = "it is test code")]

mod alone;
mod broker;
mod budget;
mod calls;
mod common;
mod direct;
mod filesystem;
mod foreseen;
mod host;
mod limits;
mod narrower;
mod recording;
mod refused;
mod sockets;
mod values;
mod wasi;
