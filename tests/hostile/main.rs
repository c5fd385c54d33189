//! Hostile modules against a whole minion: its real broker, compiler and executors.
//!
//! Each attack states the error with which it fails, or the little that it gets. Meanwhile a good job (`test.ping`)
//! must return in time, no attack may exceed its budget, and afterwards the minion and its executors must be as small
//! as before.
//!
//! - `rig`      a minion without a master, the good job beside an attack, memory measurements
//! - `guests`   components as text, for attacks that need raw WebAssembly
//! - `engine`   attacks on the engine · `compiler`, `cache`: before the module runs
//! - `plan`     jobs with `test=True` change nothing
//! - `process`, `files`, `network`, `functions`, `grains`, `asks`: one interface each · `words`: output of modules
//! - `limits`   each resource up to its limit · `refusals`: as many as can be

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod asks;
mod cache;
mod compiler;
mod engine;
mod files;
mod functions;
mod grains;
mod guests;
mod limits;
mod network;
mod plan;
mod process;
mod refusals;
mod rig;
mod words;
