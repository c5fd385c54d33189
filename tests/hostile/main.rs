//! Hostile modules against a whole minion: its real broker, the real compiler and executors.
//!
//! Each attack says with which words it fails, or what little it gets. Beside each of them a good job (`test.ping`) has to answer
//! in time, none may outlast its budget, and after all of them the minion and its executors are as small as before.
//!
//! - `rig`      a minion without a master, the good job beside an attack, what everything weighs
//! - `guests`   components as text, where raw WebAssembly is the point
//! - `engine`   what a guest can do to its engine · `compiler`, `cache`: before it runs
//! - `process`, `files`, `network`, `functions`, `asks`: one interface each · `words`: what it writes
//! - `limits`   each resource to its end

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod asks;
mod cache;
mod compiler;
mod engine;
mod files;
mod functions;
mod guests;
mod limits;
mod network;
mod process;
mod rig;
mod words;
