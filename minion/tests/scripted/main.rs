//! The minion against a master that follows a script: real sockets on loopback, real keys, real files, every step waited
//! for with a deadline. The sandbox is real; what runs the functions of jobs is [`functions::Scripted`].

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, unreachable_pub, reason = "tests")]

mod functions;
mod master;
mod modules;
mod running;

mod asking;
mod auth;
mod fetching;
mod jobs;
mod publications;
mod replays;
mod returns;
mod secrets;
