//! The minion with a scripted master: real sockets on loopback, real keys, real files, and a deadline for every step. A
//! stand-in runs the jobs ([`modules::Modules`]); the tests of the whole workspace use the real sandbox.

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
mod schedule;
mod sealed;
mod secrets;
mod startup;
